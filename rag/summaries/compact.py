"""Compaction of a stored session: old turns are summarised beside the transcript, and checked."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.citations.gate import canonical
from rag.errors import UserError
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary, Within
from rag.seams import ChatModel, ModelRequest, SessionHandle, TokenCounter
from rag.sessions.context import MESSAGE_TOKENS, Pair, pairs_of
from rag.summaries.check import checked
from rag.summaries.choose import LONGEST_REPLY, NOTHING_CHOSEN, Said, ask_to_choose
from rag.summaries.compose import Composed, Heading, Limits
from rag.summaries.plan import Room, most_tokens, plan_compaction, summary_room
from rag.summaries.report import quotations_of, report_of
from rag.summaries.required import Choice, Reading, Required, read_message
from rag.text.names import Lexicon

READ_TOKENS = 12_000  # of statements shown to a model at once, at most
SESSIONS = 32  # whose covered turns stay read
ASKED_TURNS = 12  # never shown to a model, so that asking is worth a call
NOTHING_ASKED: dict[str, Any] = {"asked": 0, "chosen": [], "thread": []}


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How a model is asked to choose, and how long a summary on request is."""

    max_tokens: int = 800
    temperature: float = 0.3
    timeout_seconds: float = 60.0


@dataclass(slots=True)
class _Covered:
    """The turns of a session that were read, from the first message on, and what they require."""

    readings: list[Reading] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # in canonical spelling
    required: Required = field(default_factory=Required)
    tokens: int = 0
    asked: int = 0  # the choices for messages before this index are in it

    def take(self, choices: Mapping[str, Any]) -> None:
        """Take over what models chose of the turns before, and stored by place."""
        if choices["asked"] > self.asked:
            self.asked = choices["asked"]
            places = {tuple(place) for place in choices["chosen"]}
            lines = (line for reading in self.readings for line in reading.lines)
            chosen = tuple(line for line in lines if line.place in places)
            self.required.choose(Choice(chosen, tuple(choices["thread"])))


