"""What happens in one turn, in the order in which it happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag.records.answers import Source
from rag.records.sessions import Message, SummaryReport


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
class Waiting:
    """So many questions are before this one at the model."""

    before: int


@dataclass(frozen=True, slots=True)
class Text:
    """The next words of the answer; joined, they are the answer before attribution."""

    text: str


@dataclass(frozen=True, slots=True)
class Discarded:
    """What was written up to here is no part of the answer; it begins anew."""

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
    """The stream ends here: what to tell the user. The question is stored."""

    error: Exception
    message: str
    index: int | None = None  # of the answer that failed, if one was begun


@dataclass(frozen=True, slots=True)
class Judged:
    """What words had left open in the finished answer, a judge decided; stored as well."""

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
