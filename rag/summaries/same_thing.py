"""Whether two statements speak of the same thing and give different figures for it."""

import re
from functools import lru_cache

from rag.citations.checking.reading import Reading, read, share
from rag.summaries.required import Line
from rag.text.amounts import Figure, agree
from rag.text.names import Lexicon
from rag.text.words import is_function_word, language_of

SAME_WORDS = 0.8  # of each statement in the other
_DIGIT = re.compile(r"\d")
_LIMITS = ("codes", "is_negated", "denied", "is_supposed", "has_exception")
_NO_LEXICON = Lexicon(())


def gives_another_figure(one: Line, other: Line) -> bool:
    """Whether each says what the other says, but for a figure of the same kind."""
    if one.words == other.words or one.names != other.names:
        return False
    if not (_DIGIT.search(one.bare) and _DIGIT.search(other.bare)):
        return False
    return _gives_another(one.bare, other.bare)


@lru_cache(maxsize=65_536)
def _gives_another(one: str, other: str) -> bool:
    first, second = _read(one), _read(other)
    return _are_of_one_thing(first, second) and _differ(first, second)


@lru_cache(maxsize=8192)
def _read(text: str) -> Reading:
    return read(text, _NO_LEXICON, language_of(text))


def _are_of_one_thing(one: Reading, other: Reading) -> bool:
    return (
        set(one.names) == set(other.names)
        and all(getattr(one, each) == getattr(other, each) for each in _LIMITS)
        and _small_words(one) == _small_words(other)
        and share(one.words, frozenset(other.words)) >= SAME_WORDS
        and share(other.words, frozenset(one.words)) >= SAME_WORDS
    )


def _small_words(reading: Reading) -> frozenset[str]:
    """With, without, before, after: what tells alike statements apart."""
    return frozenset(each.spelled for each in reading.terms if is_function_word(each.spelled))


def _differ(one: Reading, other: Reading) -> bool:
    """Whether they give a figure of one kind each, and none of these agree."""
    kinds = {_kind(figure) for figure in one.figures} & {_kind(figure) for figure in other.figures}
    return any(
        not any(
            agree(said, there)
            for said in one.figures
            for there in other.figures
            if _kind(said) == _kind(there) == kind
        )
        for kind in kinds
    )


def _kind(figure: Figure) -> tuple[str, str]:
    return figure.kind, figure.dimension
