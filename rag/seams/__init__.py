"""Every Protocol whose implementation can be swapped, with its contract in the docstring."""

from rag.seams.conversations import (
    ConversationStore,
    FoundMessage,
    MessageMatches,
    OpenTurn,
    Overview,
    OwnedSession,
    SessionHandle,
    SessionMemory,
    SessionTranscript,
    SourceRegister,
    Versions,
)
from rag.seams.documents import (
    ChunkChanges,
    ChunkIndex,
    Connector,
    DocumentStore,
    Embedder,
    ListedFile,
    Matrix,
    OpenSource,
    Renewable,
    Reranker,
    Resumable,
    Retriever,
    SourceOptions,
)
from rag.seams.models import (
    LIBRARY,
    NO_OPTIONS,
    TABLES,
    AnswerOptions,
    ChatModel,
    ComputedFigure,
    DirectAnswer,
    DirectAnswers,
    ModelDelta,
    ModelRequest,
    TokenCounter,
    ToolSpec,
    Writer,
    WriteRequest,
)

Source = Connector  # other packages import it by this former name
