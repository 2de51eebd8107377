"""Texts as terms that can be compared: stems of the words that carry meaning, and figures."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from rag.text.words import STOP_WORDS, UNSPACED, stem, tokens

# What tables and texts call by several words, by their stems.
_SAME = {
    "weigh": "weight",
    "cost": "price",
    **dict.fromkeys(("kostet", "kost"), "preis"),
    "wiegt": "gewicht",
}
# What is asked for by an adjective: in a text the same word says something else (heavy curtains).
_ASKED_BY = {
    **dict.fromkeys(("heavi", "heavier"), "weight"),
    **dict.fromkeys(("expens", "cheap", "cheaper"), "price"),
    **dict.fromkeys(("teuer", "billig"), "preis"),
    "schwer": "gewicht",
}


@lru_cache(maxsize=8192)
def terms(text: str, code: str) -> frozenset[str]:
    """The distinct terms of a text; pairs of letters where there are no blanks."""
    return frozenset(_in_order(text, code))


def asked_terms(question: str, code: str) -> frozenset[str]:
    """The distinct terms of a question, as texts that answer it have them."""
    return frozenset(_ASKED_BY.get(each, each) for each in terms(question, code))


def _in_order(text: str, code: str) -> Iterator[str]:
    for token in tokens(text):
        lowered = token.lowered
        if UNSPACED.search(lowered):
            yield from (a + b for a, b in pairwise(lowered))
        elif any(map(str.isdigit, lowered)):
            yield lowered
        elif lowered not in STOP_WORDS:
            stemmed = stem(lowered, code)
            yield _SAME.get(stemmed, stemmed)
