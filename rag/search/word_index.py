"""What the databases' word indexes have in common: which chunks are looked at, how they score.

A word that very many chunks hold says little and costs much. So the rare words of a query make its
candidates, together with chunks that hold several common ones at once; common words only rank them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, TextClause, bindparam, func, select, text

from rag.db import chunks, inside
from rag.records import Readable
from rag.search.query import Term

HEADING_WEIGHT = 2.0  # a word in a heading counts as so many in the text
SHARE_OF_TIME = 0.01  # that reading the words of a large library may take
MOST_WORDS = 200_000  # of a vocabulary
MOST_SCORED = 2_500  # chunks that the rare terms of one query may hold, summed
MOST_COUNTED = 1_000  # chunks of a phrase's rarest letter: each is read to count the phrase
RANKED = 2  # times the limit: of rare terms' chunks, and again of common ones', that all terms rank
LEAST = 0.05  # of the heaviest term's weight: what nearly every chunk holds decides nothing
TOGETHER = 4  # common terms that are looked up as one
K1, B = 1.2, 0.75  # of BM25, as in FTS5

IN_TEXT = 1 << 15  # of a place, beside its position; without it the place is in the heading

Positions = NDArray[np.int64]  # of a lexeme: row << 16 | IN_TEXT | position
PerRow = NDArray[np.float64]  # one for each of some rows

NOWHERE: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term with how many chunks hold it, and what that makes it weigh."""

    term: Term
    frequency: int
    weight: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Rare terms and common ones, each rarest first."""

    rare: Sequence[WeighedTerm]
    common: Sequence[WeighedTerm]

    @classmethod
    def of(cls, weighed: Iterable[WeighedTerm]) -> "Plan":
        rare, scored = [], 0
        every = sorted(weighed, key=lambda term: term.frequency)
        least = LEAST * max((term.weight for term in every if term.frequency), default=0.0)
        ordered = [term for term in every if term.weight >= least]
        for term in ordered:
            scored += term.frequency
            if scored > MOST_SCORED:
                break
            rare.append(term)
        return cls(rare, ordered[len(rare) :])

    @property
    def all(self) -> list[WeighedTerm]:
        return [*self.rare, *self.common]

    def together(self) -> Iterator[list[Term]]:
        """Common terms whose common chunks are candidates, the most promising first."""
        words = [term.term for term in self.common[:TOGETHER]]
        for many in range(len(words), 1 if self.rare else 0, -1):
            yield words[:many]


class WordIndex(Protocol):
    """What differs between the databases."""

    stemmer: str  # Snowball's name of the one that the index uses

    def search(
        self, connection: Connection, plan: Plan, readable: Readable, limit: int
    ) -> list[tuple[str, float]]:
        """Ids of chunks that hold terms of the plan, with their scores, best first."""

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], readable: Readable, most: int
    ) -> list[int]:
        """In how many chunks each term is; no more than `most` are counted."""

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        """For each term, which of these chunks hold it."""

    def holding(
        self, connection: Connection, term: Term, readable: Readable, limit: int
    ) -> list[str]:
        """Which chunks hold the term, the oldest first."""

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        """The words of the index, as it holds them, and in how many chunks each is.

        Of all collections: nothing of it may be told before `frequencies` finds it within.
        """

    def tokens(self, term: Term) -> Sequence[str]:
        """What stands side by side in the index where the term does, before stemming."""

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        """The same after stemming."""

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        """Each lexeme of a collection's chunks from a row on, with where it stands, in order."""


def chunk_count(connection: Connection, readable: Readable, most: int | None = None) -> int:
    """Of the collections; no more than `most` are counted."""
    rows = select(chunks.c.row).where(inside(chunks.c.collection_id, readable)).limit(most)
    return int(connection.execute(select(func.count()).select_from(rows.subquery())).scalar_one())


def idf(size: int, frequency: int) -> float:
    """Inverse document frequency as BM25 has it, never below 0."""
    return math.log1p(max(0.0, size - frequency + 0.5) / (frequency + 0.5))


def score(
    weighed: Iterable[WeighedTerm],
    lexemes: Mapping[Term, Sequence[str]],
    places: Mapping[str, Positions],
    lengths: Mapping[int, int],
) -> dict[int, float]:
    """BM25 over these terms, by row (Robertson and Zaragoza, 2009); lengths are of the rows."""
    rows = np.array(sorted(lengths), dtype=np.int64)
    sizes = np.array([lengths[row] for row in rows.tolist()], dtype=np.float64)
    relative = sizes / max(float(sizes.mean()) if len(sizes) else 0.0, 1.0)
    scores = np.zeros(len(rows))
    for term in weighed:
        stands = _of_term(lexemes[term.term], places)
        scores += term.weight * saturated(counts_in(rows, stands), relative)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def rows_of_terms(
    lexemes: Mapping[Term, Sequence[str]], places: Mapping[str, Positions], ids: Mapping[int, str]
) -> list[list[str]]:
    """For each term, the ids of the rows that it stands in."""
    results = (_of_term(of_term, places) >> 16 for of_term in lexemes.values())
    return [[ids[row] for row in np.unique(rows).tolist()] for rows in results]


def _of_term(lexemes: Sequence[str], places: Mapping[str, Positions]) -> Positions:
    return in_a_row([places.get(lexeme, NOWHERE) for lexeme in lexemes])


def in_a_row(places: Sequence[Positions]) -> Positions:
    """Where these begin to stand one after the other."""
    starts, *rest = places or [NOWHERE]
    for step, later in enumerate(rest, start=1):
        next_places = np.searchsorted(later, starts + step)
        starts = starts[np.append(later, -1)[next_places] == starts + step]
    return starts


def counts_in(rows: NDArray[np.int64], places: Positions) -> PerRow:
    """How often something stands in each of the rows; in a heading it counts more."""
    weights = np.where(places & IN_TEXT, 1.0, HEADING_WEIGHT)
    counts = np.bincount(np.searchsorted(rows, places >> 16), weights, len(rows))
    return counts.astype(np.float64, copy=False)


def saturated(count: PerRow, relative_length: PerRow) -> PerRow:
    """BM25's share of one term: it levels off, the later the longer the chunk."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * relative_length))


def with_list(statement: str) -> TextClause:
    """A statement whose parameter `keys` is a list."""
    return text(statement).bindparams(bindparam("keys", expanding=True))
