"""How far a source carries a statement, told from words, figures, names and meaning."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rag.records import Source
from rag.text.sentences import split_sentences

_TOKEN = re.compile(r"[^\W_]+(?:[.,:]\d+)*(?:['’][^\W_]+)?")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_AMOUNT = re.compile(r"(\d[\d.,:]*)[^\W\d_]{0,5}$")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|without|cannot|neither|nor|nothing|unable|nicht|kein\w*|ohne|nie|"
    r"ne|pas|sans|jamais|nunca|non|senza)\b|n[’']t\b|不|没|無|ない",
    re.IGNORECASE,
)
_COMMON_WORDS = """
    a about according after all also an and any are as at be because been being both but by can
    could did do does document documents during each either for from had has have having he her his
    how i if in into is it its just may might more most must my no not of on once only or other our
    out over own per she should so some source sources states such than that the their them then
    there these they this those through to too under until up upon use used using very was we were
    what when where which while who whose why will with within would you your
    aber als auch auf aus bei das dem den der des die durch ein eine einem einen einer es für hat im
    in ist man mit nach oder sich sie sind und um von vor werden wird zu zum zur
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_SPELLED = {
    word: str(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=2
    )
}
_BEST = 2  # windows of a source that are looked at closely
_ENDINGS = ("ations", "ation", "ingly", "ings", "ing", "ies", "ied", "edly", "ely", "es", "ed")
_SHORT_ENDINGS = ("ly", "s", "e", "y", "t")


@dataclass(frozen=True, slots=True)
class Reading:
    """What can be compared of a text."""

    words: frozenset[str]  # stems of the words that carry meaning, names among them
    figures: frozenset[str]  # values without their units, and model codes
    names: frozenset[str]  # stems of capitalised words inside sentences
    negated: bool


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Read a text without markers: a marker's number would be taken for a figure."""
    words: set[str] = set()
    figures: set[str] = set()
    names: set[str] = set()
    for position, found in enumerate(_TOKEN.finditer(text)):
        token = found.group()
        lowered = token.lower()
        if any(map(str.isdigit, token)):
            figures.add(_figure(token))
        if _UNSPACED.search(token):
            words.update(_pairs(token))
        elif lowered in _SPELLED:
            figures.add(_SPELLED[lowered])
        elif lowered not in _COMMON and not token.isdigit():
            word = stem(lowered)
            words.add(word)
            if token[0].isupper() and position:
                names.add(word)
    return Reading(
        frozenset(words), frozenset(figures), frozenset(names), bool(_NEGATION.search(text))
    )


def _figure(token: str) -> str:
    """The value of an amount, so that `1,200 g` and `1200g` agree; of a model code, all of it."""
    found = _AMOUNT.match(_GROUPED.sub("", token))
    return found.group(1).rstrip(".,:") if found else token.lower()


def _pairs(run: str) -> Iterable[str]:
    """Pairs of characters stand for words where none are set apart."""
    return (a + b for a, b in pairwise(run)) if len(run) > 1 else (run,)


def stem(word: str) -> str:
    """The word without the commonest endings: `charges` and `charging` meet."""
    word = word.removesuffix("'s").removesuffix("’s")
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    for ending in _SHORT_ENDINGS:
        if word.endswith(ending) and len(word) > 3:
            return word[:-1]
    return word


