"""Stems by Snowball's rules, for any number of threads."""

from functools import lru_cache
from threading import Lock
from typing import Any

import snowballstemmer

_stemmers: dict[str, Any] = {}
_turn = Lock()
REMEMBERED = 50_000  # words: a search reads the same ones in chunk after chunk


@lru_cache(REMEMBERED)
def stem_of(word: str, rules: str) -> str:
    """The stem of a word in lower case, by the rules of this name.

    A stemmer keeps the word that it works on in itself: two threads in one would mix their words,
    and what came of that would be remembered.
    """
    with _turn:
        if rules not in _stemmers:
            _stemmers[rules] = snowballstemmer.stemmer(rules)
        return str(_stemmers[rules].stemWord(word))
