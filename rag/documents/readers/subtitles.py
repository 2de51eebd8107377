"""Subtitles (VTT, SRT) to sections of about a minute, each with its time."""

import re
from collections.abc import Iterator

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.errors import Unreadable

SPAN = re.compile(r"((?:\d+:)?\d{1,2}:\d{2})[.,]\d+[ \t]+-->[ \t]+((?:\d+:)?\d{1,2}:\d{2})[.,]\d+")
MARKUP = re.compile(r"<[^<>\n]{0,200}>")
SPEAKER = re.compile(r"<v(?:\.[\w.]*)?[ \t]+([^<>\n]{1,80})>")
SECONDS = 60  # of one section


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline with what is spoken."""
    gathered: list[str] = []
    first = last = ""
    for start, end, words in _cues(clean(decode(data))):
        if gathered and _seconds(start) - _seconds(first) >= SECONDS:
            _write(outline, first, last, gathered)
            gathered = []
        first, last = (start, end) if not gathered else (first, end)
        if words != (gathered[-1] if gathered else ""):  # rolling captions repeat lines
            gathered.append(words)
    if not first:
        raise Unreadable(outline.name, "there are no times with words (00:01.000 --> 00:04.000).")
    _write(outline, first, last, gathered)


def _write(outline: Outline, first: str, last: str, gathered: list[str]) -> None:
    outline.place(f"{first}–{last}")
    outline.paragraph(" ".join(gathered))


def _cues(text: str) -> Iterator[tuple[str, str, str]]:
    for block in text.split("\n\n"):
        lines = block.strip().split("\n")
        for index, line in enumerate(lines[:2]):
            if span := SPAN.match(line.strip()):
                said = "\n".join(lines[index + 1 :])
                words = MARKUP.sub("", SPEAKER.sub(r"\1: ", said))
                if words.strip():
                    yield span[1], span[2], " ".join(words.split())
                break


def _seconds(time: str) -> int:
    seconds = 0
    for part in time.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds
