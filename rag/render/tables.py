"""Results of tables on the pages: rows, charts, and the plan as a form."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Protocol

from markupsafe import Markup

from rag.errors import UserError
from rag.language.words import phrases
from rag.records import ColumnType, Message, Table
from rag.seams import SourceRegister
from rag.tables.plan import (
    MEASURED,
    ROWS,
    Filter,
    Kind,
    Op,
    Order,
    Part,
    Scalar,
    TablePlan,
    measure_places,
    measure_words,
    plan_from,
    read_number,
    value_words,
)
from rag.tables.result import ResultColumn, TableResult, display_value, result_from
from rag.tables.vocabulary import MONTHS

MOST_BARS = 30
MOST_SHARES = 8
FEWEST = 3  # points for a chart that was not asked for
WIDTH, LABELS, FIGURES, BAR, GAP = 640, 170, 90, 22, 8
HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 260, 70, 40, 14, 16
TIME = re.compile(rf"\b(?:{phrases('times')})\b")
PARTS = ["#1b6650", "#b8862d", "#4f7cac", "#a4553f", "#7a6a9b", "#5f8f4e", "#8a8578", "#b06a8b"]
PAPER = {
    "text": "font:13.6px sans-serif;fill:#23221f",
    ".chart-figure": "fill:#66635c",
    ".chart-bar,.chart-point": "fill:#1b6650",
    ".chart-bar": "rx:3px",
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
    """A chart with its data as text, for those who cannot see it."""

    kind: str
    svg: str
    text: str
    others: tuple[str, ...]  # other suitable kinds


@dataclass(frozen=True, slots=True)
class Series:
    """The figures of each label: one, or one for each part."""

    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]
    column: ResultColumn
    name: str
    is_time: bool
    parts: tuple[str, ...] = ("",)

    @property
    def is_parted(self) -> bool:
        return len(self.parts) > 1

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(map(sum, self.rows))

    def figure(self, value: float) -> str:
        return display_value(value, self.column)

    def __str__(self) -> str:
        """Return all figures in words."""
        return "; ".join(
            f"{label}: "
            + ", ".join(
                f"{part} {self.figure(value)}".strip()
                for part, value in zip(self.parts, row, strict=True)
            )
            for label, row in zip(self.labels, self.rows, strict=True)
        )


def chart_of(result: TableResult, wanted: str = "") -> Chart | None:
    """Return the chart of a result; None if it has none, or none was asked for and none helps."""
    series = _series(result)
    choice = wanted or result.chart
    if series is None or choice == "none" or len(series.values) < 2:
        return None
    is_grouped = bool(result.plan.get("group"))
    if not choice and not (is_grouped and FEWEST <= len(series.values) <= MOST_BARS):
        return None
    series = _parted(result, series)
    possible = _possible(series)
    kind = choice if choice in possible else possible[0]
    shares = partial(_bars, of_whole=True) if series.is_parted else _shares
    inside, height = {"bar": _bars, "line": _line_paths, "share": shares}[kind](series)
    title, text = escape(f"{series.column.name} by {series.name}"), str(series)
    svg = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{title}: {escape(text)}"><title>{title}</title>{inside}</svg>'
    )
    return Chart(kind, svg, text, tuple(possible))


def _series(result: TableResult) -> Series | None:
    """Return the first figure column over the columns before it, in a group over its keys."""
    columns = result.columns
    keys = len(result.plan.get("group") or ())
    position = keys or next((i for i, column in enumerate(columns) if column.is_figure), -1)
    if len(columns) < 2 or not 0 <= position < len(columns):
        return None
    others = range(position) if keys else [i for i in range(len(columns)) if i != position]
    names = others[:2]
    labels, values = [], []
    for row in result.rows[:MOST_BARS]:
        value = _figure(row[position])
        if value is not None:
            labels.append(" · ".join(_cell(row[i]) for i in names))
            values.append((float(value),))
    if not values:
        return None
    name = " and ".join(columns[i].name for i in names)
    is_time = len(names) == 1 and bool(TIME.search(name.casefold()))
    return Series(tuple(labels), tuple(values), columns[position], name, is_time)


def _figure(value: object) -> float | None:
    return value if isinstance(value, int | float) else read_number(str(value or ""))


def _parted(result: TableResult, flat: Series) -> Series:
    """Turn figures over two keys into parts of each label: along time, else along the first key.

    Parts are only stacked where they add up to a whole.
    """
    if len(result.plan.get("group") or ()) != 2 or len(flat.labels) != len(result.rows):
        return flat
    names = [column.name for column in result.columns[:2]]
    along = next((place for place, name in enumerate(names) if TIME.search(name.casefold())), 0)
    cells: dict[str, dict[str, float]] = {}
    for row, value in zip(result.rows, flat.values, strict=True):
        cells.setdefault(_cell(row[along]), {})[_cell(row[1 - along])] = value
    labels = sorted(cells, key=lambda label: MONTHS.get(label.casefold(), 0))
    parts = tuple(dict.fromkeys(part for of_label in cells.values() for part in of_label))
    if not 1 < len(parts) <= MOST_SHARES or len(labels) < 2 or min(flat.values) < 0:
        return flat
    rows = tuple(tuple(cells[label].get(part, 0.0) for part in parts) for label in labels)
    is_time = bool(TIME.search(names[along].casefold()))
    name = f"{names[along]} and {names[1 - along]}"
    return Series(tuple(labels), rows, flat.column, name, is_time, parts)


def _cell(value: object) -> str:
    return "–" if value is None else str(value)


def _possible(series: Series) -> list[str]:
    kinds = ["line", "bar"] if series.is_time and len(series.values) > 3 else ["bar", "line"]
    is_whole = all(value >= 0 for value in series.values) and sum(series.values) > 0
    if is_whole and (series.is_parted or len(series.values) <= MOST_SHARES):
        kinds.append("share")
    return kinds


# ── Drawn ────────────────────────────────────────────────────────────────────────────────────

Drawing = tuple[str, int]  # the SVG content, and its height


def _text(style: str, x: float, y: float, words: str, anchor: str = "start") -> str:
    is_long = style != "figure" and len(words) > LABEL_CHARS
    short = words[: LABEL_CHARS - 1] + "…" if is_long else words
    return (
        f'<text class="chart-{style}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">'
        f"{escape(short)}</text>"
    )


def _box(style: str, x: float, y: int, width: float, title: str, height: int = BAR) -> str:
    return (
        f'<rect class="chart-{style}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _bars(series: Series, *, of_whole: bool = False) -> Drawing:
    """Draw horizontal bars, one below the other, split into parts; labels stay readable.

    With `of_whole` all have the same length and show each part's share.
    """
    low, high = min(0.0, *series.values), max(0.0, *series.values)
    drawn: list[str] = []
    for index, (label, row) in enumerate(zip(series.labels, series.rows, strict=True)):
        y, whole = GAP + index * (BAR + GAP), sum(row)
        scale = (WIDTH - LABELS - FIGURES) / ((whole if of_whole else high - low) or 1.0)
        x = LABELS + (min(whole, 0.0) - low) * scale
        drawn.append(_text("label", LABELS - 8, y + 16, label, "end"))
        for place, (part, value) in enumerate(zip(series.parts, row, strict=True), start=1):
            style, name, share = "bar", label, ""
            if series.is_parted:
                style, name = f"part is-{place}", f"{label}, {part}"
                share = f" ({value / whole:.1%})" if value else ""
            width, title = abs(value) * scale, f"{name}: {series.figure(value)}{share}"
            drawn.append(_box(style, x, y, max(width, style == "bar"), title))
            x += width
        if not of_whole:
            drawn.append(_text("figure", x + 6, y + 16, series.figure(whole)))
    return _with_legend(series, drawn, GAP + len(series.labels) * (BAR + GAP))


def _line_paths(series: Series) -> Drawing:
    """Draw a line for each part in one scale, with its ends and some labels."""
    values = [value for row in series.rows for value in row]
    low, high = min(0.0, *values), max(0.0, *values)
    rise = HEIGHT - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / max(1, len(series.labels) - 1)
    drawn: list[str] = []
    for y, value in ((TOP, high), (TOP + rise, low)):
        drawn += [
            f'<line class="chart-rule" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>',
            _text("figure", LEFT - 8, y + 4, series.figure(value), "end"),
        ]
    for place, part in enumerate(series.parts):
        points = [
            (LEFT + index * step, TOP + rise - (row[place] - low) / ((high - low) or 1) * rise)
            for index, row in enumerate(series.rows)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f" is-{place + 1}" if series.is_parted else ""
        drawn.append(
            f'<polyline class="chart-line{style}" points="{path}"><title>{escape(part)}</title>'
            "</polyline>"
        )
        spots = zip(points, series.labels, series.rows, strict=True)
        drawn += [
            f'<circle class="chart-point" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{escape(label)}: {escape(series.figure(row[0]))}</title></circle>"
            for (x, y), label, row in (() if series.is_parted else spots)
        ]
    for index in range(0, len(series.labels), max(1, len(series.labels) // 8)):
        x = LEFT + index * step
        drawn.append(_text("label", x, HEIGHT - 14, series.labels[index], "middle"))
    return _with_legend(series, drawn, HEIGHT)


def _shares(series: Series) -> Drawing:
    """Draw one bar split into parts, and a line of text for each."""
    whole = sum(series.values)
    drawn, x = list[str](), 0.0
    for index, (label, value) in enumerate(zip(series.labels, series.values, strict=True)):
        y, share = 70 + index * 24, f"{value / whole:.1%}"
        style, width = f"part is-{index + 1}", value / whole * WIDTH
        drawn += [
            _box(style, x, 8, width, f"{label}: {share}", 36),
            _box(style, 0, y - 12, 14, label, 14),
            _text("words", 24, y, label),
            _text("words", 300, y, share, "end"),
            _text("figure", 320, y, series.figure(value)),
        ]
        x += width
    return "".join(drawn), 70 + len(series.values) * 24


def _with_legend(series: Series, drawn: list[str], height: int) -> Drawing:
    """Add a legend of the parts' colours, four in a line."""
    parts = series.parts if series.is_parted else ()
    for place, part in enumerate(parts):
        x, y = place % 4 * (WIDTH // 4), height + 16 + place // 4 * 24
        drawn += [
            _box(f"part is-{place + 1}", x, y - 12, 14, part, 14),
            _text("words", x + 20, y, part),
        ]
    return "".join(drawn), height + ((len(parts) + 3) // 4 * 24 + 8 if parts else 0)


def standalone(chart: Chart) -> str:
    """Return the chart as an SVG file of its own, in print colours."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}"'
    style = "".join(f"{selector}{{{rules}}}" for selector, rules in PAPER.items())
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    inside = chart.svg.removeprefix("<svg").partition(">")
    return f"{head}{inside[0]}><style>{style}</style>{ground}{inside[2]}"


def sorted_places(result: TableResult, by: int, descending: bool) -> list[int]:
    """Return the positions of the rows, sorted by a column; blanks last."""
    places = list(range(len(result.rows)))
    if not 0 <= by < len(result.columns):
        return places

    def weight(position: int) -> tuple[float, str]:
        value = result.rows[position][by]
        figure = _figure(value)
        return (float("inf") if figure is None else float(figure), str(value).casefold())

    filled = [place for place in places if result.rows[place][by] is not None]
    blank = [place for place in places if result.rows[place][by] is None]
    return sorted(filled, key=weight, reverse=descending) + blank


ROWS_IN_ANSWER = 20
SPARE = 2  # empty lines in the form for more conditions
BETWEEN = ";"


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result prepared for display."""

    result: TableResult
    number: int
    rows: tuple[tuple[str, ...], ...]
    places: tuple[int, ...]  # each row's position in the result, from 0
    chart: Chart | None
    sorted_by: int = -1
    is_descending: bool = False

    @property
    def svg(self) -> Markup:
        """The chart's SVG, generated here with all texts escaped."""
        return Markup(self.chart.svg if self.chart else "")

    @property
    def makes_chart(self) -> bool:
        """Whether the rows can be drawn, also without a request."""
        return chart_of(self.result, "bar") is not None

    @property
    def left_out(self) -> int:
        return len(self.result.rows) - len(self.rows)


def render_result(
    session: SourceRegister,
    number: int,
    *,
    limit: int | None = None,
    order: str = "",
    chart: str = "",
) -> ResultView | None:
    """Return a source number's result; `order` is a column from 0, with - for descending."""
    stored = session.result(number)
    if stored is None:
        return None
    result = result_from(stored)
    by = int(order.lstrip("-")) if order.lstrip("-").isdecimal() else -1
    down = order.startswith("-")
    places = sorted_places(result, by, down)[:limit]
    shown = tuple(tuple(result.cells(result.rows[place])) for place in places)
    return ResultView(result, number, shown, tuple(places), chart_of(result, chart), by, down)


def result_of(session: SourceRegister, message: Message) -> ResultView | None:
    """Return the first rows of the table that an answer shows, or None."""
    if message.answer is None or message.answer.result is None:
        return None
    shown = render_result(session, message.answer.result, limit=ROWS_IN_ANSWER)
    return None if shown is None or shown.result.is_figure or not shown.rows else shown


def without_rows(text: str) -> str:
    """Return an answer's text without the table rows, which are shown below it."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("|"))


# ── The plan as a form that works without scripts ────────────────────────────────────────────────


class Form(Protocol):
    """The form data that a browser sends."""

    def getlist(self, key: str) -> list[str]: ...
    def get(self, key: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class PlanForm:
    """The values that the form shows."""

    plan: TablePlan
    columns: tuple[str, ...]
    filters: tuple[tuple[str, str, str, str], ...]  # column, part, op, values
    group: tuple[tuple[str, str], ...]
    measures: tuple[tuple[str, str], ...]
    orders: tuple[tuple[str, str], ...]  # value, words
    other_conditions: int  # conditions that the form cannot express and does not change
    ops: Sequence[str] = tuple(Op)
    parts: Sequence[str] = tuple(Part)
    kinds: Sequence[str] = tuple(Kind)


def form_of(plan: TablePlan, table: Table) -> PlanForm:
    """Return the form of a plan, with empty lines for more."""
    columns = tuple(column.name for column in table.columns)
    plain = [filter_ for filter_ in plan.filters if _is_plain(filter_)]
    filters = [
        (f.column, str(f.part), str(f.op), f"{BETWEEN} ".join(map(value_words, f.values)))
        for f in plain
    ]
    measures = [(str(measure.kind), measure.column) for measure in plan.measures]
    places = measure_places(len(plan.measures))
    return PlanForm(
        plan=plan,
        columns=columns,
        filters=(*filters, *[("", "", str(Op.IS), "")] * SPARE),
        group=(*((key.column, str(key.part)) for key in plan.group), ("", "")),
        measures=(*measures, ("", "")),
        orders=(
            (ROWS, "the order of the table"),
            *zip(places, map(measure_words, plan.measures), strict=True),
            *((name, name) for name in columns),
        ),
        other_conditions=len(plan.filters) - len(plain),
    )


def _is_plain(filter_: Filter) -> bool:
    """Return whether the form can express a condition: a column against values."""
    return not (filter_.other or filter_.column.startswith(MEASURED))


def plan_from_form(form: Form, plan: TablePlan, table: Table) -> TablePlan:
    """Return the changed plan. Raises UserError with what is missing or impossible."""
    kinds = {column.name: column.type for column in table.columns}
    conditions = _lines(form, "filter", "column", "part", "op", "values")
    limit = (form.get("limit") or "").strip()
    if limit and not limit.isdecimal():
        raise UserError(
            f"The number of rows is {limit[:20]!r}; a whole number such as 10 is expected."
        )
    read = plan_from(
        {
            "filters": [line | {"values": _values(line, kinds)} for line in conditions],
            "group": _lines(form, "group", "column", "part"),
            "measures": _lines(form, "measure", "kind", "column"),
            "limit": int(limit) if limit else None,
        }
    )
    if read.group and not read.measures:
        raise UserError(
            "Rows are put together, but no figure is chosen. Choose one, such as count."
        )
    return replace(
        plan,
        filters=(*(filter_ for filter_ in plan.filters if not _is_plain(filter_)), *read.filters),
        group=read.group,
        measures=read.measures,
        order=_order(form, len(read.measures), grouped=bool(read.group)),
        limit=read.limit,
        columns=() if read.measures else tuple(form.getlist("columns")),
        outer=plan.outer if read.measures else None,
    )


def _lines(form: Form, what: str, *fields: str) -> list[dict[str, str]]:
    """Return the lines of one kind whose first field is filled."""
    lines = zip(*(form.getlist(f"{what}_{field}") for field in fields), strict=False)
    return [dict(zip(fields, line, strict=True)) for line in lines if line[0]]


def _values(line: Mapping[str, str], kinds: Mapping[str, ColumnType]) -> tuple[Scalar, ...]:
    kind, op, part = kinds.get(line["column"]), line["op"], line["part"]
    values = tuple(filter(None, map(str.strip, line["values"].split(BETWEEN))))
    if op in (Op.BLANK, Op.FILLED):
        return ()
    if op in (Op.HAS, Op.LACKS):
        return values
    if part or kind in (ColumnType.NUMBER, ColumnType.DURATION):
        bare = [value.lstrip("Qq") if part else value for value in values]
        numbers = map(read_number, bare)
        return tuple(v if n is None else n for v, n in zip(bare, numbers, strict=True))
    if kind is ColumnType.BOOLEAN:
        return tuple(value.casefold() in ("yes", "true", "1", "ja") for value in values)
    return values


def _order(form: Form, measures: int, *, grouped: bool) -> tuple[Order, ...]:
    by = form.get("order") or ROWS
    down = form.get("descending") is not None
    if by.startswith(MEASURED) and by not in measure_places(measures):
        by = ROWS
    is_default = by == ROWS and (not down or measures > 0)
    return () if is_default or (measures and not grouped) else (Order(by, down),)
