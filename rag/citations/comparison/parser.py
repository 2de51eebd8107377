"""What can be compared of a statement and of the windows of a source.

Each aspect is read when it is first asked for: most windows are never looked at for more than
their words.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import TypeVar

from rag.language.amounts import UNIT_SIGNS, Figure, agree, comparable
from rag.language.figures import read_figures
from rag.language.names import VARIANTS, Lexicon, Name, find_names
from rag.language.sentences import Window, plain, read_windows
from rag.language.words import (
    ENGLISH,
    UNSPACED,
    Language,
    Token,
    all_meanings,
    all_words,
    any_of,
    canonical,
    content_words,
    is_function_word,
    language_of,
    stem,
)
from rag.language.words import tokens as tokens_of
from rag.records import Source
from rag.runtime.budget import paced

_LONGEST_LABEL = 5  # words; longer cells are no names of things
_NUMBERS = frozenset(all_meanings("numbers"))
# Without any of these, or a digit, a text holds no figure.
_COUNTING = _NUMBERS | all_meanings("ordinals").keys() | all_meanings("fractions").keys()
_NEGATIONS = all_words("negations")
_LIMITS = all_words("limits")
_TELLING = all_words("telling")
NOT = "¬"  # the key of every plain denial: no word has it for its stem


@dataclass(frozen=True, slots=True)
class Term:
    """A word, figure or denial of a text that a copy of it has to have."""

    key: str | Figure
    spelled: str
    start: int
    end: int
    is_word: bool = False  # it carries meaning by itself
    limits: bool = False
    denies: bool = False


class Reading:
    """A stretch of text in the form it is compared in, without markup."""

    def __init__(self, text: str, lexicon: Lexicon, language: Language) -> None:
        self.text = plain(text).replace("\n", " ")
        self.lexicon = lexicon
        self.language = language

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens_of(self.text))

    @cached_property
    def raw(self) -> frozenset[str]:
        """All words as spelled, in lower case."""
        return frozenset(token.lowered for token in self.tokens)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of all words that carry meaning, including those of units and figures."""
        return frozenset(map(canonical, content_words(self.text, self.language)))

    @cached_property
    def name_spans(self) -> tuple[Name, ...]:
        """The names with their places; of overlapping ones, the longest."""
        results: list[Name] = []
        names = (*self.lexicon.find(self.text), *shaped(self.text, self.language))
        for name in sorted(names, key=lambda name: name.start - name.end):
            if not any(other.start < name.end and name.start < other.end for other in results):
                results.append(name)
        return tuple(results)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in lower case, longest first."""
        return tuple(dict.fromkeys(name.text.lower() for name in self.name_spans))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures that are no part of a name."""
        return tuple(
            figure
            for figure in _figures(self.text, self.language)
            if not any(n.start <= figure.start and figure.end <= n.end for n in self.name_spans)
        )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All words, figures and denials that carry information, in order."""
        return tuple(self._terms())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The distinct stems in order, including those of names, without those of figures."""
        return tuple(dict.fromkeys(str(term.key) for term in self.terms if term.is_word))

    def _terms(self) -> Iterator[Term]:
        waiting, done = deque(self.figures), 0
        for token in self.tokens:
            while waiting and waiting[0].end <= token.start:
                waiting.popleft()
            if waiting and waiting[0].start < token.end:
                figure = waiting[0]
                if figure.start >= done:
                    yield Term(figure, token.lowered, figure.start, figure.end)
                    done = figure.end
                continue
            yield from self._terms_of(token)

    def _terms_of(self, token: Token) -> Iterator[Term]:
        lowered, place = token.lowered, (token.lowered, token.start, token.end)
        denies = lowered in _NEGATIONS or lowered.endswith("n't")
        if UNSPACED.search(lowered) and not denies:
            for pair in content_words(lowered, self.language):
                yield Term(pair, *place, is_word=True)
            return
        limits, is_function = lowered in _LIMITS, is_function_word(lowered)
        key = canonical(stem(lowered, self.language.code))
        if denies:
            key = NOT if is_function else key
            yield Term(key, *place, is_word=not is_function, limits=True, denies=True)
        elif is_function and (limits or lowered in _TELLING):
            yield Term(lowered if limits else key, *place, limits=limits)
        elif not is_function:
            is_word = not lowered[0].isdigit() and len(lowered) > 1
            yield Term(key, *place, is_word=is_word, limits=limits)


