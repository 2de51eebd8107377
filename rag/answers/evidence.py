"""Which pieces of the sources answer a question, and whether any does."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from rag.answers.passages import Kind, Piece, row_text
from rag.answers.products import Products
from rag.answers.questions import Question
from rag.answers.words import QUESTION_WORDS, TermWeights, phrases, spelled, terms
from rag.citations.markers import neutralise
from rag.seams import Embedder

UNKNOWN_RELEVANCE = 0.5
_SURELY_NOT = 1e-4
MOST_EMBEDDED = 24  # of up to hundreds; more have been seen to change no answer for the better


@dataclass(frozen=True, slots=True)
class Signs:
    """How one piece meets a question; each 0 to 1, but `product` and `cosine` from -1."""

    coverage: float  # of the question's terms, by the piece itself
    context: float  # of the same, by the piece with what stands above it
    phrases: float  # of the question's pairs of terms, by the piece itself
    cosine: float
    kind: float  # whether it holds the kind of thing that is asked for
    measure: float  # whether it holds a figure in the unit that is asked for
    product: float
    in_chunk: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A piece with its signs, its score and its vector (empty without an embedder)."""

    piece: Piece
    signs: Signs
    score: float
    vector: NDArray[np.float32]
    products: frozenset[str] = frozenset()  # of several asked for, the ones it is about


# All weights were fitted on the development questions of the sets in benchmarks/answers.py,
# with cross-validation, and rounded.
_PIECE_WEIGHTS = {
    "coverage": 0.3,
    "context": 0.3,
    "phrases": 0.3,
    "cosine": 1.0,
    "kind": 0.1,
    "measure": 0.3,
    "product": 0.5,
    "in_chunk": 0.15,
}
_KIND_BONUS = {Kind.LIST: -0.05, Kind.STEPS: 0.05}
_FEWEST_WORDS = 3  # of a heading that is a question
_THE_SAME = 0.8  # share of the words of both that are in both
_NUMBERING = re.compile(r"^\s*(\d+(\.\d+)*\.?|[A-Z]\.)\s+(?=\S)")
_FIGURE = re.compile(r"[€$£¥]?\s?\d[\d.,]*\s?(?:%|[^\W\d_]{1,6}[²³]?)?")
_SINGLE = frozenset({Kind.SENTENCE, Kind.ENTRY})
_SOURCE_SHARE = 0.8  # how much the source's standing counts beside the piece's own


def weigh(
    question: Question,
    pieces: Sequence[Piece],
    *,
    relevance: Mapping[int, float],
    embedder: Embedder | None,
    lexicon: Sequence[str] = (),
) -> list[Scored]:
    """The pieces that may answer, with their scores, in their order.

    Only those are embedded that words, products and their source's rank speak for: embedding is
    what takes the time.
    """
    pieces = _told(question, pieces)
    texts = {text for piece in pieces for text in (piece.context, piece.text)}
    products = Products(question.text, texts, lexicon)
    signs = _signs(question, pieces, products)
    standings = _standings(question, pieces, signs, relevance)
    pieces = [focused(piece, products, question) for piece in pieces]
    kept = _shortlist([_score(*each, standings) for each in zip(pieces, signs, strict=True)])
    vectors, met = _with_cosines(
        question, [pieces[at] for at in kept], [signs[at] for at in kept], embedder
    )
    for at, own in zip(kept, met, strict=True):
        signs[at] = own
    standings = _standings(question, pieces, signs, relevance)
    return [
        Scored(
            piece=pieces[at],
            signs=signs[at],
            score=_score(pieces[at], signs[at], standings),
            vector=vector,
            products=products.asked_in(pieces[at].text) or products.asked_in(pieces[at].heading),
        )
        for at, vector in zip(kept, vectors, strict=True)
    ]


