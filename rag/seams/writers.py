"""Writers of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rag.records import NOTHING, ChatMessage, ImportedMessage, Offer, Readable, Resolution, Source
from rag.seams.conversations import SessionHandle
from rag.seams.models import Deadline, ModelDelta, ToolSpec


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
    past: tuple[ImportedMessage, ...] | None = None
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
    within: Readable = NOTHING  # where names may be looked up
    earlier: str = ""  # the last question
    has_offers: bool = False  # to compute what is asked, beside the answer
    deadline: Deadline = field(default_factory=Deadline, compare=False)

    @property
    def every_tool(self) -> tuple[ToolSpec, ...]:
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
    earlier: str = ""  # the last question
    is_denied: bool = False  # by what a document says


class DirectAnswers(Protocol):
    """One way to answer without a writer; the assistant asks each before it writes."""

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """The answer, its sources registered with the session; None: not a question for this."""
