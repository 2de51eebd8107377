"""Results of plans: their rows, as Markdown, CSV and XLSX and in sentences, and their origin."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag.language.words import language_of, meanings
from rag.records import ColumnType, Source, Table
from rag.tables.plan import (
    FIGURES_ONLY,
    MEASURED,
    ROW_WORDS,
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    TablePlan,
    capitalised,
    column_of,
    key_words,
    measure_names,
    measure_words,
    part_words,
    plan_from,
)
from rag.tables.vocabulary import FIGURES, is_identifier, normalised

PLAIN = re.compile(r"-?\d+(?:\.\d+)?")  # a figure that has its column's unit
ROWS_IN_TEXT = 20
CURRENCIES = frozenset("€$£¥₹")  # written before the figure
MODEL_SQL = "a query written by the model"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would evaluate


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
    """A snapshot of a result; it can be shown when its table has changed or is deleted."""

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
    used: tuple[int, ...]  # row numbers in the document, at most the first thousand
    question: str = ""
    chart: str = ""
    notes: tuple[str, ...] = ()  # assumptions that were made

    @property
    def is_figure(self) -> bool:
        """Whether the result is a single figure."""
        return len(self.rows) == 1 and len(self.columns) == 1

    @property
    def is_sql(self) -> bool:
        """Whether a model wrote the query; the plan then only names the table."""
        return self.words == MODEL_SQL

    @property
    def id(self) -> str:
        """A hash: the same query over the same content is the same source."""
        content = json.dumps([self.table_id, self.sql, self.chart], ensure_ascii=False)
        return "table:" + hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self, row: Sequence[Any]) -> list[str]:
        """Format the cells of a row for people."""
        return [
            display_value(value, column) for value, column in zip(row, self.columns, strict=True)
        ]

    def as_source(self) -> Source:
        """Make a source for the session's register, which gives it its number."""
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
    """Read a stored result."""
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
    """Return how the columns of a plan's result are shown."""
    if not plan.measures:
        columns = (column_of(table, name) for name in names)
        return tuple(
            ResultColumn(
                name,
                column.type in FIGURES and not is_identifier(column),
                column.unit,
                column.decimals,
            )
            for name, column in zip(names, columns, strict=True)
        )
    if plan.outer is not None:
        return (_column_of_figures(table, plan.outer, plan.measures[0].column, names[0]),)
    keys = [
        ResultColumn(name, unit="" if key.part else column_of(table, key.column).unit)
        for key, name in zip(plan.group, names, strict=False)
    ]
    figures = [
        _column_of_figures(table, measure.kind, measure.column, name)
        for measure, name in zip(plan.measures, names[len(keys) :], strict=True)
    ]
    return (*keys, *figures)


def of_one_row(result: TableResult, plan: TablePlan) -> TableResult:
    """Describe a sum of one row by its column: nothing was added up."""
    if len(result.used) != 1 or plan.outer is not None:
        return result
    added = [measure for measure in plan.measures if measure.kind is Kind.SUM]
    names = dict(zip(measure_names(added), (addend.column for addend in added), strict=True))
    words = result.words
    for addend in added:
        words = words.replace(measure_words(addend), addend.column)
    columns = (
        replace(column, name=names.get(column.name, column.name)) for column in result.columns
    )
    return replace(result, words=words, columns=tuple(columns))


