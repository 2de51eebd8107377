"""Is a library as its folder is, whatever happens, and what does it cost to see that it is?

    python -m benchmarks.sync lives [--operations 2000] [--seeds 1]
    python -m benchmarks.sync many [--files 10000]
    python -m benchmarks.sync renamed [--files 10000]
    python -m benchmarks.sync watch [--saves 10]

`lives` lets a folder live at random and kills syncs at random writes (what has to hold after
each: tests/connectors/folder_model.py); `many` and `watch` use the packaged model. Nothing leaves
this machine.
"""

import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import click

from rag.connectors import folder, sync
from rag.documents.files import collect
from rag.records import EVERYTHING, DocumentSource, Finished, SyncState
from rag.settings import Settings
from rag.wiring.application import Application, build
from rag.wiring.stores import syncs_of
from tests.connectors.conftest import Office, killed_at
from tests.connectors.folder_model import Life, live

POLL_SECONDS = 0.02
PATIENCE_SECONDS = 120.0
WORDS = ("valve", "bearing", "gasket", "rotor", "spindle", "flange", "bushing", "piston")


@click.group()
def main() -> None:
    """Syncs of folders."""


@main.command()
@click.option("--operations", default=2_000)
@click.option("--seeds", default=1)
def lives(operations: int, seeds: int) -> None:
    """So many operations in each of so many folders."""
    later = partial(patch.object, folder, "now", lambda: time.time() + 7_200)
    with later(), patch.object(sync, "PAUSE_SECONDS", 0.01):
        for seed in range(1, seeds + 1):
            began = time.process_time()
            with tempfile.TemporaryDirectory() as place:
                office = Office(Path(place))
                office.add()
                kill_at = partial(killed_at, office.app.engine)
                counts = live(Life(office, seed), operations, kill_at)
                office.app.stop()
            told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            print(f"| {seed} | {told} | {time.process_time() - began:.0f} |", flush=True)


@main.command()
@click.option("--files", default=10_000)
def many(files: int) -> None:
    """A folder of many small files, looked at twice."""
    with _application() as (application, place):
        _write_files(place, files)
        made = _add(application, place)
        first_words = _first_words(application, made)
        for number in (2, 3):
            reads = Counter[str]()
            with _counting(application, reads):
                spent = _sync(application, made)
            print(f"| sync {number} | {spent:.2f} CPU s | {_counts(application, made)} | {reads} |")
        before = _spent()
        stages = Counter(
            report.stage.value
            for report in application.ingestion.ingest(collect([place]))
            if report.is_final
        )
        print(f"| ingest of the same | {_spent() - before:.2f} CPU s | {dict(stages)} | all read |")
        print(f"first words after {first_words:.1f} s of the clock")


@main.command()
@click.option("--files", default=10_000)
def renamed(files: int) -> None:
    """The folder above all files gets another name, then one of a hundred inside; fake embedder."""
    with tempfile.TemporaryDirectory() as there:
        office = Office(Path(there))
        _write_files(office.folder / "old", files)
        office.add()
        steps = (("all of them", "old", "new"), ("a hundred", "new/0", "new/zero"))
        for what, before, after in steps:
            known = {each.id for each in office.documents().values()}
            office.move(before, after)
            office.embedded.clear()
            began, clock = _spent(), time.monotonic()
            counts = office.sync().source.counts
            told = f"{_spent() - began:.1f} CPU s, {time.monotonic() - clock:.0f} s of the clock"
            kept = len(known & {each.id for each in office.documents().values()})
            texts = len(office.embedded)
            print(f"| {what} | {told} | {counts.moved} moved, {kept} ids kept | {texts} embedded |")
        office.app.stop()


def _first_words(application: Application, source: DocumentSource) -> float:
    found: list[float] = []
    began, is_over = time.monotonic(), threading.Event()

    def look() -> None:
        while not is_over.is_set():
            if application.words.search(WORDS[0], EVERYTHING, limit=1):
                found.append(time.monotonic() - began)
                return
            time.sleep(POLL_SECONDS)

    watcher = threading.Thread(target=look)
    watcher.start()
    spent = _sync(application, source)
    is_over.set()
    watcher.join()
    clock = time.monotonic() - began
    counts = _counts(application, source)
    print(f"| sync 1 | {spent:.1f} CPU s, {clock:.0f} s of the clock | {counts} | |", flush=True)
    return found[0] if found else clock


