"""A sentence of a source repeated word for word, but for a denial, a figure or an opposite word."""

from collections.abc import Iterator, Sequence

from rag.citations.checking.case import as_written
from rag.citations.checking.given import tells
from rag.citations.checking.reading import Place, Reading, SourceText, Term
from rag.text.amounts import Figure
from rag.text.related import alternatives, opposites

_FEWEST = 3  # terms that follow each other in both, to be a copy


def altered(said: Reading, sources: Sequence[SourceText]) -> tuple[Place, str] | None:
    """The window that says the same in the same order, but for one thing that it says otherwise.

    With the figure that it gives, where that is a figure, else "".
    """
    own, denials = _split(said.terms)
    if len(own) < _FEWEST:
        return None
    words = frozenset(each.key for each in own if isinstance(each.key, str))
    found: tuple[Place, str] | None = None
    for place in (each for source in sources for each in source.places):
        if place.window.kind in ("row", "code") or len(words - place.keys) > 1:
            continue
        there, theirs = _split(place.own.terms)
        for start, changed in _repeats(own, there):
            inside = {at - start for at in theirs if start <= at < start + len(own)}
            is_denied = inside != denials - {len(own)}
            if not changed and not is_denied:
                return None
            if len(changed) + is_denied == 1:
                keys = (there[start + at].key for at in changed)
                figures = (as_written(key, place) for key in keys if isinstance(key, Figure))
                found = found or (place, next(figures, ""))
    return found


def _split(terms: Sequence[Term]) -> tuple[list[Term], set[int]]:
    """The terms without denials, and before which of them one stands."""
    kept: list[Term] = []
    denials: set[int] = set()
    for term in terms:
        if term.limits and term.key == "not":
            denials ^= {len(kept)}  # two deny nothing
        else:
            kept.append(term)
    return kept, denials


def _repeats(own: Sequence[Term], there: Sequence[Term]) -> Iterator[tuple[int, list[int]]]:
    """Where all terms stand in a row, and which one of them in another way."""
    for start in range(len(there) - len(own) + 1):
        changed: list[int] = []
        for at, (one, other) in enumerate(zip(own, there[start:], strict=False)):
            if not _same(one, other):
                changed.append(at)
                if len(changed) > 1 or not _excludes(one, other):
                    break
        else:
            yield start, changed


def _same(one: Term, other: Term) -> bool:
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return tells(one.key, other.key)
    return one.key == other.key


def _excludes(one: Term, other: Term) -> bool:
    """Whether only one of both can stand there: two figures, opposite words, other days."""
    if isinstance(one.key, Figure) or isinstance(other.key, Figure):
        return isinstance(one.key, Figure) and isinstance(other.key, Figure)
    against = opposites().get(one.key, frozenset()) | alternatives(one.spelled)
    return other.key in against or other.spelled in against
