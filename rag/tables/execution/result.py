"""What a plan gave: rows as people read them, as Markdown, CSV and XLSX, and what they rest on."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag.records import ColumnType, Source, Table
from rag.tables.plan import (
    FIGURES_ONLY,
    ROWS,
    Kind,
    TablePlan,
    column_of,
    measure_names,
    measure_words,
)
from rag.tables.wordforms import is_identifier

PLAIN = re.compile(r"-?\d+(?:\.\d+)?")  # a figure whose unit is its column's
SHOWN_IN_TEXT = 20
CURRENCIES = frozenset("€$£¥₹")  # written before the figure
MODEL_SQL = "a query written by the model"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets would run


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result."""

    name: str
    is_figure: bool = False
    unit: str = ""
    decimals: int = 0
    is_duration: bool = False


@dataclass(frozen=True, slots=True)
class TableResult:
    """A snapshot: it can be opened when the table has changed or is gone."""

    table_id: str
    table_name: str
    document_id: str
    document_name: str
    document_title: str
    plan: dict[str, Any]
    words: str  # the plan in words
    sql: str
    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    has_more: bool
    used: tuple[int, ...]  # row numbers in the document, the first thousand
    question: str = ""
    chart: str = ""
    notes: tuple[str, ...] = ()  # what had to be assumed

    @property
    def is_figure(self) -> bool:
        """One figure alone."""
        return len(self.rows) == 1 and len(self.columns) == 1

    @property
    def is_sql(self) -> bool:
        """Whether a model wrote the query: the plan says no more than its table."""
        return self.words == MODEL_SQL

    @property
    def id(self) -> str:
        """The same plan over the same content is the same source."""
        content = json.dumps([self.table_id, self.sql, self.chart], ensure_ascii=False)
        return "table:" + hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def shown(self, row: Sequence[Any]) -> list[str]:
        """The cells of a row as people read them."""
        return [shown(value, column) for value, column in zip(row, self.columns, strict=True)]

    def as_source(self) -> Source:
        """What the session's register keeps; its number is given there."""
        text = markdown(self, len(self.rows))
        return Source(
            number=0,
            chunk_id=self.id,
            document_id=self.document_id,
            document_name=self.document_name,
            document_title=self.document_title,
            locator=f"computed from {self.table_name}: {self.words}"[:300],
            heading_path=(),
            text=text,
            passage=text,
            content_hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        )


def result_from(stored: Mapping[str, Any]) -> TableResult:
    """A stored result."""
    return TableResult(
        **{
            **stored,
            "columns": tuple(ResultColumn(**column) for column in stored["columns"]),
            "rows": tuple(map(tuple, stored["rows"])),
            "used": tuple(stored["used"]),
            "notes": tuple(stored.get("notes", ())),
        }
    )


def result_columns(plan: TablePlan, table: Table, names: Sequence[str]) -> tuple[ResultColumn, ...]:
    """How the columns of a query are to be shown."""
    if not plan.measures:
        return tuple(_own(table, name) for name in names)
    if plan.outer is not None:
        return (_measured(table, plan.outer, plan.measures[0].column, names[0]),)
    keys = [
        ResultColumn(name) if key.part else _key(table, key.column, name)
        for key, name in zip(plan.group, names, strict=False)
    ]
    figures = [
        _measured(table, measure.kind, measure.column, name)
        for measure, name in zip(plan.measures, names[len(keys) :], strict=True)
    ]
    return (*keys, *figures)


def of_one_row(result: TableResult, plan: TablePlan) -> TableResult:
    """In the words of its columns where only one row was used: nothing was added up."""
    if len(result.used) != 1 or plan.outer is not None:
        return result
    added = [measure for measure in plan.measures if measure.kind is Kind.SUM]
    names = dict(zip(measure_names(added), (each.column for each in added), strict=True))
    words = result.words
    for each in added:
        words = words.replace(measure_words(each), each.column)
    columns = (
        replace(column, name=names.get(column.name, column.name)) for column in result.columns
    )
    return replace(result, words=words, columns=tuple(columns))


