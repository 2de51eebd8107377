"""Language models and the counting of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rag.records import (
    Card,
    ChatMessage,
    ToolCall,
    Usage,
)
from rag.seams.patience import Deadline, Patience

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
