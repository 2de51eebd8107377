"""Which pieces of the sources answer a question, and whether any does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rag.answer.passages import Kind, Piece
from rag.answer.questions import Products, Question
from rag.answer.words import TermWeights, phrases, terms
from rag.seams import Embedder

UNKNOWN_RELEVANCE = 0.5


@dataclass(frozen=True, slots=True)
class Signs:
    """How one piece meets a question; each 0 to 1, but `product` and `cosine` from -1."""

    coverage: float  # of the question's terms, by the piece itself
    context: float  # of the same, by the piece with what stands above it
    phrases: float  # of the question's pairs of terms, by the piece itself
    cosine: float
    kind: float  # whether it holds the kind of thing that is asked for
    product: float
    in_chunk: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A piece with its signs, its score and its vector (empty without an embedder)."""

    piece: Piece
    signs: Signs
    score: float
    vector: NDArray[np.float32]
    products: frozenset[str] = frozenset()  # of those asked for, the ones it names


# All weights were fitted on the development questions of the sets in benchmarks/answers.py,
# with cross-validation, and rounded.
_PIECE_WEIGHTS = {
    "coverage": 0.3,
    "context": 0.3,
    "phrases": 0.3,
    "cosine": 1.0,
    "kind": 0.1,
    "product": 0.5,
    "in_chunk": 0.15,
}
_KIND_BONUS = {Kind.LIST: -0.05, Kind.STEPS: 0.05}
_SOURCE_SHARE = 0.5  # how much the source's standing counts beside the piece's own


def weigh(
    question: Question,
    pieces: Sequence[Piece],
    *,
    relevance: Mapping[int, float],
    embedder: Embedder | None,
) -> list[Scored]:
    """All pieces with their scores, in their order."""
    cosines, vectors = _cosines(question, pieces, embedder)
    products = Products(question.text, [f"{piece.context}\n{piece.text}" for piece in pieces])
    signs = _signs(question, pieces, cosines, products)
    standings = _standings(question, pieces, signs, relevance)
    return [
        Scored(
            piece=piece,
            signs=own,
            score=_piece_score(own, piece.kind) + _SOURCE_SHARE * standings[piece.number],
            vector=vector,
            products=products.asked_in(piece.text),
        )
        for piece, own, vector in zip(pieces, signs, vectors, strict=True)
    ]


def _signs(
    question: Question, pieces: Sequence[Piece], cosines: Sequence[float], products: Products
) -> list[Signs]:
    held = [terms(piece.text) for piece in pieces]
    weights = TermWeights(held)
    return [
        Signs(
            coverage=weights.coverage(question.terms, words),
            context=weights.coverage(question.terms, words | terms(piece.context)),
            phrases=_share(question.phrases, phrases(piece.text)),
            cosine=cosine,
            kind=float(question.is_served_by(piece.text)),
            product=products.fit(piece.text, piece.context),
            in_chunk=float(piece.in_chunk),
        )
        for piece, words, cosine in zip(pieces, held, cosines, strict=True)
    ]


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


def _piece_score(signs: Signs, kind: Kind) -> float:
    total: float = sum(weight * getattr(signs, name) for name, weight in _PIECE_WEIGHTS.items())
    return total + _KIND_BONUS.get(kind, 0.0)


def _share(wanted: frozenset[str], held: frozenset[str]) -> float:
    return len(wanted & held) / len(wanted) if wanted else 0.0


# ── Sources ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Reading:
    """What the pieces of one source hold together."""

    terms: set[str] = field(default_factory=set)
    phrases: set[str] = field(default_factory=set)
    signs: list[Signs] = field(default_factory=list)

    def best(self, name: str) -> float:
        return max(float(getattr(signs, name)) for signs in self.signs)


def _standings(
    question: Question,
    pieces: Sequence[Piece],
    signs: Sequence[Signs],
    relevance: Mapping[int, float],
) -> dict[int, float]:
    """How each source stands beside the best one, which has 0: by number, the worse the lower.

    Retrieval ranked chunks; here the whole passage counts, and pairs of the question's words.
    """
    readings: dict[int, _Reading] = {}
    for piece, own in zip(pieces, signs, strict=True):
        reading = readings.setdefault(piece.number, _Reading())
        for text in (piece.text, piece.context):
            reading.terms |= terms(text)
            reading.phrases |= phrases(text)
        reading.signs.append(own)
    by_terms = TermWeights([frozenset(reading.terms) for reading in readings.values()])
    by_phrases = TermWeights([frozenset(reading.phrases) for reading in readings.values()])
    totals = {
        number: 1.5 / (1 + rank)
        + 4.0 * relevance.get(number, UNKNOWN_RELEVANCE)
        + 2.3 * by_terms.coverage(question.terms, frozenset(reading.terms))
        + 2.1 * by_phrases.coverage(question.phrases, frozenset(reading.phrases))
        + 1.4 * reading.best("phrases")
        + 1.2 * reading.best("context")
        + 0.6 * reading.best("cosine")
        + 1.0 * reading.best("product")
        for rank, (number, reading) in enumerate(readings.items())
    }
    highest = max(totals.values(), default=0.0)
    return {number: total - highest for number, total in totals.items()}


# ── Declining ────────────────────────────────────────────────────────────────────────────────


NAMED = 1.0  # the relevance of a source that the question asks for by its number
_LONGEST_QUESTION = 15  # terms; even a rambling question must be covered in part
_WITH_VECTORS = (5.8, 2.6, 1.9, 0.1, -5.7)  # of the four signs below, and the threshold
_WITHOUT_VECTORS = (0.0, 2.8, 2.2, 0.12, -2.4)


def answers(question: Question, scored: Sequence[Scored], relevance: Mapping[int, float]) -> bool:
    """Whether the pieces answer the question at all.

    Strict where words and meaning both stay away from the question; a long question is seldom
    covered whole, so it is asked for less. A source that was asked for by its number always does.
    """
    if not scored:
        return False
    if any(relevance.get(found.piece.number) == NAMED for found in scored):
        return True
    if not question.terms:
        return False
    best = max(scored, key=lambda found: found.score)
    held = {f.piece: terms(f.piece.text) | terms(f.piece.title) for f in scored}
    source = [words for piece, words in held.items() if piece.number == best.piece.number]
    signs = (
        max(found.signs.cosine for found in scored),
        _share(question.terms, frozenset[str]().union(*source)),
        max(_share(question.terms, words) for words in held.values()),
        min(len(question.terms), _LONGEST_QUESTION),
    )
    *weights, threshold = _WITH_VECTORS if best.vector.size else _WITHOUT_VECTORS
    return sum(w * sign for w, sign in zip(weights, signs, strict=True)) + threshold > 0
