"""Which passage stands first, what matters most in it, and whether that surely answers.

The weights are those of `weights.json`, which `python -m benchmarks.fit` writes; it prints how
they do on each set of questions when fitted on the others. What did not do better than a simpler
rule on those is decided by that rule.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from rag.answers.signs import (
    PASSAGE_SIGNS,
    Asked,
    Passage,
    log_odds,
    passage_signs,
    share,
    unit_scores,
)
from rag.answers.units import Kind, Unit
from rag.answers.wanted import TRUTH

SURE = 0.92
WEAK = 0.05  # relevance of all that is shown, below which nothing is claimed
MOST_MARKED = 4  # units of one passage that hold as much of a question: one of many rows is chance
_FARTHEST = 6.0  # of a passage before the next one: more tells nothing


@cache
def fitted() -> Any:
    """What `python -m benchmarks.fit` wrote."""
    return json.loads(files("rag.answers").joinpath("weights.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """A passage with the unit that matters most, if any does."""

    passage: Passage
    key: Unit | None
    lead: float = 0.0  # how far it is before the next one
    marked: tuple[Unit, ...] = ()  # it and those that matter as much; none where too many do


def in_order(asked: Asked, passages: Sequence[Passage]) -> list[Passage]:
    """Best first: what the search says, and which holds most of what is asked.

    What stands under a sibling's name comes behind, whatever the search says.
    """
    scores = zip(_scores(asked, passages), passages, strict=True)
    rated = [(asked.rivals_in(each.headings), -score, each) for score, each in scores]
    return [each for _, _, each in sorted(rated, key=lambda rated: rated[:2])]


def _scores(asked: Asked, passages: Sequence[Passage]) -> list[float]:
    weights = fitted()["passage"]
    return [weighed(weights, PASSAGE_SIGNS, signs) for signs in passage_signs(asked, passages)]


def chosen_in(asked: Asked, passages: Sequence[Passage]) -> list[Chosen]:
    """The passages with what matters most in each."""
    return [_chosen(asked, each, unit_scores(asked, each)) for each in passages]


def _chosen(asked: Asked, passage: Passage, scores: Sequence[float]) -> Chosen:
    candidates = [
        (score, unit)
        for score, unit in zip(scores, passage.units, strict=True)
        if may_be_marked(asked, unit)
    ]
    if not candidates:
        return Chosen(passage, None)
    best, *others = sorted(candidates, key=lambda each: -each[0])
    alike = tuple(unit for score, unit in candidates if score == best[0])
    lead = best[0] - others[0][0] if others else best[0]
    most = MOST_MARKED if best[0] > 0 else 1
    return Chosen(passage, best[1], lead, alike if len(alike) <= most else ())


def may_be_marked(asked: Asked, unit: Unit) -> bool:
    """What says more than the question does, or says again what is asked to be true or not."""
    stands = unit.is_statement or unit.kind is Kind.CODE
    return stands and (asked.wanted == TRUTH or not asked.only_repeated_by(unit.text))


# ── The line above ───────────────────────────────────────────────────────────────────────────

LINE_SIGNS = ("lead", "ahead", "together")


def line_signs(asked: Asked, passages: Sequence[Passage], best: Chosen) -> tuple[float, ...]:
    """What tells whether the first passage's key unit answers, in the order of `LINE_SIGNS`.

    The passages are in order, best first.
    """
    assert best.key is not None
    scores = sorted(_scores(asked, passages), reverse=True)
    ahead = scores[0] - scores[1] if len(scores) > 1 else _FARTHEST / 2
    said = asked.terms_of(f"{best.passage.headings}\n{best.key.above}\n{best.key.text}")
    return best.lead, min(ahead, _FARTHEST), share(asked.terms, said)


def may_stand_above(asked: Asked, best: Chosen) -> bool:
    """Whether one line can answer at all: steps take several, and a name must be there."""
    if best.key is None or best.key.kind is Kind.CODE or asked.wanted in ("steps", "reason"):
        return False
    said = f"{best.passage.headings}\n{best.key.above}\n{best.key.text}"
    is_named = not asked.names or asked.has_its_name(said)
    is_news = not asked.only_repeated_by(best.key.text)
    return is_named and is_news and asked.is_served_by(best.key.text)


def is_sure(asked: Asked, passages: Sequence[Passage], best: Chosen) -> bool:
    """Whether the key unit of the first passage surely answers."""
    if not may_stand_above(asked, best):
        return False
    weights = fitted()["line"]
    score = weighed(weights, LINE_SIGNS, line_signs(asked, passages, best)) + weights["bias"]
    return bool(score >= log_odds(SURE))


def weighed(weights: Mapping[str, float], names: Sequence[str], signs: Sequence[float]) -> float:
    """Their sum, each sign by its weight."""
    return math.fsum(weights[name] * sign for name, sign in zip(names, signs, strict=True))
