"""When two names are of one thing, and when of two of one family."""

import re
from collections.abc import Sequence
from functools import lru_cache

from rag.language.names import VARIANTS

_NAME_WORD = re.compile(r"[^\W_]+|\+")
_SHORTEST_WORD = 3  # letters; what is shorter tells a model from another: `Amp 50 BT`


@lru_cache(maxsize=16384)
def name_words(name: str) -> tuple[str, ...]:
    """The words of a name, with the sign that tells a model from another."""
    return tuple(_NAME_WORD.findall(name.lower()))


@lru_cache(maxsize=16384)
def same_name(said: str, there: str) -> bool:
    """The whole name, or its end: `One+` may stand for `Cantoro One+`, `Aero 5` not for
    `Aero 5 Pro`."""
    one, other = name_words(said), name_words(there)
    short, long = sorted((one, other), key=len)
    return bool(short) and long[-len(short) :] == short


@lru_cache(maxsize=16384)
def are_siblings(said: str, there: str) -> bool:
    """Names of two things of one family, such as `Aero 5` and `Aero 5 Pro`: what they begin with
    is the same, and all that they differ in tells a model from another."""
    one, other = name_words(said), name_words(there)
    if same_name(said, there):
        return False
    shared = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if shared is None:  # one goes on where the other ends: `Étude ANC 1.9.2` is an `Étude ANC`
        shared = min(len(one), len(other))
    apart = (*one[shared:], *other[shared:])
    return shared > 0 and min(len(one), len(other)) > 1 and all(map(_tells_a_model, apart))


def _tells_a_model(word: str) -> bool:
    return word in VARIANTS or len(word) < _SHORTEST_WORD or any(map(str.isdigit, word))


def names_agree(said: Sequence[str], there: Sequence[str]) -> float:
    """1: each is named there, or none is said or told; less where only siblings are named."""
    if not said or not there:
        return 0.0
    if any(same_name(one, other) for one in said for other in there):
        return 1.0
    if any(are_siblings(one, other) for one in said for other in there):
        return -1.0
    return 0.0
