"""Which messages a model is sent for a session, and when older turns are summarised."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rag.chat.card import room_beside
from rag.chat.prompts import BRIEF_PROMPT, SYSTEM_PROMPT, fit_sources, question_prompt
from rag.chat.tool_loop import NO_TOOLS, ToolOffer
from rag.citations.markers import neutralise
from rag.errors import OverBudget
from rag.llm.windows import ModelWindow, TokenBudget
from rag.memory.context import (
    MESSAGE_TOKENS,
    Context,
    ContextParts,
    HistoryRoom,
    Instructions,
    Pair,
    State,
    as_messages,
    assemble,
    message_tokens,
    pairs_of,
    put_back,
)
from rag.memory.conversation import ConversationMemory
from rag.memory.history import History
from rag.memory.summariser import SummaryCancelled
from rag.memory.summary import MOST_LINES_SHARE, Room, lists_tokens
from rag.records import (
    NO_PREFERENCES,
    ChatMessage,
    Compacted,
    ContextConfig,
    ImportedMessage,
    Message,
    Readable,
    Resolution,
    Role,
    Session,
    Source,
    Summary,
    SummaryReport,
)
from rag.runtime.budget import limited, part_of_it
from rag.seams import (
    NO_OPTIONS,
    AnswerOptions,
    OpenTurn,
    OwnedSession,
    SessionHandle,
    SessionMemory,
    TokenCounter,
    ToolSpec,
)

SURE = 0.3  # relevance from which a source answers as often as with any higher one
# How many times likelier, by their odds, the best source is to answer than one that …
BESIDE_THE_POINT = 10  # … is not worth sending
HARDLY_LIKELY = 6  # … is worth its chunk, but not what stands around that
LEAST_SOURCES = 3  # that a model is shown, whatever their relevance


@dataclass(frozen=True, slots=True)
class PreparedContext:
    """The context of one call of the writer, and the parts that it was made from."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    sources: tuple[Source, ...]  # the sources in it, best first
    tools: tuple[ToolSpec, ...] = ()
    waiting_tools: tuple[ToolSpec, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)
    state: State | None = None  # as it was read; a second try needs no more

    @property
    def sent_tokens(self) -> int:
        """The tokens of messages and tools, by our own count."""
        return int(self.stats.get("tokens", 0)) + int(self.stats.get("tools", 0))

    @property
    def tokens(self) -> int:
        """The tokens that this call needs of a window, including the reserve for the answer."""
        return self.sent_tokens + self.max_tokens


@dataclass(frozen=True, slots=True)
class ContextSources:
    """The sources that are shown to the writer."""

    sources: Sequence[Source] = ()
    whole: int | None = None  # so many with what stands around them, the others without
    resolved: str = ""  # what a follow-up stands for
    is_sure: bool = False  # the sources answer, as it seems: tools can wait


@dataclass(frozen=True, slots=True)
class QuestionSources:
    """Sources for one question, best first."""

    sources: tuple[Source, ...]
    relevance: Mapping[int, float]  # by number, 0 to 1
    resolution: Resolution
    readable: Readable  # where they were looked for

    @property
    def is_sure(self) -> bool:
        """Whether a source was found that probably answers the question."""
        return max(self.relevance.values(), default=0.0) >= SURE

    def to_the_point(self) -> ContextSources:
        """The first sources, as far as they are not much less likely to answer than the best."""
        sources = tuple(
            source
            for place, source in enumerate(self.sources)
            if place < LEAST_SOURCES or self._is_near(source, BESIDE_THE_POINT)
        )
        likely = [n for n, source in enumerate(sources, 1) if self._is_near(source, HARDLY_LIKELY)]
        return replace(self.all(), sources=sources, whole=max(likely, default=1))

    def all(self) -> ContextSources:
        """All sources, each with its neighbourhood."""
        resolved = self.resolution.query if self.resolution.is_followup else ""
        return ContextSources(self.sources, resolved=resolved, is_sure=self.is_sure)

    def _is_near(self, source: Source, times: float) -> bool:
        """Whether the odds of the best source are at most a fixed multiple of this one's."""
        best = max(self.relevance.values(), default=0.0)
        chance = self.relevance.get(source.number, best)
        return chance * (1 - best) * times >= best * (1 - chance)


