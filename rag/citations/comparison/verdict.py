"""The verdict of one statement, from its own cited sources alone (C6).

What words can decide is decided here: whether a source speaks of the subject, whether it gives
another figure, name or polarity, whether a figure follows from others. What they cannot is open.

A copy is the only way for prose to be supported. Every word that tells something, every figure,
name, negation and condition stands in the source in the same order: in one window, or in several
sentences of it that the statement joins. What is left out are whole clauses that limit nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from rag.citations.comparison.arithmetic import Computation
from rag.citations.comparison.case import Case, ComparedStatement, Row, RowDifference, compare
from rag.citations.comparison.parser import (
    NOT,
    Place,
    Reading,
    SourceText,
    Term,
    WeighedFigure,
    are_siblings,
    is_about,
    read,
    same_name,
    share,
    stretches_between,
)
from rag.language.amounts import Figure, agree
from rag.language.words import all_words, any_of, language_of, opposites, phrases
from rag.records import Verdict
from rag.seams import Embedder

_BOUNDARY = re.compile(rf"[,;:–—()\"“”]|\s-\s|\b(?:{phrases('ands')}|{phrases('ors')})\b")
_FEWEST = 3  # terms that follow each other in both, to be one changed, or one of several sentences


def is_carried(reading: Reading, names: Sequence[str], source: SourceText) -> bool:
    """Whether a statement stands in the source, in one window or in sentences that it joins."""
    if reading.language is not source.language or not reading.terms:
        return False
    if not source.words.issuperset(reading.words):
        return False  # told by the words alone, without reading more of it
    return any(_holds(reading, names, source, position) for position in range(len(source.places)))


def _holds(reading: Reading, names: Sequence[str], source: SourceText, position: int) -> bool:
    place = source.places[position]
    if place.window.kind == "cell":
        free = _words_around(place, source) - source.labels.difference(place.around.words)
        is_of_it = place.words.union(source.context.content).issuperset(reading.words)
        is_meant = is_of_it and _is_apart(reading, names, source, [position])
        return is_meant and _is_of_the_cell(reading, place, free)
    if place.window.kind in ("code", "row"):
        return False
    return any(
        _is_apart(reading, names, source, used)
        for begin in range(len(place.reading.terms) or 1)
        if _may_begin(reading, place, begin)
        for used in _covered(reading, 0, source, position, begin)
    )


def _covered(
    reading: Reading, first: int, source: SourceText, position: int, begin: int
) -> Iterator[list[int]]:
    """Yield windows that hold all terms from `first` on, one after the other."""
    place = source.places[position]
    terms = place.reading.terms
    done, end = _followed(reading.terms, first, place, begin, _words_around(place, source))
    left = (*terms[:begin], *terms[end:])
    if end == begin or not _is_boundary(place.reading, end - 1, end) or any(t.limits for t in left):
        return
    lacking = len(reading.terms) - done
    if not lacking:
        yield [position]
    elif min(end - begin, lacking) >= _FEWEST and _is_boundary(reading, done - 1, done):
        for later in range(position + 1, len(source.places)):
            following = source.places[later]
            if following.window.kind == "sentence":
                yield from ([position, *used] for used in _covered(reading, done, source, later, 0))


def _followed(
    terms: Sequence[Term], first: int, place: Place, begin: int, free: frozenset[str]
) -> tuple[int, int]:
    """Return how far the terms follow each other, and up to which term of the window."""
    there, end = place.reading.terms, begin
    for done in range(first, len(terms)):
        if end < len(there) and _same(terms[done], there[end]):
            end += 1
        elif terms[done].key not in free:
            return done, end
    return len(terms), end


def _words_around(place: Place, source: SourceText) -> frozenset[str]:
    """Return the words that may stand anywhere: of title, headings, lead-in."""
    return frozenset((*place.around.words, *source.context.words))


def _is_of_the_cell(reading: Reading, place: Place, free: frozenset[str]) -> bool:
    """Whether a reading is a label, a header and one value, in any order."""
    terms, stated = place.reading.terms, reading.terms
    is_there = (any(_same(term, other) for other in terms) or term.key in free for term in stated)
    value = (term for term in terms if term.key not in place.around.words)
    return all(is_there) and all(any(_same(term, other) for term in stated) for other in value)


def _may_begin(reading: Reading, place: Place, begin: int) -> bool:
    """Whether only a clause, or the name that a pronoun stands for, is left out before."""
    names = {word for name in place.reading.names for word in name.split()}
    if begin and all(term.spelled in names for term in place.reading.terms[:begin]):
        return not reading.names
    return _is_boundary(place.reading, begin - 1, begin)


def _is_boundary(reading: Reading, before: int, behind: int) -> bool:
    """Whether a clause, or the whole reading, ends between two terms."""
    terms = reading.terms
    if before < 0 or behind >= len(terms):
        return True
    return bool(_BOUNDARY.search(reading.text, terms[before].end, terms[behind].start))


def _same(term: Term, there: Term) -> bool:
    if isinstance(term.key, str) or isinstance(there.key, str):
        return term.key == there.key
    one, other = term.key, there.key
    is_exact = one.comparator == other.comparator and one.per == other.per
    is_whole = (one.upper is None) == (other.upper is None)
    return is_exact and is_whole and bool(one.unit) >= bool(other.unit) and agree(one, other)


def _is_apart(
    reading: Reading, names: Sequence[str], source: SourceText, used: Sequence[int]
) -> bool:
    """Whether nothing around the windows limits them or names another thing."""
    places = [source.places[position] for position in used]
    stated = {term.key for term in reading.terms}
    above = (*source.context.terms, *(term for place in places for term in place.around.terms))
    is_limited = any(term.limits and term.key not in stated for term in above)
    beside = [name for place in places for name in (*place.reading.names, *place.around.names)]
    return not is_limited and _names_the_same(names, beside, source)


def _names_the_same(names: Sequence[str], beside: Sequence[str], source: SourceText) -> bool:
    """Whether no sibling of the names is meant: they stand in the window or above it."""
    has_sibling = any(are_siblings(name, other) for name in names for other in beside)
    there = beside if has_sibling else source.names
    return all(
        any(same_name(name, other) for other in there)
        or not any(are_siblings(name, other) for other in (*beside, *source.context.names))
        for name in names
    )


# ── One thing changed ────────────────────────────────────────────────────────────────────────


def altered(reading: Reading, sources: Sequence[SourceText]) -> tuple[Place, Figure | None] | None:
    """Return the window that says the same in the same order, but for one thing.

    With its figure, if it differs in a figure.
    """
    terms, denials = _split(reading.terms)
    if len(terms) < _FEWEST:
        return None
    words = frozenset(reading.words)
    repeated: tuple[Place, Figure | None] | None = None
    for source in sources:
        for place in source.places:
            if place.window.kind in ("row", "code") or len(words - place.reading.content) > 1:
                continue
            there, theirs = _split(place.reading.terms)
            elsewhere = source.words - place.reading.content
            for start, changed in _repeats(terms, there, elsewhere):
                inside = {their - start for their in theirs if start <= their < start + len(terms)}
                is_denied = inside != denials - {len(terms)}
                if not changed and not is_denied:
                    return None
                if len(changed) + is_denied == 1:
                    keys = (there[start + position].key for position in changed)
                    figure = next((key for key in keys if isinstance(key, Figure)), None)
                    repeated = repeated or (place, figure)
    return repeated


def _split(terms: Sequence[Term]) -> tuple[list[Term], set[int]]:
    """Return the terms without denials, and the places before which a denial stands."""
    affirmed: list[Term] = []
    denials: set[int] = set()
    for term in terms:
        if term.limits and term.key == NOT:
            denials.add(len(affirmed))
        else:
            affirmed.append(term)
    return affirmed, denials


def _repeats(
    terms: Sequence[Term], there: Sequence[Term], elsewhere: frozenset[str]
) -> Iterator[tuple[int, list[int]]]:
    """Yield where all terms stand in a row, and which one of them differs."""
    for start in range(len(there) - len(terms) + 1):
        changed: list[int] = []
        for index, (one, other) in enumerate(zip(terms, there[start:], strict=False)):
            if not _tells(one, other):
                changed.append(index)
                if len(changed) > 1 or not _excludes(one, other, elsewhere, len(terms)):
                    break
        else:
            yield start, changed


def _tells(one: Term, other: Term) -> bool:
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return is_about(one.key, other.key)
    return one.key == other.key


def _excludes(one: Term, other: Term, elsewhere: frozenset[str], terms: int) -> bool:
    """Whether two terms exclude each other: two figures, opposite words, two of the source's words.

    A source that uses both words means two things by them; a synonym would be in neither place.
    """
    if isinstance(one.key, Figure) and isinstance(other.key, Figure):
        return one.key.kind == other.key.kind
    if isinstance(one.key, Figure) or isinstance(other.key, Figure):
        return False
    if other.key in opposites().get(one.key, frozenset()):
        return True
    return terms > _FEWEST and one.is_word and other.is_word and one.key in elsewhere


_REFUSES = re.compile(rf"\W*(?:{any_of(all_words('refusals'))})\s?[,.:–—-]", re.IGNORECASE)
_NEAREST = 3  # windows that a judge is shown
_LONGEST_QUOTE = 110  # characters of a source in a reason


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason, and how near the source is, from 0 to 1; a warning is far."""

    verdict: Verdict
    reason: str = ""
    near: float = 0.0
    judged_by: str = ""  # "" where words decided
    stated: str = ""  # of a contradiction, what the statement says
    source_value: str = ""  # … and what the source says there


