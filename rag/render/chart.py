"""Results as pictures: SVG that a server writes, without scripts, in the colours of the page."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from rag.language.languages import phrases
from rag.tables.execution.result import ResultColumn, TableResult, shown
from rag.tables.types import read_number
from rag.tables.vocabulary import MONTHS

MOST_BARS = 30
MOST_SHARES = 8
FEWEST = 3  # points that a picture is drawn of unasked
WIDTH, LABELS, FIGURES, BAR, GAP = 640, 170, 90, 22, 8
HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 260, 70, 40, 14, 16
TIME = re.compile(rf"\b(?:{phrases('times')})\b")
KINDS = ("bar", "line", "share")
PARTS = ["#1b6650", "#b8862d", "#4f7cac", "#a4553f", "#7a6a9b", "#5f8f4e", "#8a8578", "#b06a8b"]
PAPER = {
    "text": "font:13.6px sans-serif;fill:#23221f",
    ".chart-figure": "fill:#66635c",
    ".chart-bar,.chart-point": "fill:#1b6650",
    ".chart-line": "fill:none;stroke:#1b6650;stroke-width:2.5",
    ".chart-rule": "stroke:#e3e0d8",
    ".chart-part": "stroke:#ffffff",
}
for _place, _colour in enumerate(PARTS, start=1):
    PAPER |= {f".chart-part.is-{_place}": f"fill:{_colour}"}
    PAPER |= {f".chart-line.is-{_place}": f"stroke:{_colour}"}
LABEL_CHARS = 24


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture with its data as a text for those who cannot see it."""

    kind: str
    svg: str
    text: str
    others: tuple[str, ...]  # kinds that would do as well


@dataclass(frozen=True, slots=True)
class Series:
    """Labels with one figure each; with `parts`, the figures of each label by part."""

    labels: tuple[str, ...]
    values: tuple[float, ...]
    column: ResultColumn
    name: str
    is_time: bool
    parts: tuple[str, ...] = ()
    of_parts: tuple[tuple[float, ...], ...] = ()  # of each label, in the order of `parts`

    def told(self) -> str:
        """All figures as words."""
        rows = self.of_parts or tuple((value,) for value in self.values)
        return "; ".join(
            f"{label}: "
            + ", ".join(
                f"{part} {shown(value, self.column)}".strip()
                for part, value in zip(self.parts or ("",), row, strict=True)
            )
            for label, row in zip(self.labels, rows, strict=True)
        )


def chart_of(result: TableResult, wanted: str = "") -> Chart | None:
    """The picture of a result; None where it has none, or none was asked for and none helps."""
    series = _series(result)
    asked = wanted or result.chart
    if series is None or asked == "none" or len(series.values) < 2:
        return None
    is_grouped = bool(result.plan.get("group"))
    if not asked and not (is_grouped and FEWEST <= len(series.values) <= MOST_BARS):
        return None
    series = _parted(result, series)
    possible = _possible(series)
    kind = asked if asked in possible else possible[0]
    draw = {"bar": _bars, "line": _line, "share": _shares}[kind]
    if series.parts:
        draw = {"bar": _stacks, "line": _lines, "share": _stacked_shares}[kind]
    text = series.told()
    title = f"{series.column.name} by {series.name}"
    return Chart(kind, _svg(draw(series), title, text), text, tuple(possible))


def _series(result: TableResult) -> Series | None:
    """The first figure over everything that stands before it."""
    figures = [index for index, column in enumerate(result.columns) if column.is_figure]
    keys = len(result.plan.get("group") or ())
    position = keys if keys else next(iter(figures), -1)
    if position < 1 and not (position == 0 and len(result.columns) > 1):
        return None
    if position >= len(result.columns):
        return None
    names = [i for i in range(len(result.columns)) if i != position and (i < position or not keys)][
        :2
    ]
    labels, values = [], []
    for row in result.rows[:MOST_BARS]:
        value = (
            row[position]
            if isinstance(row[position], int | float)
            else read_number(str(row[position] or ""))
        )
        if value is None:
            continue
        labels.append(" · ".join(_text(row[i]) for i in names))
        values.append(float(value))
    if not values:
        return None
    name = " and ".join(result.columns[i].name for i in names)
    is_time = len(names) == 1 and bool(TIME.search(name.casefold()))
    return Series(tuple(labels), tuple(values), result.columns[position], name, is_time)


