"""Find product names by a lexicon and by shape, and codes of parts and errors.

An identifier has at least five signs of letters and digits, or eight digits, or digits with two
stops between them, and no word of six letters. Capitals, hyphens and the width of letters do not
distinguish identifiers.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, dropwhile, groupby, islice, pairwise
from typing import Any

import regex

from rag.language.words import memoised, read_lists, words

_WORDS = {name: words(listed) for name, listed in read_lists("names").items()}
VARIANTS = _WORDS["variants"]  # what tells a model from its siblings
LONGEST_NAME = 120  # characters; longer entries of a lexicon are prose, not names
LEXICONS_KEPT = 64  # for so many sets of collections
LONGEST_RUN = 6  # words; a longer run of capitalised words is a headline

# ── Characters ───────────────────────────────────────────────────────────────────────────────

# One character each, so that offsets stay: odd spaces and hyphens are read as the plain ones, and
# half surrogates, which are no text, as the replacement character.
_PLAIN = dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | dict.fromkeys("\u2010\u2011", "-")
_ODD = re.compile(f"[{''.join(_PLAIN)}\ud800-\udfff]")
# Scripts written without spaces (or with particles attached): a neighbour of these ends a name.
_UNSPACED = "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
_LETTER = rf"(?!{_UNSPACED})[\w\u0300-\u036f]"
_STARTS = re.compile(rf"(?<!{_LETTER})(?<![^\W_][-&])")
_ENDS = re.compile(rf"(?=['’])|(?!\+|{_LETTER}|[-./&][^\W_])")
# The next word makes a longer name: `Aero 5` before ` Pro`, ` 2` or ` X-200`.
_GOES_ON = regex.compile(r"[™®©]? (?:\p{Lu}|(?=[^\W_])[^\s,;:.!?()\[\]|]*\d)")


def _plain(text: str) -> str:
    """Return the text in the spelling for matching names, with the same length."""
    return text if text.isascii() else _ODD.sub(lambda odd: _PLAIN.get(odd[0], "\ufffd"), text)


# ── Lexicon ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Name:
    """A product name at its place; `text` is its spelling there."""

    text: str
    start: int
    end: int

    @property
    def bare(self) -> str:
        return self.text.rstrip("™®©")


class Lexicon:
    """Known names, matched exactly, longest first, on word boundaries, in one pass over a text."""

    def __init__(self, names: Iterable[str]) -> None:
        cleaned = (_plain(name).strip() for name in names)
        self.names = tuple(dict.fromkeys(n for n in cleaned if n and len(n) <= LONGEST_NAME))
        self._automaton: Any = None  # built at the first search

    def find(self, text: str) -> list[Name]:
        """Return the names in a text in order; where names overlap, only the longest."""
        return [Name(text[start:end], start, end) for _, start, end in self._matches(_plain(text))]

    def whole_names(self, text: str) -> set[str]:
        """Return the names that a text holds whole: `Aero 5` is not whole in `Aero 5 Pro` or `Aero
        5-S`.

        Strict where `find` is generous: a name before another capitalised word or number counts
        as part of a longer name, known or not.
        """
        plain = _plain(text)
        matches = self._matches(plain)
        return {self.names[index] for index, _, end in matches if not _GOES_ON.match(plain, end)}

    def _matches(self, plain: str) -> list[tuple[int, int, int]]:
        if not self.names:
            return []
        if self._automaton is None:
            import ahocorasick_rs

            self._automaton = ahocorasick_rs.AhoCorasick(self.names, store_patterns=False)
        # Overlapping, because the longest match may fail on a boundary where a shorter one stands.
        every = self._automaton.find_matches_as_indexes(plain, overlapping=True)
        results: list[tuple[int, int, int]] = []
        for match in sorted(every, key=lambda match: (match[1], -match[2])):
            _, start, end = match
            is_free = not results or start >= results[-1][2]
            if is_free and _STARTS.match(plain, start) and _ENDS.match(plain, end):
                results.append(match)
        return results


class TypedNames:
    """A lexicon for names as people type them: "aero 5 pro", or only "the Pro"."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._spellings = {name.lower(): name for name in reversed(list(names)) if name.strip()}
        self._by_word: dict[str, list[str]] = {}
        for lowered, name in self._spellings.items():
            for word in set(lowered.split()):
                self._by_word.setdefault(word, []).append(name)
        self._lexicon = Lexicon(self._spellings)

    def find(self, text: str) -> list[Name]:
        """Return the names in a text, in the text's own spelling."""
        # "İ" is two characters in lower case
        lowered = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        names = self._lexicon.find(lowered)
        return [Name(text[name.start : name.end], name.start, name.end) for name in names]

    def with_words(self, words: Sequence[str]) -> list[str]:
        """Return the names that hold all of these lower-case words."""
        if not words:
            return []
        fewest = min((self._by_word.get(word, []) for word in words), key=len)
        return [name for name in fewest if set(words) <= set(name.lower().split())]


@lru_cache(LEXICONS_KEPT)
def typed_names(lexicon: tuple[str, ...]) -> TypedNames:
    """Return the index of a lexicon; it is built once for each lexicon."""
    return TypedNames(lexicon)


