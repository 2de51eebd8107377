"""Find the tables of a grid: their headers, their rows, and which rows are totals.

Both the text of sheets and the tables for computed answers find their headers here.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, zip_longest

from rag.language.amounts import CURRENCIES, UNIT_SIGNS, Quantity, is_date, parse_figure, sign_of
from rag.language.words import phrases

HEADER_LOOK = 20  # rows from the top in which a header may stand
LONGEST_SPLIT = 20_000  # rows; a longer grid is one table
BLANK = frozenset({"", "-", "–", "—", "n/a", "na", "none", "null", "nil", "?", "--", "---", "tba"})
TOTAL = re.compile(rf"{phrases('totals')}|\u2211", re.IGNORECASE)
YEAR = re.compile(r"(?:FY\s?)?(?:19|20)\d\d(?:[–-]\d\d(?:\d\d)?)?\*?")
# How "total" and "subtotal" begin in other languages: taken for one only where it adds up as well.
_FOREIGN_TOTAL = re.compile(
    r"(?:\w{2,15}[ -])?(?:sub|del|väli|mezi|medzi|rész|mell[eo]m|tussen|под)?-?"
    r"(?:tota+l(?:\w{0,3}|summ[ae]|belopp|beløp|beløb|betrag)|tot\.|summ?[aeă]?|somm?a"
    r"|sú?o?u?[čc]et|össze[gs]\w*|сумм?а|[иы]тог\w?)\b"
    r"|(?:всего|усього|разом|вкупно|ukupno|укупно|skupaj|razem|ogółem|łącznie|spolu|kokku|kopā)\b"
    r"|celk[eo]|mindössz|(?:\w+ )?toplam|yhteens|i alt\b|iš viso|(?:υπο)?σ[υύ]νολ"
    r"|jumlah|(?:tổng|cộng)\b"
    r"|(?:ال)?(?:مجموع|إجمالي)|סה|รวม|कुल|योग|[小合总總]?[計计]$|[总總]额|[합소총]계",
    re.IGNORECASE,
)
LEAST_FIGURES = 0.6  # of the rows, in a column whose sums tell which rows are totals
LEAST_ADDED = 5  # rows that a last one adds up in one column alone
LEAST_SUM = 10  # smaller ones come about by chance
MONEY = {sign.casefold() for sign in CURRENCIES.values()}  # which only the first row may bear
ANY_YEAR = 2000  # makes a date of a day
_CLOCK = re.compile(r"\d{1,2}(?:[:.h]\d\d\b|\s?[ap]\.?m\b)", re.IGNORECASE)
FileRow = tuple[int, list[str]]  # with its number in the file


@dataclass(frozen=True, slots=True)
class Grid:
    """One table of a sheet: its column names and its rows."""

    names: tuple[str, ...]
    rows: Sequence[FileRow]
    first: int  # row of the file in which it begins, its header included


def grids(rows: Sequence[FileRow]) -> Iterator[Grid]:
    """Yield the tables of a sheet, top to bottom and left to right, without titles above them."""
    if len(rows) > LONGEST_SPLIT:
        yield from filter(None, [_grid(rows)])
        return
    for block in _blocks(rows):
        for part in _side_by_side(block):
            grid = _grid(part)
            if grid is not None:
                yield grid


def _blocks(rows: Sequence[FileRow]) -> list[list[FileRow]]:
    """Cut the rows at blank rows, if a new header follows."""
    blocks: list[list[FileRow]] = []
    for row in rows:
        if blocks and row[0] <= blocks[-1][-1][0] + 1:
            blocks[-1].append(row)
        else:
            blocks.append([row])
    merged: list[list[FileRow]] = []
    for block in blocks:
        is_narrow = all(_filled(row) == 1 for _number, row in block)
        if merged and is_narrow and _filled(merged[-1][-1][1]) > 2:
            continue  # footnotes below a table are no rows
        if merged and not _opens(block):
            merged[-1] += block
        else:
            merged.append(block)
    return merged


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
    """Cut a block at columns that are blank from top to bottom."""
    width = max(len(row) for _number, row in block)
    used = [i for i in range(width) if any(row[i : i + 1] and row[i].strip() for _, row in block)]
    edges = sorted({-1, *range(width + 1)} - {*used})
    parts = [(start + 1, end) for start, end in pairwise(edges) if end > start + 1]
    if len(parts) < 2 or any(end - start < 2 for start, end in parts):
        yield [(number, [row[i] for i in used]) for number, row in block]
        return
    for start, end in parts:
        rows = [(number, row[start:end]) for number, row in block]
        yield [row for row in rows if any(cell.strip() for cell in row[1])]


def _grid(rows: Sequence[FileRow]) -> Grid | None:
    if len(rows) < 2:
        return None
    position = _header_at([row for _number, row in rows[:HEADER_LOOK]])
    if position is None:
        width = len(rows[0][1])
        return Grid(tuple(f"Column {i}" for i in range(1, width + 1)), rows, rows[0][0])
    if position and _is_grouping(rows[position - 1], rows[position]):
        position, depth = position - 1, 2
    else:
        depth = _header_depth([row for _number, row in rows[position : position + 4]])
    heads = [row for _number, row in rows[position : position + depth]]
    names = _names(heads)
    body = [row for row in rows[position + depth :] if row[1] not in heads]  # repeated on each page
    return Grid(names, body, rows[position][0]) if body and len(names) > 1 else None


def headed(rows: Sequence[Sequence[str]]) -> tuple[list[list[str]], bool]:
    """Return a single table with its header in one row, and whether it has a header.

    `rows` are equally long; a first row that reads like the rows below it is no header.
    """
    if len(rows) < 2 or (start := _header_at(rows[:HEADER_LOOK])):
        return [*map(list, rows)], True
    if start is None or (depth := _header_depth(rows[:4])) < 2:
        return [*map(list, rows)], start is not None
    return [list(_names(rows[:depth])), *map(list, rows[depth:])], True


def _header_at(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the index of the first well-filled row with words above figures; None: no header."""
    width = max(_filled(row) for row in rows)
    for index, row in enumerate(rows):
        if _filled(row) >= max(2, width * 0.6):
            below = list(zip_longest(*rows[index + 1 :], fillvalue=""))
            figures = sum(map(_is_value, row, below))
            is_pair = len(row) == 2 == len(below) and (
                figures == 1
                or _is_one_of_many(row[1], below[1])
                or (_has_time(row[1]) and any(map(_has_time, below[1])))
            )
            is_row = is_pair or figures > sum(not is_blank(cell) for cell in row) / 2
            return None if is_row and not _are_years(row) else index
    return 0


