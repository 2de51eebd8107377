"""What the sources say of one of several things that are compared."""

from collections.abc import Mapping, Sequence

from rag.answers.comparing import Comparison
from rag.answers.evidence import Scored, weigh
from rag.answers.passages import LISTS, Piece
from rag.answers.questions import IDLE, Question
from rag.answers.sides import place_of
from rag.answers.words import terms
from rag.seams import Embedder

_FEWEST_TERMS = 2  # of a statement, names apart
_FEWEST_WORDS = 4
_CLOSE = 0.66  # cosine of a piece that may tell what is asked in other words
_NEAR = 0.5  # … where another side's tell it in the question's


class View:
    """What the sources say of one side."""

    def __init__(self, comparison: Comparison, question: Question, pieces: Sequence[Piece]) -> None:
        self._named = frozenset[str]().union(*(terms(side.name) for side in comparison.sides))
        self.wanted = terms(comparison.focus) - IDLE - self._named  # what is asked about it
        self.question = question
        self.pieces = pieces
        self.scored: list[Scored] = []
        self._scores: dict[tuple[int, int], float] = {}

    def weigh(
        self, relevance: Mapping[int, float], embedder: Embedder | None, lexicon: Sequence[str]
    ) -> None:
        found = weigh(
            self.question, self.pieces, relevance=relevance, embedder=embedder, lexicon=lexicon
        )
        self.scored = sorted(found, key=lambda each: -each.score)
        self._scores = {place_of(each.piece): each.score for each in found}

    def score(self, piece: Piece) -> float:
        lowest = min(self._scores.values(), default=0.0)
        return self._scores.get(place_of(piece), lowest)

    def asked(self) -> list[Scored]:
        """What tells what is asked about the side, best first."""
        telling = [found for found in self.scored if self._says_enough(found.piece)]
        if not self.wanted:
            return [found for found in telling if found.piece.kind not in LISTS]
        if self.question.measure is not None:
            telling = [found for found in telling if found.signs.measure]
        return [found for found in telling if self._is_to_the_point(found)]

    def near(self) -> list[Scored]:
        """What may tell it in other words."""
        if not self.wanted:
            return []
        telling = [found for found in self.scored if self._says_enough(found.piece)]
        if self.question.measure is not None:
            telling = [found for found in telling if found.signs.measure]
        return [found for found in telling if found.signs.cosine >= _NEAR]

    def _says_enough(self, piece: Piece) -> bool:
        """`The A is not.` says nothing without what stands before it, `revision: 2` nothing new."""
        if self.wanted:
            return bool(terms(piece.text) - self._named)
        is_long = len(piece.text.split()) >= _FEWEST_WORDS
        return is_long and len(terms(piece.text) - self._named) >= _FEWEST_TERMS

    def _is_to_the_point(self, found: Scored) -> bool:
        held = terms(found.piece.text) | terms(found.piece.title) | terms(found.piece.heading)
        return bool(self.wanted & held) or found.signs.cosine >= _CLOSE

    def asks_by_name(self, name: str, cell: str) -> bool:
        """Whether a cell below (or beside) this heading tells what is asked."""
        return bool(cell) and (not self.wanted or bool(self.wanted & terms(name)))

    def asks_by_measure(self, name: str, cell: str) -> bool:
        """Whether it is in a unit of what is asked, whatever it is called."""
        return bool(cell) and self.question.is_measured_in(f"{name}: {cell}")
