"""What depends on a language: one file for each, and one line here."""

from typing import Any

from rag.text.languages.language import Language, any_of, read_language

ENGLISH = read_language("en")
GERMAN = read_language("de")
LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)


def all_words(field: str) -> frozenset[str]:
    """What any language has of a class of words."""
    return frozenset[str]().union(*(getattr(language, field) for language in LANGUAGES))


def all_meanings(field: str) -> dict[str, Any]:
    """What the expressions of a class stand for, in any language."""
    return {each: of for one in LANGUAGES for each, of in getattr(one, field).items()}


def told(field: str) -> str:
    """What any language has for it, as one pattern."""
    return "|".join(getattr(language, field).joined for language in LANGUAGES)


__all__ = [
    "ENGLISH",
    "GERMAN",
    "LANGUAGES",
    "Language",
    "all_meanings",
    "all_words",
    "any_of",
    "told",
]