def _parted(result: TableResult, flat: Series) -> Series:
    """Figures by two keys as parts of each label: over time, else by the first; else as they are.

    Parts can be stacked only where each figure is one of a whole.
    """
    keys = result.plan.get("group") or ()
    if len(keys) != 2 or len(flat.labels) != len(result.rows):
        return flat
    names = [column.name for column in result.columns[:2]]
    along = next((place for place, name in enumerate(names) if TIME.search(name.casefold())), 0)
    cells: dict[str, dict[str, float]] = {}
    for row, value in zip(result.rows, flat.values, strict=True):
        cells.setdefault(_text(row[along]), {})[_text(row[1 - along])] = value
    labels = sorted(cells, key=_place_of_month)
    parts = tuple(dict.fromkeys(part for of_label in cells.values() for part in of_label))
    is_few = 1 < len(parts) <= MOST_SHARES and len(labels) > 1
    if not is_few or min(flat.values) < 0:
        return flat
    rows = tuple(tuple(cells[label].get(part, 0.0) for part in parts) for label in labels)
    is_time = bool(TIME.search(names[along].casefold()))
    name = f"{names[along]} and {names[1 - along]}"
    sums = tuple(map(sum, rows))
    return Series(tuple(labels), sums, flat.column, name, is_time, parts, rows)


def _place_of_month(label: str) -> int:
    return int(MONTHS.get(label.casefold(), 0))


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _possible(series: Series) -> list[str]:
    kinds = ["line", "bar"] if series.is_time and len(series.values) > 3 else ["bar", "line"]
    is_whole = all(value >= 0 for value in series.values) and sum(series.values) > 0
    if is_whole and (series.parts or len(series.values) <= MOST_SHARES):
        kinds.append("share")
    return kinds


def _svg(drawn: tuple[str, int], title: str, text: str) -> str:
    inside, height = drawn
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}: {escape(text)}"><title>{escape(title)}</title>{inside}</svg>'
    )


