"""Text to sentences with exact offsets.

A sentence is what a person would call one, inside the unit that its line belongs to: a list entry,
a table row, a heading and a line of a code fence are units of their own, everything else is a
paragraph. A citation marker after the full stop belongs to the sentence before it.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from sentencex import segment

from rag.text.languages import all_meanings, told


class Span(NamedTuple):
    """A stretch of a text: `text[start:end]`."""

    start: int
    end: int


CODE_INDENT = "    "  # before each line of code in a section's text, as in Markdown
# What ends a sentence: Latin, CJK, Arabic, Urdu and Devanagari.
FULL_STOPS = ".!?…。！？؟۔।॥"

_BREAK = r"\n\r\x0b\x0c\x85\u2028\u2029"
_LINE = re.compile(rf"([^{_BREAK}]*)(?:[{_BREAK}]|\Z)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(?![^\n`]*`)")
_OWN_LINE = re.compile(r"[ \t>]*(?:\||#{1,6}[ \t])|[ \t]*(?:[-*_=][ \t]*){3,}$")
ENTRY = re.compile(r"[ \t>]*(?:[-*+•◦‣–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])[ \t]+(?=\S)")
# The shape of a marker, wherever it stands. The grammar proper is in rag.citations.grammar, which
# this module is not to know; what looks like a marker and is none costs nothing here.
_MARKER = r"(?:\[[0-9][0-9,\-– ]*\]|[【［][0-9０-９][0-9０-９,，、\-– ]*[】］])"
_UNREADABLE = re.compile("[\ud800-\udfff\x00]")
_BREAKS = re.compile(f"[{_BREAK}]")
_MARKERS = re.compile(rf"[ \t\u00a0\u202f]?{_MARKER}(?:[ \t]?{_MARKER})*")
_ENDS = re.compile(rf"[{FULL_STOPS}:;：；][\"'”’»)\]」』]*\s*(?:{_MARKER}\s*)*$|{_MARKER}\s*$")
# A line at least this long was probably broken by its width, a shorter one by its writer.
_WRAPPED_AT = 50
_TAIL = 300  # characters of a line that tell whether it ends a sentence
# sentencex looks back from each stop to the beginning: over long stretches that would add up.
_PIECE = 4_000
_STOP = re.compile(r".*(?:[.!?][ \t]|[。！？])", re.DOTALL)
_BLANK = re.compile(r".*[ \t]", re.DOTALL)
# Abbreviations that sentencex takes for an end, mostly those of data sheets.
_ABBREVIATED = re.compile(rf"(?:^|[\s(\"'])(?:{told('abbreviated')})\.\s*$", re.IGNORECASE)
# These are never the end of one, whatever follows: German nouns begin with a capital letter.
_LEADS_ON = re.compile(rf"(?:^|[\s(\"'/])(?:{told('leads_on')})\.\s*$", re.IGNORECASE)
_DAY = re.compile(r"(?<!\d)\d{1,2}\.\s*$")
_MONTH = re.compile("|".join(all_meanings("months")), re.IGNORECASE)
_GOES_ON = re.compile(r"[a-z0-9(“\"'$€£~<>±]")
# `Prod. code`; and dots that belong to what stands behind them: `.NET`, `./configure`, `...SHOULD`.
_WRITTEN_SHORT = re.compile(r"(?:^|[\s(/])[A-Z][a-z]{1,4}\.\s+$")
_BEGINS = re.compile(r"(?:^|[\s(\"'`])\.+$")
# Single letters look like initials to sentencex; after a figure they are units.
_UNIT_ENDS = re.compile(r"(?<=\d)[ \u00a0]?[A-Za-zΩ]\.[ \t]+(?=[A-Z])")


def split_sentences(text: str) -> list[Span]:
    """The sentences of a text, in order, trimmed; all that is not blank lies in one of them."""
    spans: list[Span] = []
    for start, end, whole in _blocks(text):
        found = [trimmed(text, start, end)] if whole else _sentences(text, start, end)
        spans.extend(span for span in found if span)
    return spans


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Stretches of lines that no sentence crosses; True where one is never cut."""
    block: tuple[int, int] | None = None
    fence = ""  # the characters that opened the one we are in
    for found in _LINE.finditer(text):
        line, (start, end) = found[1], found.span(1)
        opening = _FENCE.match(line)
        alone = bool(fence or opening or _OWN_LINE.match(line))
        if opening and not fence:
            fence = opening[1]
        elif opening and opening[1].startswith(fence):
            fence = ""
        if block and not alone and _continues(text, block, start, line):
            block = (block[0], end)
            continue
        if block:
            yield *block, False
        block = (start, end) if line.strip() and not alone else None
        if alone:
            yield start, end, True
    if block:
        yield *block, False


