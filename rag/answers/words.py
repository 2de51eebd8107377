"""Texts as terms that can be compared: stems of the words that carry meaning."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

_CODE = r"(?=\S*\d)[^\W_]+(?:[-./][^\W_]+)+"  # `E-23`, `3.4.2`, `802.11ax`: one term
_WORD = re.compile(rf"{_CODE}|\d+(?:[.,]\d+)*|[^\W_]+(?:['’][^\W_]+)?")
_SPELLED = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=\d)['’]s\b")  # `the Aero 4's successor`
_IS_CODE = re.compile(r"^(?=\S*\d)\S*[^\W\d]\S*$|\d[-./]")
_CODE_WEIGHT = 3.0  # who names a code or a version means that one
_LETTERS = re.compile(r"[^\W\d_]{3,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f\uac00-\ud7af]+")
_STOP_WORDS = """
    a about above after all also am an and any are as at be because been before being below between
    both but by can could did do does doing done down during each for from further get give had has
    have having he her here hers him his how i if in into is it its just let like many may me might
    mine more most much must my no nor not of off on once only or other ought our ours out over own
    per please same shall she should so some such tell than that the their them then there these
    they this those through to too under until up upon us very was we were what when where whether
    which while who whom whose why will with within would you your yours
    compare describe explain find list name show
    aus auf bei das dem den der des die ein eine einem einen einer eines er es für ich ihr im in ist
    kann mit nach oder sie sind und von wann war warum was wer wie wir wo zu
"""
_STOP = frozenset(_STOP_WORDS.split())
# Of questions only; others, such as `not` and `before`, tell one answer from another.
_QUESTION_WORDS = """
    how long what which who whose whom where when why is are was were do does did can could may
    should will would has have many much i we you my your it a an the
"""
QUESTION_WORDS = frozenset(_QUESTION_WORDS.split())
_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "edly", "ies", "ied", "ers", "ed", "es")
_SHORT_ENDINGS = ("er", "ly", "s", "e", "y")


# What questions call by another word than tables and texts do.
_PRICE = ("cost", "expens", "expensiv", "cheap", "kostet", "kosten", "preis", "teur", "billig")
_WEIGHT = ("weight", "heav", "heavi", "heaviest", "wiegt", "gewicht", "schw", "schwer")
_SAME = {
    **dict.fromkeys(_PRICE, "pric"),
    **dict.fromkeys(_WEIGHT, "weigh"),
    **dict.fromkeys(("colour", "farb"), "color"),
}


@lru_cache(maxsize=8192)
def terms(text: str) -> frozenset[str]:
    """The distinct terms of a text; pairs of letters where a script sets no blanks."""
    return frozenset(sequence(text))


@lru_cache(maxsize=8192)
def phrases(text: str) -> frozenset[str]:
    """The distinct pairs of terms that follow each other, stop words left out."""
    return frozenset(f"{one} {other}" for one, other in pairwise(sequence(text)))


@lru_cache(maxsize=8192)
def spelled(text: str) -> frozenset[str]:
    """The distinct words as they are written, small ones too: `recorded`, `how`."""
    return frozenset(_SPELLED.findall(text.lower()))


@lru_cache(maxsize=4096)
def sequence(text: str) -> tuple[str, ...]:
    """The terms of a text as they follow each other."""
    return tuple(_in_order(text))


def _in_order(text: str) -> Iterator[str]:
    for word in _WORD.findall(_POSSESSIVE.sub("", text.lower())):
        unspaced = _UNSPACED.findall(word)
        if unspaced:
            yield from (pair for run in unspaced for pair in _pairs(run))
        elif re.search(r"[-./]", word):
            yield word
            yield from map(stem, _LETTERS.findall(word))  # `24-port` is a port, too
        elif word not in _STOP:
            yield _SAME.get(stem(word), stem(word))


def _pairs(run: str) -> Iterable[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """The word without common endings: `charging`, `charger` and `charges` meet in `charg`."""
    word = re.sub(r"['’]s$", "", word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    for ending in _SHORT_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


class TermWeights:
    """How much each term (or phrase) of a question tells, by its rarity among some texts."""

    def __init__(self, texts: Iterable[frozenset[str]]) -> None:
        counts: Counter[str] = Counter()
        self._size = 0
        for found in texts:
            counts.update(found)
            self._size += 1
        self._counts: Mapping[str, int] = counts

    def of(self, term: str) -> float:
        """Inverse document frequency; a term that no text holds weighs most."""
        count = self._counts.get(term, 0)
        rarity = math.log(1 + (self._size - count + 0.5) / (count + 0.5))
        return rarity * (_CODE_WEIGHT if _IS_CODE.search(term) else 1.0)

    def coverage(self, wanted: frozenset[str], held: frozenset[str]) -> float:
        """The share of the wanted terms that is held, by weight: 0 to 1."""
        total = sum(map(self.of, wanted))
        return sum(map(self.of, wanted & held)) / total if total else 0.0
