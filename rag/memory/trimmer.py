"""Keep any chat history small without losing citations or names: plain message dicts in and out."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rag.memory.recall import Embed
from rag.memory.thread import ClientModel
from rag.memory.transcript import MessageDict, Transcript
from rag.memory.trimming import TrimLimits, sent_messages, summarise_if_due
from rag.records import SummaryReport
from rag.text.names import Lexicon
from rag.tokens import count_tokens

TRANSCRIPTS = 32  # remembered at once; the one that was not used for longest is forgotten first


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The messages to send, and how they came about; `report` is that of the summary in them."""

    messages: list[dict[str, Any]]
    was_trimmed: bool
    report: SummaryReport | None


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
    too. No model is needed; with `thread`, that of the client writes a short thread besides.
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
        thread: bool = False,
    ) -> None:
        if client is not None and not model:
            raise ValueError('A client needs the name of its model: model="…".')
        for name, value, least in (
            ("max_tokens", max_tokens, 1),
            ("recent_message_count", recent_message_count, 0),
            ("max_history_turns", max_history_turns or 0, 0),
            ("max_summary_tokens", max_summary_tokens, 1),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}.")
        self._limits = TrimLimits(max_tokens, recent_message_count, max_history_turns)
        self._model = None
        if client is not None and thread:
            self._model = ClientModel(
                client, str(model), max_tokens=max_summary_tokens, temperature=temperature
            )
        self._lexicon = Lexicon(products)
        self._embed = embed
        self._transcripts: list[Transcript] = []  # the one used last stands last
        self._lock = threading.Lock()

    def trim(self, messages: Sequence[MessageDict]) -> Trimmed:
        """The messages to send for this transcript.

        Raises:
            TooLarge: the newest question and the system messages alone exceed `max_tokens`.
            TypeError: a message is no dict.
        """
        given: list[MessageDict] = list(messages)
        seen = self._taken(given)
        try:
            seen.extend(given)
            ask, name = (self._model.ask, self._model.name) if self._model else (None, "")
            summarise_if_due(seen, self._limits, ask, name)
            if seen.summary is None:
                return Trimmed([dict(message) for message in given], False, None)
            return Trimmed(sent_messages(seen, given, self._limits), True, seen.summary.report)
        finally:
            with self._lock:
                self._transcripts = [*self._transcripts, seen][-TRANSCRIPTS:]

    def _taken(self, messages: list[MessageDict]) -> Transcript:
        """What we know of this transcript, taken out: whoever comes meanwhile reads it anew.

        One that goes on differently is known up to there.
        """
        with self._lock:
            known = ((seen.common(messages), seen) for seen in reversed(self._transcripts))
            usable = [(common, seen) for common, seen in known if seen.reaches(common)]
            if not usable:
                return Transcript(count_tokens, lexicon=self._lexicon, embed=self._embed)
            common, best = max(usable, key=itemgetter(0))
            self._transcripts = [each for each in self._transcripts if each is not best]
            if common < len(best.messages):
                best.go_back(common)
            return best
