"""What the word indexes of the databases have in common."""

import math
from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection, TextClause, bindparam, text

from rag.retrieval.query import Term

HEADING_WEIGHT = 2.0  # a word in a heading counts as so many in the text
MOST_WORDS = 200_000  # of a vocabulary
SHORTEST_STEM = 3  # letters: shorter words are not mistyped so that one could tell
DEPTH = 5  # times the limit: how far down a phrase may lift a chunk


class WordIndex(Protocol):
    """What differs between the databases."""

    stemmer: str  # Snowball's name of the one that the index uses

    def search(
        self, connection: Connection, terms: Sequence[Term], limit: int
    ) -> list[tuple[str, float]]:
        """Ids of chunks that hold any of the terms, with their scores, best first."""

    def frequencies(self, connection: Connection, terms: Sequence[Term]) -> list[int]:
        """In how many chunks each term is."""

    def holders(self, connection: Connection, term: Term, chunk_ids: Sequence[str]) -> list[str]:
        """Which of these chunks hold the term."""

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        """The words of the index, as it holds them, and in how many chunks each is."""


def idf(size: int, frequency: int) -> float:
    """Inverse document frequency as BM25 has it, never below 0."""
    return math.log1p((size - frequency + 0.5) / (frequency + 0.5))


def chunk_count(connection: Connection) -> int:
    """Of the whole library."""
    return int(connection.execute(text("SELECT count(*) FROM chunks")).scalar_one())


def version(connection: Connection) -> tuple[int, int]:
    """Other numbers whenever chunks came or went."""
    count, newest = connection.execute(text("SELECT count(*), max(row) FROM chunks")).one()
    return int(count), int(newest or 0)


def with_list(statement: str) -> TextClause:
    """A statement whose parameter `keys` is a list."""
    return text(statement).bindparams(bindparam("keys", expanding=True))