def _is_one_of_many(cell: str, below: Sequence[str]) -> bool:
    """Whether a figure stands above other values: `2.4 m` above `18 kg` and `grey` is no header."""
    figures = [figure for other in below if (figure := parse_figure(other.strip()))]
    has_words = any(not is_blank(other) and not _is_figure(other) for other in below)
    return _is_figure(cell) and (has_words or len(set(map(_unit_word, figures))) > 1)


def _has_time(cell: str) -> bool:
    """Whether a cell begins with an hour of the day or is a day of the year: `9:00`, `July 4`."""
    return bool(_CLOCK.match(cell.strip())) or is_date(f"{cell} {ANY_YEAR}")


def _is_value(cell: str, below: Sequence[str]) -> bool:
    """Whether a cell is a figure like those below it: `$10`, but not a name `10 mm` above 20."""
    if not _is_figure(cell):
        return False
    figure = parse_figure(cell.strip())
    if figure is None:  # a date: `31 Dec 2022` above 450 is a name
        return any(is_date(other.strip()) for other in below)
    units = [_unit_word(quantity) for other in below if (quantity := parse_figure(other.strip()))]
    return not units or _unit_word(figure) in MONEY or _unit_word(figure) in units


def _unit_word(figure: Quantity) -> str:
    return sign_of(figure.unit).casefold().removesuffix("s")


def _is_grouping(above: FileRow, header: FileRow) -> bool:
    """Whether the row directly above the names groups several of them."""
    (number, row), (below, names) = above, header
    return below == number + 1 and _filled(row[1:]) > 1 and not any(map(_is_figure, row + names))


def _are_years(row: Sequence[str]) -> bool:
    """Whether a row is a header such as "Country, 2019, 2020, 2021" or "Crew, 1, 2, 3"."""
    figures = [cell.strip() for cell in row if _is_figure(cell)]
    if not figures or _is_figure(row[0]) or len(set(figures)) < len(figures):
        return False
    counted = [str(number) for number in range(1, len(figures) + 1)]
    return all(map(YEAR.fullmatch, figures)) or (len(figures) > 2 and figures == counted)