@dataclass(frozen=True, slots=True)
class Window:
    """One or two sentences of a source."""

    text: str
    reading: Reading


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against a source; shares are from 0 to 1."""

    here: float  # words of the statement in the best window
    anywhere: float  # … in the whole passage
    rival: float  # … in the best window of the best other source, as far as it is better
    missing_figures: float  # 0: the passage has every figure of the statement; else 0.5 to 1
    missing_names: float
    negation: float  # 1: one side is negated, the other not
    windows: tuple[str, ...]  # the best ones
    cosine: float | None = None  # of the best window


class Library:
    """The sources of one answer, read once."""

    def __init__(self, sources: Mapping[int, Source]) -> None:
        self._context = {n: read(_heading(source)) for n, source in sources.items()}
        self._windows = {n: _windows(source.passage) for n, source in sources.items()}
        self._whole = {n: _union([self._context[n], *self._readings(n)]) for n in sources}
        self._frequency = Counter(w for whole in self._whole.values() for w in whole.words)

    def _readings(self, number: int) -> list[Reading]:
        return [window.reading for window in self._windows[number]]

    def __contains__(self, number: int) -> bool:
        return number in self._whole

    def evidence(self, statement: str) -> dict[int, Evidence]:
        """Of every source for one statement."""
        said = read(statement)
        best = {n: self._best(n, said) for n in self._whole}
        tops = sorted((found[0][0] for found in best.values() if found), reverse=True)
        return {n: self._evidence(said, {n: found}, tops) for n, found in best.items()}

    def together(self, statement: str, numbers: Sequence[int]) -> Evidence:
        """Of several sources that carry a statement between them."""
        said = read(statement)
        return self._evidence(said, {n: self._best(n, said) for n in numbers}, [])

    def _weights(self, said: Reading) -> dict[str, float]:
        """Words that few of the sources have tell more."""
        count = len(self._whole)
        return {w: math.log(1 + count / (self._frequency[w] or 0.5)) for w in said.words}

    def _best(self, number: int, said: Reading) -> list[tuple[float, Window]]:
        """The best windows with the share of the statement's words in them."""
        weights = self._weights(said)
        context = self._context[number].words
        scored = [
            (_share(weights, window.reading.words | context), window)
            for window in self._windows[number]
        ]
        return sorted(scored, key=lambda pair: (-pair[0], len(pair[1].text)))[:_BEST]

    def _evidence(
        self,
        said: Reading,
        best: Mapping[int, Sequence[tuple[float, Window]]],
        tops: Sequence[float],
    ) -> Evidence:
        """`best` are windows by source, `tops` the best share of each source that was shown."""
        weights = self._weights(said)
        whole = _union([self._whole[n] for n in best])
        nearest = [found[0][1].reading for found in best.values() if found]
        around = [self._context[n] for n in best]
        here = _share(weights, _union([*around, *nearest]).words)
        return Evidence(
            here=here,
            anywhere=_share(weights, whole.words),
            rival=max(0.0, max(tops, default=0.0) - here),
            missing_figures=_wrong(_missing(said.figures, whole.figures)),
            missing_names=_missing(said.names, whole.words),
            negation=float(said.negated != _union(nearest).negated),
            windows=tuple(window.text for found in best.values() for _, window in found),
        )


def _union(readings: Sequence[Reading]) -> Reading:
    return Reading(
        frozenset().union(*(reading.words for reading in readings)),
        frozenset().union(*(reading.figures for reading in readings)),
        frozenset().union(*(reading.names for reading in readings)),
        any(reading.negated for reading in readings),
    )


def _heading(source: Source) -> str:
    return " ".join((source.document_title, *source.heading_path))


@lru_cache(maxsize=512)
def _windows(passage: str) -> tuple[Window, ...]:
    texts = [passage[span.start : span.end] for span in split_sentences(passage)]
    alone = [Window(text, read(text)) for text in texts]
    double = [
        Window(f"{a.text} {b.text}", _union([a.reading, b.reading])) for a, b in pairwise(alone)
    ]
    return tuple(alone + double)


def _share(weights: Mapping[str, float], words: frozenset[str]) -> float:
    total = sum(weights.values())
    return sum(w for word, w in weights.items() if word in words) / total if total else 0.0


def _missing(said: frozenset[str], there: frozenset[str]) -> float:
    return len(said - there) / len(said) if said else 0.0


def _wrong(missing: float) -> float:
    """One wrong figure among many right ones makes a statement wrong already."""
    return (1 + missing) / 2 if missing else 0.0
