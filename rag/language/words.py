"""The word lists of the known languages, and the tokens of a text.

The list of related words was written by `python -m benchmarks.related`; nothing is embedded here.
"""

import re
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, wraps
from importlib.resources import files
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

LISTS = files("rag.language") / "languages"


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The words of a language, in lower case; an expression has single blanks between its words."""

    code: str
    stemmer: str  # its name at Snowball
    decimal_point: str
    letters: str  # that tell it from others
    capitalises_nouns: bool
    words: Mapping[str, frozenset[str]]
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    meanings: Mapping[str, Mapping[str, Any]]  # of each expression
    patterns: Mapping[str, str]  # regular expressions
    speech: Mapping[str, str]  # what the product says in it
    called: Mapping[str, str]  # languages, by their code
    manners: Mapping[str, Sequence[str]]  # what asks nothing, by what is said to it
    forms: Mapping[str, Sequence[str]]  # of questions about the library

    @property
    def function_words(self) -> frozenset[str]:
        """Words that say nothing about the topic of a text."""
        return self.words["function_words"]

    @property
    def telling_words(self) -> frozenset[str]:
        """Function words that distinguish this language from others."""
        return self.function_words - self.words["only_in_it"]


def read_lists(name: str) -> dict[str, Any]:
    """Read a file of word lists."""
    text = (LISTS / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_language(code: str) -> Language:
    """Read a language from its file."""
    lists = read_lists(code)
    readers = {
        "words": words,
        "groups": _read_groups,
        "meanings": meanings,
        "patterns": any_pattern,
    }
    for section, read in readers.items():
        lists[section] = {name: read(text) for name, text in lists[section].items()}
    parts = lists.pop("parts")

    def filled(form: str) -> str:
        """Return the form with each `{part}` replaced; parts may contain parts."""
        return re.sub(r"\{([a-z_]+)\}", lambda match: filled(parts[match[1]]), form)

    lists["forms"] = {kind: tuple(map(filled, forms)) for kind, forms in lists["forms"].items()}
    return Language(**lists)


def words(text: str) -> frozenset[str]:
    """Return the set of words in a text separated by blanks."""
    return frozenset(text.split())


def _read_groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Read groups of expressions: commas part expressions, semicolons part groups."""
    groups = (group.split(",") for group in text.split(";"))
    return tuple(tuple(" ".join(one.split()) for one in group) for group in groups)


def meanings(text: str) -> dict[str, Any]:
    """Read groups of expressions, each after its meaning, a number or a sign, and a colon."""
    results: dict[str, Any] = {}
    for group in text.split(";"):
        value, _, expressions = group.partition(":")
        value = value.strip()
        is_number = re.fullmatch(r"-?\d[\d./]*", value)
        meaning = int(value) if value.isdigit() else float(Fraction(value)) if is_number else value
        results |= dict.fromkeys(_read_groups(expressions)[0], meaning)
    return results


def any_pattern(text: str) -> str:
    """Join the patterns of several lines into one."""
    return "|".join(text.split("\n")).strip("|")


def any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


# Files whose names have two letters are languages.
_CODES = sorted(path.name[:2] for path in LISTS.iterdir() if re.fullmatch(r"..\.toml", path.name))
ENGLISH = read_language("en")
LANGUAGES: tuple[Language, ...] = (
    ENGLISH, *(read_language(code) for code in _CODES if code != ENGLISH.code)
)  # fmt: skip


def all_words(name: str) -> frozenset[str]:
    """Return the words of a class in all languages, without those that others read differently."""
    return frozenset[str]().union(
        *(language.words[name] - language.words["only_in_it"] for language in LANGUAGES)
    )


def all_meanings(name: str) -> dict[str, Any]:
    """Return the meanings of a class of expressions in all languages."""
    return {
        words: meaning
        for language in LANGUAGES
        for words, meaning in language.meanings[name].items()
        if words not in language.words["only_in_it"]
    }


def phrases(name: str) -> str:
    """Return the patterns of this name in all languages as one pattern."""
    return "|".join(filter(None, (language.patterns[name] for language in LANGUAGES)))


# ── Which language a text is surely in: for telling people, not for reading it ────────────────────

