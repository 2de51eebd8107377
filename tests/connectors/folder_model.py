"""Random lives of a folder, against a model of what the library has to say after each sync."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from rag.records import Standing, SyncState

WORDS = (
    "aero",
    "filter",
    "button",
    "lamp",
    "cable",
    "weight",
    "garden",
    "museum",
    "river",
    "stone",
)
FIRST_FILES, MOST_FILES = 20, 60


class Killed(BaseException):
    """The process ends here, without a word."""


@dataclass
class File:
    """What the model knows of one."""

    text: str
    document: str = ""  # the id of its document, once a sync made it
    seen: tuple = ()  # its name and text at the last look


@dataclass
class Life:
    """A folder that somebody works in; `look` syncs and compares."""

    office: object
    seed: int
    files: dict = field(default_factory=dict)
    outside: dict = field(default_factory=dict)  # taken out of the folder for a while
    counts: Counter = field(default_factory=Counter)
    written: int = 0
    said: dict = field(default_factory=lambda: defaultdict(set))  # by names, ever
    taken: set = field(default_factory=set)  # names that came back since the last look
    doubled: set = field(default_factory=set)  # texts that were in several files

    def __post_init__(self):
        self.random = random.Random(self.seed)

    # ── What happens in the folder ───────────────────────────────────────────────────────────

    def create(self):
        if len(self.files) < MOST_FILES:
            self._write(self._free_name())

    def edit(self):
        if self.files:
            self._write(self._any())

    def touch(self):
        if self.files:
            self.office.age(self._any())

    def move(self):
        if self.files:
            self._move(self._any(), self._free_name())

    def rename_folder(self):
        folders = {name.split("/")[0] for name in self.files if "/" in name}
        if not folders:
            return
        before, after = self.random.choice(sorted(folders)), f"folder{self.written}"
        self.written += 1
        for name in [each for each in self.files if each.startswith(f"{before}/")]:
            self.files[after + name[len(before) :]] = self.files.pop(name)
        self.office.move(before, after)

    def delete(self):
        if self.files:
            name = self._any()
            self.office.delete(name)
            del self.files[name]

    def copy(self):
        """Another of the same content."""
        if self.files and len(self.files) < MOST_FILES:
            name, text = self._free_name(), self.files[self._any()].text
            self.office.write(name, text)
            self.files[name] = File(text)
            self.doubled.add(text)

    def restore(self):
        """A text that was there before, under its old name."""
        if self.outside:
            name = self.random.choice(sorted(self.outside))
            text = self.outside.pop(name)
            if name not in self.files:
                self.office.write(name, text)
                self.files[name] = File(text)
                self.doubled.add(text)
                self.taken.add(name)

    def undo(self):
        """What was removed last is there again, though no file is, until one has its name."""
        if self.office.told().undo_count:
            self.office.book.undo(self.office.source.id)
            self.office.sync()
            self.counts["had back"] += len(self.office.files(Standing.KEPT))

    def half_written(self):
        self.office.write(f"{self._free_name()}.part", "half a t")

    def _write(self, name):
        self.written += 1
        words = " ".join(self.random.choices(WORDS, k=12))
        text = f"# Text {self.written}\n\nIt says {words} {self.written}.\n"
        if name in self.files:
            self.outside[name] = self.files[name].text  # to come again under that name
            self.files[name].text = text
        else:
            self.files[name] = File(text)
        self.office.write(name, text)

    def _move(self, before, after):
        self.office.move(before, after)
        self.files[after] = self.files.pop(before)

    def _any(self):
        return self.random.choice(sorted(self.files))

    def _heard(self):
        """What each name has stood for."""
        for name, file in self.files.items():
            self.said[name].add(words_of(file.text))

    def _free_name(self):
        self.written += 1
        folder = self.random.choice(["", "", "a/", "b/", "b/c/"])
        return f"{folder}file{self.written}.md"

    # ── What happens to the syncs ────────────────────────────────────────────────────────────

    def killed_sync(self, kill_at):
        """One that is cut off at a random write to the database."""
        with kill_at(self.random.randrange(1, 25)) as is_killed:
            self.office.sync_until_killed()
        self.counts["kills"] += is_killed()

    def away(self):
        """A sync while the folder is not there."""
        self.office.move(".", "../away")
        told = self.office.sync()
        assert told.state is SyncState.AWAY, told
        (self.office.folder.parent / "away").rename(self.office.folder)

    def look(self):
        """A sync, and everything compared."""
        told = self.office.sync()
        while told.state is SyncState.WAITING_FOR_YES:
            self.counts["asked"] += 1
            self.office.book.confirm(self.office.source.id)
            self.office.app.jobs.run_waiting()
            told = self.office.told()
        assert told.state is SyncState.IDLE, told
        documents, texts = self.office.documents(), self.office.texts()
        kept = {row.document_name: row.name for row in self.office.files(Standing.KEPT)}
        assert not kept.keys() & self.files.keys()
        assert documents.keys() == self.files.keys() | kept.keys()
        for document, name in kept.items():
            assert any(said in texts[document] for said in self.said[name]), name
        for name, file in self.files.items():
            assert words_of(file.text) in texts[name], name
        assert len({each.id for each in documents.values()}) == len(documents)
        self._compare_ids({name: documents[name].id for name in self.files})
        self._compare_indexes()
        self.counts["syncs"] += 1

    def _compare_ids(self, ids):
        """A file that kept its name or its content kept its id; copies may change places."""
        for name, file in self.files.items():
            is_moved = file.seen[1:] == (file.text,) and file.text not in self.doubled
            is_moved = is_moved and file.seen[0] not in self.taken  # a name that is there keeps its
            if file.document and (file.seen[0] == name or is_moved):
                assert ids[name] == file.document, name
                self.counts["ids compared"] += 1
            file.document, file.seen = ids[name], (name, file.text)
        self.taken.clear()

    def _compare_indexes(self):
        app = self.office.app
        assert app.documents.unembedded_count() == 0
        app.ingestion.synchronise()  # what a kill left in the index goes with the next embedding
        assert app.index.count() == app.documents.chunk_count()


def words_of(text):
    """Without its heading."""
    return text.split("\n\n")[1].strip()


OPERATIONS = {
    "create": 12,
    "edit": 12,
    "touch": 6,
    "move": 10,
    "rename_folder": 3,
    "delete": 10,
    "copy": 3,
    "restore": 3,
    "half_written": 2,
    "undo": 2,
    "killed_sync": 6,
    "away": 1,
    "look": 12,
}


def live(life, count, kill_at):
    """So many operations in a folder of some files, and a last look."""
    for _ in range(FIRST_FILES):
        life.create()
    life.look()
    names, weights = list(OPERATIONS), list(OPERATIONS.values())
    for name in life.random.choices(names, weights, k=count):
        life.counts[name] += 1
        life._heard()
        if name == "killed_sync":
            life.killed_sync(kill_at)
        else:
            getattr(life, name)()
    life.look()
    return life.counts
