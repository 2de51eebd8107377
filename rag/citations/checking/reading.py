"""What can be compared of a statement and of the windows of a source."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from rag.records import Source
from rag.text.amounts import UNIT_SIGNS, Figure
from rag.text.blocks import Window, plain, read_windows
from rag.text.figures import read_figures
from rag.text.languages import ENGLISH, Language, all_meanings, all_words, any_of, told
from rag.text.names import Lexicon, Name, find_names
from rag.text.related import canonical, related
from rag.text.words import Token, content_words, is_function_word, language_of, stem, tokens

_LONGEST_LABEL = 5  # words; longer cells are no names of things
_RELATED = 0.8  # what a word of about the same meaning counts
_LONG = 5  # letters
_NUMBERS = all_meanings("numbers")
_NEGATIONS = all_words("negations")
_LIMITS = all_words("limits")
_TELLING = all_words("telling")
# A condition in front denies nothing of what follows: `Without proof, …`, `If it is not …, …`.
_CONDITION = re.compile(rf"^\W*(?:without|ohne|{told('conditions')})\b[^,]*,", re.IGNORECASE)
_SUPPOSES = re.compile(
    rf"^\W*(?:and |or |but |und |oder |aber )?(?:{told('conditions')}|{told('supposes')})\b",
    re.IGNORECASE,
)
_VARIANT = r"(?: (?:s|duo|mini|pro|max|plus|lite|ultra|air|se|xl)\b)?"
_ROOT = re.compile(r"\b[^\W\d_]+-[^\W\d_]+\b")
_UNLESS = re.compile(
    r"\b(?:unless|except|es sei denn|außer|(?:nicht|not)\b.{0,200} (?:without|ohne))\b(.*)",
    re.IGNORECASE | re.DOTALL,
)
# Negations that deny nothing: bounds, and what is not the only thing.
_NO_NEGATION = re.compile(
    r"\b(?:no|not|never|nicht) (?:only|just|nur|"
    r"(?:more|less|fewer|later|longer|earlier|mehr|weniger|länger|später) (?:than|als)"
    rf"(?= [^\w]*(?:\d|EUR|{any_of(_NUMBERS)}))"
    r")\b|\bno (?:matter|doubt|problem)\b|\bwhether or not\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Term:
    """A word, figure or denial of a text that a copy of it has to have."""

    key: str | Figure
    spelled: str
    start: int
    end: int
    limits: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One stretch of text as it is compared."""

    words: tuple[str, ...]  # stems, distinct, in order; those of names among them
    terms: tuple[Term, ...]  # all that tells something, in order, in the text without markup
    raw: frozenset[str]  # all words as they are spelled, in lower case
    figures: tuple[Figure, ...]
    names: tuple[str, ...]  # in lower case, longest matches
    named: tuple[Name, ...]  # … each where it stands
    codes: frozenset[str]  # HDMI, IPX4, 192.168.50.1
    is_negated: bool
    is_supposed: bool  # a condition, which asserts nothing
    excepted: frozenset[str]  # words behind `unless`: what is denied holds after all


@lru_cache(maxsize=16384)
def read(text: str, lexicon: Lexicon, language: Language) -> Reading:
    """Read text without markers: a marker's number would be taken for a figure."""
    text = plain(text)
    found: list[Name] = []
    every_figure = read_figures(text, language)
    shaped = [each for each in _shaped(text, language) if not _ends_in_amount(each, every_figure)]
    for name in sorted((*lexicon.find(text), *shaped), key=_by_length):
        if not any(other.start < name.end and name.start < other.end for other in found):
            found.append(name)
    spans = [(name.start, name.end) for name in found]
    figures = tuple(
        figure
        for figure in every_figure
        if not any(start <= figure.start and figure.end <= end for start, end in spans)
    )
    every, unless = list(tokens(text)), _UNLESS.search(text)
    asserted = tokens(_CONDITION.sub("", _NO_NEGATION.sub(" ", text)))
    return Reading(
        words=tuple(dict.fromkeys(_words(text, figures, language))),
        terms=tuple(_terms(every, figures, language)),
        raw=frozenset(token.lowered for token in every),
        figures=figures,
        names=tuple(dict.fromkeys(name.text.lower() for name in found)),
        named=tuple(sorted(found, key=lambda name: name.start)),
        codes=frozenset(token.lowered for token in every if _is_code(token.text)),
        is_negated=any(_denies(token.lowered) for token in asserted),
        is_supposed=bool(_SUPPOSES.match(text)) and not _CONDITION.match(text),
        excepted=frozenset(map(canonical, content_words(unless[1] if unless else "", language))),
    )


