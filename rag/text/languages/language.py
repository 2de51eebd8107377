"""What has to be known of a language in order to read it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


def words(text: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(text.split())


def listed(text: str) -> tuple[str, ...]:
    """Words in their order."""
    return tuple(text.split())


def any_of(words: Iterable[str]) -> str:
    """A pattern that matches any of some words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Lines of expressions with commas between them."""
    lines = (line.split(",") for line in text.strip().splitlines())
    return tuple(tuple(each.strip() for each in line) for line in lines)


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """All words are in lower case; an expression is words with single blanks between."""

    code: str
    stemmer: str  # its name at Snowball
    function_words: frozenset[str]  # they tell nothing of what a text is about: the stop list
    question_words: frozenset[str]
    negations: frozenset[str]
    hedges: frozenset[str]
    conditions: frozenset[str]  # expressions that open a condition
    exceptions: frozenset[str]  # expressions that open an exception
    restrictions: frozenset[str]  # only, solely: what is said holds for nothing else
    universals: frozenset[str]  # all, always, any: what is said holds without limit
    closings: tuple[str, ...]  # how a sentence begins that sums up what was said
    comparators: Mapping[str, str]  # an expression before a figure to one of < <= > >= ~
    comparators_behind: Mapping[str, str]  # … behind it
    numbers: Mapping[str, float]
    fractions: Mapping[str, float]
    ordinals: Mapping[str, int]
    months: Mapping[str, int]
    units: Mapping[str, str]  # a spelled unit to its sign
    synonyms: tuple[tuple[str, ...], ...]  # the first of each stands for the others
    alternatives: tuple[frozenset[str], ...]  # of which one excludes the others: days, colours
    opposites: tuple[tuple[str, str], ...]
