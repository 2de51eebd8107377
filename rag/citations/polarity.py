"""Whether a statement denies what its source affirms, or the other way round; limits left out."""

from collections.abc import Sequence

from rag.citations.case import Case
from rag.citations.comparing import SAME_CLAUSE, Clause, Spot, is_turned, overlap, quoted
from rag.citations.naming import is_of_name, same_name
from rag.citations.reading import Reading

_NEVER = frozenset(("never", "nie", "niemals"))  # they leave no exception


def wrong_polarity(case: Case, clause: Clause) -> str:
    """What the source says instead, where one of both denies; else ""."""
    said = clause.reading
    told = [word for word in said.words if not is_of_name(word, case.names_of(clause))]
    found = case.nearest(clause)
    if said.is_supposed or found is None or len(told) < 2:
        return ""
    near, spot = found
    is_excepted = spot.clause.reading.has_exception != said.has_exception
    if near < SAME_CLAUSE or (is_excepted and said.raw.isdisjoint(_NEVER)):
        return ""
    aligned = [
        piece.reading
        for piece in spot.pieces
        if overlap(piece.reading.words, said.words) >= 0.5 and not piece.reading.is_supposed
    ]
    if not aligned or not _names_all(case, clause, aligned):
        return ""
    if _is_without(case, said, aligned):
        return f"The source says {quoted(spot)}"
    differs = _is_denied(case, said, aligned, spot, told)
    if differs != any(is_turned(case.reading, there) for there in aligned):
        return f"The source says {quoted(spot)}"
    return ""


def _is_denied(
    case: Case, said: Reading, aligned: Sequence[Reading], spot: Spot, told: Sequence[str]
) -> bool:
    """Whether one of them denies a word that the other affirms."""
    there = frozenset[str]().union(*(each.words for each in aligned))
    denied = frozenset[str]().union(*(each.denied for each in aligned))
    if said.denied & there - denied or denied & frozenset(said.words) - said.denied:
        return said.is_negated or any(each.is_negated for each in aligned)
    is_over = _denies(case, aligned, spot, told) and not any(each.is_negated for each in aligned)
    return is_over and not said.is_negated


def _is_without(case: Case, said: Reading, aligned: Sequence[Reading]) -> bool:
    """Whether one is without what the other has."""
    has = frozenset[str]().union(*(each.words for each in aligned))
    lacks = frozenset[str]().union(*(each.lacking for each in aligned))
    turned = (lacks & set(said.words)) - said.lacking
    return not said.is_negated and bool(turned or (said.lacking & has) - lacks)


def _names_all(case: Case, clause: Clause, aligned: Sequence[Reading]) -> bool:
    """Whether all that the clause names is named there, or above it."""
    there = [name for reading in aligned for name in reading.names]
    there += [name for source in case.sources for name in source.context.names]
    return all(any(same_name(name, each) for each in there) for name in clause.reading.names)


def _denies(case: Case, aligned: Sequence[Reading], spot: Spot, told: Sequence[str]) -> bool:
    """Whether the clause denies, or what stands over it: `What is not covered`."""
    if any(there.is_negated for there in aligned):
        return True
    own = frozenset(spot.clause.reading.words)
    over = [source.heading for source in case.sources] + [spot.place.around]
    return any(
        head.is_negated and any(w in told and w not in own for w in head.words) for head in over
    )


def without_limit(case: Case, clause: Clause) -> str:
    """`any`, `always`, `without limit` where the source sets one."""
    if not clause.reading.is_universal or clause.reading.is_limited:
        return ""
    found = case.nearest(clause)
    if found is None or found[0] < SAME_CLAUSE:
        return ""
    there = found[1].clause.reading
    sets_limit = there.is_limited and not there.is_universal
    return f"The source sets a limit: {quoted(found[1])}" if sets_limit else ""