_SPOKEN = read_lists("spoken")
_USUAL: dict[str, frozenset[str]] = {
    language.code: language.function_words | language.words["question_words"]
    for language in LANGUAGES
} | {code: words(usual) for code, usual in _SPOKEN["usual"].items()}
_ASKS: dict[str, frozenset[str]] = {
    code: words(openers) for code, openers in _SPOKEN["asks"].items()
}
_SCRIPTS: dict[str, str] = _SPOKEN["scripts"]
_WORD = re.compile(r"[^\W\d_]+")
_READ = 2_000  # characters
_SURELY = 2  # usual words of it
_WRITTEN_IN = 0.25  # share of the letters; product names are in Latin ones


def spoken(text: str) -> str:
    """Return the code of a text's language or of a shared script; "" if neither is sure."""
    lowered = _WORD.findall(text[:_READ].casefold())
    if not text.isascii() and (script := _script("".join(lowered))):
        return script
    counts = {code: sum(map(usual.__contains__, lowered)) for code, usual in _USUAL.items()}
    best, second = sorted(counts, key=lambda code: -counts[code])[:2]
    if counts[best] >= max(_SURELY, counts[second] + 1):
        return best
    asks = [code for code, openers in _ASKS.items() if lowered and lowered[0] in openers]
    return asks[0] if len(asks) == 1 and sum(counts.values()) <= counts[asks[0]] else ""


def _script(letters: str) -> str:
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    counts = Counter(filter(None, map(_SCRIPTS.get, names)))
    if not counts or counts.total() < _WRITTEN_IN * len(letters):
        return ""
    # Kana decide for Japanese, as it writes Han, too.
    return "ja" if counts["ja"] else counts.most_common(1)[0][0]


STOP_WORDS = all_words("function_words")
QUESTION_WORDS = all_words("question_words")

_TOKEN = re.compile(
    r"(?:[^\W\d_]\.){2,}"  # e.g., z.B.
    r"|[^\W_]+(?:[.,:/-](?=\d)[^\W_]+)*\+?(?:['’][^\W_]+)?"
)
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_POSSESSIVE = re.compile(r"['’]s?$")
_RULES = {language.code: language.stemmer for language in LANGUAGES}
_stemmers: dict[str, Any] = {}
_turn = Lock()
REMEMBERED = 50_000  # words: a search reads the same ones in chunk after chunk
_LEAST_LEAD = 1  # by so many function words more, a text is taken for a language
_SURE = 2  # … whatever stands around it

Read = TypeVar("Read")
MOST_TEXTS = 2048
LONGEST = 8_000  # characters: what is longer is read again


