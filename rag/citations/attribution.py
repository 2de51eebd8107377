"""Cite what a writer left uncited, where a source carries it (C6)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.citations.comparison.case import ComparedStatement
from rag.citations.comparison.parser import SourceText, read_source
from rag.citations.comparison.verdict import carries
from rag.citations.markers import find_markers
from rag.citations.statements import Statement, read_statements
from rag.citations.verdicts import bare
from rag.records import Citation, Source, Verdict

_STOP = re.compile(r"(?:[.!…;,]+|[。！；]+)?[\"'”’»」』]*(?:\s*\|)?$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class AttributedText:
    """A text with citations added, and the added ones, by offsets into that text."""

    text: str
    citations: tuple[Citation, ...]


def attribute(text: str, sources: Mapping[int, Source]) -> AttributedText:
    """Add `[n]` to statements without a marker where the verdict over a source is `supported`.

    Markers that are there stay as they are.
    """
    known = {number: read_source(source) for number, source in sources.items()}
    placed: list[tuple[Statement, int]] = []
    for statement in read_statements(text):
        if statement.states and not statement.parts:
            lead = text[slice(*statement.lead_in)] if statement.lead_in else ""
            number = _carrying(
                ComparedStatement(bare(text, statement), lead.strip(" #*:\n")), known
            )
            if number:
                placed.append((statement, number))
    return _written(text, placed)


def _carrying(statement: ComparedStatement, sources: Mapping[int, SourceText]) -> int:
    """The number of the first source that carries it; 0 where none does."""
    return next((number for number, source in sources.items() if carries(statement, source)), 0)


def _written(text: str, placed: Sequence[tuple[Statement, int]]) -> AttributedText:
    """The text with these citations, less those that would be no markers where they stand."""
    attributed = _inserted(text, placed)
    starts = {marker.start for marker in find_markers(attributed.text)}
    numbered = zip(placed, attributed.citations, strict=True)
    stand = [place for place, citation in numbered if citation.start in starts]
    return attributed if len(stand) == len(placed) else _written(text, stand)


def _inserted(text: str, placed: Sequence[tuple[Statement, int]]) -> AttributedText:
    kept: list[str] = []
    citations: list[Citation] = []
    at = length = 0
    for statement, number in placed:
        before, marker = _place(text, statement, number)
        kept += [text[at:before], marker]
        length += before - at + len(marker)
        at = before
        start = length - len(marker.lstrip())
        citations.append(Citation(number, start, length, Verdict.SUPPORTED, attributed=True))
    return AttributedText("".join(kept) + text[at:], tuple(citations))


def _place(text: str, statement: Statement, number: int) -> tuple[int, str]:
    """Where the marker goes, before the full stop, and with a blank where words have blanks."""
    match = _STOP.search(text, max(statement.start, statement.end - 20), statement.end)
    place = match.start() if match else statement.end
    place = statement.start + len(text[statement.start : place].rstrip())
    blank = "" if _UNSPACED.match(text[place - 1 : place]) else " "
    return place, f"{blank}[{number}]"