def contains_name(text: str, name: str) -> bool:
    """Whether a text holds exactly this name, whole."""
    return name.strip() != "" and bool(Lexicon([name]).whole_names(text))


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

_TOKEN = r"[^\W_]+(?:[-.&+'’/_][^\W_]+)*\+?[™®©]?"
# Words in small letters end a run and begin none, so that several are skipped at once.
_TOKENS = re.compile(rf"(?:[a-z]++ ++)++|({_TOKEN})")
_NEXT = re.compile(r" ([^\W_]+)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MEASURE = (
    r"\d+(?:[.,/]\d+)*(?:[a-zµ°]{1,5}|[KMGT]?i?[BbW]|[kKMGT]?Hz|[kKMG]?bps|[kmµ]?[VAWhFJ]|mAh|[KMGTPx]|[2-6]G|"
    r"D|st|nd|rd|th)(?:[/²³]\w*)?"
)
_DATE = r"(?:19|20)\d\d-(?:\d\d|\d{4})(?:-\d\d)?"
# `AX-5400`, `7590AX`, `h264`, `170-33505`: no measure such as `5GHz` or `3rd`.
_CODE = regex.compile(rf"(?!{_DATE}$)\d{{2,}}-\d{{4,}}|(?!(?:{_MEASURE})$)(?=.*\d)(?=.*\p{{L}}).+")
_CAPITALISED = regex.compile(r"(?!\d).*\p{Lu}.*")  # `Aero`, `USB-C`, `iPhone`
_MIXED = regex.compile(r".*\p{Ll}\p{Lu}.*")  # `FritzBox`: as no word begins a sentence
_SUFFIXED = re.compile(r"\d+[A-Z]{1,2}")  # `5G`, `14S`: measures if alone
_STANDS = regex.compile(rf"{_CODE.pattern}|{_MIXED.pattern}|[vV]\d+(?:\.\d+)*[a-z]?")
_COMMON = _WORDS["ordinary"] | _WORDS["calendar"]
_SENTENCE_END = '.!?:;•|>"“”‘(*#–—\n'
_GENERATION = re.compile(r" \((?:\d{4}|(?:\d+(?:st|nd|rd|th) )?[Gg]en(?:eration)?\.?(?: \d+)?)\)")


def find_names(text: str) -> list[Name]:
    """Return everything in a text that is shaped like a product name.

    Generous on purpose: a name too many costs a few tokens, a name too few is lost. Shapes are
    model codes (`AX-5400`), versions (`v2.1.3`), runs of capitalised words with their numbers
    (`Aero 5 Pro Max`), and single capitalised words inside a sentence, except in texts that
    capitalise their nouns.
    """
    shapes = sorted(_shapes(_plain(text)), key=lambda shape: (shape.start, shape.end))
    return [Name(text[shape.start : shape.end], shape.start, shape.end) for shape in shapes]


@memoised
def _shapes(plain: str) -> tuple[Name, ...]:
    results: list[Name] = []
    singles = not _capitalises_nouns(plain)
    for run in chain.from_iterable(map(_parts, _runs(plain))):
        words = _without_ordinary(run, begins=_begins_sentence(plain, run[0].start))
        alone = singles and bool(words) and not _in_heading(plain, words[0].start)
        if words and _is_name(words, singles=alone):
            start, end = words[0].start, words[-1].end
            generation = _GENERATION.match(plain, end)
            ends = [end, generation.end()] if generation else [end]
            results.extend(Name(plain[start:end], start, end) for end in ends)
    return tuple(results)


def _runs(plain: str) -> Iterator[list[Name]]:
    """Yield runs of words that could make one name, with single spaces between them."""
    run: list[Name] = []
    for match in _TOKENS.finditer(plain):
        text = match[1]
        if text is None or (text.islower() and text.isalpha()):  # most words
            continue
        word = Name(text, *match.span(1))
        joined = bool(run) and plain[run[-1].end : word.start] == " "
        bare, is_unit = word.bare, word.bare in _WORDS["units"]
        begins = not is_unit and bool(_CAPITALISED.fullmatch(bare) or _CODE.fullmatch(bare))
        if run and not (joined and (begins or _continues(word, plain))):
            yield run
            run = []
        if run or begins:
            run.append(word)
    if run:
        yield run


def _parts(run: list[Name]) -> Iterator[list[Name]]:
    """Yield the run itself, or the parts of a headline between its ordinary words."""
    if len(run) <= LONGEST_RUN:
        yield run
        return
    for ordinary, part in groupby(run, key=lambda word: word.bare.capitalize() in _COMMON):
        words = list(part)
        if not ordinary and len(words) <= LONGEST_RUN:
            yield words


def _continues(word: Name, plain: str) -> bool:
    if _SUFFIXED.fullmatch(word.bare):
        return True
    following = _NEXT.match(plain, word.end)
    is_measure = following is not None and following[1] in _WORDS["units"]
    return not is_measure and bool(_NUMBER.fullmatch(word.bare))


