"""What has to be known of a language in order to read it; the words lie in a file for each."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from importlib.resources import files
from typing import Any


def words(text: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(text.split())


def any_of(words: Iterable[str]) -> str:
    """A pattern that matches any of some words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class Patterns:
    """Regular expressions, any of which may stand."""

    joined: str


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """All words are in lower case; an expression is words with single blanks between.

    In the file words have blanks between, expressions commas, groups semicolons; what a group of
    expressions stands for is before a colon.
    """

    code: str
    stemmer: str  # its name at Snowball
    joins_words: bool  # two words make one: `Urlaubsantrag`
    function_words: frozenset[str]  # they tell nothing of what a text is about: the stop list
    idle_in_questions: frozenset[str]  # those of them that nothing is looked up for
    idle_over_rows: frozenset[str]  # what changes nothing where rows are asked over
    question_words: frozenset[str]
    negations: frozenset[str]
    prohibiting: frozenset[str]  # they deny without a negation
    lacking: frozenset[str]  # they deny a word, and not what is said
    refusals: frozenset[str]  # they answer a question, and deny what that says
    conjunctions: frozenset[str]
    prepositions: frozenset[str]
    comparing: frozenset[str]  # what follows is compared with, not spoken of
    pairwise: frozenset[str]  # values are told apart by their order
    limits: frozenset[str]  # conditions, exceptions, restrictions, hedges: they narrow what is said
    telling: frozenset[str]  # function words that a copy may neither lose nor change
    closings: tuple[str, ...]  # how a sentence begins that sums up what was said
    comparators: Mapping[str, str]  # an expression before a figure to one of < <= > >= ~
    comparators_behind: Mapping[str, str]  # … behind it
    numbers: Mapping[str, float]
    fractions: Mapping[str, float]
    ordinals: Mapping[str, int]
    months: Mapping[str, int]
    units: Mapping[str, str]  # a spelled unit to its sign
    synonyms: tuple[tuple[str, ...], ...]  # the first of each stands for the others
    alternatives: tuple[tuple[str, ...], ...]  # of which one excludes the others: days, colours
    opposites: tuple[tuple[str, ...], ...]  # pairs
    universal: frozenset[str]  # they leave nothing out
    restricting: frozenset[str]  # … and these do
    only: frozenset[str]  # of these those that leave all else out
    excepting: frozenset[str]  # … and those that leave out what follows
    around_documents: frozenset[str]  # what a document's name may stand between
    abbreviated: Patterns  # before a full stop that may end no sentence
    leads_on: Patterns  # … or never does
    points_back: Patterns  # how a sentence begins that says what it says after another
    narrows: Patterns  # … that narrows the one before it
    takes_back: Patterns  # … or takes it back
    manners: Patterns  # … or states nothing
    declines: Patterns  # what says that nothing was found
    reports: Patterns  # what a source does: it says, it states
    introduces: Patterns  # what stands before a source: "according to"
    joins: Patterns  # what a clause begins with
    conditions: Patterns  # how a condition begins
    supposes: Patterns  # … or another clause that asserts nothing
    prevails: Patterns  # what says which of two sources holds
    supersedes: Patterns  # … less plainly
    differences: Patterns  # words of sums: what was worked out, and how
    sums: Patterns
    multiples: Patterns
    ratios: Patterns
    shares: Patterns


def read_lists(name: str) -> dict[str, Any]:
    """A file of lists of words."""
    text = files("rag.text.languages").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_language(code: str) -> Language:
    """A language from its file."""
    told = read_lists(code)
    told.setdefault("idle_in_questions", told["function_words"])
    return Language(**{each.name: _READ[each.type](told[each.name]) for each in fields(Language)})


def _expressions(text: str) -> tuple[str, ...]:
    return tuple(" ".join(each.split()) for each in text.split(","))


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_expressions, text.split(";")))


def _meanings(text: str) -> dict[str, str]:
    told = (group.partition(":") for group in text.split(";"))
    return {each: value.strip() for value, _, group in told for each in _expressions(group)}


def any_pattern(text: str) -> str:
    """The patterns of some lines as one."""
    return "|".join(text.split("\n")).strip("|")


def values(text: str) -> dict[str, float]:
    """Expressions with what number each stands for."""
    return {each: float(Fraction(value)) for each, value in _meanings(text).items()}


def _counts(text: str) -> dict[str, int]:
    return {each: int(value) for each, value in _meanings(text).items()}


_READ: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    bool: bool,
    Patterns: lambda text: Patterns(any_pattern(text)),
    frozenset[str]: words,
    tuple[str, ...]: _expressions,
    tuple[tuple[str, ...], ...]: _groups,
    Mapping[str, str]: _meanings,
    Mapping[str, float]: values,
    Mapping[str, int]: _counts,
}
