"""Keep any chat history small without losing citations or names: plain message dicts in and out."""

import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from operator import itemgetter
from typing import Any

from rag.errors import TooLarge
from rag.language.names import Lexicon
from rag.memory.context import MESSAGE_TOKENS, SUMMARY_TITLE
from rag.memory.recall import Embed
from rag.memory.summariser import Summariser, client_asked
from rag.memory.summary import Room, SummaryDraft, lists_tokens, summarise
from rag.memory.transcript import (
    MessageDict,
    Transcript,
    role_of,
    split_summary,
    text_of,
    unfold,
)
from rag.records import Role, Summary, SummaryReport
from rag.tokens import count_tokens

TRANSCRIPTS = 32  # remembered at once; the one that was not used for longest is forgotten first
REPLY_TOKENS = 3  # every context ends with the beginning of the reply
OPENING_TOKENS = MESSAGE_TOKENS + 8  # of a summary
SYSTEM_SHARE = 0.25  # of `max_tokens` at most for system messages in the middle of the transcript
LINES_SHARE = 0.25  # of the room, that the lines of a summary are expected to take
# Of what a summary leaves: where it is made anew, and what then stays word for word.
HIGH_WATER, MIDDLE_WATER, LOW_WATER = 0.6, 0.3, 0.2
RECALL_SHARE = 0.1  # of the room, at least, for what is recalled
UNFOLDED_SHARE = 0.5  # of it for lines that nothing but a summary holds any more
LEAST_SUMMARY = 60  # tokens


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The messages to send, whether they were trimmed, and the report of the summary in them."""

    messages: list[dict[str, Any]]
    was_trimmed: bool
    report: SummaryReport | None


@dataclass(frozen=True, slots=True)
class _TrimLimits:
    max_tokens: int
    recent_messages: int
    max_turns: int | None


class HistoryTrimmer:
    """Fits a growing chat history into `max_tokens`; what falls out is summarised in its own words.

    `trim` is given the whole transcript each time and recognises what it has summarised before;
    one trimmer may serve many conversations and threads. A call reads only what is new, and looks
    at all else (some 50 ns a message) in case it was changed. `max_tokens` is the most that the
    returned messages take, four tokens a message included: leave room for the reply beside it.
    `recent_message_count` messages stay word for word where they fit.

    A trimmed history is one system message (rules, then a small summary), then user and assistant
    in turns. The last message is given what was said earlier and bears on it, word for word, until
    the room is used: by its words, and with `embed` (texts in, unit vectors out) by its meaning,
    too.

    No model is needed. Where there is a client, its model writes the summary, which is verified
    clause by clause against the turns; `trim` waits `wait` seconds for it, then makes do with an
    extractive one and takes the late reply at the next call. `wait=0` never waits, and
    `summarise=False` never asks. A trimmed history may be given back as the next one.
    """

    def __init__(  # noqa: PLR0913 - options of a library, all keyword-only
        self,
        *,
        client: Any = None,
        model: str | None = None,
        max_tokens: int = 8192,
        recent_message_count: int = 10,
        max_history_turns: int | None = None,
        max_summary_tokens: int = 800,
        temperature: float = 0.3,
        products: Iterable[str] = (),
        embed: Embed | None = None,
        summarise: bool = True,
        wait: float = 30.0,
        thread: bool | None = None,
    ) -> None:
        if client is not None and not model:
            raise ValueError('A client needs the name of its model: model="…".')
        _check_number("max_tokens", max_tokens, 1)
        _check_number("recent_message_count", recent_message_count, 0)
        _check_number("max_history_turns", max_history_turns or 0, 0)
        _check_number("max_summary_tokens", max_summary_tokens, 1)
        _check_number("wait", wait, 0)
        _check_number("temperature", temperature or 0, 0)
        if embed is not None and not callable(embed):
            raise TypeError(f"embed must be a function of texts, got {embed!r:.60}.")
        if thread is not None:
            warnings.warn(
                "`thread` does nothing any more: the model of a client writes the summary, "
                "verified; `summarise=False` leaves it out.",
                DeprecationWarning,
                stacklevel=2,
            )
        self._limits = _TrimLimits(int(max_tokens), recent_message_count, max_history_turns)
        self._summariser: Summariser | None = None
        if client is not None and summarise:
            self._summariser = Summariser(
                client_asked(
                    client, str(model), max_tokens=max_summary_tokens, temperature=temperature
                ),
                str(model),
                count_tokens,
                lambda: max(2_000, max_tokens),
            )
        self._wait = wait
        self._lexicon = Lexicon(_checked_names(products))
        self._embed = embed
        languages = None
        if embed is not None:
            from rag.memory.embedding import SupportedLanguages  # it loads numpy

            languages = SupportedLanguages(embed)
        self._languages = languages
        self._transcripts: list[Transcript] = []  # the one used last stands last
        self._lock = threading.Lock()

    def trim(self, messages: Sequence[MessageDict]) -> Trimmed:
        """Return the messages to send for this transcript.

        Raises:
            TooLarge: the newest question and the system messages alone exceed `max_tokens`.
            TypeError: a message is no dict, or there is no list of them.
        """
        if not isinstance(messages, Iterable):
            raise TypeError(f"trim takes a list of messages, got {messages!r:.60}.")
        messages = list(messages)
        with self._lock:
            outputs = [seen.recognise_output(messages) for seen in reversed(self._transcripts)]
        whole, is_unfolded = next(filter(None, outputs), None), False
        if whole is None:  # rebuilt from what was given alone
            whole, is_unfolded = unfold(messages)
        transcript = self._taken(whole)
        transcript.is_unfolded |= is_unfolded
        try:
            transcript.extend(whole)
            self._summarise_if_due(transcript)
            if transcript.summary is None:
                return Trimmed([dict(message) for message in messages], False, None)
            sent = _messages_to_send(transcript, whole, self._limits)
            transcript.sent(sent[0]["content"])
            return Trimmed(sent, True, transcript.summary.report)
        finally:
            with self._lock:
                self._transcripts = [*self._transcripts, transcript][-TRANSCRIPTS:]

    def _taken(self, messages: list[MessageDict]) -> Transcript:
        """Take out the state of this transcript; a concurrent call reads the transcript anew.

        The state of a transcript that continues differently is kept up to the difference.
        """
        with self._lock:
            pairs = ((seen.common(messages), seen) for seen in reversed(self._transcripts))
            usable = [pair for pair in pairs if 0 < pair[0] >= pair[1].covered]
            if not usable:
                return Transcript(
                    count_tokens,
                    lexicon=self._lexicon,
                    embed=self._embed,
                    languages=self._languages,
                )
            common, best = max(usable, key=itemgetter(0))
            self._transcripts = [seen for seen in self._transcripts if seen is not best]
            if common < len(best.messages):
                best.go_back(common)
            return best

    # ── Made small ───────────────────────────────────────────────────────────────────────────

    def _summarise_if_due(self, transcript: Transcript) -> None:
        """Summarise as many of the oldest turns as needed.

        Raises TooLarge if the part that can never be summarised does not fit.
        """
        if transcript.writing is not None and transcript.writing.draft is not None:  # it came late
            transcript.draft, transcript.writing = transcript.writing.draft, None
            if transcript.summary is not None:
                transcript.summary = _bounded_summary(
                    transcript, transcript.covered, transcript.room
                )
        planned = _plan(transcript, self._limits)
        if planned is None:
            return
        end, room = planned
        if (
            self._summariser is not None
            and transcript.writing is None
            and transcript.draft.written_to < end
        ):
            transcript.writing = SummaryWriting(self._summariser, transcript, end)
            if transcript.writing.ended.wait(self._wait):  # else its reply is taken when it comes
                transcript.draft = transcript.writing.draft or transcript.draft
                transcript.writing = None
        transcript.room = room
        transcript.summary = _bounded_summary(transcript, end, room)


def _check_number(name: str, value: object, least: int) -> None:
    """Raises TypeError or ValueError."""
    if not isinstance(value, Real) or isinstance(value, bool) or not isfinite(value):
        raise TypeError(f"{name} must be a number of at least {least}, got {value!r:.60}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")


def _checked_names(products: object) -> tuple[str, ...]:
    """Return the names; raises TypeError, also for a single string, which would become letters."""
    names = tuple(products) if isinstance(products, Iterable) else (products,)
    wrong = (
        products
        if isinstance(products, str)
        else next((name for name in names if not isinstance(name, str)), None)
    )
    if wrong is not None or products is None:
        raise TypeError(f'products must be a list of names such as ["Aero 5"], got {wrong!r:.60}.')
    return names


class SummaryWriting:
    """A thread in which a model writes summary lines for the messages before `end`."""

    def __init__(self, summariser: Summariser, seen: Transcript, end: int) -> None:
        evidence = seen.evidence(seen.leading, end)
        before = replace(seen.draft, written_to=max(seen.draft.written_to, seen.leading))
        self.draft: SummaryDraft | None = None
        self.ended = threading.Event()

        def write() -> None:
            try:
                self.draft = summariser.write(evidence, before)
            finally:
                self.ended.set()

        threading.Thread(target=write, name="summary", daemon=True).start()


def _bounded_summary(transcript: Transcript, end: int, room: Room) -> Summary:
    most = UNFOLDED_SHARE if transcript.is_unfolded else LINES_SHARE
    return summarise(transcript, end, replace(room, lines=most), transcript.draft)


def _plan(transcript: Transcript, limits: _TrimLimits) -> tuple[int, Room] | None:
    """Return where the summary shall end and its room; None if it stays as it is."""
    # The leading system messages stay whole, later ones up to a share.
    later = sum(transcript.tokens(index, index + 1) for index in transcript.systems)
    systems = min(later, int(SYSTEM_SHARE * limits.max_tokens))
    start = transcript.open_start
    needed = REPLY_TOKENS + transcript.tokens(0, transcript.leading) + systems
    needed += transcript.tokens(start)
    room = max(0, limits.max_tokens - needed - OPENING_TOKENS)
    turns = transcript.tokens(transcript.covered, start)
    is_many = (
        limits.max_turns is not None
        and transcript.turns_from(transcript.covered) > limits.max_turns
    )
    if transcript.summary is None:
        is_due = REPLY_TOKENS + transcript.tokens(0) > limits.max_tokens or is_many
    else:
        is_due = turns > HIGH_WATER * (room - transcript.summary.tokens) or is_many
    if not is_due:
        return None
    needed += LEAST_SUMMARY if start > transcript.leading else 0
    if needed > limits.max_tokens:
        raise TooLarge(
            f"The newest question and the system messages take {needed} tokens, but max_tokens is "
            f"{limits.max_tokens}. Shorten them, or raise max_tokens."
        )
    keep = limits.recent_messages // 2 + (start < len(transcript.parsed))  # and the open question
    free = max(0, room - lists_tokens(transcript, room) - int(LINES_SHARE * room))
    low, high = LOW_WATER * free, MIDDLE_WATER * free
    end = transcript.end(start, low=low, high=high, keep=keep, most=limits.max_turns)
    if (
        end == transcript.covered
        and transcript.summary
        and turns + transcript.summary.tokens <= room
    ):
        return None
    left = int((1 - RECALL_SHARE) * room) - transcript.tokens(end, start)
    return end, Room(max(LEAST_SUMMARY, left), room)


# ── What is sent ─────────────────────────────────────────────────────────────────────────────


def _messages_to_send(
    transcript: Transcript, messages: list[MessageDict], limits: _TrimLimits
) -> list[dict[str, Any]]:
    """Return a system message with the summary, then the newest turns in alternation.

    Earlier paragraphs that bear on the newest question are put before it in the last message.
    """
    assert transcript.summary is not None, "only called after summarising"
    systems = _system_messages(transcript, limits)
    rules = [split_summary(role_of(messages[i]), text_of(messages[i]))[0] for i in systems]
    summary = f"{SUMMARY_TITLE}\n{transcript.summary.text}"
    system = {"role": "system", "content": "\n\n".join(filter(None, [*rules, summary]))}
    turns = [i for i in range(transcript.covered, len(messages)) if i not in transcript.systems]
    sent = _join_neighbours([messages[index] for index in turns])
    if sent and sent[-1].get("role") == Role.USER:
        taken = REPLY_TOKENS + OPENING_TOKENS + transcript.summary.tokens
        taken += sum(transcript.tokens(index, index + 1) for index in [*systems, *turns])
        question, content = text_of(sent[-1]), sent[-1].get("content") or ""
        text = transcript.recalled(
            question,
            before=transcript.covered,
            room=limits.max_tokens - taken,
            meanings=transcript.meanings(question),
            beside=transcript.summary.text,
        ).text()
        if text and isinstance(content, str):
            sent[-1]["content"] = f"{text}\n{content}"
        elif text and isinstance(content, list | tuple):
            sent[-1]["content"] = [{"type": "text", "text": text}, *content]
    return [system, *sent]


def _system_messages(transcript: Transcript, limits: _TrimLimits) -> list[int]:
    """Return the leading, the newest fitting summarised and all later system messages' indices."""
    fitting: list[int] = []
    left = int(limits.max_tokens * SYSTEM_SHARE)
    for index in reversed([index for index in transcript.systems if index < transcript.covered]):
        left -= transcript.tokens(index, index + 1)
        if left < 0:
            break
        fitting.insert(0, index)
    newer = (index for index in transcript.systems if index >= transcript.covered)
    return [*range(transcript.leading), *fitting, *newer]


def _join_neighbours(messages: list[MessageDict]) -> list[dict[str, Any]]:
    """Return the messages with consecutive plain ones of the same role joined."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        if _is_plain(last) and _is_plain(message) and last["role"] == message["role"]:
            last["content"] = f"{last['content']}\n\n{message['content']}"
        else:
            joined.append(dict(message))
    return joined


def _is_plain(message: MessageDict) -> bool:
    return message.keys() == {"role", "content"} and isinstance(message["content"], str)
