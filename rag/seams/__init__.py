"""What can be swapped: every Protocol, with its promise in the docstring."""

from rag.seams.conversations import (
    ConversationStore,
    FoundMessage,
    FoundMessages,
    OpenTurn,
    Overview,
    SessionHandle,
)
from rag.seams.documents import ChunkChanges, DocumentStore
from rag.seams.models import ChatModel, ModelDelta, ModelRequest, TokenCounter, ToolSpec
from rag.seams.retrieval import ChunkIndex, Embedder, Matrix, Reranker, Retriever
from rag.seams.sources import ListedFile, OpenSource, Source, SourceOptions
from rag.seams.writing import (
    LIBRARY,
    NO_WISHES,
    TABLES,
    DirectAnswer,
    DirectAnswers,
    Wishes,
    Writer,
    WriteRequest,
)

__all__ = [
    "LIBRARY",
    "NO_WISHES",
    "TABLES",
    "ChatModel",
    "ChunkChanges",
    "ChunkIndex",
    "ConversationStore",
    "DirectAnswer",
    "DirectAnswers",
    "DocumentStore",
    "Embedder",
    "FoundMessage",
    "FoundMessages",
    "ListedFile",
    "Matrix",
    "ModelDelta",
    "ModelRequest",
    "OpenSource",
    "OpenTurn",
    "Overview",
    "Reranker",
    "Retriever",
    "SessionHandle",
    "Source",
    "SourceOptions",
    "TokenCounter",
    "ToolSpec",
    "Wishes",
    "WriteRequest",
    "Writer",
]
