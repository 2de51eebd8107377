"""Whether a statement denies what its source affirms, or the other way round; limits left out."""

import re
from collections.abc import Sequence
from itertools import product

from rag.citations.checking.case import Case
from rag.citations.checking.comparing import (
    SAME_CLAUSE,
    Clause,
    Spot,
    is_turned,
    overlap,
    quoted,
    words_beside,
)
from rag.citations.checking.naming import same_name
from rag.citations.checking.reading import Reading
from rag.text.amounts import agree
from rag.text.languages import all_words, told

_NEVER = all_words("without_exception")
_UNIVERSAL = all_words("universal")
_RESTRICTING = all_words("restricting")
_PROHIBITING = all_words("prohibiting")
_LIMITING = (_RESTRICTING | all_words("limits")) - {"may", "könnte"}
_CONDITION = re.compile(rf"\b(?:{told('conditions')}|{told('supposes')})\b", re.IGNORECASE)
_LONG = 20  # words; of longer statements in other words only right ones were warned of
_COPIED = 0.95  # of a clause's words
_NEW = 1.2  # words that the clause which is limited may lack


def wrong_polarity(case: Case, clause: Clause) -> str:
    """What the source says instead, where one of both denies; else ""."""
    said = clause.reading
    if said.is_supposed or len(said.words) + len(said.figures) < 2:
        return ""
    near = case.nearest(clause)
    new = (1 - near[0][0]) * len(said.words) if near else len(said.words)
    if new <= _NEW and _is_widened(case.reading, near[0][1].clause.reading):
        return f"The source limits this: {quoted(near[0][1])}"
    least = SAME_CLAUSE if len(case.said.text.split()) <= _LONG else _COPIED
    if not near or near[0][0] < least or not _is_other(case, clause, near[0][1]):
        return ""
    best = near[0][1]
    elsewhere = (_is_other(case, clause, spot) for _, spot in near if spot.place is not best.place)
    return "" if False in elsewhere else f"The source says {quoted(best)}"


def _is_other(case: Case, clause: Clause, spot: Spot) -> bool | None:
    """Whether a clause of the source says the opposite; None where they cannot be compared."""
    said = clause.reading
    is_general = not said.raw.isdisjoint(_NEVER)
    excepted = spot.clause.reading.excepted
    is_excepted = (said.excepted is None) != (excepted is None)
    if excepted and said.excepted is None:  # where none of it is said, what is denied is affirmed
        is_excepted = not excepted.isdisjoint(case.reading.words)
    if is_excepted and not is_general:
        return None
    aligned = [
        piece.reading
        for piece in spot.pieces
        if _is_beside(piece.reading, said) and not piece.reading.is_supposed
    ]
    if not aligned or not _names_all(case, clause, aligned):
        return None
    if _limits(clause) != _limits(spot.clause):
        return None
    differs = _is_denied(said, aligned)
    turned = any(is_turned(case.reading, there, spot.place.own) for there in aligned)
    if differs and is_general:  # `always`, `never` are one difference
        return True
    return differs != turned and not (differs and _is_other_bound(said, aligned))


def _limits(clause: Clause) -> tuple[frozenset[str], bool]:
    """What narrows it: `not in a safe` and `if in a safe, otherwise …` may say the same."""
    return clause.reading.raw & _RESTRICTING, bool(_CONDITION.search(clause.text))


def _is_beside(piece: Reading, said: Reading) -> bool:
    """Whether one of both has half of the words of the other, and not only other figures."""
    pairs = list(product(said.figures, piece.figures))
    is_half = max(overlap(piece.words, said.words), overlap(said.words, piece.words)) >= 0.5
    return is_half and (not pairs or any(agree(one, other) for one, other in pairs))


def _is_denied(said: Reading, aligned: Sequence[Reading]) -> bool:
    """Whether one of both denies a word that the other affirms, and the other denies nothing."""
    if _denies(said) == any(map(_denies, aligned)):
        return False
    there = frozenset[str]().union(*(each.words for each in aligned))
    denied = frozenset[str]().union(*(each.denied for each in aligned))
    return bool(said.denied & there - denied or denied & frozenset(said.words) - said.denied)


def _denies(reading: Reading) -> bool:
    is_bound = any(denied for _, denied in reading.bounds)
    return reading.is_negated or is_bound or not reading.raw.isdisjoint(_PROHIBITING)


def _is_other_bound(said: Reading, aligned: Sequence[Reading]) -> bool:
    """Whether one bounds a figure from above and the other from below: `not above`, `at most`."""
    pairs = product(said.figures, (figure for each in aligned for figure in each.figures))
    return any(agree(a, b) and {a.comparator[:1], b.comparator[:1]} == {"<", ">"} for a, b in pairs)


def _is_widened(said: Reading, there: Reading) -> bool:
    """Whether it says of all, always or everywhere what the source limits: `only`, `up to 5`."""
    if said.is_negated or said.raw & _LIMITING or said.figures:
        return False
    universal = said.raw & _UNIVERSAL - there.raw
    if not any(_is_of(word, said, frozenset(there.words)) for word in universal):
        return False
    compared = {each.comparator for each in there.figures} - {"", "~"}
    return bool(compared or there.raw & _RESTRICTING)


def _is_of(universal: str, said: Reading, there: frozenset[str]) -> bool:
    """Whether it stands beside a word that is limited, or beside `limit`."""
    beside = words_beside(universal, said, 1)
    return not beside or not beside.isdisjoint(there | {"limit"})


def _names_all(case: Case, clause: Clause, aligned: Sequence[Reading]) -> bool:
    """Whether all that the clause names is named there, or above it."""
    there = [name for reading in aligned for name in reading.names]
    there += [name for source in case.sources for name in source.context.names]
    return all(any(same_name(name, each) for each in there) for name in clause.reading.names)
