"""What can be swapped: every Protocol, with its promise in the docstring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rag.records import (
    ChatMessage,
    Chunk,
    ContextConfig,
    Document,
    Hit,
    ImportedMessage,
    Message,
    Section,
    Session,
    Source,
    Summary,
    ToolCall,
    Usage,
)

if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"
TokenCounter = Callable[[str], int]


# ── Language models ──────────────────────────────────────────────────────────────────────────


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
    tools: tuple[ToolSpec, ...] = ()
    timeout_seconds: float | None = None  # None: the client's own


@dataclass(frozen=True, slots=True)
class ModelDelta:
    """A piece of a reply: some text, or whole tool calls (already put together), or the usage."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None


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


# ── Retrieval ────────────────────────────────────────────────────────────────────────────────


class Embedder(Protocol):
    """Texts to vectors. Loaded at the first call, never on construction."""

    @property
    def name(self) -> str:
        """Stored with the index: another name needs `groundnote reindex`."""

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Longer texts would be cut by the model, so chunks never exceed it."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as the model sees it, its special tokens included."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, in order: float32, shape (len(texts), dimensions), each of length 1.

        Raises:
            ModelUnavailable: the embedding server cannot be reached.
        """


class ChunkIndex(Protocol):
    """Nearest chunks by vector. An index over the database that can always be rebuilt from it."""

    def add(self, chunk_ids: Sequence[str], vectors: Matrix) -> None:
        """Add or overwrite."""

    def remove(self, chunk_ids: Sequence[str]) -> None:
        """Remove; ids that are not there are no error."""

    def nearest(self, vector: NDArray[np.float32], *, limit: int) -> list[tuple[str, float]]:
        """Chunk ids with their cosine similarity (-1 to 1), best first."""

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Those that are there."""

    def chunk_ids(self) -> set[str]: ...

    def clear(self) -> None:
        """Forget everything, the embedding model's name and dimension too."""


class Reranker(Protocol):
    """Scores texts for a query by reading both together."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in order; higher is better."""


class Retriever(Protocol):
    """Finds the chunks that may answer. Called once per turn."""

    def search(
        self,
        dense_query: str,
        *,
        lexical_query: str = "",
        dense_context: Sequence[tuple[str, float]] = (),
        limit: int = 8,
    ) -> list[Hit]:
        """Best first, near-duplicates folded, each with its neighbourhood; [] when nothing fits.

        An empty `lexical_query` means the same as `dense_query`. The vectors of the texts of
        `dense_context`, times their weights, are added to the query's before the search.
        """


# ── Documents ────────────────────────────────────────────────────────────────────────────────