NUMERIC = {"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "NUMBER"}


def sql_columns(names: Sequence[str], kinds: Sequence[str]) -> tuple[ResultColumn, ...]:
    """How the columns of a model's query are shown, by the types that DuckDB gives them."""
    return tuple(
        ResultColumn(name, kind.split("(")[0] in NUMERIC, decimals=2)
        for name, kind in zip(names, kinds, strict=True)
    )


def _key(table: Table, column: str, name: str) -> ResultColumn:
    return ResultColumn(name, unit=column_of(table, column).unit)


def _own(table: Table, name: str) -> ResultColumn:
    column = column_of(table, name)
    is_figure = column.type in (ColumnType.NUMBER, ColumnType.DURATION)
    if column.has_text:  # shown as it was written
        return ResultColumn(
            name, is_figure and not is_identifier(column), column.unit, column.decimals
        )
    plain = is_identifier(column)
    return ResultColumn(name, is_figure and not plain, column.unit, column.decimals)


def _measured(table: Table, kind: Kind, column: str, name: str) -> ResultColumn:
    if kind in (Kind.SHARE, Kind.CHANGE):
        return ResultColumn(name, True, "%", 1)
    if column == ROWS or kind in (Kind.COUNT, Kind.DISTINCT):
        return ResultColumn(name, True, decimals=2 if kind is Kind.AVERAGE else 0)
    own = column_of(table, column)
    is_figure = own.type in (ColumnType.NUMBER, ColumnType.DURATION)
    is_mean = kind in FIGURES_ONLY and kind is not Kind.SUM
    decimals = max(own.decimals, 2) if is_mean else own.decimals
    is_duration = own.type is ColumnType.DURATION
    return ResultColumn(name, is_figure, own.unit, decimals, is_duration)


def shown(value: Any, column: ResultColumn) -> str:
    """A value with thousands, unit and as many decimals as its column has."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and column.is_figure and column.unit and PLAIN.fullmatch(value):
        value = float(value)
    if isinstance(value, str) or not column.is_figure:
        return str(value)
    if column.is_duration:
        return _clock(float(value))
    decimals = 2 if column.decimals == 1 and column.unit in CURRENCIES else column.decimals
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{decimals}f}"
    return with_unit(text, column.unit)


def with_unit(text: str, unit: str) -> str:
    """Currencies go in front, everything else behind."""
    if not unit:
        return text
    if unit in CURRENCIES:
        return f"-{unit}{text[1:]}" if text.startswith("-") else f"{unit}{text}"
    return f"{text}{unit}" if unit == "%" else f"{text} {unit}"


def _clock(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    tail = f"{left:06.3f}".removesuffix(".000")
    return f"{int(hours)}:{int(minutes):02}:{tail}" if hours else f"{int(minutes)}:{tail}"


def markdown(result: TableResult, limit: int = SHOWN_IN_TEXT) -> str:
    """A pipe table; figures to the right."""
    head = "| " + " | ".join(cell_text(column.name) for column in result.columns) + " |"
    rule = "|" + "|".join(" ---: " if c.is_figure else " --- " for c in result.columns) + "|"
    body = (
        "| " + " | ".join(map(cell_text, result.shown(row))) + " |" for row in result.rows[:limit]
    )
    return "\n".join([head, rule, *body])


def cell_text(text: str) -> str:
    """One line that neither ends its cell nor looks like a citation."""
    return unmarked(" ".join(text.split())).replace("|", "\\|")


def unmarked(text: str) -> str:
    """Without what would look like a citation."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def as_csv(result: TableResult) -> str:
    """For spreadsheets: plain figures, and no cell that one would run as a formula."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow([_harmless(column.name) for column in result.columns])
    writer.writerows([map(_harmless, row) for row in result.rows])
    return "\ufeff" + written.getvalue()


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return "" if value is None else value


def as_xlsx(result: TableResult) -> bytes:
    """A workbook of one sheet, its texts as texts."""
    import xlsxwriter

    buffer = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(buffer, options) as book:
        sheet = book.add_worksheet("Result")
        bold = book.add_format({"bold": True})
        for index, column in enumerate(result.columns):
            sheet.write_string(0, index, column.name, bold)
        for number, row in enumerate(result.rows, start=1):
            for index, value in enumerate(row):
                if isinstance(value, int | float):
                    sheet.write(number, index, value)
                elif value is not None:
                    sheet.write_string(number, index, str(value)[:32_000])
        notes = book.add_worksheet("How")
        for number, line in enumerate((result.words, result.sql, result.document_name)):
            notes.write_string(number, 0, line[:32_000])
    return buffer.getvalue()
