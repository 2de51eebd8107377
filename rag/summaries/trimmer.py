"""Keep any chat history small without losing citations or names: plain message dicts in and out."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rag.records import SummaryReport
from rag.summaries.client import ClientModel
from rag.summaries.recall import Embed, RecallIndex
from rag.summaries.transcript import MessageDict, Transcript
from rag.summaries.trimming import TrimLimits, sent_messages, summarise_if_due
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

    A trimmed history is one system message (rules, then the summary), then user and assistant in
    turns. The summary quotes statements word for word with their `[n]`, lists every other `[n]`
    and every product name, and the last message is given the earlier statements that bear on it:
    by their words, and with `embed` (texts in, unit vectors out) by their meaning. A client's
    model chooses what is quoted; without one, or when it fails, use and age decide.
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
        if client is not None:
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
            summarise_if_due(seen, self._limits, self._model)
            if seen.summary is None:
                return Trimmed([dict(message) for message in given], False, None)
            return Trimmed(sent_messages(seen, given, self._limits), True, seen.summary.report)
        finally:
            with self._lock:
                self._transcripts = [*self._transcripts, seen][-TRANSCRIPTS:]

    def _taken(self, messages: list[MessageDict]) -> Transcript:
        """What we know of this transcript, taken out: whoever comes meanwhile reads it anew.

        One that goes on differently is known up to there, and stays as it was.
        """
        with self._lock:
            known = ((seen.common(messages), seen) for seen in reversed(self._transcripts))
            usable = [(common, seen) for common, seen in known if seen.reaches(common)]
            if not usable:
                recall = RecallIndex(self._embed)
                return Transcript(count_tokens, lexicon=self._lexicon, recall=recall)
            common, best = max(usable, key=itemgetter(0))
            if common < len(best.messages):
                return best.forked(common)
            self._transcripts = [each for each in self._transcripts if each is not best]
            return best