_SILENT = Judgement(Verdict.OFF_SUBJECT, "The cited source does not speak of this.")


def judge(
    statement: ComparedStatement, sources: Sequence[SourceText], embedder: Embedder | None = None
) -> Judgement:
    """Return the verdict of a statement by its sources: one may support it, or all together.

    With an embedding model, a source is called silent by meaning, not by words alone.
    """
    return _Deciding(statement, sources, embedder).judgement()


def carries(statement: ComparedStatement, source: SourceText) -> bool:
    """Whether a source supports a statement in its own words, as `judge` would say."""
    case = Case(statement, [source])
    return case.says_something and is_carried(case.reading, case.names, source)


def nearest_windows(statement: ComparedStatement, source: SourceText) -> Iterator[str]:
    """Yield the windows that share most words with a statement, under their headings."""
    words = read(
        f"{statement.around} {statement.text}", source.lexicon, language_of(statement.text)
    ).words
    heading = source.source.document_title
    near = (place.window for place in source.nearest(words)[:_NEAREST])
    return (" · ".join(filter(None, (heading, w.around, w.text))) for w in near)


class _Deciding(Case):
    @cached_property
    def _worked_out(self) -> Computation:
        return Computation(self)

    def judgement(self) -> Judgement:
        if not self.says_something:
            return Judgement(Verdict.OPEN)
        if self.statement.row is not None:
            return self._of_row(self.statement.row)
        if any(is_carried(self.reading, self.names, source) for source in self.sources):
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next(filter(None, self._what_is_wrong()), None)
        if wrong is not None:
            return wrong
        ways = self._worked_out.derivations()
        if ways:
            return Judgement(Verdict.COMPUTED, f"Recomputed: {'; '.join(ways)}.", self.near)
        if self.is_silent and not any(
            self._worked_out.how(weighed.stated.figure) for weighed in self.weighed
        ):
            return _SILENT
        return Judgement(Verdict.OPEN, near=self.near)

    def _of_row(self, row: Row) -> Judgement:
        compared = [compare(row, source) for source in self.sources]
        if True in compared:
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next((result for result in compared if isinstance(result, RowDifference)), None)
        if wrong is not None:
            return _contradicted(
                f"The source gives {wrong.source_value}: “{wrong.place}”",
                wrong.stated,
                wrong.source_value,
            )
        return _SILENT if self.is_silent else Judgement(Verdict.OPEN, near=self.near)

    def _what_is_wrong(self) -> Iterator[Judgement | None]:
        refuses = _REFUSES.match(self.statement.text)  # what it denies is what was asked
        repeated = None if refuses else altered(self.reading, self.sources)
        if repeated is not None:
            place, figure = repeated
            says = f"The source says {_quoted(place)}"
            yield _gives(figure, place) if figure else _contradicted(says)
        if not self.is_copy:
            return
        yield from map(self._wrong_figure, self.weighed)
        worded = None if refuses else wrong_wording(self)
        if worded is not None:
            limits, place = worded[0] == "limits", worded[1]
            yield _contradicted(
                f"The source {'limits this:' if limits else 'says'} {_quoted(place)}"
            )

    def _wrong_figure(self, weighed: WeighedFigure) -> Judgement | None:
        figure, instead = weighed.stated.figure, weighed.instead
        if weighed.carried is not None or instead is None or self._worked_out.is_used(figure):
            return None
        stated = self.reading.text[figure.start : figure.end]
        return _gives(instead.figure, instead.place, stated)