@lru_cache(maxsize=16384)
def read(text: str, lexicon: Lexicon, language: Language) -> Reading:
    """Read text without markers: a marker's number would be taken for a figure."""
    return Reading(text, lexicon, language)


def read_alone(text: str) -> Reading:
    """Read text without markers that is compared with no source."""
    return read(text, Lexicon(()), language_of(text))


Stretch = TypeVar("Stretch", Token, Term, Figure)


def stretches_between(every: Sequence[Stretch], start: int, end: int) -> Sequence[Stretch]:
    """Return the stretches that begin between two places of a text."""
    first, last = (
        bisect_left(every, position, key=lambda stretch: stretch.start) for position in (start, end)
    )
    return every[first:last]


def _figures(text: str, language: Language) -> tuple[Figure, ...]:
    if any(map(str.isdigit, text)) or not _COUNTING.isdisjoint(re.findall(r"\w+", text.lower())):
        return read_figures(text, language)
    return ()


@lru_cache(maxsize=4096)
def shaped(text: str, language: Language) -> tuple[Name, ...]:
    """Return names by their shape; in German, where all nouns are capitalised, those with a figure.

    `Add 350` of `Add 350 µl` is no name.
    """
    results: list[Name] = []
    for name in find_names(text):
        has_digit = any(map(str.isdigit, name.text))
        is_amount = has_digit and any(
            name.start < figure.start < name.end <= figure.end and figure.unit
            for figure in _figures(text, language)
        )
        is_unit = name.text.lower() in UNIT_SIGNS or is_amount
        if (has_digit or language is ENGLISH) and not is_unit:
            results.append(name)
    return tuple(results)


# ── Sources ──────────────────────────────────────────────────────────────────────────────────


class Place:
    """A window of a source, with its readings."""

    def __init__(self, window: Window, lexicon: Lexicon, language: Language) -> None:
        self.window = window
        self.reading = read(window.text, lexicon, language)
        self.around = read(window.around, lexicon, language)  # its lead-in, label and header

    @cached_property
    def words(self) -> frozenset[str]:
        return self.reading.content | self.around.content

    @property
    def names(self) -> tuple[str, ...]:
        """The window's own names, else those of the section or table it belongs to."""
        return self.reading.names or self.around.names


