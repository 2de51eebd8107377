"""Builds the parts that search and answer; loaded when the first of them is needed."""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

from rag.chat.answers import Answering, Checks, DirectSources
from rag.chat.assistant import Assistant, TurnLimits
from rag.chat.card import CardWriter
from rag.chat.context import ContextBuilder, MemoryRules
from rag.chat.draft import ModelWriter
from rag.chat.follow_ups import FollowUps
from rag.chat.tool_loop import Actions, ToolOffer, ToolRoom
from rag.library.answers import LibraryAnswers, Remarks, unread_files
from rag.memory.conversation import ConversationMemory
from rag.memory.summariser import ApplicationModel, Excuse, Summariser
from rag.records import Verdict
from rag.seams import Matrix, OwnedSession, Writer
from rag.seams.models import FOLLOW_UP, SUMMARY, OpenStatement
from rag.search.confidence import Spread, usual_spread
from rag.search.hybrid import HybridRetriever
from rag.search.lexical import NameMentions
from rag.tables.answers import TableAnswers
from rag.tables.library import Likeness, ModelPlanner, TableLibrary
from rag.tables.vocabulary import may_ask_rows
from rag.wiring.components import open_judge, open_model, open_reranker, open_window

if TYPE_CHECKING:
    from rag.wiring.application import Application


def retriever_of(application: "Application") -> HybridRetriever:
    """Build the retriever, which searches by meaning and by words."""
    return HybridRetriever(
        application.embedder,
        application.index,
        application.words,
        application.documents,
        reranker=open_reranker(application.settings),
        second=application.second,
    )


def table_answers_of(application: "Application") -> TableAnswers:
    """Build what computes answers over rows."""
    library = TableLibrary(application.tables)
    model = application.model
    planner = None if model is None else ModelPlanner(model, library).result
    return TableAnswers(library, planner, _likeness(application))


def _likeness(application: "Application") -> Likeness:
    """Build a measure of likeness, in standard deviations of texts on unrelated subjects."""

    @cache
    def usual() -> Spread:
        return usual_spread(application.embedder.embed)

    @lru_cache(64)  # tables
    def rows(names: tuple[str, ...]) -> Matrix:
        return application.embedder.embed(names)

    @lru_cache(64)  # one question is compared with the names of many tables
    def word(text: str) -> Matrix:
        return application.embedder.embed([text])

    def likeness(words: Sequence[str], names: tuple[str, ...]) -> list[list[float]]:
        cosines = (word(term)[0] @ rows(names).T for term in words)
        return [((row - usual().mean) / usual().deviation).tolist() for row in cosines]

    return likeness


def memory_of(application: "Application") -> ContextBuilder:
    """Build what chooses the messages and summaries that a model sees of a session."""
    settings, count = application.settings, application.count
    context, model = settings.context, application.model
    without_model = settings.llm.context_window or context.default_window
    window = open_window(settings)
    if model is not None and window is not None:
        model.when_too_long(window.was_too_small)

    def has_tables(session: OwnedSession) -> bool:
        return bool(application.tables.ids(session.readable()))

    offer = None
    if model is not None and settings.llm.tools:
        offer = ToolOffer(lambda: model.takes_tools, has_tables, may_ask_rows, count)
    rules = MemoryRules(
        input_share=context.input_share,
        reserved_tokens=context.reserved_tokens,
        high_water=context.high_water,
        low_water=context.low_water,
        max_pairs=context.max_pairs,
        answer_tokens=settings.llm.max_tokens,
        answer_limit=window.answer_limit if window is not None else lambda: None,
        published_window=window.published_tokens if window is not None else None,
        windows=application.picked_windows,
        tools=offer,
        recall_tokens=context.recall_tokens,
        one_at_a_time=settings.llm.calls_at_once == 1,
        is_read=model is not None,
    )
    return ContextBuilder(
        application.remembered,
        rules=rules,
        window=window.tokens if window is not None else lambda: without_model,
        count=count,
        made=application.metrics.count_summary,
        later=application.jobs.submit_compaction,
    )


def conversation_memory_of(application: "Application") -> ConversationMemory:
    """Build the memory of sessions, with the model that summarises them, if one is set."""
    settings = application.settings
    wanted = settings.summarization_settings
    return ConversationMemory(
        application.count,
        application.embedder,
        names=application.documents.lexicon,
        summariser=_summariser(application) if wanted.enabled else None,
        max_tokens=wanted.max_summary_tokens,
    )


