"""What depends on a language: one file for each, and one line here."""

from rag.text.languages.language import Language, any_of, read_language

ENGLISH = read_language("en")
GERMAN = read_language("de")
LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)


def all_words(field: str) -> frozenset[str]:
    """What any language has of a class of words."""
    return frozenset[str]().union(*(getattr(language, field) for language in LANGUAGES))


def told(field: str) -> str:
    """What any language has for it, as one pattern."""
    return "|".join(getattr(language, field).joined for language in LANGUAGES)


__all__ = ["ENGLISH", "GERMAN", "LANGUAGES", "Language", "all_words", "any_of", "told"]