def _continues(text: str, block: tuple[int, int], start: int, line: str) -> bool:
    """Whether a line goes on with the sentence of the line before: broken by width, not by will."""
    stripped = line.lstrip()
    if not stripped or ENTRY.match(line):
        return False
    last = max(text.rfind("\n", block[0], block[1]) + 1, block[0])
    if _ENDS.search(text, max(last, block[1] - _TAIL), block[1]):
        return False
    return stripped[0].islower() or start - last >= _WRAPPED_AT


def _sentences(text: str, start: int, end: int) -> Iterator[Span | None]:
    """Cut one block at its full stops, with the markers taken out of the way."""
    entry = ENTRY.match(text, start, end)
    body = entry.end() if entry else start
    plain, cuts, removed = _without_markers(text[body:end])
    at = start
    position = 0
    for sentence in _segments(plain):
        position += len(sentence)
        shift = removed[bisect_right(cuts, position)]
        stop = min(body + position + shift, end)
        yield trimmed(text, at, stop)
        at = stop
    yield trimmed(text, at, end)


def _without_markers(block: str) -> tuple[str, list[int], list[int]]:
    """The block without markers; where they were cut out, and how much was, up to each cut."""
    kept: list[str] = []
    cuts: list[int] = []
    removed = [0]
    at = length = 0
    for found in _MARKERS.finditer(block):
        kept.append(block[at : found.start()])
        length += found.start() - at
        at = found.end()
        cuts.append(length)
        removed.append(removed[-1] + found.end() - found.start())
    kept.append(block[at:])
    return "".join(kept), cuts, removed


def _segments(plain: str) -> Iterator[str]:
    """Sentences that joined are as long as `plain`."""
    # Lone surrogates cannot be handed over, and a line break inside a block is only a blank;
    # each replacement is one character, so that offsets stay true.
    readable = _UNREADABLE.sub("\ufffd", plain)
    readable = _BREAKS.sub(" ", readable)
    held = ""
    for piece in _pieces(readable):
        for sentence in segment("en", piece):
            if held and not _is_one(held, sentence):
                yield from _cut_after_units(held)
                held = ""
            held += sentence
    yield from _cut_after_units(held)


def _is_one(held: str, following: str) -> bool:
    """Whether the dot at the end is of an abbreviation, or begins what follows: `.NET`."""
    end = held[-20:]
    if _LEADS_ON.search(end) or _BEGINS.search(end):
        return True
    if _ABBREVIATED.search(end) and _GOES_ON.match(following):
        return True
    if following[:1].islower():
        return bool(_WRITTEN_SHORT.search(end) or _DAY.search(end))
    return bool(_DAY.search(end) and _MONTH.match(following))


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = at + _PIECE
        if end < len(text):
            found = _STOP.match(text, at, end) or _BLANK.match(text, at, end)
            end = found.end() if found else end
        yield text[at:end]
        at = end


def _cut_after_units(sentence: str) -> Iterator[str]:
    at = 0
    for found in _UNIT_ENDS.finditer(sentence):
        yield sentence[at : found.end()]
        at = found.end()
    yield sentence[at:]


def trimmed(text: str, start: int, end: int) -> Span | None:
    """What is not blank at either end; None if all is."""
    stretch = text[start:end]
    left = len(stretch) - len(stretch.lstrip())
    if left == len(stretch):
        return None
    return Span(start + left, start + len(stretch.rstrip()))