def _short(label: str) -> str:
    return escape(label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…")


def _bars(series: Series) -> tuple[str, int]:
    """Bars to the right, one below the other: labels stay readable."""
    low, high = min(0.0, *series.values), max(0.0, *series.values)
    room = WIDTH - LABELS - FIGURES
    scale = room / ((high - low) or 1)
    zero = LABELS - low * scale
    parts = []
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        y = GAP + index * (BAR + GAP)
        x, width = (zero, value * scale) if value >= 0 else (zero + value * scale, -value * scale)
        figure = escape(shown(value, series.column))
        parts.append(
            f'<text class="chart-label" x="{LABELS - 8}" y="{y + 16}" text-anchor="end">'
            f"{_short(label)}</text>"
            f'<rect class="chart-bar" x="{x:.1f}" y="{y}" width="{max(width, 1):.1f}" '
            f'height="{BAR}" rx="3"><title>{escape(label)}: {figure}</title></rect>'
            f'<text class="chart-figure" x="{zero + max(value, 0) * scale + 6:.1f}" y="{y + 16}">'
            f"{figure}</text>"
        )
    return "".join(parts), GAP + len(series.values) * (BAR + GAP)


def _line(series: Series) -> tuple[str, int]:
    """Points from left to right, with the highest, the lowest and every few labels."""
    low, high = min(0.0, *series.values), max(0.0, *series.values)
    room, rise = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = room / max(1, len(series.values) - 1)
    points = [
        (LEFT + index * step, TOP + rise - (value - low) / ((high - low) or 1) * rise)
        for index, value in enumerate(series.values)
    ]
    parts = [_rule(y, figure, series) for y, figure in ((TOP, high), (TOP + rise, low))]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(f'<polyline class="chart-line" points="{path}"/>')
    every = max(1, len(points) // 8)
    for index, ((x, y), label, value) in enumerate(
        zip(points, series.labels, series.values, strict=True)
    ):
        figure = escape(shown(value, series.column))
        parts.append(
            f'<circle class="chart-point" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{escape(label)}: {figure}</title></circle>"
        )
        if index % every == 0:
            parts.append(
                f'<text class="chart-label" x="{x:.1f}" y="{HEIGHT - 14}" '
                f'text-anchor="middle">{_short(label)}</text>'
            )
    return "".join(parts), HEIGHT


def _rule(y: float, figure: float, series: Series) -> str:
    return (
        f'<line class="chart-rule" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
        f'<text class="chart-figure" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">'
        f"{escape(shown(figure, series.column))}</text>"
    )


def _shares(series: Series) -> tuple[str, int]:
    """One bar cut into parts, and a line of words for each."""
    whole = sum(series.values)
    parts, x = [], 0.0
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        width = value / whole * WIDTH
        share = f"{value / whole:.1%}"
        y = 70 + index * 24
        parts.append(
            f'<rect class="chart-part is-{index + 1}" x="{x:.1f}" y="8" width="{width:.1f}" '
            f'height="36"><title>{escape(label)}: {share}</title></rect>'
            f'<rect class="chart-part is-{index + 1}" x="0" y="{y - 12}" width="14" height="14"/>'
            f'<text class="chart-words" x="24" y="{y}">{_short(label)}</text>'
            f'<text class="chart-words" x="300" y="{y}" text-anchor="end">{share}</text>'
            f'<text class="chart-figure" x="320" y="{y}">'
            f"{escape(shown(value, series.column))}</text>"
        )
        x += width
    return "".join(parts), 70 + len(series.values) * 24


def _stacks(series: Series) -> tuple[str, int]:
    """A bar for each label, cut into its parts, with their sum behind it."""
    return _cut_bars(series, max(series.values), lambda row: shown(sum(row), series.column))


def _stacked_shares(series: Series) -> tuple[str, int]:
    """Bars of one length: what each part is of its label."""
    return _cut_bars(series, 0.0, lambda row: "")


def _cut_bars(
    series: Series, longest: float, behind: Callable[[Sequence[float]], str]
) -> tuple[str, int]:
    """`longest` is what the whole width stands for; 0: each bar its own sum."""
    drawn = []
    for index, (label, row) in enumerate(zip(series.labels, series.of_parts, strict=True)):
        y, x, whole = GAP + index * (BAR + GAP), float(LABELS), longest or sum(row) or 1.0
        drawn.append(
            f'<text class="chart-label" x="{LABELS - 8}" y="{y + 16}" text-anchor="end">'
            f"{_short(label)}</text>"
        )
        for place, (part, value) in enumerate(zip(series.parts, row, strict=True), start=1):
            width = value / whole * (WIDTH - LABELS - FIGURES)
            share = f" ({value / sum(row):.1%})" if value else ""
            said = escape(f"{label}, {part}: {shown(value, series.column)}{share}")
            drawn.append(
                f'<rect class="chart-part is-{place}" x="{x:.1f}" y="{y}" width="{width:.1f}" '
                f'height="{BAR}"><title>{said}</title></rect>'
            )
            x += width
        drawn.append(
            f'<text class="chart-figure" x="{x + 6:.1f}" y="{y + 16}">{escape(behind(row))}</text>'
        )
    return _with_legend(series, drawn, GAP + len(series.labels) * (BAR + GAP))


def _lines(series: Series) -> tuple[str, int]:
    """A line for each part, in one scale."""
    high = max(max(row) for row in series.of_parts) or 1.0
    room, rise = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    step = room / max(1, len(series.labels) - 1)
    drawn = [_rule(y, figure, series) for y, figure in ((TOP, high), (TOP + rise, 0.0))]
    for place, part in enumerate(series.parts, start=1):
        values = [row[place - 1] for row in series.of_parts]
        spots = [
            (LEFT + index * step, TOP + rise - value / high * rise)
            for index, value in enumerate(values)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        drawn.append(
            f'<polyline class="chart-line is-{place}" points="{path}">'
            f"<title>{escape(part)}</title></polyline>"
        )
    every = max(1, len(series.labels) // 8)
    drawn += [
        f'<text class="chart-label" x="{LEFT + index * step:.1f}" y="{HEIGHT - 14}" '
        f'text-anchor="middle">{_short(label)}</text>'
        for index, label in enumerate(series.labels)
        if index % every == 0
    ]
    return _with_legend(series, drawn, HEIGHT)


def _with_legend(series: Series, drawn: list[str], height: int) -> tuple[str, int]:
    """Which colour is which part, four in a line."""
    for place, part in enumerate(series.parts):
        x, y = place % 4 * (WIDTH // 4), height + 16 + place // 4 * 24
        drawn.append(
            f'<rect class="chart-part is-{place + 1}" x="{x}" y="{y - 12}" width="14" height="14"/>'
            f'<text class="chart-words" x="{x + 20}" y="{y}">{_short(part)}</text>'
        )
    return "".join(drawn), height + (len(series.parts) + 3) // 4 * 24 + 8


def standalone(chart: Chart) -> str:
    """The picture as a file of its own, in the colours of paper."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}"'
    style = "".join(f"{each}{{{rules}}}" for each, rules in PAPER.items())
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    inside = chart.svg.removeprefix("<svg").partition(">")
    return f"{head}{inside[0]}><style>{style}</style>{ground}{inside[2]}"


def sorted_places(result: TableResult, by: int, descending: bool) -> list[int]:
    """Where the rows of a result stand, in the order of one of its columns; blanks last."""
    places = list(range(len(result.rows)))
    if not 0 <= by < len(result.columns):
        return places

    def weight(position: int) -> tuple[float, str]:
        value = result.rows[position][by]
        figure = value if isinstance(value, int | float) else read_number(str(value))
        return (float(figure) if figure is not None else float("inf"), str(value).casefold())

    filled = [place for place in places if result.rows[place][by] is not None]
    blank = [place for place in places if result.rows[place][by] is None]
    return sorted(filled, key=weight, reverse=descending) + blank