NUMERIC = {"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "NUMBER"}


def sql_columns(names: Sequence[str], kinds: Sequence[str]) -> tuple[ResultColumn, ...]:
    """Return how the columns of a model's query are shown, from DuckDB's types."""
    return tuple(
        ResultColumn(name, kind.split("(")[0] in NUMERIC, decimals=2)
        for name, kind in zip(names, kinds, strict=True)
    )


def _column_of_figures(table: Table, kind: Kind, column: str, name: str) -> ResultColumn:
    if kind in (Kind.SHARE, Kind.CHANGE):
        return ResultColumn(name, True, "%", 1)
    if column == ROWS or kind in (Kind.COUNT, Kind.DISTINCT):
        return ResultColumn(name, True, decimals=2 if kind is Kind.AVERAGE else 0)
    source = column_of(table, column)
    is_figure = source.type in FIGURES
    is_mean = kind in FIGURES_ONLY and kind is not Kind.SUM
    decimals = max(source.decimals, 2) if is_mean else source.decimals
    is_duration = source.type is ColumnType.DURATION
    return ResultColumn(name, is_figure, source.unit, decimals, is_duration)


def display_value(value: Any, column: ResultColumn) -> str:
    """Format a value with thousands separators, unit and its column's decimals."""
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
    """Add a unit: currencies in front, all others behind."""
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


def markdown(result: TableResult, limit: int = ROWS_IN_TEXT) -> str:
    """Write a pipe table, with figures aligned to the right."""
    head = "| " + " | ".join(cell_text(column.name) for column in result.columns) + " |"
    rule = "|" + "|".join(" ---: " if c.is_figure else " --- " for c in result.columns) + "|"
    body = (
        "| " + " | ".join(map(cell_text, result.cells(row))) + " |" for row in result.rows[:limit]
    )
    return "\n".join([head, rule, *body])


def cell_text(text: str) -> str:
    """Write text on one line, so that it neither ends its cell nor looks like a citation."""
    return unmarked(" ".join(text.split())).replace("|", "\\|")


def unmarked(text: str) -> str:
    """Escape what would look like a citation."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def as_csv(result: TableResult) -> str:
    """Write a CSV file for spreadsheets: plain figures, and no cell that is run as a formula."""
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
    """Write a workbook of one sheet, with texts as texts."""
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


_FORMS = {code: ROW_WORDS[f"said_{code}"] for code in ("en", "de")}
_OPS = {code: meanings(forms["ops"]) for code, forms in _FORMS.items()}
_FIGURES = ROW_WORDS["figures"]
_CURRENCIES = frozenset(_FIGURES["currencies"].split())
_SUPERLATIVE, _DECLINED, _PLAIN = (
    re.compile(_FIGURES[name], re.IGNORECASE) for name in ("superlative", "declined", "plain")
)
KINDS = (Kind.SUM, Kind.AVERAGE, Kind.MEDIAN, Kind.MAX, Kind.MIN, Kind.DISTINCT)


def describe_result(result: TableResult, marker: str, talk: str = "") -> str:
    """Describe the result in Markdown with its citation.

    The language is that of the question, or of the conversation where the question does not tell.
    """
    words, plan = unmarked(result.words), plan_from(result.plan)
    code = language_of(result.question, talk).code
    forms = _FORMS.get(code, _FORMS["en"])
    if not result.rows or (result.is_figure and result.rows[0][0] in (None, "")):
        form = "none" if plan.measures or not result.rows else "blank"
        text = forms[form].format(table=unmarked(result.table_name), conditions=words)
        return f"{capitalised(text)} {marker}"
    sentence = "" if result.is_sql else ResultPhrases(result, plan, code, forms).sentence()
    if result.is_figure:
        figure = result.cells(result.rows[0])[0]
        return f"{sentence or f'{capitalised(words)}: **{figure}**'} {marker}"
    count, more = len(result.rows), ""
    if count > ROWS_IN_TEXT or result.has_more:
        whole = "more than 1,000" if result.has_more else f"{count:,}"
        first = min(count, ROWS_IN_TEXT)
        more = f"\n\nThese are the first {first} of {whole} rows; {marker} has them."
    return f"{sentence or capitalised(words) + ':'} {marker}\n\n{markdown(result)}{more}"


class ResultPhrases:
    """Sentences about one result in one language."""

    def __init__(
        self, result: TableResult, plan: TablePlan, code: str, forms: Mapping[str, str]
    ) -> None:
        self.result, self.plan, self.forms = result, plan, forms
        self.ops = _OPS.get(code, _OPS["en"])

    def sentence(self) -> str:
        """Return the result as a sentence; "" where the plan is too complex for one."""
        plan = self.plan
        is_more = (plan.among, plan.step, plan.outer, plan.each, plan.group[1:])
        if any(is_more) or any(filter_.column.startswith(MEASURED) for filter_ in plan.filters):
            return ""
        if plan.order:
            made = self._end()
        elif plan.measures:
            made = self._figure()
        else:
            made = self._cells()
        return capitalised(made)

    def _say(self, form: str, **parts: str) -> str:
        conditions = f" {self.forms['and']} ".join(map(self._condition, self.plan.filters))
        where = self.forms["where"].format(conditions=conditions) if conditions else ""
        # Values are clear without their column if they are words: "speakers", not "yes" or "4".
        values = [
            unmarked(" / ".join(map(str, e.values)))
            for e in self.plan.filters
            if e.op is Op.IS
            and not (e.part or e.other)
            and all(isinstance(value, str) and len(value) > 3 for value in e.values)
        ]
        is_plain = bool(values) and len(values) == len(self.plan.filters)
        of_those = self.forms["of_those"].format(values=", ".join(values)) if is_plain else where
        return self.forms[form].format(where=where, of_those=of_those, **parts)

    def _condition(self, filter_: Filter) -> str:
        name = unmarked(key_words(Key(filter_.column, filter_.part)))
        values = [unmarked(part_words(value, filter_.part)) for value in filter_.values[:6]]
        values = values or ([unmarked(filter_.other)] if filter_.other else [])
        return " ".join(filter(None, (name, self.ops[str(filter_.op)], " / ".join(values))))

    def _end(self) -> str:
        """Describe the first row of an order."""
        result, by = self.result, self.plan.order[0]
        is_one = len(result.rows) == 1 == self.plan.limit and len(result.columns) == 2
        if not is_one or by.by == ROWS:
            return ""
        row, value = (cell_text(cell) for cell in result.cells(result.rows[0]))
        row = f"**{row}**"
        column = self.plan.measures[0].column if self.plan.measures else by.by
        match = _SUPERLATIVE.search(result.question)
        if match and _is_of_column(result.question[match.end() :], column):
            match = None  # "the longest warranty": the row has it, but is none
        if match and (not _PLAIN.search(match[0].split()[0]) or _is_adjective(match[0])):
            word = _DECLINED.sub("sten", match[0])  # "am teuersten"
            return self._say("end", row=row, word=word.lower(), value=value)
        if column == ROWS:
            side, name = ("most" if by.descending else "fewest"), self.forms["rows"]
        else:
            side, name = ("highest" if by.descending else "lowest"), _column_in_words(column)
        return self._say("side", row=row, side=self.forms[side], column=name, value=value)

    def _figure(self) -> str:
        """Describe a single figure or a count of rows."""
        if not self.result.is_figure:
            return ""
        measure = self.plan.measures[0]
        value = f"**{self.result.cells(self.result.rows[0])[0]}**"
        if measure == Measure(Kind.COUNT):
            is_one = self.result.rows[0][0] == 1
            rows = self.forms["row" if is_one else "rows"]
            if not self.plan.filters:
                rows += self.forms["of_table"].format(table=unmarked(self.result.table_name))
            return self._say("counted_one" if is_one else "counted", value=value, rows=rows)
        if measure.kind not in KINDS:
            return ""
        kind = self.forms[str(measure.kind)]
        return self._say("figure", kind=kind, column=_column_in_words(measure.column), value=value)

    def _cells(self) -> str:
        """Describe one cell of a named row, or how many rows meet a condition."""
        result, plan = self.result, self.plan
        if not result.is_figure:
            rows = self.forms["row" if len(result.rows) == 1 else "rows"]
            count = f"{len(result.rows):,}"
            return "" if result.has_more else self._say("listed", count=count, rows=rows)
        value, name = f"**{cell_text(result.cells(result.rows[0])[0])}**", plan.columns[0]
        return self._say("figure", kind="", column=_column_in_words(name), value=value)


def _is_of_column(text: str, column: str) -> bool:
    """Return whether the next word is one of the column's name."""
    following = normalised(text).split()[:1]
    return bool(following) and following[0] in normalised(_column_in_words(column)).split()


def _is_adjective(text: str) -> bool:
    """Return whether "most" is followed by an adjective ("most expensive"), not a column."""
    words = normalised(text).split()
    return len(words) == 2 and words[1] in _ADJECTIVES


_ADJECTIVES = {
    word
    for line in ROW_WORDS["adjectives"]["lines"].splitlines()
    for word in line[2:].split("|")[-1].split()
}


def _column_in_words(name: str) -> str:
    """Write a column's name in a sentence: "price_eur" is a price; its figure has the currency."""
    words = re.sub(r"[_.]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).split()
    without_currency = [word for word in words if word.casefold() not in _CURRENCIES] or words
    return unmarked(" ".join(without_currency))
