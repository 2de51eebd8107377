"""The Protocols of language models, judges and writers; how long each call may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rag.records import (
    NOTHING,
    Card,
    ChatMessage,
    ImportedMessage,
    Offer,
    Readable,
    Resolution,
    Source,
    ToolCall,
    Usage,
    Verdict,
)
from rag.seams.conversations import SessionHandle


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one kind of call may take."""

    seconds: float
    setting: str = ""  # the setting that raises it; "" where none does

    def set_to(self, seconds: float) -> Patience:
        """Return it with the seconds of the settings."""
        return replace(self, seconds=seconds)

    @property
    def advice(self) -> str:
        """What the user can do when the time was not enough."""
        return f"Ask again, or raise {self.setting}." if self.setting else "Ask again."


ANSWER = Patience(60, "llm.timeout_seconds")  # for each piece of a reply, whatever the call
FOLLOW_UP = Patience(10, "follow_up.timeout_seconds")  # this and the following: for the whole reply
JUDGEMENT = Patience(10, "checks.timeout_seconds")
SUMMARY = Patience(60, "summarization_settings.timeout_seconds")
TABLE_PLAN = Patience(20)
CLIENTS_TASK = Patience(30)  # a task of the client, such as a title
ENDLESS_SECONDS = 600.0  # for a whole answer, unless llm.answer_seconds says otherwise
SILENT_SECONDS = 120.0  # without a character of any kind
CONNECT_SECONDS = 10.0
WINDOW_SECONDS = 5.0  # for a server to say what window its model has
RETRY_SECONDS = 8.0  # between two tries; a server that asks for more is reported instead


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a whole answer, over all calls of a model; it starts when it is created."""

    seconds: float = ENDLESS_SECONDS
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._began + self.seconds - time.monotonic()

    @property
    def reason(self) -> str:
        """Why the answer ends; "" before the deadline has passed."""
        if self.left > 0:
            return ""
        return f"the answer took more than llm.answer_seconds ({self.seconds:g})"


TokenCounter = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the OpenAI protocol describes it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a chat model."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    patience: Patience | None = None  # for the whole reply; None: for each piece
    # Of the answer that this call is part of.
    deadline: Deadline = field(default_factory=Deadline, compare=False)
    thinks: bool = True  # False: reply soon, without reasoning first
    # A client's tools and response format, as the protocol writes them: sent on or refused.
    passed_on: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def insisted(self) -> frozenset[str]:
        """The names in `passed_on` that may not be left out silently."""
        return frozenset(self.passed_on) - {"parallel_tool_calls"}


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a reply: some text, or whole tool calls (already put together), or the usage.

    A writer without a model also gives its answer as a card. `discard` takes back the text so far:
    it was no part of the answer. `cut` says that the reply was cut at its limit of tokens.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    card: Card | None = None
    discard: bool = False
    cut: bool = False


class ChatModel(Protocol):
    """A language model. Called by the writer, follow-ups and summaries."""

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """Yield the reply in pieces; the texts joined are the reply. Closing the iterator hangs up.

        Raises:
            ModelUnavailable: the server cannot be reached, refuses us, or is overloaded.
            ContextTooLong: the messages do not fit; nothing was generated.
            ModelInterrupted: the reply broke off; the pieces so far were yielded.
            UnreadableReply: the server answered, but not in the OpenAI protocol.
        """


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """A statement that a source may carry, and the windows of the source nearest to it."""

    text: str
    evidence: tuple[str, ...]
    number: int = 0  # of the source


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A judge's verdict and reason: supported, contradicted, off_subject, or open for a part."""

    verdict: Verdict
    reason: str = ""