def stats_of(context: Context, summaries: Sequence[Summary], budget: TokenBudget) -> dict[str, Any]:
    """Return the statistics of a context for people and programs."""
    reports = [summary.report for summary in summaries]
    return {
        "messages": len(context.messages),
        "tokens": context.tokens,
        "budget": context.budget_tokens,
        "window": budget.window,
        "tools": budget.tools,
        "pairs": context.pairs,
        "is_compressed": context.is_compressed,
        "original_messages": context.original_messages,
        "summarized_messages": context.summarized_messages,
        "recalled": list(context.recalled),
        "kept": {
            "citations": sum(report.citations_kept for report in reports),
            "ranged_citations": sum(report.ranged_citations for report in reports),
            "brought_back_citations": sum(report.citations_brought_back for report in reports),
            "lost_citations": sum(report.citations_lost for report in reports),
            "citations_required": sum(report.citations_required for report in reports),
            "stated_citations": sum(len(report.stated_citations) for report in reports),
            "listed_citations": sum(len(report.listed_citations) for report in reports),
            "recallable_citations": sum(len(report.recallable_citations) for report in reports),
            "names": sum(report.names_kept for report in reports),
            "brought_back_names": sum(report.names_brought_back for report in reports),
            "lost_names": sum(report.names_lost for report in reports),
            "names_required": sum(report.names_required for report in reports),
            "stated_names": sum(len(report.stated_names) for report in reports),
            "listed_names": sum(len(report.listed_names) for report in reports),
            "recallable_names": sum(len(report.recallable_names) for report in reports),
        },
    }


log = logging.getLogger(__name__)

LEAST_SUMMARY = 60  # tokens
LINES_SHARE, WIDE = 0.4, 2_000  # of a history of so many tokens, what its summary may say in lines
RULES_SHARE = 0.5  # of the input: rules that take more are replaced by brief ones
INSTRUCTION_SHARE = 0.25  # of the input that they may take
JOINED_TOKENS = 8  # that texts counted one by one may take more together
SOURCE_SHARE = 0.5  # of what is left for sources and history together
RECALL_SHARE = 0.15  # of it: what sources leave to recall, once something is left out
TOOL_SHARE = 0.45  # of the input: where describing tools takes more, none are offered
SUMMARY_SECONDS = 3.0  # of processor time, for a summary that a turn waits for
RESULTS_SHARE, FREE_SHARE = 0.2, 0.05  # of the input: for results of tools, and free of it at most
LEAST_RESULTS = 140  # tokens that are left in small windows
FRAME_MESSAGES = 2  # of a context: the rules, and the question
EMBEDDED_EVERY = 5  # turns, whatever is summarised
MOST_READ = 200  # messages of a transcript, by one turn
SMALL_WINDOW = 8_192  # tokens


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """Limits that apply to every session."""

    input_share: float = 0.6
    reserved_tokens: int = 150
    high_water: float = 0.6  # of the history's budget
    low_water: float = 0.3
    max_pairs: int = 20
    answer_tokens: int | None = None  # at most
    answer_limit: Callable[[], int | None] = lambda: None  # what is published of the model
    published_window: Callable[[], int] | None = None  # without what refusals let guess
    windows: Mapping[str, ModelWindow] = field(default_factory=dict)  # of others that may be picked
    tools: ToolOffer | None = None
    recall_tokens: int = 4_000  # of what is recalled, at most, in windows beyond SMALL_WINDOW
    one_at_a_time: bool = False  # the model's server: a summary gives way to who asks
    is_read: bool = True  # by a model; else nothing is chosen or put back for nobody