def _denies(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't")


def _ends_in_amount(name: Name, figures: Sequence[Figure]) -> bool:
    """`Add 350` of `Add 350 µl`."""
    return any(name.start < f.start < name.end < f.end and f.unit for f in figures)


def _by_length(name: Name) -> int:
    return name.start - name.end


def _shaped(text: str, language: Language) -> Iterator[Name]:
    """Names by their shape: no bare codes, and in German, where nouns look alike, with a figure."""
    for name in (each for each in find_names(text) if each.text.lower() not in UNIT_SIGNS):
        has_digit = any(map(str.isdigit, name.text))
        if (has_digit or language is ENGLISH) and (" " in name.text or not _is_code(name.text)):
            yield name


def _words(text: str, figures: Sequence[Figure], language: Language) -> Iterator[str]:
    """The words that carry meaning, but those that are figures and their units."""
    kept, at = [], 0
    for figure in figures:
        kept.append(text[at : figure.start])
        at = max(at, figure.end)
    kept.append(text[at:])
    return (canonical(word) for word in content_words(" ".join(kept), language))


def _terms(every: Sequence[Token], figures: Sequence[Figure], language: Language) -> Iterator[Term]:
    waiting, done = deque(figures), 0
    for token in every:
        lowered, start, end = token.lowered, token.start, token.end
        while waiting and waiting[0].end <= start:
            waiting.popleft()
        if waiting and waiting[0].start < end:
            figure = waiting[0]
            if figure.start >= done:
                yield Term(figure, lowered, figure.start, figure.end)
                done = figure.end
            continue
        yield from _term(lowered, start, end, language)


def _term(lowered: str, start: int, end: int, language: Language) -> Iterator[Term]:
    if _denies(lowered):
        key = "not" if is_function_word(lowered) else lowered
        yield Term(key, lowered, start, end, limits=True)
        if lowered in ("can't", "cannot"):
            yield Term("can", lowered, start, end)
    elif lowered in _LIMITS:
        yield Term(lowered, lowered, start, end, limits=True)
    elif lowered in _TELLING or not is_function_word(lowered):
        yield Term(canonical(stem(lowered, language.code)), lowered, start, end)


def _is_code(word: str) -> bool:
    if word.isalpha() and word[1:].islower():  # most words: at most one capital, and no figure
        return False
    if word.count(".") > 1:
        return True
    capitals = sum(letter.isupper() for letter in word)
    letters = sum(letter.isalpha() for letter in word)
    has_digit = any(letter.isdigit() for letter in word)
    return letters > 1 and (capitals > 1 or (has_digit and not word[0].isdigit()))


# ── Sources ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A window of a source with its readings."""

    window: Window
    text: str  # without markup
    own: Reading
    around: Reading  # its lead-in, label and header
    words: frozenset[str]  # of both
    keys: frozenset[str]  # of its own terms, but for figures


@dataclass(frozen=True, eq=False)
class SourceText:
    """A source as statements are compared with it; its places are read when first asked for."""

    number: int
    source: Source
    language: Language
    lexicon: Lexicon
    context: Reading  # title and headings
    heading: Reading  # the last of them
    windows: Sequence[Window]

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return tuple(_place(each, self.lexicon, self.language) for each in self.windows)

    @cached_property
    def told(self) -> tuple[frozenset[str], ...]:
        """The words of each place under title and headings."""
        return tuple(place.words.union(self.context.words) for place in self.places)

    @cached_property
    def words(self) -> frozenset[str]:
        """Of all of it."""
        return frozenset(self.context.words).union(*(place.words for place in self.places))

    @cached_property
    def names(self) -> tuple[str, ...]:
        said = (name for each in self.places for name in each.own.names + each.around.names)
        return tuple(dict.fromkeys((*self.context.names, *said)))

    @cached_property
    def codes(self) -> frozenset[str]:
        return self.context.codes.union(*(place.own.codes for place in self.places))

    @cached_property
    def raw(self) -> frozenset[str]:
        """All words as they are spelled, in lower case."""
        lowered = (place.own.raw | place.around.raw for place in self.places)
        return self.context.raw.union(*lowered)

    @cached_property
    def every_figure(self) -> tuple[Figure, ...]:
        """Those of title, headings and lead-ins as well."""
        above = (figure for place in self.places for figure in place.around.figures)
        return (*self.figures, *self.context.figures, *above)

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for place in self.places for figure in place.own.figures)