def _contradicted(reason: str, stated: str = "", instead: str = "") -> Judgement:
    return Judgement(Verdict.CONTRADICTED, reason, stated=stated, source_value=instead)


def _gives(figure: Figure, place: Place, stated: str = "") -> Judgement:
    """Return a judgement that quotes a figure as its window spells it, and the window."""
    spelled = place.reading.text[figure.start : figure.end] or figure.phrase
    return _contradicted(f"The source gives {spelled}: {_quoted(place)}", stated, spelled)


def _quoted(place: Place) -> str:
    """Return a window in quotation marks, cut if it is long."""
    window = place.window
    label = f"{window.column}, " if window.kind == "cell" and window.column else ""
    text = " ".join(f"{label}{window.text}".split())
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1].rstrip() + "…"
    return f"“{cut}”"


_DIVIDES = re.compile(
    rf"\s*[,;:()–—]\s+|\s+(?:{any_of(all_words('conjunctions'))})\s+", re.IGNORECASE
)
# Words that deny in ways of their own: where one stands, nothing is certain.
_BUT = all_words("contrasting")
_UNSURE = all_words("lacking") | all_words("excepting") | _BUT
_LIMITING = (all_words("restricting") | all_words("limits")) - _BUT - all_words("hedging")
_UNIVERSAL = all_words("universal")
_THAN = frozenset(phrases("than").split("|"))
_MANY, _MOST = 0.66, 0.8  # of a statement's words in one part, to tell of its limits, its denial


