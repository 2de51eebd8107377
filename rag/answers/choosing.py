"""Which passage stands first, what matters most in it, and whether that surely answers.

The weights come from `python -m benchmarks.cards.fit`, which fits them on some sets of questions
and tries them on the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rag.answers.signs import (
    Asked,
    Passage,
    log_odds,
    passage_signs,
    share,
    unit_signs,
    weights_of,
)
from rag.answers.units import Kind, Unit

# That of the rank is set above what fits best on their mean: no set shall show first what answers
# less often than the search's own first passage does.
PASSAGE_WEIGHTS = (2.5, 1.0, 3.5, 0.9, -2.0, 3.0)  # of PASSAGE_SIGNS
UNIT_WEIGHTS = (6.6, 1.8, 0.5, 1.0, 0.8, 2.4)  # of UNIT_SIGNS
LINE_WEIGHTS = (2.3, 0.4, -2.4, 3.9, 0.5)  # of LINE_SIGNS
LINE_BIAS = -4.05
SURE = 0.9
WEAK = 0.2  # relevance below which nothing is claimed
UNRELATED = 0.05  # relevance below which a passage is not shown at all
_FARTHEST = 6.0  # of a passage before the next one: more tells nothing
_MUCH_NEWS = 6  # words of a line that the question has not, beyond which more tell nothing


@dataclass(frozen=True, slots=True)
class Chosen:
    """A passage with the unit that matters most, if any does."""

    passage: Passage
    key: Unit | None
    coverage: float = 0.0  # of the question's words by the key unit
    lead: float = 0.0  # the share of all units' likelihood that it has


def in_order(asked: Asked, passages: Sequence[Passage]) -> list[Passage]:
    """Best first: what the search says, and whose words and names stand together as asked."""
    scores = _scores(asked, passages)
    return [passages[place] for place in sorted(range(len(scores)), key=lambda at: -scores[at])]


def _scores(asked: Asked, passages: Sequence[Passage]) -> list[float]:
    return [weighed(PASSAGE_WEIGHTS, signs) for signs in passage_signs(asked, passages)]


def chosen_in(asked: Asked, passages: Sequence[Passage]) -> list[Chosen]:
    """The passages with what matters most in each."""
    weights = weights_of(asked, passages)
    return [_chosen(asked, passage, unit_signs(asked, passage, weights)) for passage in passages]


def _chosen(asked: Asked, passage: Passage, signs: Sequence[tuple[float, ...]]) -> Chosen:
    candidates = [
        (weighed(UNIT_WEIGHTS, own), own, unit)
        for own, unit in zip(signs, passage.units, strict=True)
        if may_be_marked(asked, unit)
    ]
    if not candidates:
        return Chosen(passage, None)
    best = max(candidates, key=lambda each: each[0])
    total = sum(math.exp(score - best[0]) for score, _, _ in candidates)
    return Chosen(passage, best[2], best[1][0], 1.0 / total)


def may_be_marked(asked: Asked, unit: Unit) -> bool:
    """What says more than the question does."""
    stands = unit.is_statement or unit.kind is Kind.CODE
    return stands and not asked.only_repeated_by(unit.text)


# ── The line above ───────────────────────────────────────────────────────────────────────────

LINE_SIGNS = ("lead", "ahead", "coverage", "together", "news")


def line_signs(asked: Asked, passages: Sequence[Passage], best: Chosen) -> tuple[float, ...]:
    """What tells whether the first passage's key unit answers, in the order of `LINE_SIGNS`.

    The passages are in order, best first.
    """
    assert best.key is not None
    scores = sorted(_scores(asked, passages), reverse=True)
    ahead = scores[0] - scores[1] if len(scores) > 1 else _FARTHEST / 2
    own = asked.terms_of(best.key.text)
    around = asked.terms_of(best.key.above) | asked.terms_of(best.passage.headings) | own
    return (
        best.lead,
        min(ahead, _FARTHEST),
        best.coverage,
        share(asked.terms, around),
        min(len(own - asked.terms), _MUCH_NEWS) / _MUCH_NEWS,
    )


def may_stand_above(asked: Asked, best: Chosen) -> bool:
    """Whether one line can answer at all: steps take several, and names must all be there."""
    if best.key is None or best.key.kind is Kind.CODE or asked.wanted in ("steps", "reason"):
        return False
    is_named = asked.names_in(f"{best.passage.headings}\n{best.key.above}\n{best.key.text}") != 0.0
    return is_named and asked.is_served_by(best.key.text)


def is_sure(asked: Asked, passages: Sequence[Passage], best: Chosen) -> bool:
    """Whether the key unit of the first passage surely answers."""
    if not may_stand_above(asked, best):
        return False
    score = weighed(LINE_WEIGHTS, line_signs(asked, passages, best)) + LINE_BIAS
    return score >= log_odds(SURE)


def weighed(weights: Sequence[float], signs: Sequence[float]) -> float:
    """Their sum, each sign by its weight."""
    return sum(weight * sign for weight, sign in zip(weights, signs, strict=True))
