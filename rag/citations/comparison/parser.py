"""What can be compared of a statement and of the windows of a source.

Each aspect is read when it is first asked for: most windows are never looked at for more than
their words.
"""

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from rag.language.amounts import UNIT_SIGNS, Figure
from rag.language.figures import read_figures
from rag.language.languages import ENGLISH, Language, all_meanings, all_words
from rag.language.names import Lexicon, Name, find_names
from rag.language.sentences import Window, plain, read_windows
from rag.language.words import (
    UNSPACED,
    Token,
    canonical,
    content_words,
    is_function_word,
    language_of,
    stem,
)
from rag.language.words import tokens as tokens_of
from rag.records import Source

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
    """One stretch of text as it is compared, without markup."""

    def __init__(self, text: str, lexicon: Lexicon, language: Language) -> None:
        self.text = plain(text).replace("\n", " ")
        self.lexicon = lexicon
        self.language = language

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens_of(self.text))

    @cached_property
    def raw(self) -> frozenset[str]:
        """All words as they are spelled, in lower case."""
        return frozenset(token.lowered for token in self.tokens)

    @cached_property
    def content(self) -> frozenset[str]:
        """The stems of all words that carry meaning, those of units and figures among them."""
        return frozenset(map(canonical, content_words(self.text, self.language)))

    @cached_property
    def name_spans(self) -> tuple[Name, ...]:
        """The names where they stand: of those that overlap, the longest."""
        results: list[Name] = []
        names = (*self.lexicon.find(self.text), *shaped(self.text, self.language))
        for name in sorted(names, key=lambda name: name.start - name.end):
            if not any(other.start < name.end and name.start < other.end for other in results):
                results.append(name)
        return tuple(results)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """In lower case, the longest first."""
        return tuple(dict.fromkeys(name.text.lower() for name in self.name_spans))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Those that are no part of a name."""
        return tuple(
            figure
            for figure in _figures(self.text, self.language)
            if not any(n.start <= figure.start and figure.end <= n.end for n in self.name_spans)
        )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """All that tells something, in order."""
        return tuple(self._terms())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Stems, distinct, in order; those of names among them, but not those of figures."""
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
    """Read text that stands beside no source, without markers."""
    return read(text, Lexicon(()), language_of(text))


Stretch = TypeVar("Stretch", Token, Term, Figure)


def stretches_between(every: Sequence[Stretch], start: int, end: int) -> Sequence[Stretch]:
    """Those that begin between two places of a text."""
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
    """Names by their shape; in German, where nouns look alike, those with a figure.

    `Add 350` of `Add 350 µl` is none.
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
    """A window of a source with its readings."""

    def __init__(self, window: Window, lexicon: Lexicon, language: Language) -> None:
        self.window = window
        self.reading = read(window.text, lexicon, language)
        self.around = read(window.around, lexicon, language)  # its lead-in, label and header

    @cached_property
    def words(self) -> frozenset[str]:
        return self.reading.content | self.around.content

    @property
    def names(self) -> tuple[str, ...]:
        """Its own, else those of what it belongs to."""
        return self.reading.names or self.around.names


class SourceText:
    """A source as statements are compared with it: its passage, and the chunk if that is no part
    of it."""

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
        """What things are called here: names by shape, labels of rows and headers of columns."""
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
        """Title and headings."""
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
        """Those that share most words with a statement first, each row whole."""
        whole = [place for place in self.places if place.window.kind != "cell"]
        return sorted(whole, key=lambda e: -share(words, e.words))

    @cached_property
    def words_of_places(self) -> tuple[frozenset[str], ...]:
        """The words of each place under title and headings."""
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
        """Those of title and headings as well."""
        readings = (self.context, *(place.reading for place in self.places))
        return tuple(figure for reading in readings for figure in reading.figures)


@lru_cache(maxsize=256)
def read_source(source: Source) -> SourceText:
    """A source to be compared with."""
    return SourceText(source)


def _names_something(label: str) -> bool:
    """Whether a cell is a name of a thing: short, with a capital, a figure or a hyphen inside."""
    words = label.split()
    has_shape = any(c.isupper() for c in label[1:]) or any(c.isdigit() or c in "-+" for c in label)
    return 0 < len(words) <= _LONGEST_LABEL and has_shape


# ── Shares ───────────────────────────────────────────────────────────────────────────────────


def share(words: Sequence[str], there: frozenset[str]) -> float:
    """The share of some words that others hold."""
    return sum(map(there.__contains__, words)) / len(words) if words else 1.0
