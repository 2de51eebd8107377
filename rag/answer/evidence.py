"""Which pieces of the sources answer a question, and whether any does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rag.answer.passages import Kind, Piece
from rag.answer.questions import Products, Question
from rag.answer.words import TermWeights, terms
from rag.seams import Embedder


@dataclass(frozen=True, slots=True)
class Signs:
    """How one piece meets a question; each 0 to 1, but `product` and `cosine` -1 to 1."""

    coverage: float  # of the question's terms, by the piece itself
    context: float  # of the same, by the piece with what stands above it
    cosine: float
    relevance: float  # of its source, as retrieval saw it
    rank: float  # of its source: 1 for the first, falling
    kind: float  # whether it holds the kind of thing that is asked for
    product: float
    in_chunk: float
    leads: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A piece with its signs, its score and its vector (empty without an embedder)."""

    piece: Piece
    signs: Signs
    score: float
    vector: NDArray[np.float32]
    products: frozenset[str] = frozenset()  # of those asked for, the ones it names


def weigh(
    question: Question,
    pieces: Sequence[Piece],
    *,
    relevance: Mapping[int, float],
    embedder: Embedder | None,
) -> list[Scored]:
    """All pieces with their scores, in their order."""
    held = [terms(piece.text) for piece in pieces]
    around = [words | terms(piece.context) for words, piece in zip(held, pieces, strict=True)]
    weights = TermWeights(held)
    products = Products(question.text, [f"{piece.context}\n{piece.text}" for piece in pieces])
    cosines, vectors = _cosines(question, pieces, embedder)
    ranks = {number: rank for rank, number in enumerate(dict.fromkeys(p.number for p in pieces))}
    found = []
    for place, piece in enumerate(pieces):
        signs = Signs(
            coverage=weights.coverage(question.terms, held[place]),
            context=weights.coverage(question.terms, around[place]),
            cosine=cosines[place],
            relevance=relevance.get(piece.number, 0.5),
            rank=1 / (1 + ranks[piece.number]),
            kind=float(question.is_served_by(piece.text)),
            product=products.fit(piece.text, piece.context),
            in_chunk=float(piece.in_chunk),
            leads=float(piece.leads),
        )
        named = products.asked_in(piece.text)
        found.append(Scored(piece, signs, score(signs, piece.kind), vectors[place], named))
    return found


def _cosines(
    question: Question, pieces: Sequence[Piece], embedder: Embedder | None
) -> tuple[Sequence[float], Sequence[NDArray[np.float32]]]:
    """Each piece is embedded below what stands above it, as chunks are, in one call."""
    if embedder is None or not pieces:
        nothing: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        return [0.0] * len(pieces), [nothing] * len(pieces)
    texts = [f"{piece.context}\n{piece.text}" for piece in pieces]
    matrix = embedder.embed([question.text, *texts])
    return [float(x) for x in matrix[1:] @ matrix[0]], list(matrix[1:])


# Chosen on the development questions of two manuals (see benchmarks/answers.py).
_WEIGHTS = {
    "coverage": 0.5,
    "context": 0.5,
    "cosine": 1.0,
    "relevance": 0.5,
    "rank": 0.3,
    "kind": 0.15,
    "product": 0.5,
    "in_chunk": 0.2,
    "leads": 0.0,
}
_KIND_BONUS = {Kind.LIST: -0.05, Kind.STEPS: 0.05}


def score(signs: Signs, kind: Kind) -> float:
    """A weighted sum of the signs."""
    total: float = sum(weight * getattr(signs, name) for name, weight in _WEIGHTS.items())
    return total + _KIND_BONUS.get(kind, 0.0)


def answers(question: Question, scored: Sequence[Scored]) -> bool:
    """Whether the pieces answer the question at all."""
    best = max((found.signs.context + found.signs.cosine for found in scored), default=0.0)
    return bool(question.terms) and best >= 0.4
