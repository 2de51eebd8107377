"""LlamaIndex: a chat memory that never loses a citation, and a retriever.

engine = SimpleChatEngine.from_defaults(llm=llm, memory=TrimmedMemory.of(HistoryTrimmer()))
"""

from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field, PrivateAttr

from groundnote.integrations.turns import trimmed_turns
from rag import HistoryTrimmer

if TYPE_CHECKING:  # a caller with a library has loaded it
    from groundnote.library import Library


class TrimmedMemory(BaseMemory):
    """Keeps all messages; returns those that fit."""

    said: list[ChatMessage] = Field(default_factory=list)
    _trimmer: HistoryTrimmer = PrivateAttr(default_factory=HistoryTrimmer)

    @classmethod
    def of(cls, trimmer: HistoryTrimmer) -> Self:
        """Create a memory with this trimmer."""
        memory = cls()
        memory._trimmer = trimmer
        return memory

    @classmethod
    def from_defaults(cls, **options: Any) -> Self:
        """Create a memory with a trimmer of these options."""
        return cls.of(HistoryTrimmer(**options))

    def get(self, input: str | None = None, **options: Any) -> list[ChatMessage]:
        """Return the history to send; `input` is the next question."""
        asked = [ChatMessage(role="user", content=input)] if input else []
        told = trimmed_turns(
            self._trimmer,
            [*self.said, *asked],
            is_question=lambda message: str(message.role.value) == "user",
            plain=lambda message: {"role": message.role.value, "content": message.content or ""},
            back=lambda message: ChatMessage(role=message["role"], content=message["content"]),
        )
        return told[: len(told) - len(asked)]

    def get_all(self) -> list[ChatMessage]:
        return list(self.said)

    def put(self, message: ChatMessage) -> None:
        self.said.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        self.said = list(messages)

    def reset(self) -> None:
        self.said = []


class LibraryRetriever(BaseRetriever):
    """Retrieves passages of a Groundnote library."""

    def __init__(self, library: "Library", *, limit: int = 8) -> None:
        super().__init__()
        self._library = library
        self._limit = limit

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._library.search(query_bundle.query_str, limit=self._limit)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.chunk.id,
                    text=hit.chunk.text,
                    metadata={
                        "document": hit.chunk.document_name,
                        "title": hit.chunk.document_title,
                        "locator": hit.chunk.locator,
                    },
                ),
                score=hit.score,
            )
            for hit in hits
        ]