def _header_depth(rows: Sequence[Sequence[str]]) -> int:
    """Return 2 if merged headers stand above a second row of names, else 1."""
    if len(rows) < 3:
        return 1
    first, second, third = rows[:3]
    has_figures, words = any(map(_is_figure, third)), list(filter(str.strip, first))
    if not has_figures or any(map(_is_figure, second)) or _filled(second) < 2:
        return 1
    is_open = len(set(words)) < len(first)  # a gap, or a name that reaches over several
    pairs = [(above.strip(), below.strip()) for above, below in zip(first, second, strict=False)]
    is_named = all(above or below for above, below in pairs)
    fills_gaps = is_named and any(below and not above for above, below in pairs)
    return 2 if _are_units(second) or (is_open and fills_gaps) else 1


def _are_units(row: Sequence[str]) -> bool:
    """Whether a row names the units of the columns: `kg`, `(mm)`, `in EUR`."""
    units = [cell.strip("[]() ").casefold().removeprefix("in ") for cell in row if cell.strip()]
    return len(units) > 1 and all(unit in UNIT_SIGNS for unit in units)


def _names(header: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Name the columns: merged cells reach right, empty ones get a number, duplicates a suffix."""
    if len(header) == 1:
        joined = [" ".join(cell.split()) for cell in header[0]]
    else:
        above, reach = [], ""
        are_units = _are_units(header[1])
        for cell, below in zip(header[0], header[1], strict=True):
            reach = cell.strip() or (reach if below.strip() else "")
            above.append(reach)
        under = [f"({cell.strip('[]() ')})" if are_units and cell else cell for cell in header[1]]
        joined = list(map(joined_name, zip(above, under, strict=True)))
    counts = Counter[str]()
    names = []
    for index, name in enumerate(joined, start=1):
        base = name[:120] or f"Column {index}"
        counts[base.casefold()] += 1
        count = counts[base.casefold()]
        names.append(base if count == 1 else f"{base} ({count})")
    return tuple(names)


def joined_name(parts: Iterable[str]) -> str:
    """Join the rows of a header into one name without repeated words."""
    return " ".join(dict.fromkeys(word for part in parts for word in part.split()))


def totals(rows: Sequence[Sequence[str]], *, is_whole: bool = True) -> list[bool]:
    """Return which rows are totals, which no figure includes.

    Without `is_whole`, the rows are part of a table and only their words decide. Where many rows
    are named totals, only those count whose figures are the sum of rows above them: `Total assets`
    among `Total …` is a row like any other.
    """
    flags = list(map(is_total, rows))
    if sum(flags) > max(3, len(flags) / 4):
        flags = _adding_up(rows, flags)
    if is_whole:
        foreign = [bool(row and _FOREIGN_TOTAL.match((row[0] or "").strip())) for row in rows]
        adding = _adding_up(rows, flags, foreign) if any(foreign) else foreign
        flags = [
            is_named or (is_foreign and adds_up) or is_sum
            for is_named, is_foreign, adds_up, is_sum in zip(
                flags, foreign, adding, _sums(rows), strict=True
            )
        ]
    return [False] * len(flags) if all(flags) else flags


def _sums(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Return which rows add up those above them, in whatever language: `Totale`, `Razem`.

    Such rows hold one text and figures, and the last one adds up all others. A figure may be the
    sum of others by chance: therefore each figure of a row must be a sum, and there must be several
    such rows or columns, or enough rows, or all other rows must hold more texts.
    """
    width, least = max(map(len, rows), default=0), LEAST_FIGURES * len(rows)
    columns = [[_value(row[column]) for row in rows] for column in range(1, width)]
    columns = [values for values in columns if len(values) - values.count(None) >= least]
    names = list(map(_only_names, rows))
    for values in columns:
        sums = _running_sums(values, names)
        if not sums or sums[-1] != len(rows) - 1:
            continue
        agreeing = [column for column in columns if _agrees(column, sums)]
        is_certain = max(len(sums), len(agreeing)) > 1 or len(rows) > LEAST_ADDED
        is_certain |= names.count(True) == len(sums)
        if is_certain and len(agreeing) == len(columns):
            return [index in sums for index in range(len(rows))]
    return [False] * len(rows)


def _value(cell: str | None) -> Decimal | None:
    figure = parse_figure(cell.strip()) if cell else None
    return figure.value if figure else None


def _running_sums(values: Sequence[Decimal | None], names: Sequence[bool]) -> list[int]:
    """Return the places that add up all values since the last one; the last adds up all."""
    last = max((place for place, value in enumerate(values) if value is not None), default=-1)
    sums: list[int] = []
    block, rows_of_block, every = Decimal(0), 0, Decimal(0)
    for place, value in enumerate(values):
        if value is None:
            continue
        is_whole = place == last and every == value and (rows_of_block > 0 or len(sums) > 1)
        adds_up = is_whole or (rows_of_block > 1 and block == value)
        if adds_up and names[place] and abs(value) >= LEAST_SUM:
            sums.append(place)
            block, rows_of_block = Decimal(0), 0
        else:
            block, rows_of_block, every = block + value, rows_of_block + 1, every + value
    is_last_of_all = bool(sums) and values[sums[-1]] == every
    return sums if is_last_of_all else []


def _agrees(values: Sequence[Decimal | None], sums: Sequence[int]) -> bool:
    """Whether another column adds up in the same rows, as far as they hold figures."""
    return all(values[place] is None for place in sums) or _running_sums(
        values, [place in sums for place in range(len(values))]
    ) == list(sums)


def _only_names(row: Sequence[str]) -> bool:
    """Whether a row holds one text, before everything else, and figures."""
    cells = [cell.strip() for cell in row if cell and cell.strip()]
    texts = {cell for cell in cells if not is_amount(cell)}
    return len(texts) == 1 and cells[0] in texts


def is_total(row: Sequence[str]) -> bool:
    """Whether the first words of a row name a total: `Grand total`, `Kiel total`."""
    cells = [cell.strip() for cell in row if cell and cell.strip()]
    return bool(cells) and bool(TOTAL.fullmatch(cells[0])) and not _is_figure(cells[0])


def _adding_up(
    rows: Sequence[Sequence[str]], named: Sequence[bool], foreign: Sequence[bool] = ()
) -> list[bool]:
    """Return which candidates are the sum of the rows since the last total, or of all but totals.

    A row named a total must be near the sum in its last column with a figure; a row that only
    begins like a total in another language must match exactly, in all columns.
    """
    width = max(map(len, rows), default=0)
    block, every = _Sums(width), _Sums(width)
    flags = []
    foreign = foreign or [False] * len(rows)
    for row, is_named, is_foreign in zip(rows, named, foreign, strict=True):
        values = enumerate(map(_value, row))
        figures = [
            (position, value) for position, value in values if position and value is not None
        ]
        flag = bool(figures) and (
            (is_named and _is_near(figures[-1], block.sums, every.sums))
            or (is_foreign and (block.are(figures) or every.are(figures)))
        )
        for sums in (block, every) if not flag else ():
            sums.add(figures)
        block = _Sums(width) if flag else block
        flags.append(flag)
    return flags


class _Sums:
    """The sums of some rows, and how many figures make each up."""

    def __init__(self, width: int) -> None:
        self.sums = [Decimal(0)] * width
        self.counts = [0] * width

    def add(self, figures: Sequence[tuple[int, Decimal]]) -> None:
        for position, value in figures:
            self.sums[position] += value
            self.counts[position] += 1

    def are(self, figures: Sequence[tuple[int, Decimal]]) -> bool:
        """Whether the sums are a row's figures, up to the rounding of figures with decimals."""
        return any(abs(value) >= LEAST_SUM for _, value in figures) and all(
            self.counts[position] > 1
            and abs(self.sums[position] - value) <= self._rounding(position, value)
            for position, value in figures
        )

    def _rounding(self, position: int, value: Decimal) -> Decimal:
        exponent = int(value.as_tuple().exponent)
        unit = Decimal(1).scaleb(min(exponent, 0)) / 2
        return unit * self.counts[position] if exponent < 0 else unit


def _is_near(figure: tuple[int, Decimal], *sums: Sequence[Decimal]) -> bool:
    position, whole = figure
    parts = (some[position] for some in sums)
    return any(part and abs(part - whole) <= abs(whole) / 100 for part in parts)


def _filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def is_formula(text: str) -> bool:
    """Whether a cell holds a formula in place of its value."""
    return text.startswith("=") and len(text) > 1


def is_blank(text: str) -> bool:
    """Whether a cell only marks a missing value: `n/a`, `$ —`."""
    return text.strip(" $€£¥%").casefold() in BLANK


def is_amount(text: str) -> bool:
    """Whether a cell holds a figure, a code of digits or a mark for a missing value; no date."""
    is_code = not text.strip(" 0123456789.,")
    return is_code or is_blank(text) or parse_figure(text.strip()) is not None


def _is_figure(cell: str) -> bool:
    text = cell.strip()
    return not is_blank(text) and (parse_figure(text) is not None or is_date(text))
