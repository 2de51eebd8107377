"""Compaction of a stored session: old turns are summarised beside the transcript, and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rag.citations.gate import canonical
from rag.errors import UserError
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary, Within
from rag.seams import ChatModel, ModelRequest, SessionHandle, TokenCounter
from rag.sessions.context import MESSAGE_TOKENS, pairs_of
from rag.summaries.choose import LONGEST_REPLY
from rag.summaries.compose import Heading
from rag.summaries.past import Past
from rag.summaries.required import Reading
from rag.summaries.summarise import Room, planned_ends, summarise
from rag.text.names import Lexicon

SESSIONS = 32  # whose turns stay read


TIMEOUT_SETTING = "summarization_settings.timeout_seconds"


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
        replaced = [each.id for each in active if each.id is not None]
        past = self._read(session, epoch, covered)
        for choices in map(session.summary_choices, replaced):
            if isinstance(choices, dict) and choices.keys() == past.choices.keys():
                past.take_over(choices)
        summary = None
        ends = planned_ends(past, sum(each.tokens for each in active), room, force=force)
        if ends:
            summary = self._summarise(session, past, ends, room, ask=not at_once)
            choices = past.choices
            if not session.add_summary(summary, epoch=epoch, replaces=replaced, choices=choices):
                return None
        self._pasts[session.id, epoch] = past
        for oldest in list(self._pasts)[:-SESSIONS]:
            self._pasts.pop(oldest, None)
        return summary

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
        past = Past(self._count, first=start, covered=start, turns=[start])
        for _ in range(start):
            past.append("", Reading(), 0)
        self._extend(session, past, session.said(start, end))
        tokens = self._options.max_tokens
        room = Room(0, 0, 0, least=tokens, most=4 * tokens, keep_turns=0)
        summary = self._summarise(session, past, [end], room, ask=True)
        session.add_requested_summary(summary)
        return summary

    def _summarise(
        self, session: SessionHandle, past: Past, ends: Sequence[int], room: Room, *, ask: bool
    ) -> Summary:
        model, headings = self._model, partial(_headings, session)
        reply = partial(_reply, model, self._options) if model and ask else None
        name = model.name if model else ""
        return summarise(past, ends, room, ask=reply, model=name, headings=headings)

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
        timeout_setting=TIMEOUT_SETTING,
    )
    reply = ""
    for delta in model.stream(request):
        reply += delta.text
        if len(reply) > LONGEST_REPLY:
            break
    return reply
