"""The frozen records that cross every boundary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


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
class ParsedDocument:
    """What a reader made of a file: no ids, no time, nothing stored yet."""

    title: str
    sections: tuple[Section, ...]
    media_type: str
    names: tuple[str, ...] = ()  # product names found in titles, headings, tables, front matter


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

    @property
    def heading(self) -> str:
        """Title and heading path in one line, for embedding and for lexical search."""
        return " › ".join(dict.fromkeys((self.document_title, *self.heading_path)))

    @property
    def embedded_text(self) -> str:
        """What is embedded: the heading path in front of the text. Never shown."""
        return f"{self.heading}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Document:
    """A file we loaded."""

    id: str  # derived from the name: re-ingesting a file keeps its id
    name: str
    title: str
    media_type: str
    content_hash: str  # sha256 of the file's bytes, hex
    size_bytes: int
    chunk_count: int
    ingested_at: datetime
    names: tuple[str, ...] = ()


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


class SourceState(StrEnum):
    """What became of a source since it was first shown."""

    CURRENT = "current"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Source:
    """A chunk with the number under which this session cites it, as it was when first shown."""

    number: int  # from 1, never reused
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


class Role(StrEnum):
    """Who speaks, in the words of the OpenAI protocol."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the context, as a model is sent it."""

    role: Role
    content: str
    tool_calls: tuple["ToolCall", ...] = ()  # on assistant messages
    tool_call_id: str | None = None  # on tool messages


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` is JSON as the model wrote it, perhaps broken."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model server counted them."""

    prompt_tokens: int
    completion_tokens: int


class MessageStatus(StrEnum):
    """How an answer ended."""

    PENDING = "pending"  # being written now, or the process died while writing
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"  # the client went away or the model broke off; can be regenerated
    FAILED = "failed"  # nothing was written; can be regenerated


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said, and how far its sources carry it."""

    text: str
    citations: tuple[Citation, ...] = ()
    unsupported: tuple[Statement, ...] = ()
    declined: bool = False  # the documents do not answer, and the text says so
    model: str = "extractive"
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript; an answer's details are empty on a question."""

    index: int  # from 0, without gaps
    turn: int  # from 0: a question and its answer share it
    role: str  # a Role; imported transcripts may hold others
    content: str
    status: MessageStatus
    created_at: datetime
    revision: int = 0  # of an answer: regenerating adds one, the earlier ones are kept
    answer: Answer | None = None
    resolved_query: str | None = None
    is_followup: bool = False
    error: str | None = None  # of a failed answer: what the user was told
    known_sources: int | None = None  # of a question: registered when it was asked, if known


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message of a transcript brought along from elsewhere."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How one session keeps its context small; the JSON API's `context_config`."""

    enabled: bool = True  # summarise what falls out (`smart` only)
    max_tokens: int | None = None  # window; None: the model's own
    compression_strategy: str = "smart"  # or "sliding_window"
    recent_message_count: int = 10  # messages: five question-answer pairs


@dataclass(frozen=True, slots=True)
class Session:
    """One user's conversation."""

    id: str
    owner: str
    title: str
    created_at: datetime
    last_used_at: datetime
    message_count: int
    config: ContextConfig


@dataclass(frozen=True, slots=True)
class Resolution:
    """A question made to stand alone; retrieval's queries may hold more of the conversation."""

    query: str  # what people are shown as "searched for"
    is_followup: bool
    method: str  # "unchanged", "rules", "model"
    dense_query: str = ""
    lexical_query: str = ""
    source_numbers: tuple[int, ...] = ()  # numbers named in the question, such as "[3]"
    # Earlier turns with weights: their vectors, times these, are added to that of `dense_query`.
    dense_context: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class SummaryReport:
    """What one compaction was required to keep, and how it was kept. All numbers are counts."""

    citations_required: int
    citations_kept: int  # in the stored text: the rest is in the archive
    names_required: int
    names_kept: int
    kept_by_model: int  # of the required numbers, before repair
    repaired: int  # numbers put back by repair
    removed: int  # invented or misplaced markers taken out
    archived_citations: tuple[int, ...] = ()
    archived_names: tuple[str, ...] = ()
    rung: int = 0  # of the size ladder: 0 full claims … 4 numbers grouped by document
    tokens_before: int = 0
    tokens_after: int = 0
    attempts: int = 0  # calls to the model
    seconds: float = 0.0
    model: str = "extractive"
    problems: tuple[str, ...] = ()  # why the model's text was not taken as it came


@dataclass(frozen=True, slots=True)
class Summary:
    """Text standing in for a run of messages `[start, end)`; verified against them."""

    start: int
    end: int
    text: str
    required_numbers: tuple[int, ...]
    required_names: tuple[str, ...]
    report: SummaryReport
    tokens: int
    is_fold: bool = False  # stands in for several summaries
    id: int | None = None  # in the store


@dataclass(frozen=True, slots=True)
class Resolved:
    """The question as it was searched for."""

    query: str
    is_followup: bool
    method: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """Earlier turns are now represented by a verified summary."""

    start: int
    end: int
    report: SummaryReport


@dataclass(frozen=True, slots=True)
class Sources:
    """What this answer is written from, with the session's numbers."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """The next words of the answer; joined, they are the answer before attribution."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A source was just cited for the first time in this answer."""

    number: int


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """The model called a tool."""

    name: str
    arguments: str
    outcome: str  # one line, for people


@dataclass(frozen=True, slots=True)
class Finished:
    """The stream ends here: the answer as it is stored."""

    message: Message
    sources: tuple[Source, ...]
    context: Mapping[str, Any] = field(default_factory=dict)  # messages, tokens, budget …


@dataclass(frozen=True, slots=True)
class Failed:
    """The stream ends here: what to tell the user. The question is stored."""

    error: Exception
    message: str
    index: int | None = None  # of the answer that failed, if one was begun


Event = Resolved | Compacted | Sources | Text | Cited | ToolUsed | Finished | Failed


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