@lru_cache(maxsize=256)
def read_source(source: Source) -> SourceText:
    """All windows of what a source says: its passage, and the chunk where that is no part of it."""
    text = source.passage
    if source.text.strip() and source.text not in text:
        text = f"{text}\n\n{source.text}"
    headings = list(dict.fromkeys((source.document_title, *source.heading_path)))
    heading = " · ".join(headings)
    language = language_of(text)
    windows = read_windows(text)
    lexicon = Lexicon(_labels(windows, text, heading))
    return SourceText(
        number=source.number,
        source=source,
        language=language,
        lexicon=lexicon,
        context=read(heading, lexicon, language),
        heading=read(headings[-1] if headings else "", lexicon, language),
        windows=windows,
    )


def _place(window: Window, lexicon: Lexicon, language: Language) -> Place:
    own = read(window.text, lexicon, language)
    around = read(window.around, lexicon, language)
    every = content_words(plain(f"{window.around} {window.text}"), language)
    words = frozenset((*own.words, *around.words, *map(canonical, every)))
    keys = frozenset(term.key for term in own.terms if isinstance(term.key, str))
    return Place(window, plain(window.text), own, around, words, keys)


def _labels(windows: Sequence[Window], text: str, heading: str) -> list[str]:
    """What things are called here: names by their shape, labels of rows and headers of columns."""
    whole = f"{heading}\n{text}"
    language = language_of(text)
    figures = read_figures(whole, language)
    found = [e.text for e in _shaped(whole, language) if not _ends_in_amount(e, figures)]
    for root in dict.fromkeys(_ROOT.findall(heading)):
        found += re.findall(rf"\b{re.escape(root)}{_VARIANT}", whole)
    for window in windows:
        if window.kind == "cell":
            label = window.text.partition(":")[0]
            found += [each for each in (label, window.column) if _names_something(each)]
    return list(dict.fromkeys(found))


def _names_something(label: str) -> bool:
    """Whether a cell is a name of a thing: short, with a capital, a figure or a hyphen inside."""
    told = label.split()
    has_shape = any(c.isupper() for c in label[1:]) or any(c.isdigit() or c in "-+" for c in label)
    is_one = label[:1].isalpha() and not any(c in ",;/" for c in label)
    return 0 < len(told) <= _LONGEST_LABEL and has_shape and is_one


# ── Shares ───────────────────────────────────────────────────────────────────────────────────


def share(said: Sequence[str], there: frozenset[str], among: frozenset[str] | None = None) -> float:
    """The share of some words that others hold, themselves or by a word that means about it.

    Where many windows of one source are looked at, `among` are all its words.
    """
    if not said:
        return 1.0
    every = there if among is None else among
    return sum(
        1.0 if word in there else 0.0 if _near(word, every).isdisjoint(there) else _RELATED
        for word in said
    ) / len(said)


def is_held(word: str, there: frozenset[str]) -> bool:
    """Whether others hold a word, or one that begins alike."""
    return word in there or not _begun(word, there).isdisjoint(there)


@lru_cache(maxsize=65536)
def _begun(word: str, among: frozenset[str]) -> frozenset[str]:
    alike = _beginnings(among).get(word[:_LONG], ()) if len(word) >= _LONG else ()
    return frozenset(each for each in alike if each.startswith(word) or word.startswith(each))


@lru_cache(maxsize=65536)
def _near(word: str, among: frozenset[str]) -> frozenset[str]:
    """The words that mean about the same as one, or begin alike."""
    return related(word).intersection(among).union(_begun(word, among))


@lru_cache(maxsize=1024)
def _beginnings(words: frozenset[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words:
        if len(word) >= _LONG:
            found.setdefault(word[:_LONG], []).append(word)
    return found
