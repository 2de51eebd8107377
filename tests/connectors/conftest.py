"""An application with a folder that it keeps a collection in step with."""

import os
import time
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import event

from rag.connectors import sync
from rag.records import EVERYTHING, DocumentSource, Standing
from rag.settings import Settings
from rag.wiring.application import build
from rag.wiring.stores import syncs_of
from tests.applications import application_of
from tests.connectors.folder_model import Killed
from tests.fakes import HashEmbedder

OLD = time.time() - 3600  # long enough ago that a time and a size tell two versions apart


class Office:
    """The application, a folder, and the source that it is."""

    def __init__(self, folder, **settings):
        self.folder = folder / "manuals"
        self.folder.mkdir()
        self.settings = Settings(data_dir=folder / "data", **settings)
        self.reopen()
        self.written = OLD
        self.source = None

    def reopen(self):
        """As after a new start."""
        is_here = self.settings.sessions.database_url is None
        if is_here:
            self.app = application_of(self.settings)
        else:
            self.app = build(self.settings, embedder=HashEmbedder())
        self.embedded = counting(self.app.embedder)

    # ── The folder ───────────────────────────────────────────────────────────────────────────

    def write(self, name, text, *, when=None):
        """A file, written a while ago, and later than all before it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.age(name, when)

    def age(self, name, when=None):
        self.written += 3
        os.utime(self.folder / name, (when or self.written,) * 2)

    def move(self, before, after):
        (self.folder / after).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / before).rename(self.folder / after)

    def delete(self, name):
        (self.folder / name).unlink()

    # ── Its source ───────────────────────────────────────────────────────────────────────────

    @property
    def book(self):
        return self.app.sources

    def add(self, **wish):
        wish = {"address": str(self.folder), "is_operators": True} | wish
        self.source = self.book.add(DocumentSource("", kind="", name="", **wish))
        self.app.jobs.run_waiting()
        return self.told()

    def sync(self):
        self.book.sync(self.source.id)
        self.app.jobs.run_waiting()
        return self.told()

    def sync_until_killed(self):
        """As a job does it, in a process that may end at any write."""
        with suppress(Killed):
            syncs_of(self.app).run(self.source.id, lambda done, total: None)

    def told(self):
        return self.book.statuses([self.book.table.source(self.source.id)])[0]

    def files(self, *standings):
        return self.book.table.files(self.source.id, *(standings or (Standing.LISTED,)))

    # ── The library ──────────────────────────────────────────────────────────────────────────

    def documents(self):
        return {each.name: each for each in self.app.documents.documents(EVERYTHING)}

    def ids(self):
        return {name: each.id for name, each in self.documents().items()}

    def texts(self):
        """What the library says, by document."""
        return {
            name: "\n".join(part.text for part in self.app.documents.sections(each.id, EVERYTHING))
            for name, each in self.documents().items()
        }

    def found(self, words):
        """Names of documents that word search finds."""
        chunks = self.app.documents.chunks(
            [key for key, _score in self.app.words.search(words, EVERYTHING, limit=9)], EVERYTHING
        )
        return {chunk.document_name for chunk in chunks.values()}


@contextmanager
def killed_at(engine, number):
    """From that write on nothing is written any more; tells whether it came so far."""
    left, is_dead = [number], []

    def end(_connection):
        left[0] -= 1
        if left[0] <= 0:
            is_dead.append(True)
            raise Killed

    event.listen(engine, "commit", end)
    try:
        yield lambda: bool(is_dead)
    finally:
        event.remove(engine, "commit", end)


def counting(embedder):
    """The texts that it embeds from now on."""
    texts, embed = [], embedder.embed
    embedder.embed = lambda some: texts.extend(some) or embed(some)
    return texts


@pytest.fixture(autouse=True)
def later(monkeypatch):
    """Each file was written a while ago."""
    monkeypatch.setattr("rag.connectors.folder.now", lambda: time.time() + 7200)
    monkeypatch.setattr(sync, "PAUSE_SECONDS", 0.01)


@pytest.fixture
def office(tmp_path):
    made = Office(tmp_path)
    yield made
    made.app.stop()


@pytest.fixture
def office_on_postgres(tmp_path, postgres):
    url = postgres.url.render_as_string(hide_password=False)
    made = Office(tmp_path, sessions={"database_url": url})
    yield made
    made.app.stop()


@pytest.fixture
def office_of(tmp_path):
    """An application with the settings that are given."""
    made = []

    def make(**settings):
        made.append(Office(tmp_path, **settings))
        return made[0]

    yield make
    for office in made:
        office.app.stop()
