"""Compaction of a stored session: old turns are summarised beside the transcript, and checked."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rag.citations.gate import canonical
from rag.errors import UserError
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary, Within
from rag.seams import ChatModel, ModelRequest, SessionHandle, TokenCounter
from rag.sessions.context import MESSAGE_TOKENS, pairs_of
from rag.summaries.choose import LONGEST_REPLY
from rag.summaries.compose import Heading, Limits
from rag.summaries.past import Ask, Past
from rag.summaries.required import Choice, Reading
from rag.summaries.summarise import (
    READ_TOKENS,
    Made,
    Room,
    compose_checked,
    planned_ends,
    quotations_of,
    report_of,
    summarise,
)
from rag.text.names import Lexicon

SESSIONS = 32  # whose turns stay read
NOTHING_ASKED: dict[str, Any] = {"asked": 0, "chosen": [], "said": []}


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How a model is asked to choose, and how long a summary on request is."""

    max_tokens: int = 800
    temperature: float = 0.3
    timeout_seconds: float = 60.0


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
        self._model_name = "" if model is None else model.name
        self._count = count
        self._names = names
        self._options = options or SummaryOptions()
        # By session and epoch. Whoever works on one has taken it out: another begins anew.
        self._pasts: dict[tuple[str, int], Past] = {}

    def compact(
        self, session: SessionHandle, room: Room, *, at_once: bool, force: bool
    ) -> Summary | None:
        """Summarise the oldest pairs if it is time; None if not, or if another was quicker.

        One summary stands for all turns up to its end; it is composed anew of their statements.
        `at_once` makes do without the model, which is shown the same turns the next time; `force`
        summarises whatever the high-water mark says.
        """
        epoch, active = session.epoch(), session.summaries()
        covered = max((summary.end for summary in active), default=0)
        choices = self._choices(session, active)
        past = self._read(session, epoch, covered)
        _take_over(past, choices)
        ends = planned_ends(past, sum(each.tokens for each in active), room, force=force)
        if ends:
            made = summarise(
                past,
                ends,
                room,
                ask=None if at_once else self._ask,
                model=self._model_name,
                headings=partial(_headings, session),
            )
            summary = self._summary(0, past, made)
            replaced = [each.id for each in active if each.id is not None]
            choices = _with(choices, made.choice, past.asked)
            if not session.add_summary(summary, epoch=epoch, replaces=replaced, choices=choices):
                return None
        self._pasts[session.id, epoch] = past
        for oldest in list(self._pasts)[:-SESSIONS]:
            self._pasts.pop(oldest, None)
        return summary if ends else None

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
        past = Past(self._count, first=start, covered=start)
        for _ in range(start):
            past.append("", Reading(), 0)
        self._extend(session, past, session.said(start, end))
        past.cover(end)
        choice = past.ask(self._ask, end, room=READ_TOKENS)
        past.required.choose(choice)
        tokens = self._options.max_tokens
        composed = compose_checked(past, Limits(tokens, 4 * tokens), partial(_headings, session))
        report = report_of(past, composed, choice, began=began, model=self._model_name)
        summary = self._summary(start, past, Made(composed, choice, report))
        session.add_requested_summary(summary)
        return summary

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    def _read(self, session: SessionHandle, epoch: int, covered: int) -> Past:
        """The whole pairs so far: each is read once, as long as its session is remembered."""
        past = self._pasts.pop((session.id, epoch), None) or Past(self._count)
        changed = _changed(session, past)
        if max(covered, changed) < past.covered:
            past = Past(self._count)
        elif changed < len(past.texts):
            past.cut(changed)
        known = len(past.texts)
        said = session.said(known)
        pairs = pairs_of(said)
        past.turns += [pair.question.index for pair in pairs]
        if pairs:
            self._extend(session, past, [m for m in said if m.index <= pairs[-1].answer.index])
        past.cover(covered)
        return past

    def _extend(self, session: SessionHandle, past: Past, messages: Sequence[Message]) -> None:
        lexicon = Lexicon(self._names(session.within()))
        for message in messages:
            text = _read_text(message)
            past.read(message.role, text, self._count(text) + MESSAGE_TOKENS, lexicon)

    # ── Choose ───────────────────────────────────────────────────────────────────────────────

    def _choices(self, session: SessionHandle, active: Sequence[Summary]) -> dict[str, Any]:
        """What models chose of the turns so far."""
        for summary in active:
            stored = session.summary_choices(summary.id) if summary.id is not None else None
            if isinstance(stored, dict) and stored.keys() == NOTHING_ASKED.keys():
                return stored
        return NOTHING_ASKED

    @property
    def _ask(self) -> Ask | None:
        model = self._model
        return None if model is None else partial(_reply, model, self._options)

    def _summary(self, start: int, past: Past, made: Made) -> Summary:
        return Summary(
            start=start,
            end=past.covered,
            text=made.composed.text,
            required_numbers=tuple(past.required.numbers),
            required_names=tuple(past.required.names),
            report=made.report,
            tokens=made.composed.tokens,
            quotations=quotations_of(made.composed),
        )


def _read_text(message: Message) -> str:
    """What is read of a message: nothing of an unfinished answer, or of a client's rules."""
    if message.status == MessageStatus.PENDING or message.role == Role.SYSTEM:
        return ""
    return message.content if message.role == Role.USER else canonical(message.content)


def _changed(session: SessionHandle, past: Past) -> int:
    """From which message on another revision may stand: only that of the last pair can."""
    last = len(past.texts) - 1
    found = session.said_at([last]) if last >= 0 else []
    is_as_read = all(_read_text(message) == past.texts[last] for message in found)
    return last + 1 if is_as_read else past.turns[-1]


def _take_over(past: Past, choices: Mapping[str, Any]) -> None:
    """What models chose of the turns before, as it is stored: by places."""
    if choices["asked"] > past.asked:
        past.asked = choices["asked"]
        places = (tuple(place) for place in choices["chosen"])
        past.required.choose(Choice(past.lines_at(places), tuple(choices["said"])))


def _with(choices: Mapping[str, Any], choice: Choice, asked: int) -> dict[str, Any]:
    """What was chosen before and now; lines are stored by their places."""
    return {
        "asked": asked,
        "chosen": [*choices["chosen"], *(list(line.place) for line in choice.lines)],
        "said": [*choices["said"], *choice.said],
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
