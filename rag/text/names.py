"""Product names in text: those of a lexicon, and the shapes that names usually have."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, islice, pairwise
from typing import Any

from rag.text.languages import read_lists, words

_WORDS = {name: words(listed) for name, listed in read_lists("names").items()}
VARIANTS = _WORDS["variants"]  # what tells a model from its siblings
LONGEST_NAME = 120  # characters; longer entries of a lexicon are prose, not names
SHORT_TEXT = 400  # characters
LONGEST_RUN = 6  # words; a longer run of capitalised words is a headline

# ── Characters ───────────────────────────────────────────────────────────────────────────────

# One character each, so that offsets stay: odd spaces and hyphens are read as the plain ones, and
# half surrogates, which are no text, as the replacement character.
_PLAIN = dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | dict.fromkeys("\u2010\u2011", "-")
_ODD = re.compile(f"[{''.join(_PLAIN)}\ud800-\udfff]")
# Scripts written without spaces (or with particles attached): a neighbour of these ends a name.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_MARK = re.compile("[\u0300-\u036f]")
_JOINT_AFTER = re.compile(r"[-.+/’'&](?=[^\W_])")
_CONTINUED = re.compile(r"[™®©]? (?=[^\W_])([^\s,;:.!?()\[\]|]+)")


def _plain(text: str) -> str:
    """The text as names are matched in it, the same length."""
    return text if text.isascii() else _ODD.sub(lambda odd: _PLAIN.get(odd[0], "\ufffd"), text)


def _is_word(character: str) -> bool:
    if _UNSPACED.match(character):
        return False
    return character.isalnum() or character == "_" or bool(_MARK.match(character))


def _starts_word(text: str, start: int) -> bool:
    is_joined = start > 1 and text[start - 1] in "-&" and text[start - 2].isalnum()
    return start == 0 or not (is_joined or _is_word(text[start - 1]))


def _ends_word(text: str, end: int) -> bool:
    if end == len(text) or text[end] in "'’":
        return True
    return not (text[end] == "+" or _is_word(text[end]) or _JOINT_AFTER.match(text, end))


def _goes_on(text: str, end: int) -> bool:
    """Whether the next word makes a longer name: `Aero 5` before ` Pro`, ` 2` or ` X-200`."""
    following = _CONTINUED.match(text, end)
    if following is None:
        return False
    word = following[1]
    return word[0].isupper() or any(character.isdigit() for character in word)


# ── Lexicon ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Name:
    """A product name where it stands; `text` is its spelling there."""

    text: str
    start: int
    end: int


class Lexicon:
    """Known names, matched exactly, longest first, on word boundaries, in one pass over a text."""

    def __init__(self, names: Iterable[str]) -> None:
        cleaned = (_plain(name).strip() for name in names)
        self.names = tuple(dict.fromkeys(n for n in cleaned if n and len(n) <= LONGEST_NAME))
        self._automaton: Any = None  # built at the first search

    def find(self, text: str) -> list[Name]:
        """The names in a text, in order, not overlapping; of those that overlap, the longest."""
        return [Name(text[start:end], start, end) for _, start, end in self._matches(_plain(text))]

    def kept(self, text: str) -> set[str]:
        """The names a text holds whole: `Aero 5` is not kept by `Aero 5 Pro` or `Aero 5-S`.

        Strict where `find` is generous: a name before another capitalised word or number counts
        as part of a longer name, known or not.
        """
        plain = _plain(text)
        found = self._matches(plain)
        return {self.names[index] for index, _, end in found if not _goes_on(plain, end)}

    def _matches(self, plain: str) -> list[tuple[int, int, int]]:
        if not self.names:
            return []
        if self._automaton is None:
            import ahocorasick_rs

            self._automaton = ahocorasick_rs.AhoCorasick(self.names, store_patterns=False)
        # Overlapping, because the longest match may fail on a boundary where a shorter one stands.
        every = self._automaton.find_matches_as_indexes(plain, overlapping=True)
        found: list[tuple[int, int, int]] = []
        for match in sorted(every, key=lambda each: (each[1], -each[2])):
            _, start, end = match
            is_free = not found or start >= found[-1][2]
            if is_free and _starts_word(plain, start) and _ends_word(plain, end):
                found.append(match)
        return found


def contains_name(text: str, name: str) -> bool:
    """Whether a text holds this very name, whole."""
    return name.strip() != "" and bool(Lexicon([name]).kept(text))


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────

_TOKEN = re.compile(r"[^\W_]+(?:[-.&+'’/_][^\W_]+)*\+?[™®©]?")
# Words in small letters end a run and begin none, so that several are skipped at once.
_TOKENS = re.compile(rf"(?:[a-z]++ ++)++|({_TOKEN.pattern})")
_NEXT = re.compile(r" ([^\W_]+)")
_VERSION = re.compile(r"[vV]\d+(?:\.\d+)*[a-z]?")
_SUFFIXED = re.compile(r"\d+[A-Z]{1,2}")  # 5G, 14S: a measure alone, part of a name after a word
_SERIAL = re.compile(
    r"(?!(?:19|20)\d\d-(?:\d\d|\d{4})(?:-\d\d)?$)\d{2,}-\d{4,}"
)  # 170-33505, no dates
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MEASURE = re.compile(
    r"\d+(?:[.,/]\d+)*(?:[a-zµ°]{1,5}|[KMGT]?i?[BbW]|[kKMGT]?Hz|[kKMG]?bps|[kmµ]?[VAWhFJ]|mAh|[KMGTPx]|[2-6]G|"
    r"D|st|nd|rd|th)(?:[/²³]\w*)?"
)
_COMMON = _WORDS["ordinary"] | _WORDS["calendar"]
_SENTENCE_END = '.!?:;•|>"“”‘(*#–—\n'
_GENERATION = re.compile(r" \((?:\d{4}|(?:\d+(?:st|nd|rd|th) )?[Gg]en(?:eration)?\.?(?: \d+)?)\)")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int

    @property
    def bare(self) -> str:
        return self.text.rstrip("™®©")


def find_names(text: str, lexicon: Lexicon | None = None) -> list[Name]:
    """Names in a text: those of the lexicon, and whatever is shaped like a product name.

    Generous on purpose: a name too many costs a few tokens, a name too few is lost. Shapes are
    model codes (`AX-5400`), versions (`v2.1.3`), runs of capitalised words with their numbers
    (`Aero 5 Pro Max`), and single capitalised words inside a sentence, except in texts that
    capitalise their nouns.
    """
    plain = _plain(text)
    known = lexicon.find(text) if lexicon is not None else []
    shapes = _short_shapes(plain) if len(plain) < SHORT_TEXT else tuple(_shapes(plain))
    if not known and plain is text:
        return list(shapes)
    shaped = [name for name in shapes if not _inside(name, known)]
    spelled = [Name(text[name.start : name.end], name.start, name.end) for name in shaped]
    return sorted([*known, *spelled], key=lambda name: (name.start, name.end))


def distinct_names(texts: Iterable[str], lexicon: Lexicon | None = None) -> list[str]:
    """The spellings of the names in some texts, each once, in order of appearance."""
    found = (_plain(name.text) for text in texts for name in find_names(text, lexicon))
    return list(dict.fromkeys(found))


def _inside(name: Name, known: Sequence[Name]) -> bool:
    """Whether a known name (they are in order and do not overlap) covers this one."""
    at = bisect_right(known, name.start, key=lambda other: other.start) - 1
    return at >= 0 and known[at].end >= name.end


@lru_cache(maxsize=4096)
def _short_shapes(plain: str) -> tuple[Name, ...]:
    """Sentences are looked at several times: as part of an answer, as a claim, in a summary."""
    return tuple(_shapes(plain))


def _shapes(plain: str) -> Iterator[Name]:
    singles = not _capitalises_nouns(plain)
    for run in chain.from_iterable(map(_parts, _runs(plain))):
        words = _without_ordinary(run, _begins_sentence(plain, run[0].start))
        alone = singles and bool(words) and not _in_heading(plain, words[0].start)
        if words and _is_name(words, singles=alone):
            start, end = words[0].start, words[-1].end
            yield Name(plain[start:end], start, end)
            generation = _GENERATION.match(plain, end)
            if generation is not None:
                yield Name(plain[start : generation.end()], start, generation.end())


def _runs(plain: str) -> Iterator[list[_Word]]:
    """Words that could make one name, standing next to each other with single spaces between."""
    run: list[_Word] = []
    for match in _TOKENS.finditer(plain):
        text = match[1]
        if text is None or (text.islower() and text.isalpha()):  # most words
            continue
        word = _Word(text, match.start(1), match.end(1))
        joined = bool(run) and word.start == run[-1].end + 1 and plain[run[-1].end] == " "
        if run and not (joined and _continues(word, plain)):
            yield run
            run = []
        if run or _begins(word):
            run.append(word)
    if run:
        yield run


def _parts(run: list[_Word]) -> Iterator[list[_Word]]:
    """The run itself, or, of a headline in capitals, the parts between its ordinary words."""
    if len(run) <= LONGEST_RUN:
        yield run
        return
    for ordinary, part in groupby(run, key=lambda word: word.bare.capitalize() in _COMMON):
        words = list(part)
        if not ordinary and len(words) <= LONGEST_RUN:
            yield words


def _begins(word: _Word) -> bool:
    if word.bare in _WORDS["units"]:
        return False
    return _is_capitalised(word.bare) or _is_code(word.bare)


def _continues(word: _Word, plain: str) -> bool:
    if _SUFFIXED.fullmatch(word.bare):
        return True
    if _NUMBER.fullmatch(word.bare):
        following = _NEXT.match(plain, word.end)
        return following is None or following[1] not in _WORDS["units"]
    return _begins(word)


def _is_capitalised(word: str) -> bool:
    """`Aero`, `USB-C`, `iPhone`: an upper-case letter at the start or after small ones."""
    return any(character.isupper() for character in word) and not word[0].isdigit()


def _is_code(word: str) -> bool:
    """`AX-5400`, `7590AX`, `h264`: letters and digits, no measure such as `5GHz` or `3rd`."""
    if _SERIAL.fullmatch(word):
        return True
    has_letter = any(character.isalpha() for character in word)
    return _has_digit(word) and has_letter and not _MEASURE.fullmatch(word)


def _without_ordinary(run: list[_Word], begins_sentence: bool) -> list[_Word]:
    """The run without ordinary words at its ends, which are capitalised for other reasons."""
    first = int(begins_sentence and len(run) > 1 and run[0].bare in _WORDS["requests"])
    while first < len(run) and run[first].bare in _COMMON:
        first += 1
    last = len(run)
    while last > first and run[last - 1].bare in _COMMON:
        last -= 1
    words = run[first:last]
    # After such a word the number belonged to it: `Page 5`, `March 2024`.
    while words and first and _NUMBER.fullmatch(words[0].bare):
        words = words[1:]
    alone = len(words) == 1 and first == 0 and begins_sentence
    return [] if alone and not _is_code(words[0].bare) and not _is_mixed(words[0].bare) else words


def _is_mixed(word: str) -> bool:
    """`iPhone`, `FritzBox`: capitals inside, as no ordinary word has them at a sentence's start."""
    return any(a.islower() and b.isupper() for a, b in pairwise(word))


def _is_name(words: list[_Word], *, singles: bool) -> bool:
    if all(word.bare in _WORDS["generic"] for word in words):
        return False
    if len(words) > 1:
        return singles or any(_has_digit(word.bare) for word in words)
    word = words[0].bare
    if _is_code(word) or _VERSION.fullmatch(word) or _is_mixed(word):
        return True
    return singles and len(word) > 1


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


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
