"""Sessions, their messages and their summaries."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from rag.records.answers import Answer, Citation


class MessageStatus(StrEnum):
    """How an answer ended."""

    PENDING = "pending"  # being written now, or the process died while writing
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"  # the client went away or the model broke off; can be regenerated
    FAILED = "failed"  # nothing was written; can be regenerated


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

    def checked(self, words: str) -> list[Citation]:
        """The verdicts of an answer that go with words of it, by offsets into these."""
        at = self.content.find(words)
        return [
            replace(each, start=each.start - at, end=each.end - at)
            for each in (self.answer.citations if self.answer and at >= 0 else ())
            if at <= each.start and each.end <= at + len(words)
        ]


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
    collections: tuple[str, ...] = ()  # ids of those that were chosen; none: all one may read


@dataclass(frozen=True, slots=True)
class Before:
    """What was said before a question, and leads its search: texts with their weights."""

    said: tuple[tuple[str, float], ...] = ()  # by meaning: their vectors are added
    words: tuple[tuple[str, float], ...] = ()  # by words: their scores are added
    documents: frozenset[str] = frozenset()  # ids of those cited last, which are preferred


NOTHING_BEFORE = Before()


@dataclass(frozen=True, slots=True)
class Resolution:
    """A question made to stand alone, and what leads its search."""

    query: str  # what people are shown as "searched for"
    is_followup: bool
    method: str  # "unchanged", "rules", "model"
    dense_query: str = ""
    lexical_query: str = ""
    source_numbers: tuple[int, ...] = ()  # numbers named in the question, such as "[3]"
    before: Before = NOTHING_BEFORE


@dataclass(frozen=True, slots=True)
class SummaryReport:
    """What became of every number and name of the turns that a summary stands for.

    It is *stated* (a paragraph or sentence with it stands in the text), else *recallable* (a
    paragraph of the past holds it, which a question about it brings back), else only *listed*.
    """

    citations_required: int
    citations_kept: int  # stated
    names_required: int
    names_kept: int  # stated
    stated_citations: tuple[int, ...] = ()
    recallable_citations: tuple[int, ...] = ()
    listed_citations: tuple[int, ...] = ()
    stated_names: tuple[str, ...] = ()
    recallable_names: tuple[str, ...] = ()
    listed_names: tuple[str, ...] = ()
    paragraphs: int = 0  # quoted word for word
    said: int = 0  # sentences of the user
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0
    model: str = "extractive"  # or that which wrote a thread
    problems: tuple[str, ...] = ()  # why a model's thread was not taken


@dataclass(frozen=True, slots=True)
class Quotation:
    """What a summary quotes, by its offsets there, and the message that it is of."""

    start: int
    end: int
    message: int


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
    quotations: tuple[Quotation, ...] = ()
    id: int | None = None  # in the store
