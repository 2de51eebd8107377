"""Whether two statements speak of the same thing and give different figures for it."""

import re
from functools import lru_cache
from itertools import pairwise

from rag.citations.checking.reading import read
from rag.summaries.required import NO_NAMES, Line
from rag.text.amounts import Figure, agree
from rag.text.languages import Language
from rag.text.related import canonical
from rag.text.words import UNSPACED, is_function_word, language_of, stem, tokens

_DIGIT = re.compile(r"\d")
_LIMITS = ("codes", "is_negated", "is_supposed", "excepted")


@lru_cache(maxsize=8192)  # the statements of a conversation are looked up at each of its turns
def telling(text: str, language: Language) -> tuple[str, ...]:
    """What is looked up of a text: stems of its words, synonyms as one, and its figures."""
    found: list[str] = []
    for token in tokens(text):
        lowered = token.lowered
        if UNSPACED.search(lowered):
            found += (one + other for one, other in pairwise(lowered))
        elif lowered.partition("'")[0] not in language.function_words:
            found.append(canonical(stem(lowered, language.code)))
    return tuple(found)


@lru_cache(maxsize=16_384)  # a conversation asks about the same lines at each of its turns
def gives_another_figure(one: Line, other: Line) -> bool:
    """Whether each says what the other says, but for a figure of the same kind.

    Both are `about` the same.
    """
    if one.words == other.words or not _DIGIT.search(one.bare):
        return False
    limits, figures = _read(one.bare)
    other_limits, others = _read(other.bare)
    return limits == other_limits and any(
        not any(agree(said, there) for said in figures[kind] for there in others[kind])
        for kind in figures.keys() & others.keys()
    )


About = tuple[frozenset[str], frozenset[str]]


def about(line: Line) -> About:
    """Names and words of a statement, without figures and what they count.

    Where two have others, they speak of two things.
    """
    return line.names, _about(line.bare)


@lru_cache(maxsize=8192)
def _about(text: str) -> frozenset[str]:
    words = telling(text, language_of(text))
    figures = [bool(_DIGIT.search(word)) for word in words]
    return frozenset(
        word
        for word, is_figure, is_counted in zip(words, figures, [False, *figures], strict=False)
        if not (is_figure or is_counted)
    )


@lru_cache(maxsize=8192)
def _read(text: str) -> tuple[tuple[object, ...], dict[tuple[str, str], list[Figure]]]:
    """What two statements must have alike, and the figures by their kind."""
    reading = read(text, NO_NAMES, language_of(text))
    # With, without, before, after: what tells alike statements apart.
    small = frozenset(each.spelled for each in reading.terms if is_function_word(each.spelled))
    limits = tuple(getattr(reading, each) for each in _LIMITS)
    figures: dict[tuple[str, str], list[Figure]] = {}
    for figure in reading.figures:
        figures.setdefault((figure.kind, figure.dimension), []).append(figure)
    return (frozenset(reading.names), small, *limits), figures