class SourceText:
    """A source in the form statements are compared with: its passage, and the chunk if it is not
    within the passage.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        text = source.passage
        if source.text.strip() and source.text not in text:
            text = f"{text}\n\n{source.text}"
        self.text = text
        self._headings = list(dict.fromkeys((source.document_title, *source.heading_path)))

    @cached_property
    def language(self) -> Language:
        return language_of(self.text)

    @cached_property
    def windows(self) -> Sequence[Window]:
        return read_windows(self.text)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The names in the source: by shape, labels of rows, headers of columns."""
        above = " · ".join(self._headings)
        texts = [above, *(window.text for window in self.windows if window.kind != "row")]
        names = [name.text for text in texts for name in shaped(plain(text), self.language)]
        for window in self.windows:
            if window.kind == "cell":
                labels = (window.text.partition(":")[0], window.column)
                names += filter(_names_something, labels)
        return Lexicon(names)

    @cached_property
    def context(self) -> Reading:
        """The reading of the title and the headings."""
        return read(" · ".join(self._headings), self.lexicon, self.language)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return tuple(Place(window, self.lexicon, self.language) for window in self.windows)

    @cached_property
    def labels(self) -> frozenset[str]:
        """The words of all labels of rows and headers of columns."""
        cells = (place for place in self.places if place.window.kind == "cell")
        return frozenset(word for cell in cells for word in cell.around.words)

    def nearest(self, words: Sequence[str]) -> list[Place]:
        """Return the windows that share most words with a statement first; rows stay whole."""
        whole = [place for place in self.places if place.window.kind != "cell"]
        return sorted(whole, key=lambda e: -share(words, e.words))

    @cached_property
    def words_of_places(self) -> tuple[frozenset[str], ...]:
        """The words of each window, with those of title and headings."""
        return tuple(place.words | self.context.content for place in self.places)

    @cached_property
    def words(self) -> frozenset[str]:
        return self.context.content.union(*(place.words for place in self.places))

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = (name for place in self.places for name in place.reading.names + place.around.names)
        return tuple(dict.fromkeys((*self.context.names, *names)))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the source, including those of title and headings."""
        readings = (self.context, *(place.reading for place in self.places))
        return tuple(figure for reading in readings for figure in reading.figures)


@lru_cache(maxsize=256)
def read_source(source: Source) -> SourceText:
    """Return a source in the form statements are compared with."""
    return SourceText(source)


def _names_something(label: str) -> bool:
    """Whether a cell is a name of a thing: short, with a capital, a figure or a hyphen inside."""
    words = label.split()
    has_shape = any(c.isupper() for c in label[1:]) or any(c.isdigit() or c in "-+" for c in label)
    return 0 < len(words) <= _LONGEST_LABEL and has_shape


# ── Shares ───────────────────────────────────────────────────────────────────────────────────


def share(words: Collection[str], there: frozenset[str]) -> float:
    """Return the share of some words that others hold, 0 to 1."""
    return sum(map(there.__contains__, words)) / len(words) if words else 1.0


_SAYS_THE_REST = 0.5  # of the words around a figure, to be told another one for them
_SAME_NAME = 0.25


@dataclass(frozen=True, slots=True)
class AttributedFigure:
    """A figure of a statement or window, with the names and words that it belongs to."""

    figure: Figure
    place: Place
    words: frozenset[str]  # around it; of a cell its label and its header
    names: tuple[str, ...]
    lent: frozenset[str] = frozenset()  # before the first of its kind: they hold for later ones
    counted: frozenset[str] = frozenset()  # the word right behind it, else right before
    dates: frozenset[float] = frozenset()  # around it, as the words

    @property
    def is_of_cell(self) -> bool:
        return self.place.window.kind == "cell"


@dataclass(frozen=True, slots=True)
class WeighedFigure:
    """A figure of a statement, with what the sources say of it."""

    stated: AttributedFigure
    carried: AttributedFigure | None = None
    instead: AttributedFigure | None = None  # what the source gives for the same


@dataclass(frozen=True, slots=True, eq=False)
class _NearFigure:
    near: float
    source: AttributedFigure


def weigh(figure: AttributedFigure, sources: Sequence[SourceText]) -> WeighedFigure:
    """Look for a figure where the sources speak of the same subject."""
    every = [
        _NearFigure(_affinity(figure, other), other)
        for source in sources
        for other in figures_by(source)
        if is_about(figure.figure, other.figure) or comparable(figure.figure, other.figure)
    ]
    same = [near for near in every if _is_same(figure, near)]
    other = [near for near in every if near not in same]
    if not same:
        rival = max(
            (e for e in other if _is_of_same_quantity(figure, e)), key=_nearest, default=None
        )
        return WeighedFigure(figure, instead=rival.source if rival else None)
    best = max(same, key=_nearest)
    figures = [_distinguished(figure, near, other) for near in same]
    if all(figures):
        return WeighedFigure(figure, instead=max(filter(None, figures), key=_nearest).source)
    if all(names_agree(figure.names, near.source.names) < 0 for near in same):
        return WeighedFigure(figure, instead=best.source)  # only for another of the family
    return WeighedFigure(figure, carried=best.source)


def _is_same(stated: AttributedFigure, near: _NearFigure) -> bool:
    """Whether a figure supports another; without a unit, only if it belongs to the same words."""
    figure, there = stated.figure, near.source
    is_bare = bool(figure.unit) != bool(there.figure.unit) and figure.kind == "amount"
    is_meant = there.is_of_cell or not is_bare or near.near >= _SAYS_THE_REST
    return is_meant and is_about(figure, there.figure)


def _affinity(figure: AttributedFigure, other: AttributedFigure) -> float:
    """Return how much of a figure's words another figure shares; more if both have one name."""
    words = figure.words | figure.lent
    is_same = names_agree(figure.names, other.names) > 0
    return len(words & (other.words | other.lent)) / max(1, len(words)) + _SAME_NAME * is_same


def _nearest(figure: _NearFigure) -> tuple[float, int]:
    return figure.near, -len(figure.source.words)


