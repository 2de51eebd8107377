"""Settings to objects; the only file that names implementations."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

from alembic.util import CommandError
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rag.answer.extractive import ExtractiveWriter
from rag.answer.model_writer import ModelWriter
from rag.answer.parts import searched_apart
from rag.answering import Answering
from rag.assistant import Assistant, Limits
from rag.background import Background, uploads_for
from rag.citations.support import SupportChecker
from rag.conversation.compact import Compactor, SummaryOptions
from rag.conversation.followup import FollowUps
from rag.conversation.followup_rules import CUE_WORDS
from rag.conversation.recall import Recall
from rag.conversation.session_tools import Actions
from rag.conversation.store import SqlConversationStore
from rag.database import migrate, open_engine, reading
from rag.documents.guard import GuardedLoader
from rag.documents.limits import MEBIBYTE, LoadLimits
from rag.documents.store import SqlDocumentStore
from rag.errors import RagError, SetupError
from rag.ingestion import Ingestion
from rag.jobs import JobQueue, JobTable
from rag.llm.openai_compatible import OpenAIChatModel
from rag.llm.tokens import CalibratedCounter, token_counter
from rag.llm.windows import ModelWindow
from rag.memory import Memory, MemoryRules
from rag.metrics import Metrics
from rag.retrieval.embed import LocalEmbedder, OpenAIEmbedder
from rag.retrieval.lexical import LexicalIndex
from rag.retrieval.rerank import CrossEncoderReranker
from rag.retrieval.search import HybridRetriever
from rag.retrieval.vectors import ChromaIndex
from rag.seams import Embedder, TokenCounter, Writer
from rag.settings import Settings
from rag.toolroom import ToolRoom

OPENAI = "https://api.openai.com/v1"
TIDY_SECONDS = 3600  # between two looks for sessions that are past their time
LONGEST_ANSWER = timedelta(minutes=15)  # one begun earlier belongs to a host that died
TOOL_TOKENS = 500  # what the descriptions of our tools take, rounded up


@dataclass(frozen=True, slots=True)
class Application:
    """Everything the edges need, built once."""

    settings: Settings
    engine: Engine
    store: SqlConversationStore
    documents: SqlDocumentStore
    retriever: HybridRetriever
    assistant: Assistant
    ingestion: Ingestion
    jobs: Background
    metrics: Metrics
    index: ChromaIndex
    loader: GuardedLoader
    embedder: Embedder
    stopping: Event = field(default_factory=Event)

    def start(self) -> None:
        """Take up what a killed process left, and begin to work in the background."""
        grace = timedelta() if self._is_alone() else LONGEST_ANSWER
        self.store.interrupt_abandoned(datetime.now(UTC) - grace)
        self.forget_old_sessions()
        self.jobs.start()
        if self.settings.sessions.ttl_hours is not None:
            Thread(target=self._tidy_up, name="tidy", daemon=True).start()

    def _tidy_up(self) -> None:
        while not self.stopping.wait(TIDY_SECONDS):
            self.forget_old_sessions()

    def _is_alone(self) -> bool:
        """Whether no other process can be answering: an embedded index has one at a time."""
        is_local = self.engine.dialect.name == "sqlite"
        return is_local and self.settings.retrieval.chroma_url is None

    def warm_up(self) -> None:
        """Load the models before the first question needs them, and finish interrupted ingests."""
        self.embedder.embed(["warm"])
        self.ingestion.synchronise()

    def stop(self) -> None:
        """Let go of the index, the reading process and the database."""
        self.stopping.set()
        self.jobs.stop()
        self.loader.close()
        self.index.close()
        self.engine.dispose()

    def forget_old_sessions(self) -> int:
        """Delete sessions unused for longer than `sessions.ttl_hours`; returns how many."""
        hours = self.settings.sessions.ttl_hours
        if hours is None:
            return 0
        return self.store.delete_unused_since(datetime.now(UTC) - timedelta(hours=hours))

    def ready(self) -> dict[str, bool]:
        """What answers need, and whether it is there."""
        return {"database": _works(self._ask_database), "index": _works(self._ask_index)}

    def _ask_database(self) -> None:
        with reading(self.engine) as connection:
            connection.execute(text("SELECT 1"))

    def _ask_index(self) -> None:
        self.index.check()


def _works(check: Callable[[], Any]) -> bool:
    try:
        check()
    except (RagError, OSError, SQLAlchemyError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Library:
    """What is known of documents."""

    documents: SqlDocumentStore
    retriever: HybridRetriever
    embedder: Embedder


def build(settings: Settings, *, embedder: Embedder | None = None) -> Application:
    """The whole application. Models load and servers are asked only when they are first needed."""
    engine = open_database(settings)
    metrics = Metrics()
    embedder = embedder or open_embedder(settings)
    index = open_index(settings, embedder)
    documents = SqlDocumentStore(engine)
    store = SqlConversationStore(engine)
    loader = GuardedLoader(load_limits(settings))
    ingestion = Ingestion(documents, embedder, index, loader=loader)
    background = Background(
        JobQueue(
            JobTable(engine),
            folder=settings.data_dir,
            url=settings.jobs.url,
            workers=settings.jobs.workers,
        ),
        ingestion,
        store,
        uploads=uploads_for(engine, settings.data_dir / "uploads"),
        metrics=metrics,
    )
    retriever = HybridRetriever(
        embedder,
        index,
        LexicalIndex(engine),
        documents,
        reranker=open_reranker(settings),
        split=lambda query: searched_apart(query, documents.lexicon),
    )
    library = Library(documents, retriever, embedder)
    return Application(
        settings=settings,
        engine=engine,
        store=store,
        documents=documents,
        retriever=retriever,
        assistant=_assistant(settings, library, background, metrics),
        ingestion=ingestion,
        jobs=background,
        metrics=metrics,
        index=index,
        loader=loader,
        embedder=embedder,
    )


def _assistant(
    settings: Settings, library: "Library", background: Background, metrics: Metrics
) -> Assistant:
    model = open_model(settings)
    writer: Writer = ExtractiveWriter(library.embedder, lexicon=library.documents.lexicon)
    if model is not None:
        writer = ModelWriter(model, temperature=settings.llm.temperature)
    count = CalibratedCounter(token_counter(settings.llm.model or ""))
    memory = _memory(settings, library, count, metrics)
    background.compact_with(lambda session: memory.compact(session, force=False))
    memory.compact_later(background.submit_compaction)
    tools = _tools(library, memory, count) if _uses_tools(settings) else None
    answering = Answering(
        writer,
        SupportChecker(),
        tools,
        learn=lambda ours, theirs: count.learn(
            estimated_tokens=ours + (TOOL_TOKENS if tools else 0), reported_tokens=theirs
        ),
    )
    follow_up = settings.follow_up
    return Assistant(
        library.retriever,
        FollowUps(
            model=model if follow_up.use_model else None,
            lexicon=library.documents.lexicon,
            cue_words=follow_up.cue_words or CUE_WORDS,
            max_turns=follow_up.max_turns if follow_up.enabled else 0,
            timeout_seconds=follow_up.timeout_seconds,
        ),
        memory,
        answering,
        limits=Limits(
            question_chars=settings.web.max_question_chars,
            sources=settings.retrieval.limit,
            past_turns=follow_up.max_turns,
        ),
        metrics=metrics,
    )


def _uses_tools(settings: Settings) -> bool:
    return settings.llm.is_configured and settings.llm.tools


def _memory(
    settings: Settings, library: "Library", count: TokenCounter, metrics: Metrics
) -> Memory:
    context = settings.context
    rules = MemoryRules(
        input_share=context.input_share,
        reserved_tokens=context.reserved_tokens,
        high_water=context.high_water,
        low_water=context.low_water,
        max_pairs=context.max_pairs,
        with_tools=_uses_tools(settings),
        tool_tokens=TOOL_TOKENS if _uses_tools(settings) else 0,
    )
    return Memory(
        _compactor(settings, library, count),
        Recall(library.embedder),
        rules=rules,
        window=_window(settings),
        count=count,
        made=metrics.count_summary,
    )


def _window(settings: Settings) -> Callable[[], int]:
    llm = settings.llm
    configured = llm.context_window or settings.context.default_window
    if llm.model is None:
        return lambda: configured
    key = os.environ.get(llm.api_key_env)
    base_url = llm.base_url or OPENAI
    return ModelWindow(base_url, llm.model, api_key=key, configured=llm.context_window).tokens


def _compactor(settings: Settings, library: "Library", count: TokenCounter) -> Compactor:
    wanted = settings.summarization_settings
    return Compactor(
        open_model(settings, wanted.summary_model),
        count,
        names=library.documents.lexicon,
        options=SummaryOptions(
            max_tokens=wanted.max_summary_tokens,
            temperature=wanted.summary_temperature,
            timeout_seconds=wanted.timeout_seconds,
        ),
    )


def _tools(library: "Library", memory: Memory, count: TokenCounter) -> ToolRoom:
    actions = Actions(
        search=lambda query, limit: library.retriever.search(query, limit=limit),
        prefer=memory.prefer,
        summarize=memory.summarize,
        recall=Recall(library.embedder),
    )
    return ToolRoom(actions, count, memory.input_tokens)


# ── Single parts, for commands that need no more ─────────────────────────────────────────────


def open_database(settings: Settings) -> Engine:
    """The migrated database. Raises SetupError."""
    make_data_dir(settings)
    try:
        engine = open_engine(settings.database_url)
        migrate(engine)
    except ArgumentError as error:
        raise SetupError(f"sessions.database_url is no URL of a database: {error}.") from error
    except (SQLAlchemyError, CommandError, OSError) as error:
        place = make_url(settings.database_url).render_as_string()  # without the password
        raise SetupError(
            f"The database {place} cannot be opened ({getattr(error, 'orig', None) or error}). "
            "Check sessions.database_url, that its server runs, that this user may write there, "
            "and that no newer version of Groundnote used it."
        ) from error
    return engine


def make_data_dir(settings: Settings) -> None:
    """The folder of everything we keep. Raises SetupError if it cannot be written."""
    folder = settings.data_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SetupError(
            f"The data folder {folder} cannot be written ({error.strerror}). Change its rights, or "
            "name another one with GROUNDNOTE_DATA_DIR."
        ) from error


def open_store(settings: Settings) -> SqlConversationStore:
    """Conversations alone."""
    return SqlConversationStore(open_database(settings))


def open_documents(settings: Settings) -> SqlDocumentStore:
    """Documents alone."""
    return SqlDocumentStore(open_database(settings))


def open_embedder(settings: Settings) -> Embedder:
    """The embedding model; it loads at the first use."""
    embedding = settings.embedding
    if embedding.base_url is None:
        return LocalEmbedder(
            embedding.model,
            batch_size=embedding.batch_size,
            allow_download=embedding.allow_download,
        )
    if embedding.model is None:
        raise SetupError("embedding.base_url is set, but embedding.model is not. Name the model.")
    return OpenAIEmbedder(
        base_url=embedding.base_url,
        model=embedding.model,
        api_key=os.environ.get(embedding.api_key_env),
        batch_size=embedding.batch_size,
    )


def open_index(settings: Settings, embedder: Embedder) -> ChromaIndex:
    """The vector index: a folder of ours, or a Chroma server."""
    if settings.retrieval.chroma_url is not None:
        retrieval = settings.retrieval
        return ChromaIndex(
            embedder.name, url=retrieval.chroma_url, collection=retrieval.chroma_collection
        )
    return ChromaIndex(embedder.name, directory=settings.data_dir / "chroma")


def open_reranker(settings: Settings) -> CrossEncoderReranker | None:
    """The cross-encoder, if one is named."""
    name = settings.retrieval.rerank_model
    if name is None:
        return None
    return CrossEncoderReranker(name, allow_download=settings.embedding.allow_download)


def open_model(settings: Settings, name: str | None = None) -> OpenAIChatModel | None:
    """The language model, or another one at the same server; None if none is set."""
    llm = settings.llm
    chosen = name or llm.model
    if llm.model is None or chosen is None:
        return None
    return OpenAIChatModel(
        llm.base_url or OPENAI,
        chosen,
        api_key=os.environ.get(llm.api_key_env),
        timeout_seconds=llm.timeout_seconds,
        max_retries=llm.max_retries,
    )


def load_limits(settings: Settings) -> LoadLimits:
    """Bounds of one file."""
    documents = settings.documents
    return LoadLimits(
        max_bytes=int(documents.max_file_mb * MEBIBYTE),
        max_pages=documents.max_pages,
        max_seconds=documents.read_timeout_seconds,
    )
