"""Brackets that a writer set directly after a word: `within five days[3].`

Many models write so. By the grammar such a bracket may be an index, and is no marker; a blank
before it makes it one.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

_NUMBERS = r"\d{1,6}(?:[ ]?[,–-][ ]?\d{1,6})*"
_BRACKETS = re.compile(rf"(?<=[A-Za-z0-9])(?:\[{_NUMBERS}\])+(?=[\s.,;:!?)\"'”’»*|]|\Z)")
_NUMBER = re.compile(r"\d+")
# What prose has before a citation: a word, or a figure with its unit; no `a`, `x_1` or `obj.list`.
_PROSE = re.compile(
    r"(?:^|[\s(\"'“‘’*–—-])(?:[A-Za-z]{2,}|\d+(?:[.,:/]\d+)*[ ]?[A-Za-z]{0,4}|[A-Z0-9]{2,})$"
)
_LOOK_BACK = 40


@dataclass(frozen=True, slots=True)
class Glued:
    """Where such brackets stand in a text, several in a row as one."""

    start: int
    end: int


def find_glued(text: str, numbers: Collection[int]) -> list[Glued]:
    """Those after a word of prose that name none but these numbers."""
    return [
        Glued(found.start(), found.end())
        for found in _BRACKETS.finditer(text)
        if all(int(number) in numbers for number in _NUMBER.findall(found[0]))
        and _PROSE.search(text[max(0, found.start() - _LOOK_BACK) : found.start()])
    ]


def set_off(text: str, places: Sequence[Glued]) -> str:
    """The text with a blank before each of these brackets."""
    starts = [0, *(place.start for place in places), len(text)]
    return " ".join(text[a:b] for a, b in pairwise(starts))
