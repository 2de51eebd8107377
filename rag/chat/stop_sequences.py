"""End an answer where the one who asks wants it to end, whoever writes it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rag.seams import AnswerOptions, ModelDelta, TokenCounter


def cut_at_stop(
    deltas: Iterable[ModelDelta], wishes: AnswerOptions, *, count: TokenCounter | None = None
) -> Iterator[ModelDelta]:
    """The answer up to the first of the stop texts, however the deltas cut it.

    With `count` also within the tokens that are wanted, for what no model counts.
    """
    said = held = ""
    for delta in deltas:
        said, held = ("", "") if delta.discard else (said, held)
        held += delta.text
        end = min((held.find(stop) for stop in wishes.stop if stop in held), default=None)
        ready = held[: len(held) - _perhaps(held, wishes.stop)] if end is None else held[:end]
        held = held[len(ready) :]
        fits = _fitting(said, ready, wishes, count)
        said += fits
        yield replace(delta, text=fits)
        if len(fits) < len(ready):
            yield ModelDelta(cut=True)
            return
        if end is not None:
            return
    if held:
        yield ModelDelta(text=held)


def _perhaps(text: str, stops: Iterable[str]) -> int:
    """How much of the end of a text may be the beginning of a stop text."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)


def _fitting(said: str, text: str, wishes: AnswerOptions, count: TokenCounter | None) -> str:
    most = wishes.max_tokens
    if count is None or most is None or count(said + text) <= most:
        return text
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    if not said and ends:
        ends = [*range(1, ends[0]), *ends]  # something is said, be it half a word
    return next((text[:end] for end in reversed(ends) if count(said + text[:end]) <= most), "")
