"""How passages and their units meet a question, in numbers: what the rules of a card are about."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.answers.units import Unit, units_of, with_tables_joined
from rag.answers.wanted import BRIEF, holds, wanted_in
from rag.answers.words import asked_terms, terms
from rag.citations.markers import neutralise
from rag.records import Source
from rag.text.names import Lexicon, contains_name, find_names
from rag.text.words import language_of

UNKNOWN_RELEVANCE = 0.5
_SURELY_NOT = 1e-3
_REPEATS = 0.75  # share of a text's words from which on it only says the question again
_SERVES = 0.3  # what a unit counts more that holds the kind of thing that is asked for


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, read; texts are compared with it in its language."""

    language: str  # its code
    terms: frozenset[str]
    wanted: str
    names: tuple[str, ...] = ()  # of products and the like
    known: Lexicon | None = None  # the names of all documents
    is_part: bool = False  # of a question that asks several things, and was searched for as one

    @classmethod
    def of(cls, text: str, lexicon: Lexicon | None = None, *, is_part: bool = False) -> "Asked":
        spoken = language_of(text).code
        names = tuple(dict.fromkeys(name.text for name in find_names(text, lexicon)))
        wanted = wanted_in(text)
        return cls(spoken, asked_terms(text, spoken), wanted, names, lexicon, is_part)

    def terms_of(self, text: str) -> frozenset[str]:
        return terms(text, self.language)

    def held_by(self, text: str) -> frozenset[str]:
        """The terms of a text; "3 years" does not hold the figure of a "Glidepath 3"."""
        figures = {name: set(filter(str.isdigit, self.terms_of(name))) for name in self.names}
        whole = [figures[name] for name in figures if contains_name(text, name)]
        return self.terms_of(text) - set().union(*figures.values()).difference(*whole)

    def rivals_in(self, text: str) -> bool:
        """Whether a text names a sibling, and no product that was asked for.

        `Aero 5 Pro` is a sibling of `Aero 5` and of `Aero 7`; their family is none, whether it
        is called `Aero` or `Aero routers`.
        """
        families = {name.split()[0].casefold() for name in self.names}
        if not families or self.known is None or self.has_its_name(text):
            return False
        named = (name.text.split() for name in self.known.find(text))
        return any(
            first.casefold() in families and not all(map(str.islower, more))
            for first, *more in named
        )

    def has_its_name(self, text: str) -> bool:
        """Whether a text holds one of its names whole."""
        return any(contains_name(text, name) for name in self.names)

    def is_served_by(self, text: str) -> bool:
        """Whether a text holds the kind of thing that is asked for."""
        return holds(self.wanted, text)

    def only_repeated_by(self, text: str) -> bool:
        """Whether a text says the question again, as headings and FAQs do."""
        held = self.terms_of(text)
        if len(held) < 2:
            return False
        if self.wanted in BRIEF and self.is_served_by(text):  # one figure may be all the news
            return held <= self.terms
        return len(held & self.terms) >= _REPEATS * len(held)


@dataclass(frozen=True, slots=True)
class Passage:
    """A source, read."""

    source: Source
    relevance: float
    text: str  # with markers of the document's own made harmless
    units: tuple[Unit, ...]

    @classmethod
    def of(cls, source: Source, relevance: Mapping[int, float]) -> "Passage":
        text = with_tables_joined(neutralise(source.passage))
        own = relevance.get(source.number, UNKNOWN_RELEVANCE)
        return cls(source, own, text, tuple(units_of(text)))

    @property
    def headings(self) -> str:
        told = dict.fromkeys((self.source.document_title, *self.source.heading_path))
        return " › ".join(filter(None, told))


PASSAGE_SIGNS = ("rank", "relevance", "coverage")


def passage_signs(asked: Asked, passages: Sequence[Passage]) -> list[tuple[float, ...]]:
    """One row for each passage, in the order of `PASSAGE_SIGNS`.

    The parts of a question share one search: how it ranked what it found says nothing of one part.
    """
    return [
        (
            0.0 if asked.is_part else 1.0 / (1 + rank),
            0.0 if asked.is_part else log_odds(each.relevance),
            share(asked.terms, asked.terms_of(f"{each.headings}\n{each.text}")),
        )
        for rank, each in enumerate(passages)
    ]


def unit_scores(asked: Asked, passage: Passage) -> list[float]:
    """Of each unit how much of the question's words it holds, and whether it serves.

    What is said of a sibling comes behind all that is not.
    """
    # The names that stand in the headings no unit has to repeat.
    titled = [name for name in asked.names if contains_name(passage.headings, name)]
    wanted = asked.terms.difference(*map(asked.terms_of, titled)) or asked.terms
    return [
        share(wanted, asked.held_by(unit.text))
        + _SERVES * asked.is_served_by(unit.text)
        - asked.rivals_in(unit.text)
        for unit in passage.units
    ]


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """How much of what is wanted is held."""
    return len(wanted & held) / len(wanted) if wanted else 0.0


def log_odds(probability: float) -> float:
    """Bounded, so that a certain one is no infinite one."""
    bounded = min(max(probability, _SURELY_NOT), 1 - _SURELY_NOT)
    return math.log(bounded / (1 - bounded))
