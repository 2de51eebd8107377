"""Which language a text is surely in: for telling people, not for reading it."""

import re
import unicodedata
from collections import Counter

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
# A question that opens with one of these, and has no usual word of another language, is in its own.
_ASKS = {
    "fr": words("combien comment pourquoi quand où quel quelle quels quelles qui"),
    "es": words("cuánto cuánta cuántos cuántas cuál cuáles cómo dónde cuándo qué quién"),
    "it": words("quanto quanta quanti quante quale quali come dove quando chi perché cosa"),
    "nl": words("hoeveel welke hoe waar wanneer waarom"),
    "pt": words("quanto quanta quantos quantas qual quais como onde quando quem"),
}
# By the first word of a letter's name in Unicode; kana decides for Japanese, as it writes Han, too.
_SCRIPTS = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "HANGUL": "ko",
    "THAI": "th",
    "GREEK": "el",
    "HEBREW": "he",
    "ARABIC": "arab",
    "CYRILLIC": "cyrl",
    "DEVANAGARI": "deva",
}
_WORD = re.compile(r"[^\W\d_]+")
_READ = 2_000  # characters
_SURELY = 2  # usual words of it
_WRITTEN_IN = 0.25  # share of the letters; product names are in Latin ones


def spoken(text: str) -> str:
    """The code of a language, or of letters that several use; "" where neither is sure."""
    said = _WORD.findall(text[:_READ].casefold())
    written = "" if text.isascii() else _script("".join(said))
    if written:
        return written
    counts = {code: sum(map(usual.__contains__, said)) for code, usual in _USUAL.items()}
    best, second = sorted(counts, key=lambda code: -counts[code])[:2]
    if counts[best] >= max(_SURELY, counts[second] + 1):
        return best
    asks = [code for code, openers in _ASKS.items() if said and said[0] in openers]
    return asks[0] if len(asks) == 1 and sum(counts.values()) <= counts[asks[0]] else ""


def _script(letters: str) -> str:
    names = (unicodedata.name(letter, "").split(" ")[0] for letter in letters)
    counts = Counter(filter(None, map(_SCRIPTS.get, names)))
    if not counts or counts.total() < _WRITTEN_IN * len(letters):
        return ""
    return "ja" if counts["ja"] else counts.most_common(1)[0][0]
