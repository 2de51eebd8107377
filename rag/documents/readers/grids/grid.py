"""Rows of a sheet or a CSV file to sections with their row numbers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.errors import TooLarge

SECTION_ROWS = 40
LONGEST_IN_TEXT = 10_000  # rows, about a minute of embedding; a sample stands for longer tables
NUMERIC = re.compile(r"[-+]?[\d.,\s]*\d[\d.,\s]*\s?[%€$£]?|\d{4}-\d\d-\d\d.*")
YEAR = re.compile(r"(?:19|20)\d\d")
NumberedRow = tuple[int, list[str]]


def write_rows(
    rows: Sequence[NumberedRow], outline: Outline, *, place: str, name: str = ""
) -> None:
    """One section for every 40 rows, each under the header; `place` begins their locators.

    Of a very long table only a sample becomes text: its rows are found by asking the table.
    """
    filled = [(number, row) for number, row in rows if any(map(str.strip, row))]
    outline.rows(filled, name=name)
    before, header, body = _split_header(filled)
    body = _sample(body)
    for number, row in before:
        outline.place(f"{place.removesuffix('s')} {number}")
        outline.paragraph(" ".join(filter(None, map(str.strip, row))))
    for at in range(0, len(body), SECTION_ROWS):
        part = body[at : at + SECTION_ROWS]
        first, last = part[0][0], part[-1][0]
        label = f"{place} {first}–{last}" if last > first else f"{place.removesuffix('s')} {first}"
        outline.place(label)
        outline.part_of_table([header, *(row for _number, row in part)])
    if header and not body:
        outline.place(place.removesuffix("s") + " 1")
        outline.paragraph(" ; ".join(filter(None, map(str.strip, header))))


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


def _split_header(
    rows: Sequence[NumberedRow],
) -> tuple[Sequence[NumberedRow], Sequence[str], Sequence[NumberedRow]]:
    """Title lines above the table, the header row (perhaps made up), the rows below it."""
    if not rows:
        return [], [], []
    width = max(_filled(row) for _number, row in rows[:20])
    full = [at for at in range(len(rows[:20])) if _filled(rows[at][1]) >= max(1, width * 0.6)]
    at = next((at for at in full if not _is_fact(rows, at)), full[0])
    header = rows[at][1]
    if at and _filled(rows[at - 1][1][1:]) > 1:
        at, header = at - 1, _joined(rows[at - 1][1], header)
        return rows[:at], header, rows[at + 2 :]
    if _goes_on(rows[at : at + 3]):
        return rows[:at], _joined(header, rows[at + 1][1]), rows[at + 2 :]
    if _looks_like_values(header):
        columns = [f"Column {number}" for number in range(1, len(header) + 1)]
        return rows[:at], columns, rows[at:]
    return rows[:at], header, rows[at + 1 :]


def _goes_on(rows: Sequence[NumberedRow]) -> bool:
    """Whether a header with gaps has words in them in the next row, and figures stand below."""
    if len(rows) < 3 or rows[1][0] > rows[0][0] + 1:
        return False
    first, second, third = ([cell.strip() for cell in row] for _number, row in rows)
    gaps = [cell for cell, above in zip_longest(second, first) if cell and not above]
    has_figures = [any(map(NUMERIC.fullmatch, row)) for row in (first[:1] + second, third)]
    return bool(gaps) and any(first) and has_figures == [False, True]


def _is_fact(rows: Sequence[NumberedRow], at: int) -> bool:
    """Whether a row with figures stands apart above the table: `As of | 1.2.2026`."""
    is_apart = at + 1 < len(rows) and rows[at + 1][0] > rows[at][0] + 1
    return is_apart and any(NUMERIC.fullmatch(cell.strip()) for cell in rows[at][1])


def _joined(above: Sequence[str], header: Sequence[str]) -> list[str]:
    """`Net | | Gross |` above `2023 | 2024 | 2023 | 2024`: each reaches to the next."""
    joined: list[str] = []
    group = ""
    for at, cell in enumerate(header):
        own = above[at].strip() if at < len(above) else ""
        group = own or (group if at > 1 else "")  # the first column's is of the rows' labels
        joined.append(" ".join(dict.fromkeys(filter(None, (group, cell)))))
    return joined


def _filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _looks_like_values(row: Sequence[str]) -> bool:
    """Column names are words or years; a first row with as many figures is a row of values."""
    cells = [cell.strip() for cell in row if cell.strip()]
    figures = [cell for cell in cells if NUMERIC.fullmatch(cell)]
    are_years = len(figures) > 1 and all(YEAR.fullmatch(cell) for cell in figures)
    return len(figures) > len(cells) / 2 and not are_years
