"""One statement beside one source: how far its words, names and figures are carried, and where."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.citations.checking.naming import name_words, names_agree, same_name
from rag.citations.checking.reading import Place, Reading, SourceText, read, share
from rag.text.amounts import Figure, agree, comparable, date_parts
from rag.text.blocks import plain
from rag.text.figures import read_figures
from rag.text.languages import LANGUAGES, Language, all_words
from rag.text.names import Lexicon
from rag.text.related import canonical, opposites
from rag.text.words import content_words, stem

_STOP = re.compile(r"\s*;\s+|(?<=[\w%)])[.!?]\s+(?=[A-ZÄÖÜ])|\s+[–—]\s+")
_CUT = re.compile(
    r":\s+|,?\s+(?:but|while|whereas|although|though|aber|während|wohingegen|obwohl)\s+|,\s+(?!(?:19|20)\d\d\b)",
)
_AND = re.compile(r",?\s+(?:and|und|sowie|plus)\s+")
_ALONE = 5  # words; a shorter piece without a figure belongs to the clause before it
_COMPARES = all_words("comparing")
SAME_CLAUSE = 0.75  # of a clause's words in one of the source, to compare what they say of it
_OTHER_NAME = 0.6  # what a clause about another name loses


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a statement or of a window, with what it says."""

    text: str
    reading: Reading


@lru_cache(maxsize=8192)
def clauses(text: str, lexicon: Lexicon, language: Language) -> tuple[Clause, ...]:
    """The clauses of a sentence; one that says nothing alone is joined to the one before.

    Two that `and` joins are told apart where each has a figure of its own.
    """
    found = (each for part in _STOP.split(text) for each in _joined(_pieces(part)))
    return tuple(Clause(each, read(each, lexicon, language)) for each in found)


def _joined(pieces: Iterable[str]) -> list[str]:
    """Short pieces with what is before them, the first with what follows."""
    found: list[str] = []
    for piece in pieces:
        if found and (_is_short(piece) or (len(found) == 1 and _is_short(found[0]))):
            found[-1] = f"{found[-1]}, {piece}"
        else:
            found.append(piece)
    return found


def _is_short(piece: str) -> bool:
    return len(piece.split()) < _ALONE and not any(c.isdigit() for c in piece)


def _pieces(text: str) -> Iterator[str]:
    at = 0
    for cut in [*_CUT.finditer(text), None]:
        end = cut.start() if cut else len(text)
        piece = text[at:end].strip()
        at = cut.end() if cut else end
        if piece:
            yield from _around_and(piece)


def _around_and(piece: str) -> Iterator[str]:
    """Both sides of an `and` if each has a figure, else the whole."""
    for found in _AND.finditer(piece):
        before, after = piece[: found.start()], piece[found.end() :]
        if read_figures(before) and read_figures(after):
            yield before
            yield from _around_and(after)
            return
    yield piece


# ── Places ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """A clause of a window in its surroundings, or a window whole."""

    clause: Clause
    place: Place
    names: tuple[str, ...]  # of the clause itself, else of what is around or before it
    words: frozenset[str]  # of the clause, its lead-in, label and header
    told: frozenset[str]  # these, and the words of title and headings
    among: frozenset[str]  # all words of the source
    pieces: tuple[Clause, ...]  # the clauses in it


@lru_cache(maxsize=256)
def spots(source: SourceText) -> tuple[Spot, ...]:
    """All clauses of a source, and its sentences of several clauses whole."""
    found: list[Spot] = []
    context = frozenset(source.context.words)
    names: tuple[str, ...] = source.heading.names
    for place in source.places:
        if place.window.kind == "row":
            continue  # its cells say the same, each under its header
        in_cell = place.window.kind == "cell"
        names = (place.around.names or place.own.names) if in_cell else (place.own.names or names)
        whole = Clause(place.window.text, place.own)
        pieces = clauses(place.window.text, source.lexicon, source.language)
        for clause in pieces:
            own = place.around.names if in_cell else clause.reading.names
            words = frozenset(clause.reading.words) | frozenset(place.around.words)
            told = words | context
            found.append(Spot(clause, place, own or names, words, told, source.words, (clause,)))
        if len(pieces) > 1:
            told = place.words | context
            found.append(Spot(whole, place, names, place.words, told, source.words, pieces))
    return tuple(found)


def affinity(said: Reading, names: Sequence[str], spot: Spot, source: SourceText) -> float:
    """How near a clause of a source is to one of a statement, by words and names."""
    own = [word for word in said.words if word not in source.context.words] or said.words
    near = sum(word in spot.words for word in own) / max(1, len(own))
    agreed = names_agree(names, spot.names or source.context.names)
    return near + (0.25 if agreed > 0 else 0.0) - (_OTHER_NAME if agreed < 0 else 0.0)


@dataclass(frozen=True, slots=True)
class Weighed:
    """What became of one figure of a statement."""

    figure: Figure
    carried: Spot | None = None
    instead: tuple[Figure, Spot] | None = None  # what the source gives for the same


