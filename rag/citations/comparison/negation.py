"""Whether a statement that copies its source denies what that affirms, or leaves a limit out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rag.citations.comparison.case import Case
from rag.citations.comparison.parser import Place, Reading, within
from rag.language.amounts import Figure, agree
from rag.language.languages import all_words, any_of, phrases

_DIVIDES = re.compile(
    rf"\s*[,;:()–—]\s+|\s+(?:{any_of(all_words('conjunctions'))})\s+", re.IGNORECASE
)
# Words that deny in ways of their own: where one stands, nothing is certain.
_BUT = all_words("contrasting")
_UNSURE = all_words("lacking") | all_words("excepting") | _BUT
_LIMITING = (
    (all_words("restricting") | all_words("limits"))
    - all_words("contrasting")
    - all_words("hedging")
)
_UNIVERSAL = all_words("universal")
_THAN = frozenset(phrases("than").split("|"))
_MANY, _MOST = 0.66, 0.8  # of a statement's words in one part, to tell of its limits, its denial


@dataclass(frozen=True, slots=True)
class DenialPart:
    """A stretch of a sentence that denies or affirms as a whole."""

    own: frozenset[str]
    words: frozenset[str]  # with those of the first that is no condition
    raw: frozenset[str]
    order: tuple[str, ...]  # its own words
    beyond: frozenset[str]  # those behind `than` alone
    is_denied: bool
    is_unsure: bool  # a condition, or what a denial before it may bear upon


class _Near(NamedTuple):
    """A part of a source beside one of a statement."""

    share: float  # of the statement's words
    own: int  # so many of them are the part's own
    place: Place
    part: DenialPart


@lru_cache(maxsize=4096)
def parts(reading: Reading) -> tuple[DenialPart, ...]:
    """The parts of a sentence between its commas and conjunctions."""
    results: list[DenialPart] = []
    at, text = 0, reading.text
    for cut in [*_DIVIDES.finditer(text), None]:
        end = cut.start() if cut else len(text)
        if text[at:end].strip():
            results.append(_part(reading, at, end, results))
        at = cut.end() if cut else at
    return tuple(results)


def _part(reading: Reading, start: int, end: int, before: Sequence[DenialPart]) -> DenialPart:
    terms, tokens = within(reading.terms, start, end), within(reading.tokens, start, end)
    order = tuple(str(term.key) for term in terms if term.is_word)
    own = frozenset(order)
    raw = frozenset(token.lowered for token in tokens)
    than = next((token.start for token in tokens if token.lowered in _THAN), end)
    behind = sum(each.is_word for each in within(terms, than, end))
    beyond = own.difference(order[: len(order) - behind])
    is_denied = any(term.denies for term in terms)
    is_unsure = not raw.isdisjoint(_UNSURE)
    is_unsure |= bool(before) and before[-1].is_denied and not is_denied
    main = next((each for each in before if not each.is_unsure), None)
    words = own | main.own if main else own
    return DenialPart(own, words, raw, order, beyond, is_denied, is_unsure)


def wrong_wording(case: Case) -> tuple[str, Place] | None:
    """Where the source "denies" or "limits" otherwise."""
    whole = parts(case.reading)
    if not whole or whole[0].is_unsure:
        return None
    said = [each for each in whole if not each.is_unsure]
    return next(filter(None, (_against(case, each) for each in said if len(each.own) > 1)), None)


def _against(case: Case, part: DenialPart) -> tuple[str, Place] | None:
    nearest = _nearest(case, part)
    told = [_is_otherwise(case, part, each) for each in nearest]
    return (told[0], nearest[0].place) if nearest and all(told) else None


def _nearest(case: Case, said: DenialPart) -> list[_Near]:
    """The parts of the sources that share most words with one of the statement, if most of it."""
    results: list[_Near] = []
    longest = 2 * len(said.words)  # to say little else
    for source in case.sources:
        for place in source.places:
            if place.window.kind in ("row", "code") or not place.own.words:
                continue
            there = place.words | source.context.content
            if _share(said, there) < _MANY:
                continue
            above = source.context.words + place.around.words
            for part in parts(place.own):
                near = _share(said, part.words.union(above))
                if near >= _MANY and len(part.own) <= longest:
                    results.append(_Near(near, len(said.words & part.own), place, part))
    best = max((each[:2] for each in results), default=None)
    return [each for each in results if each[:2] == best]


def _share(part: DenialPart, there: frozenset[str]) -> float:
    return len(part.words & there) / len(part.words)


def _is_otherwise(case: Case, part: DenialPart, nearest: _Near) -> str:
    """How a part of a source says otherwise: "limits", "denies", or "" where it does not."""
    there, place = nearest.part, nearest.place
    if _is_widened(part, place, case.reading.figures):
        return "limits"
    narrows = [each.raw & _LIMITING for each in (part, there)]
    if there.is_unsure or nearest.share < _MOST or narrows[0] != narrows[1]:
        return ""
    if part.is_denied and not _is_of_the_same(case.reading, there, place):
        return ""
    if any(e.comparator and agree(e, o) for e in case.reading.figures for o in place.own.figures):
        return ""  # both say how far it goes: `at most five`, `not longer than five`
    ends = [each in there.beyond for each in part.order if each in there.own]
    if ends and ends[0] and not ends[-1]:
        return ""  # compared the other way round: A is louder than B, so B is not louder than A
    return "denies" if part.is_denied != there.is_denied else ""


def _is_of_the_same(reading: Reading, there: DenialPart, place: Place) -> bool:
    """Whether a denial would deny what the window says: that, no other amount, no other time."""
    if reading.raw & _LIMITING != place.own.raw & _LIMITING:
        return False
    is_said = len(there.own & frozenset(reading.words)) >= _MANY * len(there.own)
    return is_said and all(any(agree(e, o) for o in place.own.figures) for e in reading.figures)


def _is_widened(part: DenialPart, place: Place, figures: Sequence[Figure]) -> bool:
    """Whether it says of all, always or everywhere what the source limits: `only`, `up to 5`."""
    if not part.raw & _UNIVERSAL or place.own.raw & _UNIVERSAL or part.raw & _LIMITING:
        return False
    bounds = [figure for figure in place.own.figures if figure.comparator not in ("", "~")]
    if any(agree(one, other) for one in figures for other in bounds):
        return False
    return bool(bounds) or bool(place.own.raw & _LIMITING)
