"""What depends on a language: its words lie in a file for each."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any

LISTS = files("rag.language") / "languages"


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """All words are in lower case; an expression is words with single blanks between."""

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
        """They tell nothing of what a text is about."""
        return self.words["function_words"]

    @property
    def telling_words(self) -> frozenset[str]:
        """Function words that tell this language from others."""
        return self.function_words - self.words["only_in_it"]


def read_lists(name: str) -> dict[str, Any]:
    """A file of lists of words."""
    text = (LISTS / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_language(code: str) -> Language:
    """A language from its file."""
    lists = read_lists(code)
    readers = {
        "words": words,
        "groups": _read_groups,
        "meanings": meanings,
        "patterns": any_pattern,
    }
    for section, read in readers.items():
        lists[section] = {name: read(text) for name, text in lists[section].items()}
    lists["forms"] = _forms(lists["forms"], lists.pop("parts"))
    return Language(**lists)


def _forms(
    forms: Mapping[str, Sequence[str]], parts: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """With each `{part}` put in, which may have parts itself."""

    def filled(form: str) -> str:
        return re.sub(r"\{([a-z_]+)\}", lambda match: filled(parts[match[1]]), form)

    return {kind: tuple(map(filled, some)) for kind, some in forms.items()}


def words(text: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(text.split())


def _read_groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Expressions have commas between, groups of them semicolons."""
    groups = (group.split(",") for group in text.split(";"))
    return tuple(tuple(" ".join(one.split()) for one in group) for group in groups)


def meanings(text: str) -> dict[str, Any]:
    """Groups of expressions, each behind a colon and what they stand for, a number or a sign."""
    results: dict[str, Any] = {}
    for group in text.split(";"):
        value, _, expressions = group.partition(":")
        value = value.strip()
        is_number = re.fullmatch(r"-?\d[\d./]*", value)
        meaning = int(value) if value.isdigit() else float(Fraction(value)) if is_number else value
        results |= dict.fromkeys(_read_groups(expressions)[0], meaning)
    return results


def any_pattern(text: str) -> str:
    """The patterns of some lines as one."""
    return "|".join(text.split("\n")).strip("|")


def any_of(words: Iterable[str]) -> str:
    """A pattern that matches any of some words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _codes() -> list[str]:
    """A language is a file whose name has two letters."""
    names = (path.name.removesuffix(".toml") for path in LISTS.iterdir())
    return sorted(name for name in names if len(name) == 2)


ENGLISH = read_language("en")
LANGUAGES: tuple[Language, ...] = (
    ENGLISH, *(read_language(code) for code in _codes() if code != ENGLISH.code)
)  # fmt: skip


def all_words(name: str) -> frozenset[str]:
    """What any language has of a class of words, but for what means something else in another."""
    return frozenset[str]().union(
        *(language.words[name] - language.words["only_in_it"] for language in LANGUAGES)
    )


def all_meanings(name: str) -> dict[str, Any]:
    """What the expressions of a class stand for, in any language."""
    return {
        words: meaning
        for language in LANGUAGES
        for words, meaning in language.meanings[name].items()
        if words not in language.words["only_in_it"]
    }


def phrases(name: str) -> str:
    """What any language has for it, as one pattern."""
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
    """The code of a language, or of letters that several use; "" where neither is sure."""
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