def _is_of_same_quantity(stated: AttributedFigure, near: _NearFigure) -> bool:
    """Whether both figures measure the same: both have a unit, or they count the same."""
    figure, there = stated.figure, near.source.figure
    if near.near < _SAYS_THE_REST:
        return False
    if figure.kind != "amount" or (figure.unit and figure.dimension == there.dimension):
        return True
    return not (figure.unit or there.unit) and bool(stated.counted & near.source.counted)


def _distinguished(
    figure: AttributedFigure, carrying: _NearFigure, other: Sequence[_NearFigure]
) -> _NearFigure | None:
    """Return the other figure if all words that tell the two apart speak for it."""
    dimension = carrying.source.figure.dimension
    rivals = (near for near in other if near.source.figure.dimension == dimension)
    fits = (rival for rival in rivals if _speaks_for(figure, carrying, rival))
    return max(fits, key=_nearest, default=None)


def _speaks_for(figure: AttributedFigure, carrying: _NearFigure, rival: _NearFigure) -> bool:
    mine, theirs = carrying.source, rival.source
    are_cells = mine.is_of_cell and theirs.is_of_cell
    if not are_cells and mine.place is not theirs.place:
        return False
    agreed = [names_agree(figure.names, other.names) for other in (mine, theirs)]
    if agreed[0] != agreed[1]:
        return agreed[0] < agreed[1]
    apart = theirs.words - mine.words - mine.lent
    own_words = mine.words - theirs.words - theirs.lent
    if not own_words and mine.lent >= theirs.lent and mine.lent:
        return False  # said shortly, of what stands before it: `otherwise up to £2,500`
    return not figure.words.isdisjoint(apart) and figure.words.isdisjoint(own_words)


_CONJUNCTIONS = any_of(all_words("conjunctions"))
_DIVIDES = re.compile(rf"[,;:)–—|]|\b(?:{_CONJUNCTIONS})\b", re.IGNORECASE)
_PARTS = re.compile(rf"[;|]|[.!?]\s|, (?:{_CONJUNCTIONS})\b", re.IGNORECASE)  # before all others
_FINEST = 4  # decimals that figures are rounded to
_BESIDE = 40  # characters from a figure to the word for what it counts


def figures_in(place: Place, names: tuple[str, ...]) -> Iterator[AttributedFigure]:
    """Return the figures of a sentence, in order.

    They belong to these names if none stands beside them.
    """
    reading, text = place.reading, place.reading.text
    figures = reading.figures
    for index, figure in enumerate(figures):
        start, end = figure.start, figure.end
        nearest = _alike(figure, figures, range(index - 1, -1, -1))
        behind_it = _alike(figure, figures, range(index + 1, len(figures)))
        first = nearest and _alike(figure, figures, range(index))
        left = _divided(text, nearest.end, start)[1] if nearest else 0
        right = _divided(text, end, behind_it.start)[0] if behind_it else len(text)
        before, behind = _between(reading, left, start), _between(reading, end, right)
        beside = [n.text.lower() for n in reading.name_spans if left <= n.start and n.end <= right]
        counted = [term for term in behind if term.is_word and term.end <= end + _BESIDE][:1]
        if not counted:
            counted = [t for t in before if t.is_word and start <= t.start + _BESIDE][-1:]
        yield AttributedFigure(
            figure=figure,
            place=place,
            words=_term_keys((*before, *behind)).union(place.around.words),
            names=tuple(beside) or names,
            lent=_term_keys(_between(reading, 0, first.start)) if first else frozenset(),
            counted=_term_keys(counted),
            dates=dates_of(stretches_between(figures, left, right)),
        )


def _alike(figure: Figure, figures: Sequence[Figure], places: range) -> Figure | None:
    """Return the first other figure at these places with the same dimension."""
    for other in map(figures.__getitem__, paced(places)):
        is_beside = other.end <= figure.start or other.start >= figure.end
        if is_beside and comparable(figure, other):
            return other
    return None


def is_about(figure: Figure, there: Figure) -> bool:
    """Whether a stated figure is the source's: the same, or rounded.

    Money is not rounded: `€130` is another price than `€129.90`.
    """
    if agree(figure, there):
        return True
    if not comparable(figure, there) or figure.kind != "amount" or figure.unit != there.unit:
        return False
    if not figure.unit.isalpha() and figure.unit != "%":
        return False
    return there.value % 1 > 0 and any(
        round(there.value, digits) == figure.value != 0 for digits in range(_FINEST)
    )


