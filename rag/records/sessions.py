"""The records of sessions, messages and summaries, and the events of a turn."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from rag.records.answers import Answer, Citation, Source


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
    error: str | None = None  # of a failed answer: the message for the user
    known_sources: int | None = None  # of a question: number of sources when it was asked

    def checked(self, words: str) -> list[Citation]:
        """Return the citations of a part of the answer's text, with offsets into that part."""
        position = self.content.find(words)
        return [
            replace(citation, start=citation.start - position, end=citation.end - position)
            for citation in (self.answer.citations if self.answer and position >= 0 else ())
            if position <= citation.start and citation.end <= position + len(words)
        ]


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message of an imported transcript."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextConfig:
    """How one session keeps its context small; the JSON API's `context_config`."""

    enabled: bool = True  # summarise turns outside the window (`smart` only)
    max_tokens: int | None = None  # window; None: the model's own
    compression_strategy: str = "smart"  # or "sliding_window"
    recent_message_count: int = 10  # messages: five question-answer pairs
    share: tuple[str, ...] = ()  # ids of sessions of the same owner that are also read


@dataclass(frozen=True, slots=True)
class ContextPreferences:
    """What a model asked to see in the next context, and only there."""

    start: int | None = None  # messages `[start, end)`
    end: int | None = None
    include_search_results: bool = False  # the matches of the last search of the history
    max_context_messages: int | None = None  # at most so many messages, rules and question included

    @property
    def slice(self) -> tuple[int, int] | None:
        return None if self.start is None or self.end is None else (self.start, self.end)


NO_PREFERENCES = ContextPreferences()


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
    expires_at: datetime | None = None  # of a temporary session
    collections: tuple[str, ...] = ()  # ids of those that were chosen; none: all readable ones
    parent: str | None = None  # of a branch: the session it began from
    branch_index: int | None = None  # the first message that is not its parent's
    family: str | None = None  # the sessions that share one register
    model: str | None = None  # the picked model; None: the default one
    client_id: str | None = None  # the client's own id for it
    source_count: int = 0  # the highest number of a source; a branch has its family's as well


@dataclass(frozen=True, slots=True)
class EarlierTopics:
    """Earlier texts that influence the search for a question, with their weights."""

    texts: tuple[tuple[str, float], ...] = ()  # their vectors and their words' scores are added
    documents: frozenset[str] = frozenset()  # ids of the documents cited last, which are preferred


NO_EARLIER_TOPICS = EarlierTopics()


@dataclass(frozen=True, slots=True)
class Resolution:
    """A question made to stand alone, and what its search uses."""

    query: str  # what people are shown as "searched for"
    is_followup: bool
    method: str  # "unchanged", "rules", "model"
    searched: str = ""  # what is searched for, where that is not the query
    source_numbers: tuple[int, ...] = ()  # numbers named in the question, such as "[3]"
    before: EarlierTopics = NO_EARLIER_TOPICS
    earlier: str = ""  # the last question, as it stands alone
    talk: str = ""  # the last questions, which set the language for a short one


class LineMark(StrEnum):
    """How a line of a summary was made."""

    WRITTEN = "written"  # in a model's words, which one sentence of the turns states
    QUOTED = "quoted"  # word for word from the turns
    PUT_BACK = "put_back"  # word for word from the turns: a model had left it out
    UNCHECKED = "unchecked"  # in a model's words; it has no number and contradicts nothing


class SummarySection(StrEnum):
    """What a line of a summary is about."""

    ABOUT = "about"  # the user
    ANSWERED = "answered"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One line of a summary, and the messages that it is based on."""

    section: SummarySection
    text: str
    mark: LineMark
    messages: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    by_model: bool = False  # the next compaction patches it; others are taken anew from the turns


@dataclass(frozen=True, slots=True)
class LineEdit:
    """A person's correction of a line; with an empty `text`, the line is removed for good."""

    original: str
    text: str = ""
    messages: tuple[int, ...] = ()  # that the line was based on


@dataclass(frozen=True, slots=True)
class SummaryReport:
    """What became of every number and name of the turns that a summary stands for.

    In the summary is what it holds literally or in a range; of this, *stated* is what stands beside
    a statement. *Recallable* is what no line states and a question about it brings back; *listed*
    what stands in a list alone and in no paragraph. What is in none of them is lost.
    """

    citations_required: int
    citations_kept: int  # literally in the text, as `[n]`
    names_required: int
    names_kept: int  # literally in the text
    stated_citations: tuple[int, ...] = ()
    recallable_citations: tuple[int, ...] = ()
    listed_citations: tuple[int, ...] = ()
    stated_names: tuple[str, ...] = ()
    recallable_names: tuple[str, ...] = ()
    listed_names: tuple[str, ...] = ()
    ranged_citations: int = 0  # only in a range, to save tokens
    paragraphs: int = 0  # answers with a line in the summary
    said: int = 0  # sentences of the user
    written: int = 0  # lines, by their mark
    quoted: int = 0
    put_back: int = 0
    unchecked: int = 0
    dropped: int = 0  # clauses of a model about nothing in the turns
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0
    calls: int = 0  # of a model
    model_tokens: int = 0  # of these calls, prompt and reply
    model: str = "extractive"  # or the model that wrote lines of it
    problems: tuple[str, ...] = ()  # why a model's summary, or a part of it, was rejected

    @property
    def citations_in_summary(self) -> int:
        """Required citations that the text holds, literally or in a range."""
        return self.citations_kept + self.ranged_citations

    @property
    def citations_brought_back(self) -> int:
        """Required citations that the text does not hold, and a question brings back."""
        return min(
            self.citations_required - self.citations_in_summary, len(self.recallable_citations)
        )

    @property
    def citations_lost(self) -> int:
        """Required citations neither in the text nor recallable: above 0 is a fault."""
        reachable = self.citations_in_summary + self.citations_brought_back
        return max(0, self.citations_required - reachable)

    @property
    def names_brought_back(self) -> int:
        """Required names that the text does not hold, and a question brings back."""
        return min(self.names_required - self.names_kept, len(self.recallable_names))

    @property
    def names_lost(self) -> int:
        """Required names neither in the text nor recallable: above 0 is a fault."""
        return max(0, self.names_required - self.names_kept - self.names_brought_back)


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
    lines: tuple[SummaryLine, ...] = ()  # in the order of the text
    model_lines: tuple[
        SummaryLine, ...
    ] = ()  # the verified ones, including those for which there was no room
    written_to: int = 0  # the first message that no model has summarised
    edits: tuple[LineEdit, ...] = ()
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
    """The sources that this answer is written from, with the session's numbers."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The model's queue holds `before` questions before this one."""

    before: int


@dataclass(frozen=True, slots=True)
class Text:
    """The next words of the answer; joined, they are the answer before attribution."""

    text: str


@dataclass(frozen=True, slots=True)
class Discarded:
    """The text so far is no part of the answer, which begins anew."""

    reason: str  # one line, for people


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
    """The answer as it is stored; at most a `Judged` follows."""

    message: Message
    sources: tuple[Source, ...]
    context: Mapping[str, Any] = field(default_factory=dict)  # messages, tokens, budget …


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn ends here with an error and its message for the user. The question is stored."""

    error: Exception
    message: str
    index: int | None = None  # of the answer that failed, if one was begun


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge decided what words had left open in the finished answer; also stored."""

    message: Message


Event = (
    Resolved
    | Compacted
    | Sources
    | Waiting
    | Text
    | Discarded
    | Cited
    | ToolUsed
    | Finished
    | Failed
    | Judged
)
