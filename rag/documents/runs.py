"""Runs of characters with marks, as every reader finds them, and the one place that writes them.

A raised 6 behind 10 is a power, behind a unit it belongs to it, behind a word or a figure it is the
number of a note: as one string they would be another figure. What is hidden or deleted is no text.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple


class Mark(StrEnum):
    """What a format says of a run."""

    RAISED = "raised"
    LOWERED = "lowered"
    STRUCK = "struck"
    HIDDEN = "hidden"
    DELETED = "deleted"


class Run(NamedTuple):
    """Characters with the same marks."""

    text: str
    marks: frozenset[Mark] = frozenset()


NO_MARKS: frozenset[Mark] = frozenset()
UNSEEN = {Mark.HIDDEN, Mark.DELETED}
ALIGNED = {"superscript": Mark.RAISED, "subscript": Mark.LOWERED}  # as Office calls them


def marks_of(*marks: Mark | None) -> frozenset[Mark]:
    """Those that there are."""
    return frozenset(filter(None, marks))


_UNIT = re.compile(
    r"(?:^|[\s\d/·(])[ckdmµn]?(?:m|s|ft|in|yd|K|A)$"
    r"|(?:^|[\n|\d()\[\]+=*/·×<>−-]\s?)[a-z]$"  # not "option b"
)
TAIL = 20  # characters before a raised one that say what it is
_TEN = re.compile(r"(?<![\d.,])10$")
_SIGNS = str.maketrans("−–", "--")
_EXPONENT = re.compile(r"-?\d{1,3}")
_NOTE = re.compile(r"\(?(?:\d{1,3}|[a-d])\)?(?:\s?,\s?(?:\d{1,3}|[a-d]))*")
_SUPERSCRIPT = str.maketrans("123", "¹²³")


def written(runs: Iterable[Run]) -> str:
    """The text of runs: `10^6`, `30 m²`, `450 [note 1]`, `~~90 EUR~~`."""
    text, before = "", NO_MARKS
    for marks, group in groupby(runs, key=lambda run: run.marks):
        piece = "".join(run.text for run in group)
        if marks & UNSEEN or not piece:
            continue
        if Mark.STRUCK in marks and piece.strip():
            blanks = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
            piece = f"{blanks[0]}~~{piece.strip()}~~{blanks[1]}"
        if Mark.RAISED in marks:
            piece = _raised(text[-TAIL:], piece)
        elif Mark.LOWERED in marks and text[-1:].isdigit() and piece[:1].isdigit():
            piece = f"_{piece}"
        is_glued = Mark.RAISED in before and text[-1:] == "]" and piece[:1].isalnum()
        text += f" {piece}" if is_glued else piece
        before = marks
    return text


def _raised(before: str, piece: str) -> str:
    """What stands above the line, so that it is not taken for the end of what stands before it.

    Of what stands before, only the end is read.
    """
    sign = piece.strip().translate(_SIGNS)
    if not _NOTE.fullmatch(sign) and not _EXPONENT.fullmatch(sign):
        return f"^{piece}" if sign[:1] == "-" and sign[1:] else piece  # 1st, ™, *
    if _EXPONENT.fullmatch(sign) and (_TEN.search(before) or sign.startswith("-")):
        return f"^{sign}"
    if sign in ("2", "3") and _UNIT.search(before):
        return sign.translate(_SUPERSCRIPT)
    if not before.strip() or before[-1:] in "\n|" or before.rstrip(" ")[-1:] + before[-1:] == ". ":
        return f"{sign.strip('()')} "  # the note itself
    if sign.isalpha() and not before[-1:].isdigit():
        return piece
    lead = "" if before[-1:].isspace() else " "
    return f"{lead}[note {sign.strip('()')}]"


def unseen_words(runs: Iterable[Run]) -> Iterator[tuple[Mark, int]]:
    """How many words are hidden or deleted, for the report."""
    for run in runs:
        for mark in run.marks & UNSEEN:
            yield mark, len(run.text.split())
