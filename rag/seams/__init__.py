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
from rag.seams.sources import Connector, ListedFile, OpenSource, Resumable, SourceOptions
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

Source = Connector  # by its former name other packages import it
