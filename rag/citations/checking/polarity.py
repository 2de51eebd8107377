"""Whether a statement denies what its source affirms, or the other way round; limits left out."""

from collections.abc import Sequence

from rag.citations.checking.case import Case
from rag.citations.checking.comparing import SAME_CLAUSE, Clause, is_turned, overlap, quoted
from rag.citations.checking.naming import is_of_name, same_name
from rag.citations.checking.reading import Reading

# They leave no exception.
_NEVER = frozenset(("never", "always", "nie", "niemals", "immer"))


def wrong_polarity(case: Case, clause: Clause) -> str:
    """What the source says instead, where one of both denies; else ""."""
    said = clause.reading
    told = [word for word in said.words if not is_of_name(word, case.names_of(clause))]
    found = case.nearest(clause)
    if said.is_supposed or found is None or len(told) < 2:
        return ""
    near, spot = found
    is_excepted = spot.clause.reading.has_exception != said.has_exception
    is_general = not said.raw.isdisjoint(_NEVER)
    if near < SAME_CLAUSE or (is_excepted and not is_general):
        return ""
    aligned = [
        piece.reading
        for piece in spot.pieces
        if overlap(piece.reading.words, said.words) >= 0.5 and not piece.reading.is_supposed
    ]
    if not aligned or not _names_all(case, clause, aligned):
        return ""
    nameless = [each for each in aligned if not each.names or _names_all(case, clause, [each])]
    aligned = nameless or aligned
    differs = _is_denied(said, aligned)
    is_other = any(is_turned(case.reading, there) for there in aligned)
    if differs != is_other or (differs and is_general):  # `always` and `never` are one difference
        return f"The source says {quoted(spot)}"
    return ""


def _is_denied(said: Reading, aligned: Sequence[Reading]) -> bool:
    """Whether one of them denies a word that the other affirms."""
    there = frozenset[str]().union(*(each.words for each in aligned))
    denied = frozenset[str]().union(*(each.denied for each in aligned))
    if not (said.denied & there - denied or denied & frozenset(said.words) - said.denied):
        return False
    return said.is_negated or any(each.is_negated for each in aligned)


def _names_all(case: Case, clause: Clause, aligned: Sequence[Reading]) -> bool:
    """Whether all that the clause names is named there, or above it."""
    there = [name for reading in aligned for name in reading.names]
    there += [name for source in case.sources for name in source.context.names]
    return all(any(same_name(name, each) for each in there) for name in clause.reading.names)
