"""Compaction of a stored session: old turns are summarised beside the transcript, and checked."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag.citations.binding import Embed, Evidence
from rag.citations.markers import keep_markers
from rag.errors import UserError
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary, SummaryReport
from rag.seams import ChatModel, ModelRequest, SessionHandle, TokenCounter
from rag.sessions.context import MESSAGE_TOKENS, Pair, pairs_of
from rag.summaries.facts import Facts, Said, facts_of
from rag.summaries.ladder import Ladder
from rag.summaries.lines import Composed, Limits, Line
from rag.summaries.plan import Room, hard_tokens, plan_compaction
from rag.summaries.pool import Pool, from_stored, to_stored
from rag.summaries.report import report_of
from rag.summaries.summarize import LONGEST_REPLY, NOT_ASKED, Attempted, Summariser
from rag.text.names import Lexicon

FOLD_OPENING = 8  # tokens around the summaries of a context
READ_TOKENS = 24_000  # of turns shown to a model at once; the middle of longer ones is left out
RETRY_SHARE = 0.2  # of the tokens of the turns, for the correcting prompt
LEAST_RETRY = 300


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How summaries are asked for."""

    max_tokens: int = 800  # soft: required facts may take more
    temperature: float = 0.3
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What is to be summarised now, and which active summaries the result replaces."""

    start: int
    end: int
    replaces: tuple[Summary, ...] = ()


class Compactor:
    """Makes verified summaries. Without a model they are made of sentences of the turns.

    `names` gives the product names that documents use; `embed`, where it is given, lets a
    sentence of the model's keep its marker if it means the same as the claim in other words.
    """

    def __init__(
        self,
        model: ChatModel | None,
        count: TokenCounter,
        *,
        names: Callable[[], Sequence[str]] = tuple,
        embed: Embed | None = None,
        options: SummaryOptions | None = None,
    ) -> None:
        self._model = model
        self._count = count
        self._names = names
        self._embed = embed
        self._options = options or SummaryOptions()

    def compact(
        self, session: SessionHandle, room: Room, *, at_once: bool, force: bool
    ) -> Summary | None:
        """Summarise the oldest pairs if it is time; None if not, or if another was quicker.

        `at_once` makes do without the model, and lets the next compaction in the background ask
        the model for the same turns; `force` summarises whatever the high-water mark says.
        """
        epoch = session.epoch()
        active = session.summaries()
        stretch = self._stretch(session, active, room, force=force, at_once=at_once)
        if stretch is None:
            return None
        model = None if at_once else self._model
        draft = self._draft(session, stretch, model)
        kept = [summary for summary in active if summary not in stretch.replaces]
        made = self._made(session, stretch, draft, kept, room)
        if made.start == made.end or _is_no_gain(made, active):
            return None
        replaced = [s.id for s in (*kept, *stretch.replaces) if s.id and s.start >= made.start]
        stored = session.add_summary(
            made, epoch=epoch, replaces=replaced, claims=to_stored(draft.pool)
        )
        return made if stored else None

    def summarize(self, session: SessionHandle, start: int, end: int) -> Summary:
        """A summary of messages `[start, end)` on request; it is no part of the context.

        Raises:
            UserError: there are no such messages.
        """
        count = session.read().message_count
        if not 0 <= start < end <= count:
            raise UserError(
                f"There are no messages {start} to {end}: the conversation has {count}. "
                f"Ask for a range from 0 to {count}, the end not included."
            )
        stretch = _Stretch(start, end)
        draft = self._draft(session, stretch, self._model)
        limits = Limits(self._options.max_tokens, 4 * self._options.max_tokens)
        made = self._summary(stretch, draft, self._composed(session, draft, limits))
        session.add_requested_summary(made)
        return made

    # ── What ─────────────────────────────────────────────────────────────────────────────────

    def _stretch(
        self,
        session: SessionHandle,
        active: Sequence[Summary],
        room: Room,
        *,
        force: bool,
        at_once: bool,
    ) -> _Stretch | None:
        covered = max((summary.end for summary in active), default=0)
        total = session.read().message_count
        pairs = pairs_of(session.messages(covered, total))
        sizes = [self._pair_tokens(pair) for pair in pairs]
        taken = sum(summary.tokens for summary in active)
        dropped = plan_compaction(
            sizes, taken, room, added_tokens=self._options.max_tokens, force=force
        )
        stand_ins = () if at_once or self._model is None else _stand_ins(active)
        if dropped == 0 and not stand_ins and taken <= hard_tokens(room):
            return None
        end = _end(pairs, dropped, covered)
        start = min((summary.start for summary in stand_ins), default=covered)
        return _Stretch(start, end, stand_ins)

    def _pair_tokens(self, pair: Pair) -> int:
        return sum(self._count(m.content) + MESSAGE_TOKENS for m in pair.messages)

    def _draft(
        self, session: SessionHandle, stretch: _Stretch, model: ChatModel | None
    ) -> "_Draft":
        """Read the raw turns, once, and show them to the model, once."""
        began = time.monotonic()
        registered = session.source_count()
        said = [
            _said(message, registered)
            for message in _readable(session.messages(stretch.start, stretch.end))
        ]
        facts = facts_of(said, Lexicon(self._names()))
        asked = NOT_ASKED if model is None or not said else self._ask(model, said, facts)
        pool = Pool()
        pool.add(facts, [Line(fact, self._count) for fact in facts.facts])
        pool.take_all(asked.sifted, self._count)
        tokens = sum(self._count(each.text) + MESSAGE_TOKENS for each in said)
        name = model.name if model is not None and asked.sifted.facts else "extractive"
        return _Draft(pool, asked, tokens, name, began)

    def _ask(self, model: ChatModel, said: Sequence[Said], facts: Facts) -> Attempted:
        options = self._options
        tokens = sum(self._count(each.text) for each in said)
        evidence = Evidence(facts.claims, facts.plain, self._embed)
        summariser = Summariser(
            lambda instructions, text: _reply(model, options, instructions, text),
            self._count,
            options.max_tokens,
            max(LEAST_RETRY, int(RETRY_SHARE * tokens)),
        )
        return summariser.summarise(said, facts, evidence, room=READ_TOKENS)

    # ── How large ────────────────────────────────────────────────────────────────────────────

    def _made(
        self,
        session: SessionHandle,
        stretch: _Stretch,
        draft: "_Draft",
        kept: Sequence[Summary],
        room: Room,
    ) -> Summary:
        """The summary of the stretch alone, or of everything where both do not fit together."""
        hard = max(1, hard_tokens(room))
        beside = sum(summary.tokens for summary in kept)
        limits = Limits(min(self._options.max_tokens, hard), hard)
        made = self._summary(stretch, draft, self._composed(session, draft, limits))
        if not kept or beside + made.tokens <= hard:
            return made
        earlier = [session.summary_claims(s.id) for s in kept if s.id is not None]
        draft.pool = from_stored([*earlier, to_stored(draft.pool)], self._count)
        whole = _Stretch(min(s.start for s in kept), stretch.end)
        composed = self._composed(session, draft, limits)
        return self._summary(whole, draft, composed, is_fold=True)

    def _composed(self, session: SessionHandle, draft: "_Draft", limits: Limits) -> Composed:
        titles = _titles(session, tuple(draft.pool.numbers))
        return Ladder(draft.pool, limits, self._count, titles).compose()

    def _summary(
        self, stretch: _Stretch, draft: "_Draft", composed: Composed, *, is_fold: bool = False
    ) -> Summary:
        numbers, names = tuple(draft.pool.numbers), tuple(draft.pool.names)
        return Summary(
            start=stretch.start,
            end=stretch.end,
            text=composed.text,
            required_numbers=numbers,
            required_names=names,
            report=draft.report(composed),
            tokens=composed.tokens,
            is_fold=is_fold,
        )


@dataclass(slots=True)
class _Draft:
    """A summary before it is composed."""

    pool: Pool
    asked: Attempted
    tokens_before: int
    model: str
    began: float

    def report(self, composed: Composed) -> SummaryReport:
        return report_of(
            self.pool,
            composed,
            removed=self.asked.sifted.removed,
            tokens_before=self.tokens_before,
            attempts=self.asked.attempts,
            seconds=time.monotonic() - self.began,
            model=self.model,
            problems=self.asked.problems,
        )


def _is_no_gain(made: Summary, active: Sequence[Summary]) -> bool:
    """Whether a fold takes as much as what it would replace."""
    same = made.end <= max((summary.end for summary in active), default=0)
    return same and made.is_fold and made.tokens >= sum(summary.tokens for summary in active)


def _stand_ins(active: Sequence[Summary]) -> tuple[Summary, ...]:
    """The newest summaries that no model was asked for, because a question came first."""
    found: list[Summary] = []
    for summary in sorted(active, key=lambda summary: -summary.end):
        if summary.is_fold or summary.report.attempts:
            break
        found.insert(0, summary)
    return tuple(found)


def _end(pairs: Sequence[Pair], dropped: int, covered: int) -> int:
    if dropped == 0:
        return covered
    if dropped < len(pairs):
        return pairs[dropped].question.index
    return pairs[-1].answer.index + 1


def _readable(messages: Sequence[Message]) -> list[Message]:
    """Messages that say something; an answer that is being written is none."""
    return [
        message
        for message in messages
        if message.content.strip() and message.status != MessageStatus.PENDING
    ]


def _said(message: Message, registered: int) -> Said:
    """Brackets that somebody typed are no citations: a summary repeats only numbers in use then.

    Of imported messages it is not known when that was.
    """
    if message.role == Role.ASSISTANT:
        return Said(message.role, message.content)
    in_use = registered if message.known_sources is None else message.known_sources
    typed = keep_markers(message.content, lambda number: number <= in_use)
    return Said(message.role, typed.text)


def _titles(session: SessionHandle, numbers: Sequence[int]) -> Mapping[int, str]:
    return {source.number: source.document_title for source in session.sources(numbers)}


def _reply(model: ChatModel, options: SummaryOptions, instructions: str, text: str) -> str:
    request = ModelRequest(
        messages=(ChatMessage(Role.SYSTEM, instructions), ChatMessage(Role.USER, text)),
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        timeout_seconds=options.timeout_seconds,
    )
    pieces: list[str] = []
    length = 0
    for delta in model.stream(request):
        pieces.append(delta.text)
        length += len(delta.text)
        if length > LONGEST_REPLY:
            break
    return "".join(pieces)
