"""Which language a text is surely in: for telling people, not for reading it."""

import re
import unicodedata
from collections import Counter

from rag.language.languages import LANGUAGES, read_lists, words

_TOLD = read_lists("spoken")
_USUAL: dict[str, frozenset[str]] = {
    language.code: language.function_words | language.words["question_words"]
    for language in LANGUAGES
} | {code: words(usual) for code, usual in _TOLD["usual"].items()}
_ASKS: dict[str, frozenset[str]] = {code: words(openers) for code, openers in _TOLD["asks"].items()}
_SCRIPTS: dict[str, str] = _TOLD["scripts"]
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
    # Kana decide for Japanese, as it writes Han, too.
    return "ja" if counts["ja"] else counts.most_common(1)[0][0]
