"""Language models, judges and writers of answers; how long each call may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

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
    """With one kind of call."""

    seconds: float
    setting: str = ""  # that gives it more; "" where none does

    def set_to(self, seconds: float) -> Patience:
        """As the settings have it."""
        return replace(self, seconds=seconds)

    @property
    def advice(self) -> str:
        """What helps where it was not enough."""
        return f"Ask again, or raise {self.setting}." if self.setting else "Ask again."


ANSWER = Patience(60, "llm.timeout_seconds")  # with each piece of a reply, whatever it is for
FOLLOW_UP = Patience(10, "follow_up.timeout_seconds")  # these, with the whole of it
JUDGEMENT = Patience(10, "checks.timeout_seconds")
SUMMARY = Patience(60, "summarization_settings.timeout_seconds")
TABLE_PLAN = Patience(20)
CLIENTS_TASK = Patience(30)  # of a client's own, such as a title
ENDLESS_SECONDS = 600.0  # that an answer may take in all, unless llm.answer_seconds says otherwise
SILENT_SECONDS = 120.0  # without a character of any kind
CONNECT_SECONDS = 10.0
WINDOW_SECONDS = 5.0  # of a server that is asked what its model takes
RETRY_SECONDS = 8.0  # between two tries; a server that asks for more is reported instead


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of a whole answer, however many calls of a model it takes; begun where it is made."""

    seconds: float = ENDLESS_SECONDS
    _began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self._began + self.seconds - time.monotonic()

    @property
    def reason(self) -> str:
        """Why nothing more comes; "" before it has passed."""
        if self.left > 0:
            return ""
        return f"the answer took more than llm.answer_seconds ({self.seconds:g})"


if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    pass


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
    patience: Patience | None = None  # with the whole reply; None: as long as pieces come
    # Of the answer that it is part of.
    deadline: Deadline = field(default_factory=Deadline, compare=False)
    thinks: bool = True  # False: a plain reply soon is worth more than thoughts before it
    # Tools of a program and the form that it wants, in the protocol's own words: sent or refused.
    passed_on: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def insisted(self) -> frozenset[str]:
        """What may not be left out in silence."""
        return frozenset(self.passed_on) - {"parallel_tool_calls"}


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a reply: some text, or whole tool calls (already put together), or the usage.

    A writer without a model gives its answer as a card as well. `discard` takes back the text so
    far: it was no part of the answer. `cut` says that the reply ends before its end, because it may
    not be longer.
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
    """What a judge thinks: supported, contradicted, off_subject, or open where it carries a part;
    with its reason."""

    verdict: Verdict
    reason: str = ""


class Judge(Protocol):
    """Called once for all that words do not make certain in an answer, when its text stands."""

    @property
    def name(self) -> str:
        """Shown beside its verdicts."""

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        """One judged for each statement; None where it has none.

        Raises:
            RagError: it has none at all, because it failed; the message says why.
        """


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What the one who asks wants of a model's answer; each where it is not our own setting."""

    max_tokens: int | None = None  # at most so many, within ours
    temperature: float | None = None
    stop: tuple[str, ...] = ()  # texts before which the answer ends
    passed_on: Mapping[str, Any] = field(default_factory=dict, hash=False)  # to the model, as it is
    rounds: tuple[ChatMessage, ...] = ()  # calls of the asker's own tools in this turn, and results
    # What the asker's program adds to our rules, for this answer; None: what the session holds.
    instructions: str | None = None
    # All that may be told of the conversation, where it is not certain whose it is.
    history: tuple[ImportedMessage, ...] | None = None
    notices: tuple[str, ...] = ()  # what became of the request, told beside the answer

    @property
    def needs_model(self) -> bool:
        """Whether nothing but a model can do it."""
        return bool(self.passed_on or self.rounds)

    @property
    def insists(self) -> bool:
        """Whether without a model there is no answer at all: tools that may be left alone are."""
        choice = self.passed_on.get("tool_choice", "auto")
        return bool(self.rounds) or self.wants_json or choice not in ("auto", "none")

    @property
    def wants_json(self) -> bool:
        """Whether the answer is read by a program."""
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
    waiting_tools: tuple[ToolSpec, ...] = ()  # until it says that the sources do not answer
    relevance: Mapping[int, float] = field(default_factory=dict)  # by source number, 0 to 1
    wishes: AnswerOptions = NO_OPTIONS
    readable: Readable = NOTHING  # where names may be looked up
    earlier: str = ""  # the last question
    talk: str = ""  # the user's last questions: see `Resolution`
    has_offers: bool = False  # to compute what is asked, beside the answer
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
        """Whether it needs the messages, and so a window that they fit in."""

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        """Yield the answer in pieces, as ChatModel.stream does; same errors."""

    def declined(self, text: str) -> bool:
        """Whether this text says that the documents do not answer."""


LIBRARY, TABLES = "library", "tables"  # what makes some of them


@dataclass(frozen=True, slots=True)
class ComputedFigure:
    """A figure that was computed, as it is compared with what texts say of the same."""

    text: str  # what says it, without its number
    value: str  # as it is shown, with its unit
    question: str
    about: str  # the words of the question beside those that name what is to be done
    source: Source
    is_of_part: Callable[[str], bool]  # whether a text speaks of other rows than were computed


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """An answer that needs no writer: it was computed, or is known already.

    Without a text it claims nothing: its offers go beside what a writer says.
    """

    text: str  # Markdown; its `[n]` are numbers that the session gave to `sources`
    sources: tuple[Source, ...] = ()
    made_by: str = "direct"  # stands where a model's name would
    declined: bool = False
    resolution: Resolution | None = None  # where the question was understood in another way
    result: int | None = None  # the number of the source that is a table to show
    offers: tuple[Offer, ...] = ()
    claim: ComputedFigure | None = None
    talk: str = ""  # the user's last questions
    is_denied: bool = False  # by what a document says


class DirectAnswers(Protocol):
    """One way to answer without a writer; the assistant asks each before it writes."""

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """The answer, its sources registered with the session; None: not a question for this."""

    def readings(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> tuple[Offer, ...]:
        """What the question may ask of this side as well, where another one answers it."""
