"""Results of tables as the pages show them: rows, picture, plan."""

from dataclasses import dataclass

from markupsafe import Markup

from rag.records import Message
from rag.seams import SessionHandle
from rag.tables.execution.chart import Chart, chart_of, sorted_places
from rag.tables.execution.result import TableResult, result_from

ROWS_IN_ANSWER = 20


@dataclass(frozen=True, slots=True)
class ShownResult:
    """A result ready to be shown."""

    result: TableResult
    number: int
    rows: tuple[tuple[str, ...], ...]
    places: tuple[int, ...]  # where each stands in the result, from 0
    chart: Chart | None
    sorted_by: int = -1
    is_descending: bool = False

    @property
    def svg(self) -> Markup:
        """Written by us; every text in it is escaped there."""
        return Markup(self.chart.svg if self.chart else "")

    @property
    def makes_chart(self) -> bool:
        """Whether these rows can be drawn, also where nobody asked for it."""
        return chart_of(self.result, "bar") is not None

    @property
    def left_out(self) -> int:
        return len(self.result.rows) - len(self.rows)


def shown_result(
    session: SessionHandle,
    number: int,
    *,
    limit: int | None = None,
    order: str = "",
    chart: str = "",
) -> ShownResult | None:
    """The result behind a number; `order` is a column from 0, with a minus for descending."""
    stored = session.result(number)
    if stored is None:
        return None
    result = result_from(stored)
    by = int(order.lstrip("-")) if order.lstrip("-").isdecimal() else -1
    down = order.startswith("-")
    places = sorted_places(result, by, down)[:limit]
    shown = tuple(tuple(result.shown(result.rows[place])) for place in places)
    return ShownResult(result, number, shown, tuple(places), chart_of(result, chart), by, down)


def result_of(session: SessionHandle, message: Message) -> ShownResult | None:
    """The table that an answer shows, its first rows."""
    if message.answer is None or message.answer.result is None:
        return None
    found = shown_result(session, message.answer.result, limit=ROWS_IN_ANSWER)
    return None if found is None or found.result.is_figure or not found.rows else found


def without_rows(text: str) -> str:
    """An answer's words without the rows that stand below them as a table."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("|"))
