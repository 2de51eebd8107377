"""What a table of a trade is, and the figures that its questions want.

Every figure is computed here from the rows themselves, by other means than the program's.
"""
# ruff: noqa: D103  (rows, cells and talks of a trade are what Trade says they are)

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import mean
from typing import Any

Record = dict[str, Any]
Wanted = list[tuple[Any, ...]]
Turn = tuple[str, Wanted | None]  # None: nothing in the table says it, so nothing may be claimed
Talks = Iterator[list[Turn]]


@dataclass(frozen=True)
class Trade:
    """A table as a file, and conversations about it."""

    name: str
    rows: Callable[[random.Random, int], list[Record]]
    written: Callable[[Record], list[str]]
    header: tuple[str, ...]
    talks: Callable[[list[Record]], Talks]

    def file(self, rows: Sequence[Record]) -> str:
        lines = [list(self.header), *map(self.written, rows)]
        return "\n".join(";".join(line) for line in lines)


# ── Figures, made apart ──────────────────────────────────────────────────────────────────────


def of(rows: Sequence[Record], **is_: Any) -> list[Record]:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in is_.items())]


def where(rows: Sequence[Record], test: Callable[[Record], Any]) -> list[Record]:
    return [row for row in rows if test(row)]


def total(rows: Sequence[Record], name: str) -> Wanted:
    return [(sum(row[name] for row in rows),)] if rows else []


def average(rows: Sequence[Record], name: str) -> Wanted:
    return [(mean(row[name] for row in rows),)] if rows else []


def count(rows: Sequence[Any]) -> Wanted:
    return [(len(rows),)]


def listed(rows: Sequence[Record], *names: str) -> Wanted:
    return [tuple(row[name] for name in names) for row in rows]


def per(
    rows: Sequence[Record], key: str, figure: Callable[[list[Record]], Any]
) -> list[tuple[Any, ...]]:
    """One figure for each value of a column, by its name."""
    found: dict[Any, list[Record]] = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return sorted((value, figure(own)) for value, own in found.items())


def sums(name: str) -> Callable[[list[Record]], Any]:
    return lambda rows: sum(row[name] for row in rows)


def means(name: str) -> Callable[[list[Record]], Any]:
    return lambda rows: mean(row[name] for row in rows)


def ends(found: Sequence[tuple[Any, ...]], size: int, *, low: bool = False) -> Wanted:
    """The groups with the highest figures."""
    return sorted(found, key=lambda pair: pair[-1], reverse=not low)[:size]


def ranked(rows: Sequence[Record], by: str, size: int, *names: str, low: bool = False) -> Wanted:
    """The rows with the highest figures."""
    return listed(sorted(rows, key=lambda row: row[by], reverse=not low)[:size], *names)


def shares(found: Sequence[tuple[Any, ...]]) -> Wanted:
    whole = sum(pair[-1] for pair in found)
    return [(pair[0], 100 * pair[-1] / whole) for pair in found]


def euros(value: float) -> str:
    return f"{value:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".")


def day_of(chance: random.Random, first: int, last: int) -> date:
    return date(first, 1, 1) + timedelta(days=chance.randrange((last - first + 1) * 365))


def distinct(chance: random.Random, count: int, low: int, high: int) -> list[int]:
    """Figures without ties, so that every order has one right answer."""
    return chance.sample(range(low, high), count)