def memoised(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """Cache a function of a text alone, whose results nobody changes."""
    cached = lru_cache(MOST_TEXTS)(read)

    @wraps(read)
    def read_once(text: str) -> Read:
        return cached(text) if len(text) <= LONGEST else read(text)

    return read_once


class Token(NamedTuple):
    """A word at its place: `text[start:end]`."""

    text: str
    start: int
    end: int

    @property
    def lowered(self) -> str:
        return self.text.lower().replace("’", "'")


def tokens(text: str) -> Iterator[Token]:
    """Yield the words and figures of a text in order."""
    return (Token(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text))


def language_of(text: str, *around: str) -> Language:
    """Return the language that most function words of a text belong to, by default English.

    A short text may hold a function word of another language by chance ("aero 5 pro warranty"):
    where a text has too few, the texts `around` it decide, such as the last question or the
    passages found: alone, or together with the text.
    """
    language, is_sure = _tell_language(text)
    if is_sure:
        return language
    others = (_tell_language(one) for other in around for one in (other, f"{text} {other}"))
    return next((other for other, is_sure in others if is_sure), language)


@lru_cache(maxsize=4096)
def _tell_language(text: str) -> tuple[Language, bool]:
    """Return a text's language, and whether several words or a question word show it."""
    begun = text[:4000]
    lowered = [token.lowered for token in tokens(begun) if not _is_in_a_name(begun, token.start)]
    letters = Counter(begun.lower())
    scores = {
        language: len(language.telling_words.intersection(lowered))
        + sum(letters[one] for one in language.letters)
        for language in LANGUAGES
    }
    best = max(LANGUAGES, key=lambda language: scores[language])
    best = best if scores[best] >= scores[ENGLISH] + _LEAST_LEAD else ENGLISH
    others = max(score for language, score in scores.items() if language is not best)
    asks = bool(lowered) and lowered[0] in best.words["question_words"]
    return best, asks or scores[best] >= others + _SURE


def _is_in_a_name(text: str, start: int) -> bool:
    """Whether a word is capitalised within a sentence: `Pro` of `Aero 5 Pro` is no German."""
    if not text[start].isupper():
        return False
    before = text[:start].rstrip(" \n*#>-")
    return bool(before) and before[-1] not in '.!?:"„“«»'


@lru_cache(REMEMBERED)
def stem_of(word: str, rules: str) -> str:
    """Return the stem of a lower-case word by the Snowball rules of this name.

    A stemmer keeps the word that it works on in itself: two threads using one would mix their
    words, and the wrong result would stay cached.
    """
    with _turn:
        if rules not in _stemmers:
            from snowballstemmer import stemmer  # a page is shown without it

            _stemmers[rules] = stemmer(rules)
        return str(_stemmers[rules].stemWord(word))


@lru_cache(REMEMBERED)
def stem(word: str, code: str = "en") -> str:
    """Return the word without its endings: `charges` and `charging` have the same stem."""
    return stem_of(_POSSESSIVE.sub("", word.lower()), _RULES[code])


@lru_cache(maxsize=8192)
def content_words(text: str, language: Language | None = None) -> tuple[str, ...]:
    """Return the stems of all content words in order, without figures.

    In a script without blanks, pairs of letters stand for words.
    """
    spoken = language or language_of(text)
    results: list[str] = []
    for token in tokens(text):
        before, _, behind = token.lowered.partition("'")  # `l'appareil` is `appareil`
        lowered = behind if behind and before in spoken.words["elided"] else token.lowered
        if UNSPACED.search(lowered):
            results.extend(map("".join, pairwise(lowered)) if len(lowered) > 1 else [lowered])
        elif len(lowered) > 1 and not lowered[0].isdigit():
            results += [] if is_function_word(lowered, spoken) else [stem(lowered, spoken.code)]
    return tuple(results)


def is_function_word(lowered: str, language: Language = ENGLISH) -> bool:
    """Whether a word says nothing about the topic of a text: `of`, `won't`, `it's`."""
    return (
        lowered in STOP_WORDS
        or lowered in language.function_words
        or lowered.endswith("n't")
        or lowered.partition("'")[0] in STOP_WORDS
    )


def terms(text: str) -> frozenset[str]:
    """Return the distinct stems of the content words."""
    return frozenset(content_words(text))


@cache
def _synonym_stems() -> dict[str, str]:
    return {
        stem(word, language.code): stem(group[0], language.code)
        for language in LANGUAGES
        for group in language.groups["synonyms"]
        for word in group
        if " " not in word
    }


@cache
def _stem_groups() -> dict[str, frozenset[str]]:
    results = defaultdict[str, set[str]](set)
    for word, one in _synonym_stems().items():
        results[one] |= {one, word}
    return {one: frozenset(group) for one, group in results.items()}


def alike(word: str) -> frozenset[str]:
    """Return the stems of words with the same or a similar meaning, without the word itself."""
    one = canonical(word)
    near = (like for other in {one, *related(one)} for like in _stem_groups().get(other, {other}))
    return frozenset(near) - {word}


def canonical(word: str) -> str:
    """Return the stem that stands for all stems of its group of synonyms."""
    return _synonym_stems().get(word, word)


@cache
def _related_words() -> dict[str, frozenset[str]]:
    """Return the related words in both directions, by the stems that stand for their groups."""
    results = defaultdict[str, set[str]](set)
    lines = (LISTS / "en_related.txt").read_text(encoding="utf-8")
    for line in lines.splitlines():
        one, *others = map(canonical, line.split())
        results[one].update(others)
        for other in others:
            results[other].add(one)
    return {one: frozenset(others - {one} - alternatives(one)) for one, others in results.items()}


def alternatives(word: str) -> frozenset[str]:
    """Return the words that this one excludes, such as other days or colours, and their stems."""
    return _alternatives().get(word, frozenset())


@cache
def _alternatives() -> dict[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for language in LANGUAGES:
        for group in language.groups["alternatives"]:
            every = frozenset(group) | {stem(word, language.code) for word in group}
            for word in group:
                for form in (word, stem(word, language.code)):
                    # `April` is a month in more than one language
                    results[form] = results.get(form, frozenset()) | every - {word}
    return results


def related(word: str) -> frozenset[str]:
    """Return the words with a similar meaning."""
    return _related_words().get(word, frozenset())


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return the stems with the opposite meaning, by stem."""
    results = defaultdict[str, set[str]](set)
    for language in LANGUAGES:
        for pair in language.groups["opposites"]:
            one, other = ({word, canonical(stem(word, language.code))} for word in pair)
            for word in one:
                results[word] |= other
            for word in other:
                results[word] |= one
    return {one: frozenset(others) for one, others in results.items()}