_LONGEST_QUOTE = 110  # characters of a source in a reason
_LENDS = 2  # words that an earlier clause may lend to a later one
COUNTED = 12  # so many things a reader counts for himself
_Found = tuple[float, Figure, Spot]
_SAYS_THE_REST = 0.65  # of a clause's words, to be told another figure for it
_DATED_FROM = 0.75  # … another date
_NEXT = 3  # words on either side of one
_BESIDE = 40  # characters beside a figure in which stands what it counts
_NEARER = 0.3  # by so much the clause with another figure has to be nearer


def weigh_figure(
    figure: Figure, said: Clause, names: Sequence[str], sources: Sequence[SourceText]
) -> Weighed:
    """Find the figure in the clauses nearest to what it is said of."""
    same: list[_Found] = []
    other: list[_Found] = []
    for source in sources:
        for spot in spots(source):
            near: float | None = None
            for there in spot.clause.reading.figures:
                is_same = agree(figure, there)
                if is_same or comparable(figure, there):
                    near = affinity(said.reading, names, spot, source) if near is None else near
                    (same if is_same else other).append((near, there, spot))
    return _weighed(figure, said, names, same, other)


def _weighed(
    figure: Figure,
    clause: Clause,
    names: Sequence[str],
    same: Sequence[_Found],
    other: Sequence[_Found],
) -> Weighed:
    said = clause.reading
    best = max(same, key=_nearest, default=None)
    fitting = [each for each in other if _measures_the_same(figure, clause, each)]
    rival = max(fitting, key=_nearest, default=None)
    if best is None:
        is_told = rival is not None and rival[0] >= (
            _DATED_FROM if figure.kind == "date" else _SAYS_THE_REST
        )
        return Weighed(figure, instead=rival[1:] if rival and is_told else None)
    if not said.raw.isdisjoint(_COMPARES):  # beside another: `eight less than the Pro`
        return Weighed(figure, carried=best[2])
    told = rival if rival and _is_swapped(figure, best, rival) else None
    rival = (
        _of_other_cell(said, same, other)
        or told
        or _of_another(names, same)
        or _of_other_clause(figure, said, same, other)
    )
    if rival is not None:
        return Weighed(figure, instead=rival[1:])
    return Weighed(figure, carried=best[2])


def _nearest(found: _Found) -> tuple[float, int]:
    return found[0], -len(found[2].clause.text)


def _measures_the_same(figure: Figure, clause: Clause, found: _Found) -> bool:
    """Whether both have a unit, or count the same: `6 of the nine members` no `position 8`."""
    there, spot = found[1], found[2]
    if figure.kind == "date":
        return list(map(bool, date_parts(figure))) == list(map(bool, date_parts(there)))
    if figure.kind != "amount":
        return True
    if figure.unit or there.unit:
        is_bare_cell = spot.place.window.kind == "cell" and not there.unit
        return figure.dimension == there.dimension or is_bare_cell
    if spot.place.window.kind == "cell":
        return True
    said, told = _counted(clause, figure), _counted(spot.clause, there)
    return any(one and one == other for one, other in zip(said, told, strict=True))


def _counted(clause: Clause, figure: Figure) -> tuple[str, str]:
    """The stems of the words behind and before a figure."""
    text = plain(clause.text)
    behind = content_words(text[figure.end : figure.end + _BESIDE])
    before = content_words(text[max(0, figure.start - _BESIDE) : figure.start])
    return behind[0] if behind else "", before[-1] if before and not behind else ""


def _is_swapped(figure: Figure, best: _Found, rival: _Found) -> bool:
    """Whether another clause says all of it but for the figure, and the figure's own far less."""
    kinds = [each[2].place.window.kind == "cell" for each in (best, rival)]
    return (
        best[2].place is not rival[2].place
        and kinds != [True, False]  # a table says in a word what prose says in many
        and rival[0] >= _SAYS_THE_REST
        and rival[0] >= best[0] + _NEARER
        and rival[1].dimension == figure.dimension
    )


def _of_another(names: Sequence[str], same: Sequence[_Found]) -> _Found | None:
    """The figure where its clause names another of the family, and its sentence this one too."""
    best = max((each for each in same if len(each[2].pieces) == 1), key=_nearest, default=None)
    if best is None:
        return None
    there, beside = best[2].clause.reading.names, best[2].place.own.names
    if any(same_name(name, other) for name in names for other in there):
        return None
    own = (name for name in names if any(same_name(name, other) for other in beside))
    families = {name_words(other)[0] for other in there}  # `Meridian` of `Meridian Plus`
    return best if any(name_words(name)[0] in families for name in own) else None


def _of_other_cell(said: Reading, same: Sequence[_Found], other: Sequence[_Found]) -> _Found | None:
    """What the cell says that is named, where the figure stands in others of its row or column."""
    if any(spot.place.window.kind != "cell" for *_, spot in same):
        return None
    named = frozenset(said.words) | said.raw
    nearest = sorted(other, key=_nearest, reverse=True)
    beside = [
        next(
            (
                each
                for each in nearest
                if each[1].dimension == there.dimension
                and _is_named_instead(named, spot.place, each[2].place)
            ),
            None,
        )
        for _, there, spot in same
    ]
    return beside[0] if all(beside) else None