class ContextBuilder:
    """Prepares contexts and has old turns summarised."""

    def __init__(
        self,
        remembered: ConversationMemory,
        *,
        rules: MemoryRules,
        window: Callable[[], int],
        count: TokenCounter,
        made: Callable[[SummaryReport], None] = lambda report: None,
        later: Callable[[SessionHandle], Any] = lambda session: None,
    ) -> None:
        """`later` queues a compaction in the background."""
        self.remembered = remembered
        self._rules = rules
        self._window = window
        self._count = count
        self._made = made
        self._instructions = Instructions()
        self._later = later

    def give_way(self, session: OwnedSession) -> None:
        """Stop a summary that a model is writing for this owner, if the server has one slot."""
        if self._rules.one_at_a_time:
            self.remembered.cancel(session)

    # ── One turn ─────────────────────────────────────────────────────────────────────────────

    def prepare(
        self,
        session: SessionHandle,
        turn: OpenTurn,
        shown: ContextSources,
        state: State | None = None,
        *,
        most_pairs: int | None = None,
        wishes: AnswerOptions = NO_OPTIONS,
    ) -> PreparedContext:
        """Build the context of one question; `most_pairs` limits the turns after a refusal.

        `state` is the result of `before_turn` or of the earlier try. Without a model the context is
        only measured, without sources.
        """
        read = state = state or self._state(session, turn)
        before, is_again = turn.question.index, most_pairs is not None
        if wishes.history is not None:
            state = _with_past(state, wishes.history)
            before = state.session.message_count - 2
        if wishes.instructions is not None:
            state = replace(state, instructions=wishes.instructions)
        if not self._rules.is_read:
            budget = self.budget(state.session)
            context = self._assembled(state, budget, turn.question.content, before)
            stats = stats_of(context, state.summaries, budget)
            return PreparedContext((), budget.max_tokens, tuple(shown.sources), stats=stats)
        resolved = shown.resolved
        budget = self.budget(state.session, self._window_of_retry(state) if is_again else None)
        if wishes.needs_model:
            budget = room_beside(budget, wishes, self._rules.reserved_tokens, self._count)
        question = turn.question.content
        room = self._room_for_sources(state, budget, question_prompt(question, " ", resolved))
        fitted = fit_sources(
            shown.sources, budget_tokens=room, count=self._count, whole=shown.whole
        )
        requested: Sequence[Message] = ()
        if state.preferences != NO_PREFERENCES:
            requested = _requested(session, state, is_again=is_again)
        prompt = question_prompt(question, fitted.text, resolved)
        context = self._assembled(state, budget, prompt, before, requested, most_pairs)
        may_recall = wishes.history is None and not is_again
        leaves_out = context.is_compressed and may_recall
        if leaves_out or (may_recall and state.session.config.share):
            spare = self._room_for_results(budget, context) if budget.tools else 0
            context = self._with_recalled(session, state, context, resolved or question, spare)
        offer = self._rules.tools if budget.tools else None
        tools = NO_TOOLS
        if offer is not None:  # what is refused grows by no new tool
            query, is_sure = resolved or question, shown.is_sure
            tools = offer.specs(session, query, leaves_out=leaves_out, is_sure=is_sure)
        return PreparedContext(
            messages=context.messages,
            max_tokens=budget.max_tokens,
            sources=fitted.sources,
            tools=tools.at_once,
            waiting_tools=tools.waiting,
            stats=stats_of(context, state.summaries, replace(budget, tools=tools.tokens)),
            state=read if is_again else replace(read, window=budget.window),
        )

    def _window_of_retry(self, state: State) -> int | None:
        """Return the window of the first try, or a smaller one that the server named since.

        Limits that are inferred from refusals apply to the next question; a retry drops a pair
        instead.
        """
        session_window = self._rules.windows.get(state.session.model or "")
        published = (
            session_window.published_tokens
            if session_window is not None
            else self._rules.published_window
        )
        return min(state.window, published()) if state.window and published is not None else None

    def before_turn(
        self, session: SessionHandle, turn: OpenTurn
    ) -> tuple[State | None, tuple[Compacted, ...]]:
        """Read the session; write an extractive summary at once if history does not fit any more.

        Returns the state afterwards, and the event of that summary if one was written.
        """
        state = self._state(session, turn)
        if not self._is_too_long(state):
            return state, ()
        try:
            summary = self._summary_at_once(session, state)
        except OverBudget:  # a very long past: what fits is sent, the background reads all of it
            self._later(session)
            return state, ()
        if summary is None:
            return None, ()
        return None, (Compacted(summary.start, summary.end, summary.report),)

    def _is_too_long(self, state: State) -> bool:
        may_summarise = state.summarises and bool(state.recent)
        return may_summarise and self._history_tokens(state) > self._history_room(state).budget

    def _summary_at_once(
        self, session: SessionMemory, state: State, *, stores: bool = True
    ) -> Summary | None:
        """Return an extractive summary, where history does not fit. Raises OverBudget."""
        room = self._history_room(state)
        with limited(part_of_it(SUMMARY_SECONDS)):
            return self._compacted(session, room, at_once=True, force=False, stores=stores)

    def after_turn(
        self, session: SessionHandle, turn: OpenTurn, answer: Message, state: State | None = None
    ) -> None:
        """Queue a compaction if history passes the high-water mark, and embed messages for recall.

        `state` is that before the answer. Where no model reads what is sent, the mark is looked at
        when it is queued anyway; what does not fit is summarised before the next turn.
        """
        is_due = (turn.question.turn + 1) % EMBEDDED_EVERY == 0
        if not is_due and self._rules.is_read:
            if state is not None:
                added = pairs_of((turn.question, answer))
                state = replace(state, recent=(*state.recent, *added))
            is_due = self._is_due(state or self._state(session))
        if is_due:
            self._later(session)

    def _is_due(self, state: State) -> bool:
        """Whether history passes the high-water mark, or the summary must be written anew."""
        if not state.summarises:
            return False
        tokens = sum(summary.tokens for summary in state.summaries)
        room = self._history_room(state)
        pairs = self._history_tokens(state) - tokens
        is_over = pairs > self._rules.high_water * max(0, room.budget - tokens)
        is_many = len(state.recent) > self._rules.max_pairs
        is_due = bool(state.summaries) and self.remembered.is_due(state.summaries)
        return is_over or is_many or is_due

    # ── On request ───────────────────────────────────────────────────────────────────────────

    def compact(
        self, session: SessionMemory, *, force: bool = True, keep_turns: int | None = None
    ) -> Summary | None:
        """Summarise older turns now; without `force` only those that pass the high-water mark.

        `keep_turns` turns stay word for word; by default as many as the session's settings say.
        """
        state = self._state(session)
        self.remembered.remember(session, embeds=self._rules.is_read)
        if not state.summarises and not force:
            return None
        room = self._history_room(state, keep_turns)
        return self._compacted(session, room, at_once=False, force=force)

    def _compacted(
        self,
        session: SessionMemory,
        room: HistoryRoom,
        *,
        at_once: bool,
        force: bool,
        stores: bool = True,
    ) -> Summary | None:
        """Summarise turns down to the low-water mark, or all but the turns to keep."""
        rules = self._rules
        is_due = self.remembered.is_due(session.summaries())

        def plan(past: History, last: int) -> tuple[int, Room] | None:
            turns, many = past.tokens(past.covered, last), past.turns_from(past.covered)
            free = room.budget - lists_tokens(past, room.budget) - room.budget // 4
            high, low = int(rules.high_water * free), int(rules.low_water * free)
            is_over = turns > high or many > rules.max_pairs
            low, most = (-1 if force else low), max(room.keep_turns, rules.max_pairs // 2)
            end = past.covered
            if force or is_over:
                end = past.end(last, low=low, high=high, keep=room.keep_turns, most=most)
            left = max(LEAST_SUMMARY, room.budget - past.tokens(end, last))
            is_new = end > past.covered or (is_due and end > past.first)
            lines = LINES_SHARE if room.budget >= WIDE else MOST_LINES_SHARE
            return (end, Room(left, room.budget, lines)) if is_new else None

        try:
            summary = self.remembered.compact(session, plan, at_once=at_once, stores=stores)
        except SummaryCancelled:
            log.info("A summary gave way to a question; it is begun again after the answer.")
            return None
        if summary is not None and stores:
            self._made(summary.report)
            _log(summary)
        return summary

    def context(self, session: SessionMemory) -> tuple[tuple[ChatMessage, ...], dict[str, Any]]:
        """Return the messages that would be sent now, before the next question, with statistics.

        With the summary that the next question would make; it is not stored, because this reads.
        """
        state = self._state(session)
        summary = None
        if self._is_too_long(state):
            with suppress(OverBudget):
                summary = self._summary_at_once(session, state, stores=False)
        if summary is not None:
            messages = session.bare_messages(summary.end, state.session.message_count)
            state = replace(state, summaries=(summary,), recent=tuple(pairs_of(messages)))
        budget = self.budget(state.session)
        context = self._assembled(state, budget, "", state.session.message_count)
        stats = stats_of(context, state.summaries, budget)
        return context.messages[:-1], stats | {"messages": len(context.messages) - 1}

    def preview(
        self, session: SessionHandle, question: str, resolved: str
    ) -> tuple[ChatMessage, ...]:
        """Return what would be sent for a question with its sources; nothing is stored.

        The share of the sources is left free, so that recalled paragraphs fit beside them.
        """
        state = self._state(session)
        budget = self.budget(state.session)
        prompt = question_prompt(question, " ", resolved)
        room = self._room_for_sources(state, budget, prompt)
        budget = replace(budget, reserved=budget.reserved + room)
        context = self._assembled(state, budget, prompt, state.session.message_count)
        return self._with_recalled(session, state, context, resolved or question).messages

    # ── Parts ────────────────────────────────────────────────────────────────────────────────

    def _state(self, session: SessionMemory, turn: OpenTurn | None = None) -> State:
        """Return the session's state; nothing is read before the first turn."""
        overview = session.overview()
        read, config = overview.session, overview.session.config
        summarises = config.enabled and config.compression_strategy == "smart"
        summaries = tuple(summary for summary in overview.summaries if summary.text and summarises)
        start = max((summary.end for summary in summaries), default=0)
        most = MOST_READ if summarises or not _slides(config) else 0
        most = max(most, config.recent_message_count + 2)
        start = max(start, read.message_count - most)
        recent, instructions = tuple[Pair, ...](), ""
        if turn is None or turn.question.index:
            recent = tuple(pairs_of(session.bare_messages(start, read.message_count)))
            instructions = self._instructions.of(session)
        return State(
            read,
            summaries,
            recent,
            summarises,
            overview.preferences,
            overview.matches,
            instructions,
        )

    def _system(self, state: State, budget: TokenBudget) -> str:
        """Return our rules, followed by the client's own system messages."""
        rules = SYSTEM_PROMPT
        if self._count(rules) > RULES_SHARE * budget.input_tokens:
            rules = BRIEF_PROMPT
        if not state.instructions:
            return rules
        room = int(budget.input_tokens * INSTRUCTION_SHARE)
        added = state.instructions
        while added and self._count(added) > room:
            added = added[: len(added) * 3 // 4]
        return f"{rules}\n\nThe application that asks adds:\n{neutralise(added)}"

    def budget(self, session: Session, window: int | None = None) -> TokenBudget:
        """Return how the window is shared out in one call; by default the window as it is now."""
        session_window = self._rules.windows.get(session.model or "")
        if window is None:
            window = session_window.tokens() if session_window is not None else self._window()
        if session.config.max_tokens is not None:
            window = min(session.config.max_tokens, window)
        published = (
            session_window.answer_limit()
            if session_window is not None
            else self._rules.answer_limit()
        )
        limits = (self._rules.answer_tokens, published)
        answer = min((limit for limit in limits if limit is not None), default=None)
        reserved = self._rules.reserved_tokens
        budget = TokenBudget(window, self._rules.input_share, reserved, answer)
        tools = self._rules.tools.most_tokens() if self._rules.tools else 0
        if tools > TOOL_SHARE * budget.input_tokens:
            return budget
        return replace(budget, reserved=reserved + tools, tools=tools)

    def _room_for_sources(self, state: State, budget: TokenBudget, prompt: str) -> int:
        """Return the tokens for sources: their share or what history leaves, less recall's."""
        fixed = (
            ChatMessage(Role.SYSTEM, self._system(state, budget)),
            ChatMessage(Role.USER, prompt),
        )
        taken = sum(message_tokens(message, self._count) for message in fixed)
        left = max(0, budget.input_tokens - taken - MESSAGE_TOKENS - JOINED_TOKENS)
        history = left if state.preferences.slice else self._history_tokens(state)
        leaves_out = 2 * len(state.recent) + 2 < state.session.message_count
        recalled = int(left * RECALL_SHARE) if leaves_out or state.session.config.share else 0
        return max(int(left * SOURCE_SHARE), left - history) - recalled

    def _history_room(self, state: State, keep_turns: int | None = None) -> HistoryRoom:
        config, budget = state.session.config, self.budget(state.session)
        system = ChatMessage(Role.SYSTEM, self._system(state, budget))
        taken = message_tokens(system, self._count)
        history = max(0, int((budget.input_tokens - taken) * (1 - SOURCE_SHARE)))
        return HistoryRoom(
            budget=history,
            keep_turns=config.recent_message_count // 2 if keep_turns is None else keep_turns,
        )

    def _history_tokens(self, state: State) -> int:
        messages = [message for pair in state.recent for message in pair.messages]
        pairs = sum(message_tokens(message, self._count) for message in messages)
        return pairs + sum(summary.tokens for summary in state.summaries)

    def _assembled(
        self,
        state: State,
        budget: TokenBudget,
        question: str,
        before: int,
        requested: Sequence[Message] = (),
        most_pairs: int | None = None,
    ) -> Context:
        """Assemble the context of a question from the messages before it."""
        config = state.session.config
        parts = ContextParts(
            system=self._system(state, budget),
            question=question,
            summaries=state.summaries,
            recent=[pair for pair in state.recent if pair.question.index < before],
            requested=requested,
            message_count=before,
        )
        messages = state.preferences.max_context_messages
        bounds = [
            most_pairs,
            config.recent_message_count // 2 if _slides(config) else None,
            None if messages is None else max(0, messages - FRAME_MESSAGES) // 2,
        ]
        most = min((bound for bound in bounds if bound is not None), default=None)
        tokens = budget.input_tokens
        return assemble(parts, most, budget_tokens=tokens, count=self._count)

    def _room_for_results(self, budget: TokenBudget, context: Context) -> int:
        """Return the tokens kept free for tool results, which may replace the oldest pairs too.

        At most a tenth of the window is kept free: most questions need no tool.
        """
        older = context.messages[-1 - 2 * context.pairs : -1 - 2 * min(1, context.pairs)]
        replaced = sum(message_tokens(message, self._count) for message in older)
        missing = int(RESULTS_SHARE * budget.input_tokens) - replaced
        free = max(LEAST_RESULTS, int(FREE_SHARE * budget.input_tokens))
        return max(0, min(missing, free))

    def _with_recalled(
        self, session: SessionHandle, state: State, context: Context, question: str, spare: int = 0
    ) -> Context:
        config = state.session.config
        leaves_out = context.is_compressed and not _slides(config)
        room = context.budget_tokens - context.tokens - JOINED_TOKENS - spare
        if self.budget(state.session).window > SMALL_WINDOW:
            room = min(room, self._rules.recall_tokens)
        others = session.shared() if config.share else []
        if others:
            share = room // 2 if leaves_out else room
            text = self.remembered.shared(session, others, question, share)
            context = put_back(context, text, (), self._count)
            room -= self._count(text)
        if not leaves_out:
            return context
        before = context.original_messages
        indices = [pair.question.index for pair in state.recent if pair.question.index < before]
        recalled = self.remembered.recalled(
            session,
            question,
            before=[*indices, before][-1 - context.pairs],
            room=room,
            beside="\n".join(summary.text for summary in state.summaries),
        )
        with recalled as paragraphs:
            return put_back(context, paragraphs.text(), paragraphs.turns, self._count)


def _log(summary: Summary) -> None:
    report = summary.report
    log.info(
        "Summarised (smart, %s): messages %d to %d, %d tokens to %d in %.1f s; "
        "%d calls, %d tokens of the model; %d lines written, %d quoted, %d put back, "
        "%d unchecked, %d clauses dropped.%s",
        report.model,
        summary.start,
        summary.end,
        report.tokens_before,
        report.tokens_after,
        report.seconds,
        report.calls,
        report.model_tokens,
        report.written,
        report.quoted,
        report.put_back,
        report.unchecked,
        report.dropped,
        "".join(f" {problem}" for problem in report.problems),
    )


def _with_past(state: State, past: Sequence[ImportedMessage]) -> State:
    """Return the state with only the earlier messages that the request sent along."""
    messages = as_messages(past)
    session = replace(state.session, message_count=len(messages) + 2)
    return replace(
        state,
        session=session,
        summaries=(),
        recent=tuple(pairs_of(messages)),
        preferences=NO_PREFERENCES,
    )


def _requested(session: SessionMemory, state: State, *, is_again: bool) -> Sequence[Message]:
    """Return messages that a model asked for: a slice, and the hits of its last history search.

    They are shown in one context, and in the shorter retries of it.
    """
    wanted = state.preferences
    messages = list(session.bare_messages(*wanted.slice)) if wanted.slice else []
    if wanted.include_search_results:
        there = {message.index for message in messages}
        matching = session.messages_at([index for index in state.matches if index not in there])
        messages = sorted([*messages, *matching], key=lambda message: message.index)
    if not is_again:
        session.prefer(NO_PREFERENCES)
    return messages


def _slides(config: ContextConfig) -> bool:
    return config.compression_strategy == "sliding_window"