def _summariser(application: "Application") -> Summariser | None:
    """Build the writer of summaries: with `summary_model`, else the model that answers."""
    settings = application.settings
    wanted = settings.summarization_settings
    model = open_model(settings, wanted.summary_model)
    window = open_window(settings)
    if model is None or window is None:
        return None
    context = settings.context
    patience = SUMMARY.set_to(wanted.timeout_seconds)
    ask = ApplicationModel(model, wanted.max_summary_tokens, wanted.summary_temperature, patience)
    return Summariser(
        ask,
        model.name,
        application.count,
        lambda: int(context.input_share * (window.tokens() - context.reserved_tokens)),
        _excuse(application, model.name),
    )


def _excuse(application: "Application", writer: str) -> Excuse | None:
    """Build the judge of statements, if the settings name one other than the writing model."""
    settings = application.settings
    is_named = settings.checks.nli_model is not None or settings.checks.model not in ("auto", "off")
    judge = open_judge(settings) if is_named else None
    if judge is None or judge.name == writer:
        return None

    def excuse(pairs: Sequence[tuple[str, str]]) -> list[bool]:
        opinions = judge.judge([OpenStatement(clause, (sentence,)) for clause, sentence in pairs])
        return [
            opinion is not None and opinion.verdict is Verdict.SUPPORTED for opinion in opinions
        ]

    return excuse


def assistant_of(application: "Application") -> Assistant:
    """Build the assistant, which answers questions."""
    settings, documents = application.settings, application.documents
    count, model = application.count, application.model
    mentions = NameMentions(application.words, documents, documents.lexicon)
    without_model = CardWriter(
        lambda texts: application.embedder.embed(texts),
        lexicon=documents.lexicon,
        mentions=mentions,
        confidence=lambda question, readable: application.retriever.confidence(question, readable),
    )
    writer: Writer = without_model
    if model is not None:
        writer = ModelWriter(model, temperature=settings.llm.temperature)
    # The thresholds were measured with the packaged embedding model.
    embedder = application.embedder if settings.embedding.is_packaged else None
    answering = Answering(
        writer,
        _tools(application) if model is not None and settings.llm.tools else None,
        fallback=without_model if model is not None else None,
        checks=Checks(open_judge(settings), embedder),
        beside=_direct_sources(application, mentions),
        learn=lambda ours, theirs: count.learn(estimated_tokens=ours, reported_tokens=theirs),
    )
    follow_up = settings.follow_up
    return Assistant(
        application.retriever,
        FollowUps(
            model=model if follow_up.use_model else None,
            lexicon=documents.lexicon,
            is_word=mentions.is_word,
            is_enabled=follow_up.enabled,
            patience=FOLLOW_UP.set_to(follow_up.timeout_seconds),
        ),
        application.memory,
        answering,
        limits=TurnLimits(
            question_chars=settings.web.max_question_chars,
            sources=settings.retrieval.limit,
            history_turns=follow_up.max_turns,
            answer_seconds=settings.llm.answer_seconds,
        ),
        metrics=application.metrics,
    )


def _others(application: "Application") -> dict[str, Writer]:
    """Build writers for the other models that may be picked; no server is called yet."""
    settings, others = application.settings, dict[str, Writer]()
    for name in settings.llm.pickable[1:]:
        model = open_model(settings, name)
        if model is not None:
            model.when_too_long(application.picked_windows[name].was_too_small)
            others[name] = ModelWriter(model, temperature=settings.llm.temperature)
    return others


def _direct_sources(application: "Application", mentions: NameMentions) -> DirectSources:
    settings = application.settings
    is_admin = application.collections.callers.is_admin
    unread = partial(unread_files, application.engine, is_admin)
    answers = LibraryAnswers(mentions, unread, is_without_model=settings.llm.model is None)
    remarks = Remarks(unread, mentions.is_word, settings.embedding.is_packaged)
    lexicon = application.documents.lexicon
    return DirectSources(
        (answers, application.table_answers), lexicon, remarks, _others(application)
    )


def _tools(application: "Application") -> ToolRoom:
    retriever, memory = application.retriever, application.memory
    actions = Actions(
        search=lambda session, query, limit, filters: retriever.search(
            query, session.readable(), limit=limit, filters=filters
        ),
        prefer=lambda session, wanted: session.prefer(wanted),
        summarize=application.remembered.summarize,
        find=application.remembered.search,
        query_tables=application.table_answers.describe,
    )
    return ToolRoom(actions, application.count, lambda session: memory.budget(session.read()))
