"""Writers of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rag.records import (
    ChatMessage,
    Source,
)
from rag.seams.models import ModelDelta, ToolSpec

if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    pass


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """All that a writer may use for one answer."""

    question: str  # resolved, standing alone
    sources: tuple[Source, ...]  # best first
    messages: tuple[ChatMessage, ...]  # the assembled context; the extractive writer ignores it
    max_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    relevance: Mapping[int, float] = field(default_factory=dict)  # by source number, 0 to 1


class Writer(Protocol):
    """Writes one answer with `[n]` markers. Called once per turn (and after each tool round)."""

    @property
    def name(self) -> str:
        """The model's name, or "extractive"."""

    def write(self, request: WriteRequest) -> Iterator[ModelDelta]:
        """Yield the answer in pieces, as ChatModel.stream does; same errors."""

    def declined(self, text: str) -> bool:
        """Whether this text says that the documents do not answer."""