def _is_named_instead(named: frozenset[str], own: Place, other: Place) -> bool:
    """Whether a statement has words of another cell's label or header, and none of the own."""
    if other.window.kind != "cell":
        return False
    is_row = own.window.start == other.window.start
    if is_row == (own.window.column == other.window.column):  # the same cell, or no neighbour
        return False
    mine, theirs = _keys(own), _keys(other)
    return not named.isdisjoint(theirs - mine) and named.isdisjoint(mine - theirs)


def _keys(cell: Place) -> frozenset[str]:
    """What tells a cell from others: the words and numbers of its label and header."""
    numbers = (each for each in cell.around.raw if any(map(str.isdigit, each)))
    return frozenset((*cell.around.words, *numbers))


def _of_other_clause(
    figure: Figure, said: Reading, same: Sequence[_Found], other: Sequence[_Found]
) -> _Found | None:
    """The figure that the sentence of the nearest clause gives for what is said, if another."""
    single = [each for each in same if len(each[2].pieces) == 1]
    best = max(single, key=_nearest, default=None)
    if best is None:
        return None
    beside = (e for e in other if e[2].place is best[2].place and len(e[2].pieces) == 1)
    fitting = [e for e in beside if e[1].dimension in (best[1].dimension, figure.dimension)]
    return next((e for e in fitting if _is_of_other_clause(said, best[2], e[2])), None)


def _is_of_other_clause(said: Reading, best: Spot, rival: Spot) -> bool:
    """Whether all that the figure's clause lacks of the statement is in the other's, in a sentence.

    An earlier clause may lend words to a later one, unless the statement has all that it says.
    """
    if best.clause.text in rival.clause.text or rival.clause.text in best.clause.text:
        return False
    there, own = frozenset(rival.clause.reading.words), frozenset(said.words)
    lacking = [word for word in said.words if word not in best.words and word in best.place.words]
    before = rival.place.window.text.partition(best.clause.text)[0]
    if rival.clause.text in before and not (there <= own and len(lacking) >= _LENDS):
        return False
    return bool(lacking) and all(word in there for word in lacking)


def coverage(said: Reading, source: SourceText) -> float:
    """The share of the statement's words in the best window of a source."""
    best = 0.0
    for place, told in zip(source.places, source.told, strict=True):
        near = share(said.words, told, source.words)
        near -= 0.3 * (names_agree(said.names, place.own.names or place.around.names) < 0)
        best = max(best, near)
    return best


# ── Wording ──────────────────────────────────────────────────────────────────────────────────


def is_turned(whole: Reading, there: Reading, window: Reading) -> bool:
    """Whether one says the opposite word of the other, of the same: keeps, deletes.

    What the window of the other says of it in another clause is not turned.
    """
    table = opposites()
    said, told = frozenset(whole.words) | whole.raw, frozenset(there.words) | there.raw
    return any(
        _is_denied(word, whole) == _is_denied(other, there)  # `not allowed` is forbidden
        and _share_a_neighbour(words_beside(word, whole), words_beside(other, there))
        for word in said - told - window.raw - frozenset(window.words)
        for other in table.get(word, frozenset()) & told - said
    ) or (
        whole.is_negated == there.is_negated
        and any((word, not denied) in there.bounds - whole.bounds for word, denied in whole.bounds)
    )


def _is_denied(word: str, reading: Reading) -> bool:
    forms = {word, *(canonical(stem(word, language.code)) for language in LANGUAGES)}
    return not forms.isdisjoint(reading.denied)


def _share_a_neighbour(said: frozenset[str | float], told: frozenset[str | float]) -> bool:
    return not said or not told or not said.isdisjoint(told)


def words_beside(word: str, reading: Reading, reach: int = _NEXT) -> frozenset[str | float]:
    """The words and figures next to a word."""
    keys = [each.key if isinstance(each.key, str) else each.key.base for each in reading.terms]
    spelled = [each.spelled for each in reading.terms]
    places = (at for at, key in enumerate(keys) if word in (key, spelled[at]))
    return frozenset(
        key for at in places for key in keys[max(0, at - reach) : at + reach + 1] if key != keys[at]
    )


def overlap(words: Sequence[str], others: Sequence[str]) -> float:
    """The share of words that are the very same."""
    return len(set(words) & set(others)) / len(words) if words else 0.0


def quoted(spot: Spot) -> str:
    """The window in quotation marks, or its clause where that is long."""
    window = spot.place.window
    text = window.text if len(window.text) <= _LONGEST_QUOTE else spot.clause.text
    label = f"{window.column}, " if window.kind == "cell" and window.column else ""
    text = " ".join(f"{label}{text}".split())
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1].rstrip() + "…"
    return f"“{cut}”"