class Judge(Protocol):
    """Judges all statements that words leave open, in one call once the answer's text is final."""

    @property
    def name(self) -> str:
        """The name shown beside the verdicts."""

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        """Return one verdict for each statement; None where the judge has none.

        Raises:
            RagError: the judge failed and has no verdict at all; the message says why.
        """


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What a client wants of a model's answer; unset fields leave the server's settings."""

    max_tokens: int | None = None  # at most so many, within the server's own limit
    temperature: float | None = None
    stop: tuple[str, ...] = ()  # texts before which the answer ends
    passed_on: Mapping[str, Any] = field(default_factory=dict, hash=False)  # sent unchanged
    rounds: tuple[ChatMessage, ...] = ()  # calls of the client's tools in this turn, and results
    # Instructions of the client, added to the rules for this answer; None: the session's.
    instructions: str | None = None
    # The only messages that may be used, where it is not certain whose session it is.
    history: tuple[ImportedMessage, ...] | None = None
    notices: tuple[str, ...] = ()  # shown beside the answer: what was done with the request

    @property
    def needs_model(self) -> bool:
        """Whether only a model can answer."""
        return bool(self.passed_on or self.rounds)

    @property
    def insists(self) -> bool:
        """Whether there is no answer without a model; optional tools do not count."""
        choice = self.passed_on.get("tool_choice", "auto")
        return bool(self.rounds) or self.wants_json or choice not in ("auto", "none")

    @property
    def wants_json(self) -> bool:
        """Whether the answer must be JSON."""
        return str(self.passed_on.get("response_format", {}).get("type", "")).startswith("json")


NO_OPTIONS = AnswerOptions()


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """All that a writer may use for one answer."""

    question: str  # resolved, standing alone
    sources: tuple[Source, ...]  # best first
    messages: tuple[ChatMessage, ...]  # the assembled context; the extractive writer ignores it
    max_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    # Offered once the writer says that the sources do not answer.
    waiting_tools: tuple[ToolSpec, ...] = ()
    relevance: Mapping[int, float] = field(default_factory=dict)  # by source number, 0 to 1
    wishes: AnswerOptions = NO_OPTIONS
    readable: Readable = NOTHING  # where names may be looked up
    earlier: str = ""  # the last question
    talk: str = ""  # the user's last questions: see `Resolution`
    has_offers: bool = False  # whether computed answers are offered beside this one
    deadline: Deadline = field(default_factory=Deadline, compare=False)

    @property
    def all_tools(self) -> tuple[ToolSpec, ...]:
        return (*self.tools, *self.waiting_tools)


class Writer(Protocol):
    """Writes one answer with `[n]` markers. Called once per turn (and after each tool round)."""

    @property
    def name(self) -> str:
        """The model's name, or "extractive"."""

    @property
    def reads_context(self) -> bool:
        """Whether the writer needs the messages, and so a window that they fit in."""

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        """Yield the answer in pieces, as ChatModel.stream does; same errors."""

    def declined(self, text: str) -> bool:
        """Return whether this text says that the documents do not answer."""


LIBRARY, TABLES = "library", "tables"  # `made_by` of some direct answers


@dataclass(frozen=True, slots=True)
class ComputedFigure:
    """A figure computed from a table, to be compared with figures in passages."""

    text: str  # the statement with the figure, without the source's number
    value: str  # as it is shown, with its unit
    question: str
    about: str  # the question's words without those of the operation
    source: Source
    is_of_part: Callable[[str], bool]  # whether a text is about other rows than those computed


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """An answer that needs no writer: it was computed, or is known already.

    Without a text it claims nothing: its offers are shown beside the writer's answer.
    """

    text: str  # Markdown; its `[n]` are numbers that the session gave to `sources`
    sources: tuple[Source, ...] = ()
    made_by: str = "direct"  # shown in place of a model's name
    declined: bool = False
    resolution: Resolution | None = None  # where the question was understood in another way
    result: int | None = None  # the number of the source that is a table to show
    offers: tuple[Offer, ...] = ()
    claim: ComputedFigure | None = None
    talk: str = ""  # the user's last questions
    is_denied: bool = False  # a document says something else


class DirectAnswers(Protocol):
    """One way to answer without a writer; the assistant asks each before it writes."""

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """Return the answer, its sources registered with the session; None if it has none."""

    def readings(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> tuple[Offer, ...]:
        """Return offers of other readings of the question, where another way answers it."""
