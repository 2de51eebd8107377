"""What depends on a language: one file for each, and one line here."""

from rag.text.languages.de import GERMAN
from rag.text.languages.en import ENGLISH
from rag.text.languages.language import Language, any_of

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)

__all__ = ["ENGLISH", "GERMAN", "LANGUAGES", "Language", "any_of"]
