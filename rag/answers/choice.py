"""Which pieces make the answer: the best one, and what adds to it."""

import math
import re
from collections.abc import Sequence

from rag.answers.evidence import Scored
from rag.answers.passages import LISTS, Kind, Piece
from rag.answers.questions import Question, Wanted
from rag.answers.words import TermWeights, terms

MOST_PIECES = 5
MOST_BRIEF_PIECES = 3  # where one statement is likely to be the whole answer
MOST_WORDS = 100
# A further piece must be worth at least this share of the best one's score.
_WORTH_ADDING = 0.6
_WORTH_ADDING_STEPS = 0.45  # how something is done is seldom said in one sentence
_WORTH_ADDING_BRIEFLY = 0.8
_WORTH_ADDING_OTHER = 0.3  # of the other product that is asked for
_WORTH_GOING_ON = 0.4  # next to a chosen piece, with a term of the question that was missing
_LIKENESS_PENALTY = 0.2
_NEIGHBOUR_BONUS = 0.2
_NEWS_BONUS = 0.5  # for terms of the question that no piece before it has
_DISSENT_BONUS = 2.0  # for another source's other figure: it comes before what else there is
_SAME_SUBJECT = 0.75  # share of the best one's coverage that a dissent must have
_SAME_PHRASES = 0.6
_NEAR_REPEAT = 0.75  # share of the shorter one's terms that are in the other
_AS_GOOD = 0.85  # share of a list's coverage that one of its entries must have to replace it
_AS_GOOD_BRIEFLY = 0.5
_MEASURE = re.compile(
    r"(?P<figure>\d+(?:[.,]\d+)*)\s?(?P<unit>%|[^\W\d_]+[²³]?)"
    r"|(?P<column>[^\W\d_]+): (?P<bare>\d+(?:[.,]\d+)*)(?=[;.]|$)"
)


def choose(question: Question, scored: Sequence[Scored]) -> list[Scored]:
    """The best piece, then others that add to it: maximal marginal relevance."""
    choice = _Choice(question, scored)
    while choice.goes_on():
        pass
    return choice.chosen


