"""The records of documents, tables, collections, jobs, syncs and hits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum


@dataclass(frozen=True, slots=True)
class RawTable:
    """A grid as a reader found it, before its columns are typed.

    `rows` is CSV, all rows equally long, in which the first cell is the row's number.
    """

    name: str  # of the sheet, the file or the heading above it
    locator: str
    rows: str
    width: int  # cells in a row, without the row's number
    row_count: int
    typed: tuple[int, ...] = ()  # columns, from 0, whose cells are typed as numbers in the file


class ColumnType(StrEnum):
    """The type of a column's values."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    QUARTER = "quarter"  # stored as year * 10 + quarter, the year 0 where none is said
    DURATION = "duration"  # stored in seconds
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column, with the statistics of its values."""

    name: str  # as people read it; unique in its table
    type: ColumnType
    unit: str = ""  # of numbers: "€", "%", "kg"
    decimals: int = 0
    has_text: bool = False  # cells hold more than the value: their text is stored beside it
    distinct: int = 0
    blanks: int = 0
    low: str = ""
    high: str = ""
    examples: tuple[str, ...] = ()  # the most frequent values
    note: str = ""  # what had to be assumed: "day before month"
    missing: int = 0  # cells with a formula whose result the file does not hold


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table. Its id follows from its content: another content is another table."""

    id: str
    document_id: str
    document_name: str
    document_title: str
    position: int  # from 0, in its document
    name: str
    locator: str
    row_count: int  # without rows of totals
    columns: tuple[TableColumn, ...]
    words: str = ""  # normalised words of names and values, by which a table is chosen

    @property
    def label(self) -> str:
        """The table's name with its document's, for people."""
        if self.name.casefold() in self.document_title.casefold():
            return self.document_title
        return f"{self.name} ({self.document_title})"


DEFAULT_COLLECTION = "1"  # where documents are unless they are put elsewhere
GROUP = "group:"  # before the name of a member that is a group


class Right(IntEnum):
    """A right in a collection; each includes those before it."""

    NONE = 0
    READ = 1
    ADD = 2  # add documents, and change one's own
    WRITE = 3  # add, change and delete any
    MANAGE = 4  # change rights, rename, delete


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents that the same people may read."""

    id: str  # digits: the word index holds it as a word
    name: str
    owner: str  # empty: the operator of the server
    everybody: Right = Right.NONE  # the right of every known caller


@dataclass(frozen=True, slots=True)
class Readable:
    """The collections that an asker may read: everything that finds documents asks for it (C7)."""

    ids: frozenset[str] | None  # None: all collections

    def holds(self, collection_id: str) -> bool:
        return self.ids is None or collection_id in self.ids

    def only(self, chosen: Iterable[str]) -> "Readable":
        """Return those of them that are in `chosen`; all if `chosen` is empty."""
        wanted = frozenset(chosen)
        if not wanted:
            return self
        return Readable(wanted if self.ids is None else wanted & self.ids)


EVERYTHING = Readable(None)  # for the operator only
NOTHING = Readable(frozenset())


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document with a locator, as readable plain text.

    As in Markdown, tables have pipes, list items `- `, code four spaces; other markup is removed.
    """

    index: int  # from 0, in reading order
    heading_path: tuple[str, ...]  # outermost first, without the document's title
    locator: str  # where a person finds it: "§ Setup › Wi-Fi", "page 3", "sheet Prices", "slide 2"
    text: str
    page: int | None = None  # from 1; PDF pages and slides only


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """What reading a file gave, and what was left out of it."""

    pages: int = 0  # PDF pages and slides; 0 for formats that have none
    words: int = 0
    tables: int = 0
    form_values: int = 0
    pictures: int = 0  # their text is not read
    left_out: tuple[str, ...] = ()  # parts and reasons, for people
    recognised: int = 0  # pages (counted above) and pictures that were read by OCR
    reader: int = 0  # version of the readers; 0: from before they had one
    author: str = ""  # as the file itself says, or its front matter
    date: str = ""  # the same: a day of the calendar, "2025-03-31"
    tags: tuple[str, ...] = ()
    refused: str = ""  # why newer readers refuse the file; its text is what older ones read


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents are searched; an empty field filters nothing.

    Texts are compared in any case. A title matches if it has all the words, a folder if it holds
    the file.
    """

    title: str = ""
    author: str = ""
    folder: str = ""
    type: str = ""  # as `FileKind.word` calls it
    tag: str = ""
    after: str = ""  # the first day that counts, "2025-03-31"
    before: str = ""  # the first day that does not

    def __bool__(self) -> bool:
        return any(value for _, value in self.items())

    def items(self) -> tuple[tuple[str, str], ...]:
        """Return the fields that filter, as pairs of name and value."""
        named = ((name, str(getattr(self, name))) for name in self.__slots__)
        return tuple((name, value) for name, value in named if value)


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class FilteredDocuments:
    """The documents that pass the filters, of those that a caller may read."""

    names: tuple[str, ...]
    chunk_ids: frozenset[str]


Facets = Mapping[str, Mapping[str, int]]  # name of a filter → value → number of documents


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a reader made of a file: no ids, no time, nothing stored yet."""

    title: str
    sections: tuple[Section, ...]
    media_type: str
    names: tuple[str, ...] = ()  # product names found in titles, headings, tables, front matter
    tables: tuple[RawTable, ...] = ()
    report: ReadingReport = ReadingReport()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one section, small enough to cite; `text == section.text[start:end]`."""

    id: str  # content-addressed: the same piece of the same document always has the same id
    document_id: str
    document_name: str  # the file's name relative to the ingested folder, with forward slashes
    document_title: str
    section_index: int
    position: int  # from 0, in reading order over the whole document
    heading_path: tuple[str, ...]
    locator: str
    text: str
    start: int  # character offsets into the section's text
    end: int
    collection_id: str = DEFAULT_COLLECTION

    @property
    def heading(self) -> str:
        """Title and heading path in one line, for embedding and for lexical search."""
        return " › ".join(dict.fromkeys((self.document_title, *self.heading_path)))

    @property
    def embedded_text(self) -> str:
        """What is embedded: the heading path in front of the text. Never shown."""
        return f"{self.heading}\n{self.text}"


class Certainty(StrEnum):
    """Whether the documents answer a question, as far as a search can tell."""

    FOUND = "found"
    PERHAPS = "perhaps"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Confidence:
    """What a search says about a question as a whole."""

    certainty: Certainty = Certainty.FOUND
    missing: tuple["MissingIdentifier", ...] = ()  # its codes that no document has
    is_other_language: bool = False  # than the documents': no word is shared, no sentence is near


@dataclass(frozen=True, slots=True)
class MissingIdentifier:
    """A code that a question names and no readable document holds, with similar codes."""

    written: str
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the library."""

    id: str  # derived from its name and first collection: re-ingesting a file keeps its id
    name: str
    title: str
    media_type: str
    content_hash: str  # sha256 of the file's bytes, hex
    size_bytes: int
    chunk_count: int
    ingested_at: datetime
    names: tuple[str, ...] = ()
    owner: str = ""  # who added it; empty: the operator of the server
    collection_id: str = DEFAULT_COLLECTION
    report: ReadingReport = ReadingReport()
    url: str = ""  # where people open it at its source; "" where that is nowhere


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of a library's documents, by name."""

    documents: list[Document]
    matching: int  # how many match in all
    total: int  # in the library


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk with its score for one query, and the neighbourhood in which to read it.

    `passage == section.text[passage_start:passage_end]` and it encloses the chunk.
    """

    chunk: Chunk
    score: float  # higher is better; comparable within one query only
    passage: str
    passage_start: int
    passage_end: int
    relevance: float = 0.0  # comparable between queries: 0 (unrelated) to 1 (surely about it)


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of background work."""

    id: str
    kind: str  # "ingest" or "compact"
    subject: str  # the document's name, or the session's id
    state: JobState
    created_at: datetime
    updated_at: datetime
    done: int = 0  # chunks embedded so far
    total: int = 0  # chunks to embed; 0 while that is not known
    error: str | None = None
    seconds: float | None = None
    owner: str = ""  # who uploaded it; empty: no owner
    collection_id: str = DEFAULT_COLLECTION
    attempts: int = 0  # attempts that failed because a service was not reachable
    due_at: datetime | None = None  # when it is tried again
    has_arrived: bool = False  # the upload's text is, or was, in the library


