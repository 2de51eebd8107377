"""What can be swapped: every Protocol, with its promise in the docstring."""

from rag.seams.conversations import (
    ConversationStore,
    FoundMessage,
    FoundMessages,
    OpenTurn,
    Overview,
    SessionHandle,
    Versions,
)
from rag.seams.documents import (
    ChunkChanges,
    ChunkIndex,
    DocumentStore,
    Embedder,
    Matrix,
    Reranker,
    Retriever,
)
from rag.seams.models import ChatModel, ModelDelta, ModelRequest, TokenCounter, ToolSpec
from rag.seams.sources import Connector, ListedFile, OpenSource, SourceOptions
from rag.seams.writers import (
    LIBRARY,
    NO_OPTIONS,
    TABLES,
    AnswerOptions,
    ComputedFigure,
    DirectAnswer,
    DirectAnswers,
    Writer,
    WriteRequest,
)

__all__ = [
    "LIBRARY",
    "NO_OPTIONS",
    "TABLES",
    "AnswerOptions",
    "ChatModel",
    "ChunkChanges",
    "ChunkIndex",
    "ComputedFigure",
    "Connector",
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
    "Versions",
    "WriteRequest",
    "Writer",
]

Source = Connector  # by its former name other packages import it