class _Choice:
    """An answer's pieces, one more at a time."""

    def __init__(self, question: Question, scored: Sequence[Scored]) -> None:
        self._question = question
        self._left = sorted(scored, key=lambda found: -found.score)
        self._weights = TermWeights([terms(found.piece.text) for found in scored])
        self.chosen = [self._to_the_point(found) for found in self._left[:1]]

    def goes_on(self) -> bool:
        """Take one more piece, if any is worth it and there is room."""
        most = MOST_BRIEF_PIECES if self._question.is_brief else MOST_PIECES
        self._left = [found for found in self._left if self._adds(found)]
        worth = [(self._worth(found), found) for found in self._left]
        worthy = [(worth, found) for worth, found in worth if worth >= self._floor(found)]
        if not worthy or len(self.chosen) == most:
            return False
        _, best = max(worthy, key=lambda pair: pair[0])
        words = sum(len(found.piece.text.split()) for found in (*self.chosen, best))
        if words > MOST_WORDS:
            return False
        self.chosen.append(self._to_the_point(best))
        return True

    def _to_the_point(self, best: Scored) -> Scored:
        """One entry instead of its list, where it alone meets the question about as well."""
        if best.piece.kind is not Kind.LIST:
            return best
        share = _AS_GOOD_BRIEFLY if self._question.is_brief else _AS_GOOD
        entries = [
            found
            for found in self._left
            if found.piece.kind is Kind.ENTRY
            and found.piece.number == best.piece.number
            and found.piece.text in best.piece.text
            and 0 < share * best.signs.coverage <= found.signs.coverage
        ]
        return max(entries, key=lambda found: found.score, default=best)

    def _floor(self, found: Scored) -> float:
        """What a piece must be worth; a dissent and each product's own figure are always told."""
        is_other = self._is_other_product(found)
        if self._dissents(found) or (is_other and self._question.measure is not None):
            return -math.inf
        is_how = self._question.wanted is Wanted.STEPS
        share = _WORTH_ADDING_STEPS if is_how else _WORTH_ADDING
        if is_other:
            share = _WORTH_ADDING_OTHER
        elif self._is_next(found) and self._news(found) > 0:
            share = _WORTH_GOING_ON
        elif self._question.is_brief:
            share = _WORTH_ADDING_BRIEFLY
        return share * self.chosen[0].score

    def _worth(self, found: Scored) -> float:
        is_other = self._is_other_product(found)
        likeness = max(float(found.vector @ other.vector) for other in self.chosen)
        return (
            found.score
            - _LIKENESS_PENALTY * likeness * (not is_other)
            + _NEIGHBOUR_BONUS * self._is_next(found)
            + _NEWS_BONUS * self._news(found)
            + _DISSENT_BONUS * self._dissents(found)
        )

    def _is_next(self, found: Scored) -> bool:
        return any(_adjoins(found.piece, other.piece) for other in self.chosen)

    def _adds(self, found: Scored) -> bool:
        """Neither a repetition nor another row of a table whose right row is there already."""
        if not terms(found.piece.text):  # `No.` says nothing without what stands before it
            return False
        if found.signs.product < 0 < self.chosen[0].signs.product:  # a rival's
            return False
        if any(_repeats(found, other) for other in self.chosen):
            return self._dissents(found)
        is_beside = found.piece.kind is Kind.ROW and any(
            other.piece.kind is Kind.ROW and other.piece.number == found.piece.number
            for other in self.chosen
        )
        is_pointed = bool(self._question.aspects)
        return (
            not (is_beside and is_pointed) or self._is_other_product(found) or self._news(found) > 0
        )

    def _news(self, found: Scored) -> float:
        """The share of the question's terms that it has and no piece before it."""
        had = frozenset[str]().union(*(terms(other.piece.text) for other in self.chosen))
        return self._weights.coverage(self._question.terms, terms(found.piece.text) - had)

    def _is_other_product(self, found: Scored) -> bool:
        """The other one of two products that are compared, with the figure that is asked for."""
        if self._question.measure is not None and not found.signs.measure:
            return False
        return bool(found.products.difference(*(other.products for other in self.chosen)))

    def _dissents(self, found: Scored) -> bool:
        """Whether another source gives another figure for the same."""
        best = self.chosen[0]
        if not self._question.is_brief or found.piece.kind in LISTS:
            return False
        if any(other.piece.number == found.piece.number for other in self.chosen):
            return False
        if found.signs.product < best.signs.product or found.signs.context < best.signs.context:
            return False
        if found.signs.coverage < _SAME_SUBJECT * best.signs.coverage:
            return False
        if found.signs.phrases < _SAME_PHRASES * best.signs.phrases:
            return False
        mine, theirs = _measures(best.piece.text), _measures(found.piece.text)
        both = mine.keys() & theirs.keys()
        return any(len(theirs[unit]) == 1 and not theirs[unit] & mine[unit] for unit in both)


def _measures(text: str) -> dict[str, set[str]]:
    """Figures by their unit; in a table the column may name it."""
    found: dict[str, set[str]] = {}
    for match in _MEASURE.finditer(text):
        unit, figure = match["unit"] or match["column"], match["figure"] or match["bare"]
        found.setdefault(unit.casefold(), set()).add(figure)
    return found


def _adjoins(one: Piece, other: Piece) -> bool:
    return one.number == other.number and abs(one.position - other.position) == 1


def _repeats(one: Scored, other: Scored) -> bool:
    """Whether two pieces say nearly the same in nearly the same words."""
    if one is other or one.products != other.products:
        return one is other
    mine, theirs = terms(one.piece.text), terms(other.piece.text)
    shorter = min(len(mine), len(theirs))
    if not shorter:
        return one.piece.text == other.piece.text
    return len(mine & theirs) >= _NEAR_REPEAT * shorter