@dataclass(frozen=True, slots=True)
class DenialPart:
    """A part of a sentence that denies or affirms as a whole."""

    stems: frozenset[str]
    words: frozenset[str]  # with those of the first that is no condition
    raw: frozenset[str]
    order: tuple[str, ...]  # its own words
    beyond: frozenset[str]  # those behind `than` alone
    is_denied: bool
    is_unsure: bool  # a condition, or what a denial before it may bear upon


class _Near(NamedTuple):
    """A part of a source that is near to one of a statement."""

    share: float  # of the statement's words
    shared_count: int  # so many of them are the part's own
    place: Place
    part: DenialPart


@lru_cache(maxsize=4096)
def parts(reading: Reading) -> tuple[DenialPart, ...]:
    """Return the parts of a sentence between its commas and conjunctions."""
    results: list[DenialPart] = []
    position, text = 0, reading.text
    for cut in [*_DIVIDES.finditer(text), None]:
        end = cut.start() if cut else len(text)
        if text[position:end].strip():
            results.append(_denial_part(reading, position, end, results))
        position = cut.end() if cut else position
    return tuple(results)


def _denial_part(
    reading: Reading, start: int, end: int, before: Sequence[DenialPart]
) -> DenialPart:
    terms = stretches_between(reading.terms, start, end)
    tokens = stretches_between(reading.tokens, start, end)
    order = tuple(str(term.key) for term in terms if term.is_word)
    keys = frozenset(order)
    raw = frozenset(token.lowered for token in tokens)
    than = next((token.start for token in tokens if token.lowered in _THAN), end)
    behind = sum(term.is_word for term in stretches_between(terms, than, end))
    beyond = keys.difference(order[: len(order) - behind])
    is_denied = any(term.denies for term in terms)
    is_unsure = not raw.isdisjoint(_UNSURE)
    is_unsure |= bool(before) and before[-1].is_denied and not is_denied
    main = next((part for part in before if not part.is_unsure), None)
    words = keys | main.stems if main else keys
    return DenialPart(keys, words, raw, order, beyond, is_denied, is_unsure)


