"""How the parts are put together."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from rag.answers.card_writer import CardWriter
from rag.answers.model_writer import ModelWriter
from rag.answers.parts import searched_apart
from rag.assistant import Assistant, Limits
from rag.documents.guard import GuardedLoader
from rag.documents.storing.claims import EmbeddingClaims
from rag.documents.storing.store import SqlDocumentStore
from rag.figures import SharedFigures
from rag.followups.resolve import FollowUps
from rag.followups.rules import CUE_WORDS
from rag.ingestion import Ingestion
from rag.jobs.background import Background, uploads_for
from rag.jobs.queue import JobQueue
from rag.jobs.table import JobTable
from rag.library.answers import LibraryAnswers
from rag.library.remarks import Remarks
from rag.library.unread import UnreadFiles
from rag.llm.openai_compatible import OpenAIChatModel
from rag.llm.tokens import CalibratedCounter, token_counter
from rag.memory import Memory, MemoryRules
from rag.metrics import Metrics
from rag.records import SummaryReport
from rag.retrieval.lexical import LexicalIndex
from rag.retrieval.mentions import NameMentions
from rag.retrieval.search import HybridRetriever
from rag.seams import Embedder, SessionHandle, TokenCounter, Writer
from rag.sessions.recall import Recall
from rag.sessions.session_tools import Actions
from rag.sessions.store import SqlConversationStore
from rag.settings import Settings
from rag.summaries.compact import Compactor, SummaryOptions
from rag.tables.answers import TableAnswers, may_ask_rows
from rag.tables.asking.model_planner import ModelPlanner
from rag.tables.library import TableLibrary
from rag.tables.store import TableStore
from rag.tracing import Traces
from rag.turns.answering import Answering, Beside
from rag.turns.tools import ToolOffer, ToolRoom
from rag.wiring.application import Application
from rag.wiring.parts import (
    load_limits,
    open_collections,
    open_embedder,
    open_index,
    open_judge,
    open_model,
    open_reranker,
    open_tables,
    open_window,
)
from rag.wiring.stores import open_database


@dataclass(frozen=True, slots=True)
class Library:
    """What is known of documents."""

    documents: SqlDocumentStore
    retriever: HybridRetriever
    embedder: Embedder
    mentions: NameMentions
    beside: Beside
    asked: TableAnswers

    def has_tables(self, session: SessionHandle) -> bool:
        """Whether any can be asked in this session."""
        return bool(self.asked.library.store.ids(session.within()))


def build(settings: Settings, *, embedder: Embedder | None = None) -> Application:
    """The whole application. Models load and servers are asked only when they are first needed."""
    engine = open_database(settings)
    traces = Traces()
    metrics = Metrics(traces.root)
    embedder = embedder or open_embedder(settings)
    index = open_index(settings, embedder)
    documents, words = SqlDocumentStore(engine), LexicalIndex(engine)
    collections = open_collections(settings, engine)
    store = SqlConversationStore(engine, readable=collections.readable)
    loader = GuardedLoader(load_limits(settings))
    tables = open_tables(settings, engine)
    ingestion = Ingestion(documents, embedder, index, loader=loader, tables=tables)
    ingestion.ask_rights(collections.right)
    if settings.retrieval.chroma_url is not None:
        ingestion.share_with(EmbeddingClaims(engine))
    queue, uploads = _job_queue(settings, engine), uploads_for(engine, settings.data_dir)
    background = Background(queue, ingestion, store, uploads=uploads, metrics=metrics)
    retriever = HybridRetriever(
        embedder,
        index,
        words,
        documents,
        reranker=open_reranker(settings),
        split=lambda query, within: searched_apart(query, documents.lexicon(within)),
    )
    asked = _table_answers(settings, tables)
    mentions = NameMentions(words, documents, documents.lexicon)
    beside = _beside(settings, UnreadFiles(engine, collections.callers.is_admin), mentions, asked)
    library = Library(documents, retriever, embedder, mentions, beside, asked)
    return Application(
        settings=settings,
        engine=engine,
        store=store,
        documents=documents,
        collections=collections,
        tables=tables,
        asked=asked,
        retriever=retriever,
        assistant=_assistant(settings, library, background, metrics),
        ingestion=ingestion,
        jobs=background,
        metrics=metrics,
        figures=SharedFigures(engine, metrics.registry),
        traces=traces,
        index=index,
        loader=loader,
        embedder=embedder,
    )


def _job_queue(settings: Settings, engine: Engine) -> JobQueue:
    return JobQueue(
        JobTable(engine),
        folder=settings.data_dir,
        url=settings.jobs.url,
        workers=settings.jobs.workers,
    )


def _beside(
    settings: Settings, unread: UnreadFiles, mentions: NameMentions, asked: TableAnswers
) -> Beside:
    is_without_model = settings.llm.model is None
    told = LibraryAnswers(mentions, unread, is_without_model=is_without_model)
    remarks = Remarks(unread, mentions.is_word, settings.embedding.is_packaged)
    return Beside((told, asked), remarks)


def _table_answers(settings: Settings, tables: TableStore) -> TableAnswers:
    library = TableLibrary(tables)
    model = open_model(settings)
    return TableAnswers(library, None if model is None else ModelPlanner(model, library).result)


def _assistant(
    settings: Settings, library: "Library", background: Background, metrics: Metrics
) -> Assistant:
    model = open_model(settings)
    mentions = library.mentions
    without_model = CardWriter(lexicon=library.documents.lexicon, mentions=mentions)
    writer: Writer = without_model
    if model is not None:
        writer = ModelWriter(model, temperature=settings.llm.temperature)
    count = CalibratedCounter(token_counter(settings.llm.model or ""))
    offer = None
    if model is not None and settings.llm.tools:
        offer = ToolOffer(lambda: model.takes_tools, library.has_tables, may_ask_rows, count)
    made = metrics.count_summary
    memory = _memory(settings, library, model, count=count, made=made, offer=offer)
    background.compact_with(lambda session: memory.compact(session, force=False))
    memory.compact_later(background.submit_compaction)
    tools = _tools(library, memory, count) if offer else None
    answering = Answering(
        writer,
        tools,
        fallback=without_model if model is not None else None,
        judge=open_judge(settings),
        beside=library.beside,
        learn=lambda ours, theirs: count.learn(estimated_tokens=ours, reported_tokens=theirs),
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
            is_mentioned=mentions.is_anywhere,
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


def _memory(
    settings: Settings,
    library: "Library",
    model: OpenAIChatModel | None,
    *,
    count: TokenCounter,
    made: Callable[[SummaryReport], None],
    offer: ToolOffer | None,
) -> Memory:
    context = settings.context
    without_model = settings.llm.context_window or context.default_window
    window = open_window(settings)
    if model is not None and window is not None:
        model.when_too_long(window.was_too_small)
    rules = MemoryRules(
        input_share=context.input_share,
        reserved_tokens=context.reserved_tokens,
        high_water=context.high_water,
        low_water=context.low_water,
        max_pairs=context.max_pairs,
        answer_tokens=settings.llm.max_tokens,
        tools=offer,
    )
    return Memory(
        _compactor(settings, library, count),
        Recall(library.embedder) if model is not None else None,
        rules=rules,
        window=window.tokens if window is not None else lambda: without_model,
        count=count,
        made=made,
    )


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
        search=lambda session, query, limit: library.retriever.search(
            query, session.within(), limit=limit
        ),
        prefer=memory.prefer,
        summarize=memory.summarize,
        recall=Recall(library.embedder),
        query_tables=library.asked.told,
    )
    return ToolRoom(actions, count, memory.budget)