def _told(question: Question, pieces: Sequence[Piece]) -> list[Piece]:
    """Without what only says the question again, which becomes a title of what follows it.

    So do troubleshooting pages, `The fan is blocked. Clean the grille.`, and headings in questions.
    """
    if question.is_brief:
        return list(pieces)
    told: list[Piece] = []
    restated: Piece | None = None
    for piece, following in zip_longest(pieces, pieces[1:]):
        if restated is not None and restated.number == piece.number:
            piece = piece.below(restated.text)
        restated = None
        goes_on = following is not None and following.number == piece.number
        if goes_on and piece.kind in _SINGLE and _restates(question, piece):
            restated = piece
        else:
            told.append(piece)
    return told


def _restates(question: Question, piece: Piece) -> bool:
    held = terms(piece.text)
    return len(held) > 1 and held <= terms(question.text)


def focused(piece: Piece, products: Products, question: Question) -> Piece:
    """A row without the columns of rivals, and of its figures those that are asked for.

    Of all routers' weights the one router's; of a price list's row the prices.
    """
    if not piece.header or len(piece.header) != len(piece.cells):
        return piece
    columns = range(len(piece.header))
    kept = [at for at in columns if at == 0 or products.about(piece.header[at])]
    measured = [at for at in kept if question.is_measured_in(_cell(piece, at))]
    if measured and question.asks_one_figure:
        kept = [at for at in kept if at in measured or at == 0 or not _is_figure(piece.cells[at])]
    if not 1 < len(kept) < len(piece.header):
        return piece
    text = row_text([piece.header[at] for at in kept], [piece.cells[at] for at in kept])
    return replace(piece, text=neutralise(text))


def _cell(piece: Piece, at: int) -> str:
    return f"{piece.header[at]}: {piece.cells[at]}" if at else piece.cells[at]


def _is_figure(cell: str) -> bool:
    """Whether a cell is a figure, and not a name with one in it: `310 g`, not `2.5G Switch`."""
    return bool(_FIGURE.fullmatch(cell.strip()))


def _shortlist(scores: Sequence[float]) -> list[int]:
    """Places of the best, in order."""
    best = sorted(range(len(scores)), key=lambda at: -scores[at])
    return sorted(best[:MOST_EMBEDDED])


def _score(piece: Piece, signs: Signs, standings: Mapping[int, float]) -> float:
    return _piece_score(signs, piece.kind) + _SOURCE_SHARE * standings[piece.number]


def _signs(question: Question, pieces: Sequence[Piece], products: Products) -> list[Signs]:
    """All but the cosines."""
    held = [terms(piece.text) for piece in pieces]
    weights = TermWeights(held)
    return [
        Signs(
            coverage=weights.coverage(question.terms, words),
            context=weights.coverage(question.terms, words | terms(piece.context)),
            phrases=share(question.phrases, phrases(piece.text)),
            cosine=0.0,
            kind=float(question.is_served_by(piece.text)),
            measure=float(question.is_measured_in(piece.text)),
            product=_product_fit(piece, products),
            in_chunk=float(piece.in_chunk),
        )
        for piece, words in zip(pieces, held, strict=True)
    ]


def _product_fit(piece: Piece, products: Products) -> float:
    of_row = products.fit_row(piece.cells) if piece.kind is Kind.ROW else None
    return products.fit(piece.text, piece.context) if of_row is None else of_row


def _with_cosines(
    question: Question, pieces: Sequence[Piece], signs: Sequence[Signs], embedder: Embedder | None
) -> tuple[list[NDArray[np.float32]], list[Signs]]:
    """Each piece is embedded below what stands above it, as chunks are, in one call."""
    if embedder is None or not pieces:
        return [np.zeros(0, dtype=np.float32)] * len(pieces), list(signs)
    texts = [f"{piece.context}\n{piece.text}" for piece in pieces]
    matrix = embedder.embed([question.text, *texts])
    cosines = matrix[1:] @ matrix[0]
    met = [replace(own, cosine=float(x)) for own, x in zip(signs, cosines, strict=True)]
    return list(matrix[1:]), met


