"""Results as pictures: SVG that a server writes, without scripts, in the colours of the page."""

import re
from dataclasses import dataclass
from html import escape

from rag.language.languages import phrases
from rag.tables.execution.result import ResultColumn, TableResult, shown
from rag.tables.types import read_number

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
} | {f".chart-part.is-{index}": f"fill:{colour}" for index, colour in enumerate(PARTS, start=1)}
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
    """Labels with one figure each."""

    labels: tuple[str, ...]
    values: tuple[float, ...]
    column: ResultColumn
    name: str
    is_time: bool


def chart_of(result: TableResult, wanted: str = "") -> Chart | None:
    """The picture of a result; None where it has none, or none was asked for and none helps."""
    series = _series(result)
    asked = wanted or result.chart
    if series is None or asked == "none" or len(series.values) < 2:
        return None
    is_grouped = bool(result.plan.get("group"))
    if not asked and not (is_grouped and FEWEST <= len(series.values) <= MOST_BARS):
        return None
    possible = _possible(series)
    kind = asked if asked in possible else possible[0]
    draw = {"bar": _bars, "line": _line, "share": _shares}[kind]
    text = "; ".join(
        f"{label}: {shown(value, series.column)}"
        for label, value in zip(series.labels, series.values, strict=True)
    )
    title = f"{series.column.name} by {series.name}"
    return Chart(kind, _svg(draw(series), title, text), text, tuple(possible))


def _series(result: TableResult) -> Series | None:
    """The first figure over everything that stands before it."""
    figures = [index for index, column in enumerate(result.columns) if column.is_figure]
    keys = len(result.plan.get("group") or ())
    at = keys if keys else next(iter(figures), -1)
    if at < 1 and not (at == 0 and len(result.columns) > 1):
        return None
    if at >= len(result.columns):
        return None
    names = [i for i in range(len(result.columns)) if i != at and (i < at or not keys)][:2]
    labels, values = [], []
    for row in result.rows[:MOST_BARS]:
        value = row[at] if isinstance(row[at], int | float) else read_number(str(row[at] or ""))
        if value is None:
            continue
        labels.append(" · ".join(_text(row[i]) for i in names))
        values.append(float(value))
    if not values:
        return None
    name = " and ".join(result.columns[i].name for i in names)
    is_time = len(names) == 1 and bool(TIME.search(name.casefold()))
    return Series(tuple(labels), tuple(values), result.columns[at], name, is_time)


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def _possible(series: Series) -> list[str]:
    kinds = ["line", "bar"] if series.is_time and len(series.values) > 3 else ["bar", "line"]
    is_whole = all(value >= 0 for value in series.values) and sum(series.values) > 0
    if is_whole and len(series.values) <= MOST_SHARES:
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
