"""Rows of a sheet or a CSV file to sections with their row numbers."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.errors import TooLarge
from rag.language.grids import grids

SECTION_ROWS = 40
LONGEST_IN_TEXT = 10_000  # rows, about a minute of embedding; a sample stands for longer tables
NumberedRow = tuple[int, list[str]]


def write_rows(
    rows: Sequence[NumberedRow], outline: Outline, *, place: str, name: str = ""
) -> None:
    """One section for every 40 rows, each under the header; `place` begins their locators.

    Of a very long table only a sample becomes text: its rows are found by asking the table.
    """
    filled = [(number, row) for number, row in rows if any(map(str.strip, row))]
    width = max((len(row) for _number, row in filled), default=0)
    filled = [(number, [*row, *[""] * (width - len(row))]) for number, row in filled]
    outline.rows(filled, name=name)
    single = place.removesuffix("s")
    told = 0
    for grid in grids(filled):
        first = grid.rows[0][0]
        above = [row for row in filled if told < row[0] < min(first, grid.first)]
        _write_lines(above, outline, single)
        body = _sample(grid.rows)
        for at in range(0, len(body), SECTION_ROWS):
            part = body[at : at + SECTION_ROWS]
            start, end = part[0][0], part[-1][0]
            outline.place(f"{place} {start}–{end}" if end > start else f"{single} {start}")
            outline.part_of_table([grid.names, *(row for _number, row in part)])
        told = max(told, grid.rows[-1][0])
    _write_lines([row for row in filled if row[0] > told], outline, single)


def write_notes(
    notes: Iterable[tuple[str, str]], rows: Sequence[NumberedRow], outline: Outline
) -> None:
    """What was noted on cells (`B7`), each with what its row begins with."""
    numbered = dict(rows)
    for cell, note in notes:
        row = numbered.get(int(re.sub(r"\D", "", cell) or 0), [])
        name = next(filter(None, row), "")
        outline.entry(f"Note on {cell}{f' ({name})' if name else ''}: {note}")


def _write_lines(rows: Sequence[NumberedRow], outline: Outline, place: str) -> None:
    """Titles, notes and what is no table."""
    for number, row in rows:
        outline.place(f"{place} {number}")
        outline.paragraph(" ; ".join(filter(None, map(str.strip, row))))


class CellCount:
    """The filled cells of one file, over all its sheets."""

    def __init__(self, name: str, limits: LoadLimits) -> None:
        self._name, self._most = name, limits.max_cells
        self._cells = 0

    def counted(self, rows: Iterable[NumberedRow]) -> Iterator[NumberedRow]:
        """The rows as they come; raises TooLarge."""
        for number, row in rows:
            self._cells += len(row) - row.count("")
            if self._cells > self._most:
                raise TooLarge(
                    f"{self._name}: has more than {self._most:,} cells, the limit. Split it."
                )
            yield number, row


def _sample(body: Sequence[NumberedRow]) -> Sequence[NumberedRow]:
    """The first rows, and some from the whole length."""
    if len(body) <= LONGEST_IN_TEXT:
        return body
    step = len(body) // SECTION_ROWS
    return [*body[:SECTION_ROWS], *body[SECTION_ROWS::step]][: 2 * SECTION_ROWS]