class SyncState(StrEnum):
    """How a source stands."""

    IDLE = "idle"
    RUNNING = "running"  # a sync is queued or runs
    WAITING_FOR_YES = "waiting_for_yes"  # so many files are gone that a person has to confirm
    AWAY = "away"  # it could not be listed completely: nothing was removed
    FAILED = "failed"
    REMOVING = "removing"  # with its documents


class Standing(StrEnum):
    """The state of a file of a source."""

    LISTED = "listed"
    ASKED = "asked"  # not listed any more; its removal waits for confirmation
    AGREED = "agreed"  # its removal is confirmed
    REMOVING = "removing"  # its document is being deleted
    REMOVED = "removed"  # its document is deleted, and can be restored for a while
    BACK = "back"  # its removal was undone; its document has yet to be read again
    KEPT = "kept"  # its document stays though the source lists it no more


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """What a sync found."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0  # could not be read
    waiting: int = 0  # are being written to


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A folder, a share, a repository or a site that a collection is kept in step with."""

    id: str
    address: str
    kind: str  # folder, web, git, store, or what a package adds
    name: str  # short: goes before names that another document has already
    collection_id: str = DEFAULT_COLLECTION
    owner: str = ""  # also of its documents; empty: the operator of the server
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 3
    every_seconds: int | None = None  # between two syncs; None: only on demand
    watch: bool = False  # each change is synced when it happens
    is_operators: bool = False  # added by the operator, who may read all of the server's disk
    state: SyncState = SyncState.IDLE
    reason: str = ""  # for people
    counts: SyncCounts = SyncCounts()  # of the last sync
    created_at: datetime | None = None
    last_synced_at: datetime | None = None
    next_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, and the document that was made of it."""

    document_id: str
    name: str  # within the source
    document_name: str  # within the collection
    mark: str = ""  # the source's own for the version that was read; "" is read again
    content_hash: str = ""  # of what was read last
    size: int | None = None
    url: str = ""
    reason: str = ""  # why it could not be read
    standing: Standing = Standing.LISTED
    removed_at: datetime | None = None
