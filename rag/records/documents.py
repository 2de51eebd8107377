"""Documents, their parts, and what a search finds of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rag.records.collections import DEFAULT_COLLECTION
from rag.records.tables import RawTable


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document with a locator, as readable plain text.

    As in Markdown, tables have pipes, entries `- `, code four blanks; other markup is gone.
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
    left_out: tuple[str, ...] = ()  # what, and why, for people
    recognised: int = 0  # pages, of those above, and pictures, that were read by OCR
    reader: int = 0  # which readers read it; 0: those of before they were counted
    author: str = ""  # as the file itself says, or its front matter
    date: str = ""  # the same: a day of the calendar, "2025-03-31"
    tags: tuple[str, ...] = ()
    refused: str = ""  # why newer readers refuse the file; its text is what older ones read


@dataclass(frozen=True, slots=True)
class Filters:
    """Which documents are searched; what is empty filters nothing.

    Texts are compared in any case. A title has all of the words; a folder holds its folders' files.
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
        """Those that filter, by name."""
        named = ((name, str(getattr(self, name))) for name in self.__slots__)
        return tuple((name, value) for name, value in named if value)


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class FilteredDocuments:
    """What filters leave of the documents that somebody may read."""

    names: tuple[str, ...]
    chunk_ids: frozenset[str]


Facets = Mapping[str, Mapping[str, int]]  # documents by value, by the name of a filter


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
    """What a search says of a question as a whole."""

    certainty: Certainty = Certainty.FOUND
    missing: tuple["MissingIdentifier", ...] = ()  # codes of it that nobody has


@dataclass(frozen=True, slots=True)
class MissingIdentifier:
    """A code that a question names and no readable document holds, with those near to it."""

    written: str
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A file we loaded."""

    id: str  # derived from its name and first collection: re-ingesting a file keeps its id
    name: str
    title: str
    media_type: str
    content_hash: str  # sha256 of the file's bytes, hex
    size_bytes: int
    chunk_count: int
    ingested_at: datetime
    names: tuple[str, ...] = ()
    owner: str = ""  # who brought it; empty: whoever runs the server
    collection_id: str = DEFAULT_COLLECTION
    report: ReadingReport = ReadingReport()
    url: str = ""  # where people open it at its source; "" where that is nowhere


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some documents of a library, by name."""

    documents: list[Document]
    matching: int  # of which these are some
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
