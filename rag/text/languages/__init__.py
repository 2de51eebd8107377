"""What depends on a language: one file for each, and one line here."""

from rag.text.languages.language import Language, any_of, read_language

ENGLISH = read_language("en")
GERMAN = read_language("de")
LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)


def told(field: str) -> str:
    """What any language has for it, as one pattern."""
    return "|".join(getattr(language, field).joined for language in LANGUAGES)


__all__ = ["ENGLISH", "GERMAN", "LANGUAGES", "Language", "any_of", "told"]