def wrong_wording(case: Case) -> tuple[str, Place] | None:
    """Return whether the source "denies" or "limits" what the statement says, and where."""
    whole = parts(case.reading)
    if not whole or whole[0].is_unsure:
        return None
    for part in whole:
        nearest = _nearest(case, part) if not part.is_unsure and len(part.stems) > 1 else []
        ways = [_is_otherwise(case, part, near) for near in nearest]
        if ways and all(ways):
            return ways[0], nearest[0].place
    return None


def _nearest(case: Case, stated: DenialPart) -> list[_Near]:
    """Return the parts of the sources that share most words with a part of the statement."""
    results: list[_Near] = []
    longest = 2 * len(stated.words)  # to say little else
    for source in case.sources:
        for place in source.places:
            if place.window.kind in ("row", "code") or not place.reading.words:
                continue
            if share(stated.words, place.words | source.context.content) < _MANY:
                continue
            above = source.context.words + place.around.words
            for part in parts(place.reading):
                near = share(stated.words, part.words.union(above))
                if near >= _MANY and len(part.stems) <= longest:
                    results.append(_Near(near, len(stated.words & part.stems), place, part))
    best = max((result[:2] for result in results), default=None)
    return [result for result in results if result[:2] == best]


def _is_otherwise(case: Case, part: DenialPart, nearest: _Near) -> str:
    """Return how a part of a source differs: "limits", "denies", or "" if it does not."""
    there, place = nearest.part, nearest.place
    if _is_widened(part, place, case.reading.figures):
        return "limits"
    is_as_narrow = part.raw & _LIMITING == there.raw & _LIMITING
    if there.is_unsure or nearest.share < _MOST or not is_as_narrow:
        return ""
    if part.is_denied and not _is_of_same_quantity(case.reading, there, place):
        return ""
    if any(
        e.comparator and agree(e, o) for e in case.reading.figures for o in place.reading.figures
    ):
        return ""  # both say how far it goes: `at most five`, `not longer than five`
    ends = [word in there.beyond for word in part.order if word in there.stems]
    if ends and ends[0] and not ends[-1]:
        return ""  # compared the other way round: A is louder than B, so B is not louder than A
    return "denies" if part.is_denied != there.is_denied else ""


def _is_of_same_quantity(reading: Reading, part: DenialPart, place: Place) -> bool:
    """Whether a denial would deny what the window says, and no other amount or time."""
    if reading.raw & _LIMITING != place.reading.raw & _LIMITING:
        return False
    is_stated = len(part.stems & frozenset(reading.words)) >= _MANY * len(part.stems)
    return is_stated and all(
        any(agree(e, o) for o in place.reading.figures) for e in reading.figures
    )


def _is_widened(part: DenialPart, place: Place, figures: Sequence[Figure]) -> bool:
    """Whether a part says all, always or everywhere where the source limits: `only`, `up to 5`."""
    if not part.raw & _UNIVERSAL or place.reading.raw & _UNIVERSAL or part.raw & _LIMITING:
        return False
    bounds = [figure for figure in place.reading.figures if figure.comparator not in ("", "~")]
    if any(agree(one, other) for one in figures for other in bounds):
        return False
    return bool(bounds) or bool(place.reading.raw & _LIMITING)