def _piece_score(signs: Signs, kind: Kind) -> float:
    total: float = sum(weight * getattr(signs, name) for name, weight in _PIECE_WEIGHTS.items())
    return total + _KIND_BONUS.get(kind, 0.0)


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """How much of what is wanted is held, unweighted."""
    return len(wanted & held) / len(wanted) if wanted else 0.0


# ── Sources ──────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Reading:
    """What the pieces of one source hold together."""

    heading: str  # the innermost, without its number
    terms: set[str] = field(default_factory=set)
    phrases: set[str] = field(default_factory=set)
    # As they are written; of headings only those of names.
    words: set[str] = field(default_factory=set)
    signs: list[Signs] = field(default_factory=list)

    def add(self, piece: Piece, signs: Signs, named: frozenset[str]) -> None:
        for text in (piece.text, piece.context):
            self.terms |= terms(text)
            self.phrases |= phrases(text)
        self.words |= spelled(piece.text) | spelled(piece.title) | spelled(piece.context) & named
        self.signs.append(signs)

    def best(self, name: str) -> float:
        return max(float(getattr(signs, name)) for signs in self.signs)

    def best_measured(self) -> float:
        """How well a figure of the wanted unit fits, if there is one."""
        fitting = (signs.context for signs in self.signs if signs.measure and signs.product >= 0)
        return max(fitting, default=0.0)


def _standings(
    question: Question,
    pieces: Sequence[Piece],
    signs: Sequence[Signs],
    relevance: Mapping[int, float],
) -> dict[int, float]:
    """How each source stands beside the best one, which has 0: by number, the worse the lower.

    Retrieval ranked chunks; here the whole passage counts, and pairs of the question's words. A
    conditional logit over the sources of each question; fitted on all of some libraries, it
    chooses about as well on one that it has not seen.
    """
    named = frozenset[str]().union(*map(spelled, question.names))
    readings: dict[int, _Reading] = {}
    for piece, own in zip(pieces, signs, strict=True):
        reading = readings.setdefault(piece.number, _Reading(_unnumbered(piece.heading)))
        reading.add(piece, own, named)
    by_terms = TermWeights([frozenset(reading.terms) for reading in readings.values()])
    by_phrases = TermWeights([frozenset(reading.phrases) for reading in readings.values()])
    by_words = TermWeights([frozenset(reading.words) for reading in readings.values()])
    asked = spelled(question.text) - QUESTION_WORDS
    totals = {
        number: 1.0 / (1 + rank)
        + 0.9 * _log_odds(relevance.get(number, UNKNOWN_RELEVANCE))
        + 2.5 * by_words.coverage(asked, frozenset(reading.words))
        + 1.9 * by_phrases.coverage(question.phrases, frozenset(reading.phrases))
        + 0.8 * by_terms.coverage(terms(reading.heading), question.terms)
        + 1.0 * asks_the_same(reading.heading, question)
        + 0.4 * reading.best("phrases")
        + 0.4 * reading.best("context")
        + 1.4 * reading.best("cosine")
        + 1.0 * reading.best("product")
        + 1.5 * reading.best_measured()
        for rank, (number, reading) in enumerate(readings.items())
    }
    highest = max(totals.values(), default=0.0)
    return {number: total - highest for number, total in totals.items()}


def asks_the_same(heading: str, question: Question) -> bool:
    """Whether a heading asks the very same, as in lists of frequent questions."""
    words, asked = spelled(_unnumbered(heading)), spelled(question.text)
    return len(words) >= _FEWEST_WORDS and len(words & asked) >= _THE_SAME * len(words | asked)


def _unnumbered(heading: str) -> str:
    return _NUMBERING.sub("", heading, count=1)


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, _SURELY_NOT), 1 - _SURELY_NOT)
    return math.log(bounded / (1 - bounded))
