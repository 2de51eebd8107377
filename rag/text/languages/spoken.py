"""Which language a text is surely in: for telling people, not for reading it."""

import re

from rag.text.languages import ENGLISH, GERMAN
from rag.text.languages.language import words

_USUAL = {
    "en": ENGLISH.function_words | ENGLISH.question_words,
    "de": GERMAN.function_words | GERMAN.question_words,
    "fr": words("le les des est dans pour que qui quel quelle sur avec une du au aux pas comment"),
    "es": words("el los las del es en por que qué cómo cuál una con para se dónde cuánto son"),
    "it": words("il lo gli della di che è per come quale una con sono nel dove quanto del"),
    "nl": words("het een van en op voor hoe wat welke zijn niet met wanneer kan ik waar aan"),
    "pt": words("os da do das dos é em que como qual uma com para são não onde quanto no na"),
}
_WORD = re.compile(r"[^\W\d_]+")
_READ = 2_000  # characters
_SURELY = 2  # usual words of it


def spoken(text: str) -> str:
    """The code of a language; "" where too few of its own words tell."""
    said = _WORD.findall(text[:_READ].casefold())
    counts = {code: sum(map(usual.__contains__, said)) for code, usual in _USUAL.items()}
    best, second = sorted(counts, key=lambda code: -counts[code])[:2]
    return best if counts[best] >= max(_SURELY, counts[second] + 1) else ""