class Compactor:
    """Makes summaries of quoted statements; a model, where there is one, chooses among them.

    `names` gives the product names that documents use.
    """

    def __init__(
        self,
        model: ChatModel | None,
        count: TokenCounter,
        *,
        names: Callable[[Within], Sequence[str]] = lambda within: (),
        options: SummaryOptions | None = None,
    ) -> None:
        self._model = model
        self._count = count
        self._names = names
        self._options = options or SummaryOptions()
        # By session and epoch. Whoever works on one has taken it out: another begins anew.
        self._covered: dict[tuple[str, int], _Covered] = {}

    def compact(
        self, session: SessionHandle, room: Room, *, at_once: bool, force: bool
    ) -> Summary | None:
        """Summarise the oldest pairs if it is time; None if not, or if another was quicker.

        One summary stands for all turns up to its end; it is composed anew of their statements.
        `at_once` makes do without the model, which is shown the same turns the next time; `force`
        summarises whatever the high-water mark says.
        """
        began = time.monotonic()
        epoch, active = session.epoch(), session.summaries()
        ends = self._ends(session, active, room, force=force)
        if not ends:
            return None
        choices = self._choices(session, active)
        is_time = not at_once and _is_time_to_ask(choices, ends[0])
        asked = self._model if is_time else None
        covered, choice = _Covered(), NOTHING_CHOSEN
        for end in ends:
            covered = self._read(session, epoch, end)
            covered.take(choices)
            if asked is not None:
                shown = min(READ_TOKENS, 2 * room.budget_tokens)
                choice = self._ask(asked, covered, choices["asked"], end, room=shown)
                choices, asked = _with(choices, choice, end), None
                covered.take(choices)
            turns = self._tokens_from(session, end)
            limits = Limits(summary_room(room, turns), max(1, most_tokens(room)))
            composed = self._composed(session, covered, limits)
            made = self._summary(0, end, covered, composed, choice, began)
            self._keep(session, epoch, covered)
            if composed.tokens + turns <= room.budget_tokens:
                break
        replaced = [summary.id for summary in active if summary.id is not None]
        stored = session.add_summary(made, epoch=epoch, replaces=replaced, choices=choices)
        return made if stored else None

    def summarize(self, session: SessionHandle, start: int, end: int) -> Summary:
        """A summary of messages `[start, end)` on request; it is no part of the context.

        Raises:
            UserError: there are no such messages.
        """
        began = time.monotonic()
        count = session.read().message_count
        if not 0 <= start < end <= count:
            raise UserError(
                f"There are no messages {start} to {end}: the conversation has {count}. "
                f"Ask for a range from 0 to {count}, the end not included."
            )
        covered = _Covered([Reading()] * start, [""] * start)
        self._extend(session, covered, session.messages(start, end))
        choice = self._ask(self._model, covered, start, end, room=READ_TOKENS)
        covered.required.choose(choice)
        tokens = self._options.max_tokens
        composed = self._composed(session, covered, Limits(tokens, 4 * tokens))
        made = self._summary(start, end, covered, composed, choice, began)
        session.add_requested_summary(made)
        return made

    # ── What ─────────────────────────────────────────────────────────────────────────────────

    def _ends(
        self, session: SessionHandle, active: Sequence[Summary], room: Room, *, force: bool
    ) -> list[int]:
        """Where the summary may end: as planned first, then pair by pair; none if it is not due."""
        covered = max((summary.end for summary in active), default=0)
        pairs = pairs_of(session.said(covered))
        sizes = [self._pair_tokens(pair) for pair in pairs]
        taken = sum(summary.tokens for summary in active)
        dropped = plan_compaction(sizes, taken, room, force=force)
        if dropped == 0:
            return [covered] if active and taken > most_tokens(room) else []
        starts = [pair.question.index for pair in pairs[dropped:]]
        return [*starts, pairs[-1].answer.index + 1]

    def _pair_tokens(self, pair: Pair) -> int:
        return sum(self._count(m.content) + MESSAGE_TOKENS for m in pair.messages)

    def _tokens_from(self, session: SessionHandle, end: int) -> int:
        """What stays word for word beside a summary that ends there."""
        return sum(self._pair_tokens(pair) for pair in pairs_of(session.said(end)))

    def _read(self, session: SessionHandle, epoch: int, end: int) -> _Covered:
        """The turns before `end`: each is read once, as long as its session is remembered."""
        covered = self._covered.pop((session.id, epoch), None) or _Covered()
        known = len(covered.readings)
        if known > end or not _is_as_read(session, covered):
            covered, known = _Covered(), 0
        if known < end:
            self._extend(session, covered, session.messages(known, end))
        return covered

    def _extend(
        self, session: SessionHandle, covered: _Covered, messages: Sequence[Message]
    ) -> None:
        lexicon = Lexicon(self._names(session.within()))
        for message in messages:
            index, text = len(covered.readings), _read_text(message)
            before = covered.readings[-1] if covered.readings else Reading()
            question = covered.texts[-1] if before.is_users else ""
            reading = read_message(
                index, message.role, text, lexicon=lexicon, count=self._count, question=question
            )
            covered.readings.append(reading)
            covered.required.add(reading)
            covered.texts.append(text)
            covered.tokens += self._count(text) + MESSAGE_TOKENS

    def _keep(self, session: SessionHandle, epoch: int, covered: _Covered) -> None:
        self._covered[session.id, epoch] = covered
        for oldest in list(self._covered)[:-SESSIONS]:
            self._covered.pop(oldest, None)

    # ── How ──────────────────────────────────────────────────────────────────────────────────

    def _choices(self, session: SessionHandle, active: Sequence[Summary]) -> dict[str, Any]:
        """What models chose of the turns so far."""
        for summary in active:
            stored = session.summary_choices(summary.id) if summary.id is not None else None
            if isinstance(stored, dict) and stored.keys() == NOTHING_ASKED.keys():
                return stored
        return NOTHING_ASKED

    def _ask(
        self, model: ChatModel | None, covered: _Covered, start: int, end: int, *, room: int
    ) -> Choice:
        """Show a model, once, the statements of the turns that none has seen."""
        if model is None or start >= end:
            return NOTHING_CHOSEN
        readings = covered.readings[start:end]
        roles = (Role.USER if reading.is_users else Role.ASSISTANT for reading in readings)
        said = [Said(*each) for each in zip(roles, covered.texts[start:end], strict=True)]
        lines = [line for reading in readings for line in reading.lines]
        options = self._options
        return ask_to_choose(
            lambda instructions, text: _reply(model, options, instructions, text),
            said,
            lines,
            count=self._count,
            room=room,
        )

    def _composed(self, session: SessionHandle, covered: _Covered, limits: Limits) -> Composed:
        required = covered.required
        headings = _headings(session, tuple(required.numbers))
        return checked(required, limits, self._count, covered.texts.__getitem__, headings)

    def _summary(
        self,
        start: int,
        end: int,
        covered: _Covered,
        composed: Composed,
        choice: Choice,
        began: float,
    ) -> Summary:
        required = covered.required
        report = report_of(
            required,
            composed,
            choice,
            tokens_before=covered.tokens,
            seconds=time.monotonic() - began,
            model=self._model.name if self._model is not None else "",
        )
        return Summary(
            start=start,
            end=end,
            text=composed.text,
            required_numbers=tuple(required.numbers),
            required_names=tuple(required.names),
            report=report,
            tokens=composed.tokens,
            quotations=quotations_of(composed),
        )


def _read_text(message: Message) -> str:
    """What is read of a message: nothing of an unfinished answer, or of a client's rules."""
    if message.status == MessageStatus.PENDING or message.role == Role.SYSTEM:
        return ""
    return message.content if message.role == Role.USER else canonical(message.content)


def _is_as_read(session: SessionHandle, covered: _Covered) -> bool:
    """The last message may have another revision since; those before it stay."""
    last = len(covered.readings) - 1
    found = session.said_at([last]) if last >= 0 else []
    return all(_read_text(message) == covered.texts[last] for message in found)


def _is_time_to_ask(choices: Mapping[str, Any], end: int) -> bool:
    """Whether enough turns were never shown to a model to be worth a call."""
    asked = int(choices["asked"])
    return asked == 0 or end - asked >= 2 * ASKED_TURNS


def _with(choices: Mapping[str, Any], choice: Choice, asked: int) -> dict[str, Any]:
    """What was chosen before and now; lines are stored by their places."""
    return {
        "asked": asked,
        "chosen": [*choices["chosen"], *(list(line.place) for line in choice.lines)],
        "thread": [*choices["thread"], *choice.thread],
    }


def _headings(session: SessionHandle, numbers: Sequence[int]) -> Mapping[int, Heading]:
    return {
        source.number: Heading(source.document_title, (source.heading_path or ("",))[-1])
        for source in session.sources(numbers)
    }


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