def _without_ordinary(run: list[Name], *, begins: bool) -> list[Name]:
    """Return the run without ordinary words at its ends, capitalised for other reasons."""
    first = int(begins and len(run) > 1 and run[0].bare in _WORDS["requests"])
    rare = [index for index, word in enumerate(run) if index >= first and word.bare not in _COMMON]
    words = run[rare[0] : rare[-1] + 1] if rare else []
    if rare and rare[0]:  # the number belonged to the word before it: `Page 5`, `March 2024`
        words = list(dropwhile(lambda word: _NUMBER.fullmatch(word.bare), words))
    alone = len(words) == 1 and not rare[0] and begins
    return [] if alone and not _STANDS.fullmatch(words[0].bare) else words


def _is_name(words: list[Name], *, singles: bool) -> bool:
    if all(word.bare in _WORDS["generic"] for word in words):
        return False
    if len(words) > 1:
        return singles or any(map(str.isdigit, "".join(word.bare for word in words)))
    word = words[0].bare
    return bool(_STANDS.fullmatch(word)) or (singles and len(word) > 1)


def _begins_sentence(plain: str, start: int) -> bool:
    before = plain[max(0, start - 8) : start].rstrip(" ")
    return before == "" or before[-1] in _SENTENCE_END


def _in_heading(plain: str, start: int) -> bool:
    line_start = plain.rfind("\n", max(0, start - 300), start) + 1
    return plain.startswith("#", line_start)


# A word, or a run of capitalised ones, as a name of several words is: `Höra Buds Lite`.
_INNER_WORD = re.compile(
    r"(?<=[a-zäöüßé,] )(?:[A-ZÄÖÜ][^\W\d_]{2,}(?: [A-ZÄÖÜ][^\W\d_]+)*|[^\W\d_]{3,})"
)
NOUNS_CAPITALISED = 0.25  # of the words inside sentences: German has a third, English a tenth


def _capitalises_nouns(plain: str) -> bool:
    inner = [match[0][0].isupper() for match in islice(_INNER_WORD.finditer(plain), 400)]
    return len(inner) >= 12 and sum(inner) > NOUNS_CAPITALISED * len(inner)


MOST_SIGNS = 40  # of one; longer runs are addresses, checksums, data
LEAST_MIXED, LEAST_DIGITS = 5, 8
LONGEST_JOIN = 4  # pieces of a question that may be one code: `KH 2319 K`

_JOINT = "-_.‐-―"
_RUN = re.compile(rf"[^\W_]+(?:[{_JOINT}][^\W_]+)*")
_PIECE = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]{6,}")  # so many letters in a row are a word: `interleukin-2`
_VERSION = re.compile(r"v?(\d+(?:\.\d+){2,})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Identifier:
    """One identifier, as it is compared and as it was written."""

    code: str
    written: str


def identifiers(text: str) -> list[Identifier]:
    """Return the identifiers in a document's text, each once."""
    results: dict[str, Identifier] = {}
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        if code := code_of(run):
            results.setdefault(code, Identifier(code, run))
    return list(results.values())


def identifiers_of_question(question: str) -> list[list[Identifier]]:
    """Return for each identifier in a question its possible readings, the longest first.

    A question writes `KH 2319 K` with blanks, and a German one ties the code to a word:
    `KH-2319-K-Ventil`.
    """
    text = unicodedata.normalize("NFKC", question)
    results, covered = [], 0
    pieces = list(_PIECE.finditer(text))
    for place, first in enumerate(pieces):
        if first.start() < covered:
            continue
        choices = list(_possible_codes(text, pieces[place : place + LONGEST_JOIN]))
        if choices:
            results.append([identifier for identifier, _ in choices])
            covered = choices[0][1]
    return results


def _possible_codes(text: str, pieces: list[re.Match[str]]) -> Iterator[tuple[Identifier, int]]:
    for count in range(len(pieces), 0, -1):
        written = text[pieces[0].start() : pieces[count - 1].end()]
        gaps = {text[a.end() : b.start()] for a, b in pairwise(pieces[:count])}
        if all(len(gap) == 1 and (gap == " " or re.match(f"[{_JOINT}]", gap)) for gap in gaps):
            code = code_of(written.replace(" ", "-"))
            # Pieces with blanks between them are one code where each has figures or capitals.
            parts = written.split(" ") if " " in written else []
            if code and all(any(map(str.isdigit, part)) or part.isupper() for part in parts):
                yield Identifier(code, written), pieces[count - 1].end()


def code_of(run: str) -> str:
    """Return the form in which a run of signs is compared; "" if it is no identifier."""
    version = _VERSION.fullmatch(run)
    if version:
        return version[1]
    code = "".join(_PIECE.findall(run)).casefold()
    has_digit = any(map(str.isdigit, code))
    has_word = any(not letters.isupper() for letters in _LETTERS.findall(run))
    least = LEAST_MIXED if has_digit and any(map(str.isalpha, code)) else LEAST_DIGITS
    is_code = has_digit and not has_word and least <= len(code) <= MOST_SIGNS
    return code if is_code else ""
