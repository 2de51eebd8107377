"""What depends on a language: its words lie in a file for each."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any


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
    text = files("rag.language.languages").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_language(code: str) -> Language:
    """A language from its file."""
    told = read_lists(code)
    for section, read in (
        ("words", words), ("groups", _groups), ("meanings", meanings), ("patterns", any_pattern)
    ):  # fmt: skip
        told[section] = {name: read(text) for name, text in told[section].items()}
    told["forms"] = _forms(told["forms"], told.pop("parts"))
    return Language(**told)


def _forms(
    forms: Mapping[str, Sequence[str]], parts: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """With each `{part}` put in, which may have parts itself."""

    def filled(form: str) -> str:
        return re.sub(r"\{([a-z_]+)\}", lambda found: filled(parts[found[1]]), form)

    return {kind: tuple(map(filled, each)) for kind, each in forms.items()}


def words(text: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(text.split())


def _groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Expressions have commas between, groups of them semicolons."""
    groups = (group.split(",") for group in text.split(";"))
    return tuple(tuple(" ".join(each.split()) for each in group) for group in groups)


def meanings(text: str) -> dict[str, Any]:
    """Groups of expressions, each behind a colon and what they stand for, a number or a sign."""
    found: dict[str, Any] = {}
    for group in text.split(";"):
        value, _, told = group.partition(":")
        value = value.strip()
        is_number = re.fullmatch(r"-?\d[\d./]*", value)
        meant = int(value) if value.isdigit() else float(Fraction(value)) if is_number else value
        found |= dict.fromkeys(_groups(told)[0], meant)
    return found


def any_pattern(text: str) -> str:
    """The patterns of some lines as one."""
    return "|".join(text.split("\n")).strip("|")


def any_of(words: Iterable[str]) -> str:
    """A pattern that matches any of some words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _codes() -> list[str]:
    """A language is a file whose name has two letters."""
    names = (path.name.removesuffix(".toml") for path in files("rag.language.languages").iterdir())
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


def all_expressions(name: str) -> tuple[str, ...]:
    """What any language has of a class of expressions."""
    return tuple(each for one in LANGUAGES for group in one.groups[name] for each in group)


def all_meanings(name: str) -> dict[str, Any]:
    """What the expressions of a class stand for, in any language."""
    return {
        each: of
        for one in LANGUAGES
        for each, of in one.meanings[name].items()
        if each not in one.words["only_in_it"]
    }


def phrases(name: str) -> str:
    """What any language has for it, as one pattern."""
    return "|".join(filter(None, (language.patterns[name] for language in LANGUAGES)))