@main.command()
@click.option("--saves", default=10)
def watch(saves: int) -> None:
    """From saving a file to an answer that cites it."""
    with _application() as (application, place):
        _write_files(place, 100)
        application.load()
        application.embedder.embed(["warm"])
        made = _add(application, place, watch=True)
        application.start()
        _until(lambda: _state(application, made) is SyncState.IDLE)
        time.sleep(5)  # until it is watched, and looked at
        words, answers = [], []
        for number in range(saves):
            began = time.monotonic()
            name = f"news{number}.md"
            text = f"# Notice {number}\n\nThe zorblax{number} weighs {number + 40} kg.\n"
            (place / name).write_text(text)
            _until(partial(_finds, application, f"zorblax{number}"))
            words.append(time.monotonic() - began)
            _until(partial(_cites, application, f"How heavy is the zorblax{number}?", name))
            answers.append(time.monotonic() - began)
        for what, seconds in (("words found", words), ("answer cites it", answers)):
            told = f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s"
            print(f"| {what} | {told} of the clock, {saves} saves |")


def _finds(application: Application, word: str) -> bool:
    return bool(application.words.search(word, EVERYTHING, limit=1))


def _cites(application: Application, question: str, name: str) -> bool:
    session = application.store.create("local")
    told = list(application.assistant.ask(session, question))
    ended = next(event for event in told if isinstance(event, Finished))
    return any(source.document_name == name for source in ended.sources)


# ── Parts ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _application() -> Iterator[tuple[Application, Path]]:
    with tempfile.TemporaryDirectory() as there:
        place = Path(there) / "folder"
        place.mkdir()
        application = build(Settings(data_dir=Path(there) / "data"))
        try:
            yield application, place
        finally:
            application.stop()


def _write_files(place: Path, count: int) -> None:
    """Small ones, an hour old, in folders of a hundred."""
    words, then = random.Random(1), time.time() - 3_600
    for number in range(count):
        path = place / f"{number // 100}" / f"part{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        said = " ".join(words.choices(WORDS, k=40))
        path.write_text(f"# Part {number}\n\nPart {number} has a {said}. It weighs {number} g.\n")
        os.utime(path, (then, then))
    time.sleep(folder.CERTAIN_SECONDS)


def _add(application: Application, place: Path, *, watch: bool = False) -> DocumentSource:
    wish = DocumentSource("", str(place), "", "", watch=watch, is_operators=True)
    return application.sources.add(wish)


def _sync(application: Application, source: DocumentSource) -> float:
    """Processor time of this process and of those that read, in seconds."""
    before = _spent()
    syncs_of(application).run(source.id, lambda done, total: None)
    return _spent() - before


def _spent() -> float:
    mine = os.times()
    return mine.user + mine.system + mine.children_user + mine.children_system


@contextmanager
def _counting(application: Application, counts: Counter[str]) -> Iterator[None]:
    read, embed = folder.FolderSource.read, application.embedder.embed

    def reading(self: folder.FolderSource, file: object) -> bytes:
        counts["read"] += 1
        return read(self, file)

    def embedding(texts: list[str]) -> object:
        counts["embedded"] += len(texts)
        return embed(texts)

    with (
        patch.object(folder.FolderSource, "read", reading),
        patch.object(application.embedder, "embed", embedding),
    ):
        yield


def _counts(application: Application, source: DocumentSource) -> str:
    counts = application.sources.table.source(source.id).counts
    return f"{counts.new} new, {counts.unchanged} unchanged, {counts.failed} failed"


def _state(application: Application, source: DocumentSource) -> SyncState:
    return application.sources.statuses([application.sources.table.source(source.id)])[0].state


def _until(is_so: object) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > ends:
            raise TimeoutError
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
