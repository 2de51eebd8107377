"""What the databases' word indexes have in common: which chunks are looked at, how they score.

A word that very many chunks hold says little and costs much. So the rare words of a query make its
candidates, together with chunks that hold several common ones at once.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, select

from rag.db import chunks, inside
from rag.records import Readable
from rag.search.query import Term

HEADING_WEIGHT = 2.0  # a word in a heading counts as so many in the text
MOST_WORDS = 200_000  # of a vocabulary
MOST_SCORED = 2_500  # chunks that the rare terms of one query may hold, summed
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


def plan(weighed: Iterable[WeighedTerm]) -> tuple[list[WeighedTerm], list[list[WeighedTerm]]]:
    """Rare terms, and common ones that a chunk is to hold together, the most of them first."""
    every = sorted(weighed, key=lambda each: each.frequency)
    sums = accumulate(each.frequency for each in every)
    rare = [each for each, scored in zip(every, sums, strict=True) if scored <= MOST_SCORED]
    common = every[len(rare) :][:TOGETHER]
    return rare, [common[:many] for many in range(len(common), 1 if rare else 0, -1)]


class WordIndex(Protocol):
    """What differs between the databases."""

    stemmer: str  # Snowball's name of the one that the index uses

    def search(
        self,
        connection: Connection,
        terms: Sequence[WeighedTerm],
        within: Readable,
        limit: int,
        *,
        is_all: bool = False,
    ) -> list[tuple[str, float]]:
        """Ids of chunks that hold any of the terms, or all, with their scores, best first."""

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], within: Readable, most: int
    ) -> list[int]:
        """In how many chunks each term is; no more than `most` are counted."""

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        """For each term, which of these chunks hold it."""

    def holding(
        self, connection: Connection, term: Term, within: Readable, limit: int
    ) -> list[str]:
        """Which chunks hold the term, the oldest first."""

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        """The words of the index, as it holds them, and in how many chunks each is.

        Of all collections: nothing of it may be told before `frequencies` finds it within.
        """

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        """What stands side by side in the index where the term does."""

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        """Each lexeme of a collection's chunks from a row on, with where it stands, in order."""


def chunk_count(connection: Connection, within: Readable, most: int | None = None) -> int:
    """Of the collections; no more than `most` are counted."""
    found = select(chunks.c.row).where(inside(chunks.c.collection_id, within)).limit(most)
    return int(connection.execute(select(func.count()).select_from(found.subquery())).scalar_one())


def idf(size: int, frequency: int) -> float:
    """Inverse document frequency as BM25 has it, never below 0."""
    return math.log1p(max(0.0, size - frequency + 0.5) / (frequency + 0.5))


def in_a_row(places: Sequence[Positions]) -> Positions:
    """Where these begin to stand one after the other."""
    starts, *rest = places or [NOWHERE]
    for step, later in enumerate(rest, start=1):
        at = np.searchsorted(later, starts + step)
        starts = starts[np.append(later, -1)[at] == starts + step]
    return starts


def counts_in(rows: NDArray[np.int64], places: Positions) -> PerRow:
    """How often something stands in each of the rows; in a heading it counts more."""
    weights = np.where(places & IN_TEXT, 1.0, HEADING_WEIGHT)
    counts = np.bincount(np.searchsorted(rows, places >> 16), weights, len(rows))
    return counts.astype(np.float64, copy=False)


def saturated(count: PerRow, relative_length: PerRow) -> PerRow:
    """BM25's share of one term: it levels off, the later the longer the chunk."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * relative_length))