def _between(reading: Reading, start: int, end: int) -> list[Term]:
    terms = stretches_between(reading.terms, start, end)
    return [term for term in terms if isinstance(term.key, str) and term.end <= end]


def _term_keys(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(str(term.key) for term in terms)


def _divided(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the words of the first figure end and those of the second begin.

    Without a division the words between belong to both.
    """
    matches = list(_PARTS.finditer(text, start, end)) or list(_DIVIDES.finditer(text, start, end))
    return (matches[-1].start(), matches[-1].end()) if matches else (end, start)


@lru_cache(maxsize=256)
def figures_by(source: SourceText) -> tuple[AttributedFigure, ...]:
    """Return the figures of a source; those of a table are read from its cells."""
    figures: list[AttributedFigure] = []
    for place in source.places:
        reading, around = place.reading, place.around
        if place.window.kind == "cell":  # they belong to its label and its header
            words = frozenset((*around.words, *reading.words))
            names = around.names or reading.names
            dates = dates_of((*around.figures, *reading.figures))
            for figure in reading.figures:
                figures.append(AttributedFigure(figure, place, words, names, dates=dates))
        elif place.window.kind not in ("row", "code"):
            figures += figures_in(place, reading.names)
    return tuple(figures)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two things that a sentence compares."""

    words: frozenset[str]
    names: frozenset[str]
    dates: frozenset[float]


def compared(reading: Reading, than: frozenset[str]) -> tuple[Side, Side] | None:
    """Return the words before and behind the one word `than` of a sentence."""
    results = [token for token in reading.tokens if token.lowered in than]
    if len(results) != 1:
        return None
    ends = (0, results[0].start, len(reading.text))
    before, behind = (
        Side(
            _term_keys(
                [e for e in stretches_between(reading.terms, *side) if isinstance(e.key, str)]
            ),
            frozenset(n.text.lower() for n in reading.name_spans if side[0] <= n.start < side[1]),
            dates_of(stretches_between(reading.figures, *side)),
        )
        for side in pairwise(ends)
    )
    return before, behind


def dates_of(figures: Sequence[Figure]) -> frozenset[float]:
    """Return the dates among some figures."""
    return frozenset(figure.base for figure in figures if figure.kind == "date")


_NAME_WORD = re.compile(r"[^\W_]+|\+")
_SHORTEST_WORD = 3  # letters; what is shorter tells a model from another: `Amp 50 BT`


@lru_cache(maxsize=16384)
def name_words(name: str) -> tuple[str, ...]:
    """Return the words of a name, with the sign that tells a model from another."""
    return tuple(_NAME_WORD.findall(name.lower()))


@lru_cache(maxsize=16384)
def same_name(name: str, there: str) -> bool:
    """Whether two names are equal, or one is the end of the other: `One+` may stand for `Cantoro
    One+`, `Aero 5` not for `Aero 5 Pro`.
    """
    short, long = sorted((name_words(name), name_words(there)), key=len)
    return bool(short) and long[-len(short) :] == short


@lru_cache(maxsize=16384)
def are_siblings(name: str, there: str) -> bool:
    """Whether two names are of one family, such as `Aero 5` and `Aero 5 Pro`: they begin alike, and
    differ only in what tells models apart.
    """
    one, other = name_words(name), name_words(there)
    if same_name(name, there):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if shared is None:  # one goes on where the other ends: `Étude ANC 1.9.2` is an `Étude ANC`
        shared = min(len(one), len(other))
    apart = (*one[shared:], *other[shared:])
    return shared > 0 and min(len(one), len(other)) > 1 and all(map(_tells_a_model, apart))


def _tells_a_model(word: str) -> bool:
    return word in VARIANTS or len(word) < _SHORTEST_WORD or any(map(str.isdigit, word))


def names_agree(names: Sequence[str], there: Sequence[str]) -> float:
    """Return 1 if a name is among the others, -1 if only a sibling is, else 0."""
    pairs = list(product(names, there))
    if any(same_name(one, other) for one, other in pairs):
        return 1.0
    return -1.0 if any(are_siblings(one, other) for one, other in pairs) else 0.0
