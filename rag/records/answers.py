"""Sources, citations and answers."""

from dataclasses import dataclass
from enum import StrEnum

from rag.records.cards import Card


class SourceState(StrEnum):
    """What became of a source since it was first shown."""

    CURRENT = "current"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Source:
    """What a session cites under a number, as it was when first shown: a chunk, or a snapshot.

    The id of a snapshot that is no chunk begins with its kind: "table:…".
    """

    number: int  # from 1, never reused; 0 until the session gave one
    chunk_id: str
    document_id: str
    document_name: str
    document_title: str
    locator: str
    heading_path: tuple[str, ...]
    text: str  # the chunk
    passage: str  # the chunk in its neighbourhood: what the model was shown
    content_hash: str  # sha256 of `passage`, hex
    state: SourceState = SourceState.CURRENT

    @property
    def marker(self) -> str:
        return f"[{self.number}]"


class Support(StrEnum):
    """How a citation relates to its sentence."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"  # the source does not carry the sentence: flagged everywhere
    UNCHECKED = "unchecked"  # the sentence states nothing that could be checked


@dataclass(frozen=True, slots=True)
class Citation:
    """One number at one place of an answer; a marker such as `[1, 2]` gives two citations."""

    number: int
    start: int  # of the whole marker, offsets into the answer's text
    end: int
    support: Support = Support.UNCHECKED
    score: float | None = None  # of the support check, 0 to 1
    attributed: bool = False  # placed by attribution, not by the writer


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer that states something without a supporting citation."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counted them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said, and how far its sources carry it."""

    text: str
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[Statement, ...] = ()
    declined: bool = False  # the documents do not answer, and the text says so
    model: str = "extractive"
    usage: Usage | None = None
    result: int | None = None  # the number of the source that is the table this answer shows
    card: Card | None = None  # of an answer without a model: its text is this in Markdown
