"""Where the tables of a grid are: their headers, their rows, and which rows are totals."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rag.language.languages import told
from rag.tables.reading.types import is_blank, read_date, read_number

HEADER_LOOK = 20  # rows from the top in which a header may stand
LONGEST_SPLIT = 20_000  # rows; a longer grid is one table
TOTAL = re.compile(rf"{told('totals')}|\u2211", re.IGNORECASE)
FileRow = tuple[int, list[str]]  # with its number in the file


@dataclass(frozen=True, slots=True)
class Grid:
    """One table of a sheet: its column names and its rows."""

    names: tuple[str, ...]
    rows: Sequence[FileRow]


def grids(rows: Sequence[FileRow]) -> Iterator[Grid]:
    """The tables of a sheet, from top to bottom and left to right; titles above them are not."""
    if len(rows) > LONGEST_SPLIT:
        yield from filter(None, [_grid(rows)])
        return
    for block in _blocks(rows):
        for part in _side_by_side(block):
            grid = _grid(part)
            if grid is not None:
                yield grid


def _blocks(rows: Sequence[FileRow]) -> list[list[FileRow]]:
    """Cut at blank rows where what follows begins with a header of its own."""
    blocks: list[list[FileRow]] = []
    for row in rows:
        is_gap = bool(blocks) and row[0] > blocks[-1][-1][0] + 1
        if not blocks or is_gap:
            blocks.append([row])
        else:
            blocks[-1].append(row)
    merged: list[list[FileRow]] = []
    for block in blocks:
        if merged and _are_notes(block, merged[-1]):
            continue
        if merged and not _opens(block):
            merged[-1] += block
        else:
            merged.append(block)
    return merged


def _are_notes(block: Sequence[FileRow], above: Sequence[FileRow]) -> bool:
    """Whether a block behind a gap only says something below a table: footnotes are no rows."""
    is_wide = _filled(above[-1][1]) > 2
    return is_wide and all(_filled(row) == 1 for _number, row in block)


def _opens(block: Sequence[FileRow]) -> bool:
    """Whether a block begins with words above figures, as a table does."""
    if len(block) < 2:
        return False
    head, *body = (row for _number, row in block[:6])
    if _filled(head) == 1 and len(body) > 1:  # a title
        head, *body = body
    words = [cell for cell in head if cell.strip()]
    has_figures = any(_is_figure(cell) for row in body for cell in row)
    return len(words) > 1 and has_figures and not any(map(_is_figure, words))


def _side_by_side(block: Sequence[FileRow]) -> Iterator[list[FileRow]]:
    """Cut at columns that are blank from top to bottom."""
    width = max(len(row) for _number, row in block)
    used = [any(i < len(row) and row[i].strip() for _number, row in block) for i in range(width)]
    edges = [i for i, is_used in enumerate(used) if not is_used]
    parts = [
        (start + 1, end) for start, end in pairwise([-1, *edges, width]) if end - start - 1 >= 1
    ]
    wide = [part for part in parts if part[1] - part[0] >= 2]
    if len(wide) < 2 or len(wide) < len(parts):
        keep = [i for i, is_used in enumerate(used) if is_used]
        yield [(number, [row[i] for i in keep]) for number, row in block]
        return
    for start, end in wide:
        rows = [(number, row[start:end]) for number, row in block]
        yield [row for row in rows if any(cell.strip() for cell in row[1])]


def _grid(rows: Sequence[FileRow]) -> Grid | None:
    if len(rows) < 2:
        return None
    at = _header_at([row for _number, row in rows[:HEADER_LOOK]])
    if at is None:
        width = len(rows[0][1])
        return Grid(tuple(f"Column {i}" for i in range(1, width + 1)), rows)
    if at and _is_grouping(rows[at - 1], rows[at]):
        at, depth = at - 1, 2
    else:
        depth = _header_depth([row for _number, row in rows[at : at + 4]])
    names = _names([row for _number, row in rows[at : at + depth]])
    body = rows[at + depth :]
    return Grid(names, body) if body and len(names) > 1 else None


def _header_at(rows: Sequence[Sequence[str]]) -> int | None:
    """The first row about as full as the rows are that has words where figures follow."""
    width = max(_filled(row) for row in rows)
    for at, row in enumerate(rows):
        if _filled(row) >= max(2, width * 0.6):
            figures = sum(1 for cell in row if _is_figure(cell))
            return None if figures > _filled(row) / 2 and not _are_years(row) else at
    return 0


def _is_grouping(above: FileRow, header: FileRow) -> bool:
    """Whether the row directly above the names says of several of them to what they belong."""
    (number, row), (own, names) = above, header
    return own == number + 1 and _filled(row[1:]) > 1 and not any(map(_is_figure, row + names))


def _are_years(row: Sequence[str]) -> bool:
    """Headers such as "Country, 2019, 2020, 2021"."""
    figures = [cell for cell in row if _is_figure(cell)]
    years = [cell for cell in figures if re.fullmatch(r"(?:19|20)\d\d", cell.strip())]
    return len(years) == len(figures) and not _is_figure(row[0]) and len(set(years)) == len(years)


def _header_depth(rows: Sequence[Sequence[str]]) -> int:
    """Two where merged headers stand over a second line of names."""
    if len(rows) < 3:
        return 1
    first, second, third = rows[:3]
    gaps = sum(1 for cell in first if not cell.strip())
    repeats = len(list(filter(str.strip, first))) - len(set(filter(str.strip, first)))
    below = any(_is_figure(cell) for cell in third)
    is_second = below and not any(map(_is_figure, second)) and _filled(second) >= 2
    return 2 if (gaps or repeats) and is_second and _fills_gaps(first, second) else 1


def _fills_gaps(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether each column is named by one of two lines of headers."""
    pairs = list(zip(first, second, strict=False))
    return all(a.strip() or b.strip() for a, b in pairs) and any(
        not a.strip() and b.strip() for a, b in pairs
    )


def _names(header: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Column names: merged cells reach to the right, empty ones get a number, twins a suffix."""
    if len(header) == 1:
        joined = [" ".join(cell.split()) for cell in header[0]]
    else:
        above, reach = [], ""
        for cell, below in zip(header[0], header[1], strict=True):
            reach = cell.strip() or (reach if below.strip() else "")
            above.append(reach)
        joined = [
            " ".join(dict.fromkeys(f"{a} {b}".split()))
            for a, b in zip(above, header[1], strict=True)
        ]
    seen: dict[str, int] = {}
    names = []
    for at, name in enumerate(joined, start=1):
        base = name[:120] or f"Column {at}"
        seen[base.casefold()] = count = seen.get(base.casefold(), 0) + 1
        names.append(base if count == 1 else f"{base} ({count})")
    return tuple(names)


def is_total(row: Sequence[str]) -> bool:
    """Whether a row adds up the others: it is left out of every figure."""
    cells = [cell.strip() for cell in row if cell.strip()]
    return bool(cells) and bool(TOTAL.fullmatch(cells[0])) and not _is_figure(cells[0])


def _filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _is_figure(cell: str) -> bool:
    text = cell.strip()
    if is_blank(text):
        return False
    return read_number(text) is not None or read_date(text) is not None
