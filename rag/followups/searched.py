"""What a resolution is: what people are shown, and what of the conversation goes into retrieval."""

import re
from collections.abc import Sequence

from rag.citations.markers import cited_numbers, keep_markers
from rag.followups.pronouns import Turn
from rag.records import Resolution

NAMED_SOURCE = re.compile(
    r"\b(?:source|citation|footnote)s?\s+(?:no\.?\s*|#)?([1-9]\d{0,4})\b", re.IGNORECASE
)
# What worked on conversations about several kinds of documents; anything near does as well.
PREVIOUS_WEIGHT, FIRST_WEIGHT = 0.3, 0.25
MAX_CONTEXT = 600  # characters of an earlier question


def source_numbers(question: str) -> tuple[int, ...]:
    """Numbers of sources that a question names, such as "[3]", "[1, 2]", "[2-4]", "source 3"."""
    named = [int(found[1]) for found in NAMED_SOURCE.finditer(question)]
    return tuple(dict.fromkeys([*cited_numbers(question), *named]))


def without_markers(text: str) -> str:
    """The text as it should be searched for."""
    return " ".join(keep_markers(text, lambda _number: False).text.split())


def resolution(
    question: str, whole: str, past: Sequence[Turn], method: str, *, leans: bool
) -> Resolution:
    """What the rules, or a model, made of a question; it leans on the turns before or stands alone.

    No word of the turns before is looked up besides: measured, one such word worsens as many
    searches as it betters. Their vectors do better more than twice as often as worse.
    """
    numbers = source_numbers(question)
    query = without_markers(whole) or whole
    return Resolution(
        query=whole,
        is_followup=bool(past) and (leans or bool(numbers)),
        method="unchanged" if whole == question else method,
        dense_query=query,
        lexical_query=query,
        source_numbers=numbers,
        dense_context=_dense_context(past),
    )


def _dense_context(past: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
    """The previous and the first question."""
    ends = ((past[-1], PREVIOUS_WEIGHT), (past[0], FIRST_WEIGHT)) if past else ()
    return tuple((_searched(turn), weight) for turn, weight in ends[: len(past)])


def _searched(turn: Turn) -> str:
    return without_markers(turn.question[:MAX_CONTEXT])