class DocumentStore(Protocol):
    """Documents, sections and chunks in the database, which is the truth."""

    def replace(
        self, document: Document, sections: Sequence[Section], chunks: Sequence[Chunk]
    ) -> ChunkChanges:
        """Store a document, in one transaction; chunks that stayed the same are not touched."""

    def delete(self, document_id: str) -> ChunkChanges:
        """Remove a document. Raises NotFound."""

    def document(self, document_id: str) -> Document:
        """Raises NotFound."""

    def documents(self) -> list[Document]:
        """All, by name."""

    def chunks(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Those that exist."""

    def section_texts(self, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """Texts of sections by (document id, section index); those that exist."""


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """What a write changed: what the vector index has to follow."""

    added: tuple[Chunk, ...] = ()
    removed: tuple[str, ...] = ()


# ── Answers ──────────────────────────────────────────────────────────────────────────────────


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


# ── Conversations ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A stored question with the answer that is being written to it."""

    question: Message
    answer: Message  # pending, empty


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """One result of a search in transcripts."""

    session_id: str
    session_title: str
    index: int
    role: str
    snippet: str  # a stretch of the content around the first match
    match_start: int  # offsets into the snippet
    match_end: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A session as a turn finds it, at one moment."""

    session: Session
    summaries: tuple[Summary, ...]  # the active ones, oldest first
    requested: tuple[int, int] | None = None  # messages to show once, in the next context


@dataclass(frozen=True, slots=True)
class MatchedMessage:
    """A message that holds words which were looked up."""

    index: int
    score: float  # higher is better; comparable within one look-up only
    turn: int
    role: str


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """The best results, and how many there are in all."""

    found: tuple[FoundMessage, ...]
    total: int


class SessionHandle(Protocol):
    """One session of one owner: the only way to its messages, sources and summaries (C7).

    Every method raises NotFound once the session is deleted. Message ranges are half-open and
    count from 0. Messages are append-only; what is returned is the newest revision of each.
    """

    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    def read(self) -> Session: ...
    def overview(self) -> Overview: ...
    def rename(self, title: str) -> None: ...
    def configure(self, config: ContextConfig) -> None: ...
    def request_slice(self, start: int, end: int) -> None:
        """Have messages `[start, end)` in the next context; `overview` tells of it."""

    def forget_slice(self) -> None: ...

    def delete(self) -> None: ...

    # Turns
    def begin(self, question: str) -> OpenTurn:
        """Store a question and reserve the place of its answer, in one transaction."""

    def begin_again(self, index: int) -> OpenTurn:
        """A new revision of the last answer. Raises NotFound, or Conflict if it is not the last."""

    def finish(self, answer: Message) -> Message:
        """Store the end of a pending answer. Raises Conflict if it has ended already."""

    def messages(self, start: int = 0, end: int | None = None) -> list[Message]: ...
    def said(self, start: int = 0, end: int | None = None) -> list[Message]:
        """As `messages`, without what is known of answers beside their text: for contexts."""

    def said_at(self, indices: Sequence[int]) -> list[Message]:
        """Those that exist, in order, in one look-up, as `said`."""

    def message(self, index: int) -> Message:
        """Raises NotFound."""

    def recent(self, count: int) -> list[Message]:
        """The newest `count`, oldest first; the cost does not grow with the session."""

    def search(self, text: str, *, limit: int = 20) -> FoundMessages:
        """Messages that contain the text, ignoring case, newest first."""

    def matching(self, words: Sequence[str], *, limit: int) -> list[MatchedMessage]:
        """Messages that hold any of the words, best first; the cost is the same in any session."""

    def append(self, messages: Sequence[ImportedMessage], sources: Sequence[Source]) -> int:
        """Bring a transcript along; returns the index of its first message.

        Raises Conflict if a number of `sources` is taken by another chunk, or would leave a gap.
        """

    # Sources
    def register(self, hits: Sequence[Hit]) -> list[Source]:
        """The hits with the session's numbers, in order; new chunks get the next free numbers."""

    def sources(self, numbers: Sequence[int] | None = None) -> list[Source]:
        """By number, with their present state; numbers that are not registered are left out."""

    def source_count(self) -> int:
        """Numbers 1 to this are registered, all of them."""

    # Summaries
    def epoch(self) -> int:
        """To be read before a compaction begins, and given to `add_summary`."""

    def summaries(self) -> list[Summary]:
        """The active ones, oldest first; their ranges do not overlap."""

    def requested_summaries(self) -> list[Summary]:
        """Those made on request, oldest first; they are no part of the context."""

    def add_requested_summary(self, summary: Summary) -> None:
        """Store a summary made on request beside the messages."""

    def add_summary(
        self, summary: Summary, *, epoch: int, replaces: Sequence[int] = (), claims: Any = None
    ) -> bool:
        """Store beside the messages. `replaces` are ids of active summaries that it folds.

        False, and nothing stored, if the range overlaps another active summary or the epoch is
        over: another compaction was quicker, or summaries were forgotten meanwhile.
        """

    def summary_claims(self, summary_id: int) -> Any:
        """The JSON given as `claims` to `add_summary`."""

    def forget_summaries(self) -> int:
        """Forget derived summaries (the messages stay) and end the epoch; returns how many."""

    # Recall
    def save_vectors(self, vectors: Mapping[int, Any]) -> None:
        """Embedded messages by index (float32 arrays)."""

    def vectors(self, indices: Sequence[int]) -> dict[int, Any]:
        """Those that are saved."""

    def without_vectors(self, *, before: int, limit: int) -> list[Message]:
        """The newest messages before an index that say something and have none, as `said`."""


class ConversationStore(Protocol):
    """Everything about conversations; everything needs the owner."""

    def create(
        self, owner: str, *, title: str = "", config: ContextConfig | None = None
    ) -> SessionHandle: ...

    def open(self, session_id: str, *, owner: str) -> SessionHandle:
        """Raises NotFound, also when the session is somebody else's."""

    def sessions(self, owner: str, *, limit: int = 100, offset: int = 0) -> list[Session]:
        """Newest use first."""

    def search(self, owner: str, text: str, *, limit: int = 20) -> FoundMessages:
        """Over all of one owner's sessions."""

    def delete_unused_since(self, moment: datetime) -> int:
        """Delete every owner's sessions that were last used before; returns how many."""
