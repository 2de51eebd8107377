"""Codes, part and article numbers, error codes, versions: what is looked up sign by sign.

One is at least five signs of letters and digits, eight digits, or digits with two stops between
them. Capitals, hyphens and the width of letters tell none from another.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

MOST_SIGNS = 40  # of one; longer runs are addresses, checksums, data
LEAST_MIXED, LEAST_DIGITS = 5, 8
LONGEST_JOIN = 4  # pieces of a question that may be one code: `KH 2319 K`

_JOINT = "-_.‐-―"
_RUN = re.compile(rf"[^\W_]+(?:[{_JOINT}][^\W_]+)*")
_PIECE = re.compile(r"[^\W_]+")
_VERSION = re.compile(r"v?(\d+(?:\.\d+){2,})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Identifier:
    """One, as it is compared and as it was written."""

    code: str
    written: str


def identifiers(text: str) -> list[Identifier]:
    """Those of a document's text, each once."""
    results: dict[str, Identifier] = {}
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        code = code_of(run)
        if code:
            results.setdefault(code, Identifier(code, run))
    return list(results.values())


def asked_identifiers(question: str) -> list[list[Identifier]]:
    """Those of a question: for each, what it may be meant for, the longest first.

    A question writes `KH 2319 K` with blanks, and a German one ties the code to a word:
    `KH-2319-K-Ventil`.
    """
    text = unicodedata.normalize("NFKC", question)
    found, covered = [], 0
    pieces = list(_PIECE.finditer(text))
    for place, first in enumerate(pieces):
        if first.start() < covered:
            continue
        choices = list(_choices(text, pieces[place : place + LONGEST_JOIN]))
        own = [each for each, _ in choices]
        if own:
            found.append(own)
            covered = max(end for each, end in choices if each is own[0])
    return found


def _choices(text: str, pieces: list[re.Match[str]]) -> Iterator[tuple[Identifier, int]]:
    for count in range(len(pieces), 0, -1):
        written = text[pieces[0].start() : pieces[count - 1].end()]
        gaps = {text[a.end() : b.start()] for a, b in pairwise(pieces[:count])}
        if all(len(gap) == 1 and (gap == " " or re.match(f"[{_JOINT}]", gap)) for gap in gaps):
            code = code_of(written.replace(" ", "-"))
            if code and (" " not in written or _is_tied(written)):
                yield Identifier(code, written), pieces[count - 1].end()


def _is_tied(written: str) -> bool:
    """Whether pieces with blanks between them are one code: short, and most of them of capitals."""
    pieces = written.split(" ")
    return all(any(map(str.isdigit, piece)) or piece.isupper() for piece in pieces)


def code_of(run: str) -> str:
    """How a run of signs is compared; nothing for one that is no identifier."""
    version = _VERSION.fullmatch(run)
    if version:
        return version[1]
    code = "".join(_PIECE.findall(run)).casefold()
    has_digit = any(map(str.isdigit, code))
    least = LEAST_MIXED if has_digit and any(map(str.isalpha, code)) else LEAST_DIGITS
    return code if has_digit and least <= len(code) <= MOST_SIGNS else ""
