"""DuckDB over one table at a time: read only, isolated, with limits of time, memory and rows."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from rag.errors import ClientGone, TooLarge, UserError
from rag.language.amounts import read_date
from rag.records import ColumnType, Table
from rag.runtime.budget import ITEMS_BETWEEN, Lane, hang_up_reason, on_hang_up, paced
from rag.tables.plan import (
    MEASURED,
    MOST_ROWS,
    ROW,
    ROWS,
    TOTAL,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    Scalar,
    Step,
    TablePlan,
    column_of,
    measure_names,
    read_number,
)

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"
SECONDS = 10.0
THREADS = 2
WIDEST_CELL = 2_000  # characters of one value that are shown
DATA = "data"  # the name under which a query sees its table
QUERIES = Lane(4, waiting=64, share=2, what="tables")  # queries at once, of all owners
QUERY_NAME = "rows"  # the table's name in a model's SQL, with the columns' own names


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # DuckDB's names of the types
    rows: list[tuple[Any, ...]]
    has_more: bool


def run(
    path: str, *queries: str, rows: int = MOST_ROWS, seconds: float = SECONDS
) -> list[QueryResult]:
    """Run statements over one Parquet file, which they see as `data`, each within the limits.

    Raises:
        UserError: DuckDB refused a statement; the message has its reason.
        TooLarge: A statement took too much time or memory.
        OverBudget: All of them together did.
        Busy: Other queries were waiting for too long.
    """
    if not queries:
        return []
    with QUERIES.place(), _fenced(path) as connection:
        statements = paced(queries, weight=ITEMS_BETWEEN)  # checks the time before each
        return [_timed(connection, query, rows, seconds) for query in statements]


@contextmanager
def _fenced(path: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a connection that can read this file only; a query cannot change that."""
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": "",
            "max_temp_directory_size": "0KB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )
    with closing(connection):
        connection.read_parquet(path).create_view(DATA)
        connection.execute("SET allowed_paths = [?]", [path])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _timed(
    connection: "duckdb.DuckDBPyConnection", sql: str, most_rows: int, seconds: float
) -> QueryResult:
    import duckdb

    def interrupt() -> None:
        with suppress(duckdb.ConnectionException):  # it may be closed already
            connection.interrupt()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    on_hang_up(interrupt)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchmany(most_rows + 1)
        described = cursor.description or []
    except duckdb.InterruptException as error:
        if (reason := hang_up_reason()) is not None:
            raise ClientGone(reason) from error
        raise TooLarge(
            f"The query took longer than {seconds:g} seconds, the limit. Ask for less: "
            "name a condition, or group less finely."
        ) from error
    except duckdb.OutOfMemoryException as error:
        raise TooLarge(
            f"The query needs more than {MEMORY} of memory, the limit. Ask for less: name a "
            "condition, or group less finely."
        ) from error
    except duckdb.Error as error:
        reason = str(error).splitlines()[0][:300]
        raise UserError(f"The table cannot answer that: {reason}") from error
    finally:
        timer.cancel()
    return QueryResult(
        names=tuple(str(column[0]) for column in described),
        kinds=tuple(str(column[1]) for column in described),
        rows=[tuple(map(_plain, row)) for row in rows[:most_rows]],
        has_more=len(rows) > most_rows,
    )


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat(" ") if hasattr(value, "hour") else value.isoformat()
    if isinstance(value, str):
        return value[:WIDEST_CELL]
    if isinstance(value, float):
        return float(f"{value:.15g}")  # the sixteenth digit of a sum is a rounding error
    if value is None or isinstance(value, int | bool):
        return value
    return float(value) if hasattr(value, "as_tuple") else str(value)[:WIDEST_CELL]


Expression = exp.Expr
COMPARED = {
    Op.LESS: exp.LT, Op.AT_MOST: exp.LTE, Op.MORE: exp.GT, Op.AT_LEAST: exp.GTE,
    Op.IS: exp.EQ, Op.NOT: exp.NEQ,
}  # fmt: skip
BOUNDS = frozenset({Op.LESS, Op.AT_MOST, Op.MORE, Op.AT_LEAST})
HUNDRED = exp.Literal.number("100.0")
NO_TOTAL = exp.not_(exp.column(TOTAL))
AGGREGATES = {
    Kind.SUM: "sum", Kind.AVERAGE: "avg", Kind.MEDIAN: "median", Kind.MIN: "min", Kind.MAX: "max",
}  # fmt: skip


class Sql:
    """Translates plans over one table to SQL."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._index = {column.name: index for index, column in enumerate(table.columns)}

    def query(self, plan: TablePlan) -> exp.Select:
        """Return the query of a plan, for one row more than is shown, to detect further rows."""
        if plan.measures:
            select = self._measured(plan)
        else:
            names = plan.columns or tuple(column.name for column in self._table.columns)
            select = exp.select(*(self._displayed(name).as_(name, quoted=True) for name in names))
            select = self._ordered(self._from_rows(select, plan), plan)
        return self._cut(select, plan, MOST_ROWS + 1)

    def rows(self, plan: TablePlan) -> exp.Select:
        """Return the query for the numbers of the rows from which the figures are computed."""
        select = self._from_rows(exp.select(exp.column(ROW)), plan)
        if plan.measures:
            return select.limit(MOST_ROWS)
        return self._cut(self._ordered(select, plan), plan, MOST_ROWS)

    def _cut(self, select: exp.Select, plan: TablePlan, most: int) -> exp.Select:
        """Limit the rows, or with `each` the rows for each value of a column."""
        if not plan.each or not plan.limit:
            return select.limit(min(plan.limit or most, most))
        order = select.args["order"]
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[self._key(key) for key in plan.each],
            order=exp.Order(expressions=[expression.copy() for expression in order.expressions]),
        )
        keys = [exp.Ordered(this=self._key(key), nulls_first=False) for key in plan.each]
        order.set("expressions", [*keys, *order.expressions])
        select.set("qualify", exp.Qualify(this=place <= plan.limit))
        return select.limit(most)

    def stretch(self, offset: int, limit: int, words: str) -> exp.Select:
        """Select rows in the order of the file, numbers first; only those with all of the words."""
        query = self._as_written_rows()
        sought = dict.fromkeys(words.casefold().split())
        if sought:
            # Joined with line breaks, so that no word spans two cells.
            texts = [
                exp.cast(self._displayed(column.name), "text") for column in self._table.columns
            ]
            row = exp.Lower(this=exp.func("concat_ws", exp.Literal.string("\n"), *texts))
            _only(query, [_contains_word(row.copy(), word) for word in sought])
        return query.offset(offset, copy=False).limit(limit, copy=False)

    def numbered(self, numbers: Sequence[int]) -> exp.Select:
        """Select the rows with these numbers."""
        return _only(self._as_written_rows(), [exp.column(ROW).isin(*(numbers or (-1,)))])

    def before(self, number: int) -> exp.Select:
        """Count the rows before the one with this number."""
        return exp.select("count(*)").from_(DATA).where(exp.column(ROW) < number)

    def values(self, name: str, limit: int, among: Sequence[str] = ()) -> exp.Select:
        """Select distinct texts of a column; `among` are lower-case texts to restrict them to."""
        text = self._displayed(name)
        select = exp.select(text).distinct().from_(DATA).where(NO_TOTAL)
        if among:
            select = select.where(exp.Lower(this=text.copy()).isin(*among))
        return select.limit(limit)

    def _as_written_rows(self) -> exp.Select:
        names = [self._displayed(column.name) for column in self._table.columns]
        numbered = [name.as_(f"x{index}") for index, name in enumerate(names)]
        return exp.select(ROW, *numbered).from_(DATA, copy=False).order_by(ROW, copy=False)

    def _from_rows(self, select: exp.Select, plan: TablePlan) -> exp.Select:
        of_rows = [filter_ for filter_ in plan.filters if not filter_.column.startswith(MEASURED)]
        conditions = [NO_TOTAL.copy(), *map(self.condition, paced(of_rows))]
        if plan.step is not None:
            conditions.append(self._beside(plan.step))
        if plan.among is not None:
            conditions.append(self._among(plan.among))
        return _only(select.from_(DATA, copy=False), conditions)

    def _among(self, plan: TablePlan) -> Expression:
        """Return the condition that keeps only the rows, or the groups, of another plan."""
        if not plan.group:
            return exp.column(ROW).isin(query=self.rows(plan))
        keys = [exp.column(name, quoted=True) for name in key_names(plan.group)]
        groups = exp.select(*keys).from_(self.query(plan).subquery("given"))
        here = [self._key(key) for key in plan.group]
        return (exp.Tuple(expressions=here) if len(here) > 1 else here[0]).isin(query=groups)

    # ── Rows ─────────────────────────────────────────────────────────────────────────────────

    def _value(self, name: str, part: Part = Part.WHOLE) -> Expression:
        if name == ROWS:
            return exp.column(ROW)
        column = column_of(self._table, name)
        value = exp.column(f"c{self._index[column.name]}")
        if part is Part.WHOLE:
            return value
        if column.type is ColumnType.QUARTER:
            if part is Part.YEAR:
                return exp.IntDiv(this=value, expression=exp.Literal.number(10))
            return exp.Mod(this=value, expression=exp.Literal.number(10))
        return exp.Extract(this=exp.var(str(part)), expression=value)

    def _displayed(self, name: str) -> Expression:
        column = column_of(self._table, name)
        index = self._index[column.name]
        return exp.column(f"t{index}" if column.has_text else f"c{index}")

    def _ordered(self, select: exp.Select, plan: TablePlan) -> exp.Select:
        for order in plan.order:
            value = self._value(order.by)
            select.order_by(_directed(value, order), copy=False)
            if order.by != ROWS:
                is_blank = exp.Is(this=value.copy(), expression=exp.null())
                select.where(exp.not_(is_blank), copy=False)
        return select.order_by(exp.column(ROW), copy=False)

    def _beside(self, step: Step) -> Expression:
        """Return the condition for rows a number of rows after (or before) those that match."""
        row, ahead = exp.column(ROW), step.rows > 0
        rows = exp.select(row).from_(DATA).where(NO_TOTAL)
        is_match = _join_balanced(exp.And, [self.condition(filter_) for filter_ in step.of])
        edge = rows.where(is_match).order_by(row).limit(1).subquery()
        beside = rows.where(row > edge if ahead else row < edge)
        beside = beside.where(exp.not_(exp.func("coalesce", is_match, exp.false())))
        beside = beside.order_by(row if ahead else row.desc()).limit(abs(step.rows))
        return row.isin(query=beside)

    def condition(self, filter_: Filter) -> Expression:
        """Translate a filter; its values become literals written by sqlglot."""
        value = self._value(filter_.column, filter_.part)
        if filter_.op in (Op.BLANK, Op.FILLED):
            blank = value.is_(exp.null())
            return blank if filter_.op is Op.BLANK else exp.not_(blank)
        if filter_.other:
            return COMPARED[filter_.op](
                this=value, expression=self._value(filter_.other, filter_.part)
            )
        if filter_.op in (Op.HAS, Op.LACKS):
            return self._containing(filter_)
        if self._means_text(filter_):
            text = exp.Trim(this=exp.Lower(this=self._displayed(filter_.column)))
            same = text.isin(*(str(value).strip().lower() for value in filter_.values))
            return same if filter_.op is Op.IS else exp.not_(same)
        literals = [self._literal(filter_, operand) for operand in filter_.values]
        if filter_.op in BOUNDS:
            return COMPARED[filter_.op](this=value, expression=literals[0])
        column = None if filter_.column == ROWS else column_of(self._table, filter_.column)
        is_text = column is not None and column.type is ColumnType.TEXT
        same = (exp.Lower(this=value) if is_text else value).isin(*literals)
        return same if filter_.op is Op.IS else exp.or_(exp.not_(same), value.is_(exp.null()))

    def _containing(self, filter_: Filter) -> Expression:
        text = exp.Lower(this=exp.cast(self._displayed(filter_.column), "text"))
        words = [str(value).lower() for value in paced(filter_.values)]
        contains = _join_balanced(exp.Or, [_contains_word(text.copy(), word) for word in words])
        if filter_.op is Op.HAS:
            return contains
        return exp.not_(exp.func("coalesce", contains, exp.false()))

    def _means_text(self, filter_: Filter) -> bool:
        """Return whether a filter compares texts with a column of values parsed from texts."""
        if filter_.column == ROWS or filter_.part or filter_.op not in (Op.IS, Op.NOT):
            return False
        is_text = all(isinstance(value, str) for value in filter_.values)
        return is_text and column_of(self._table, filter_.column).has_text

    def _literal(self, filter_: Filter, value: Scalar) -> Expression:
        column = None if filter_.column == ROWS else column_of(self._table, filter_.column)
        if column is None or filter_.part:
            return _number_literal(value)
        if column.type is ColumnType.TEXT:
            return exp.Literal.string(str(value).lower())
        if column.type is ColumnType.BOOLEAN:
            return exp.true() if value in (True, "yes", "true") else exp.false()
        if column.type is ColumnType.DATE:
            moment = read_date(str(value)) or date(int(float(value)), 1, 1)
            kind = "timestamp" if isinstance(moment, datetime) else "date"
            return exp.cast(exp.Literal.string(moment.isoformat()), kind)
        return _number_literal(value)

    # ── Figures ──────────────────────────────────────────────────────────────────────────────

    def _measured(self, plan: TablePlan) -> exp.Select:
        names = measure_names(plan.measures)
        keys = [self._key(key) for key in plan.group]
        labels = key_names(plan.group)
        figures = [self._figure(measure, plan.group) for measure in plan.measures]
        select = exp.select(
            *(key.copy().as_(label, quoted=True) for key, label in zip(keys, labels, strict=True)),
            *(figure.as_(name, quoted=True) for figure, name in zip(figures, names, strict=True)),
        )
        select = self._from_rows(select, plan)
        if keys:
            select.group_by(*(key.copy() for key in keys), copy=False)
        for filter_ in plan.filters:
            if filter_.column.startswith(MEASURED):
                figure = figures[int(filter_.column.removeprefix(MEASURED)) - 1]
                bound = COMPARED[filter_.op](
                    this=figure.copy(), expression=_number_literal(filter_.values[0])
                )
                select.having(bound, copy=False)
        if plan.outer is not None:
            return self._outer(select, plan.outer, names[0])
        for order in plan.order:
            by = _directed(self._group_order(plan, order, figures), order)
            select.order_by(by, copy=False)
        for key in keys:
            select.order_by(exp.Ordered(this=key.copy(), nulls_first=False), copy=False)
        return select

    def _key(self, key: Key) -> Expression:
        column = column_of(self._table, key.column)
        if key.part is Part.WHOLE and column.has_text and column.type is not ColumnType.DATE:
            is_plain = column.type in (ColumnType.NUMBER, ColumnType.BOOLEAN)
            return self._value(key.column) if is_plain else self._displayed(key.column)
        return self._value(key.column, key.part)

    def _group_order(
        self, plan: TablePlan, order: Order, figures: Sequence[Expression]
    ) -> Expression:
        if order.by.startswith(MEASURED):
            return figures[int(order.by.removeprefix(MEASURED)) - 1].copy()
        key = next((key for key in plan.group if key.column == order.by), None)
        return exp.Min(this=self._value(order.by)) if key is None else self._key(key)

    def _figure(self, measure: Measure, group: Sequence[Key]) -> Expression:
        value = self._value(measure.column)
        if measure.kind is Kind.COUNT:
            return exp.Count(this=exp.Star() if measure.column == ROWS else value)
        if measure.kind is Kind.DISTINCT:
            return exp.Count(this=exp.Distinct(expressions=[value]))
        if measure.kind is Kind.SPREAD:
            return exp.Max(this=value) - exp.Min(this=value.copy())
        if measure.kind is Kind.SHARE:
            return self._share(measure, is_grouped=bool(group))
        if measure.kind is Kind.CHANGE:
            return self._change(measure, group)
        if measure.kind is Kind.SUM:
            return self._sum(measure.column)
        return exp.func(AGGREGATES[measure.kind], value)

    def _sum(self, name: str) -> Expression:
        """Sum a column; fractions without rounding errors in their last digits."""
        has_fractions = column_of(self._table, name).decimals > 0
        return exp.func("fsum" if has_fractions else "sum", self._value(name))

    def _share(self, measure: Measure, *, is_grouped: bool) -> Expression:
        """Return the share of all groups together, or without groups of the whole table."""
        part = exp.Count(this=exp.Star()) if measure.column == ROWS else self._sum(measure.column)
        whole: Expression = exp.Window(this=exp.Sum(this=part.copy()))
        if not is_grouped:
            whole = exp.select(part.copy()).from_(DATA).where(NO_TOTAL).subquery()
        return part * HUNDRED / exp.func("nullif", whole, exp.Literal.number(0))

    def _change(self, measure: Measure, group: Sequence[Key]) -> Expression:
        """Return the change against the previous period, within the other group keys."""
        times = [key for key in group if self._is_time(key)] or list(group[-1:])
        now = self._sum(measure.column)
        ordered = [exp.Ordered(this=self._key(key), nulls_first=False) for key in times]
        before = exp.Window(
            this=exp.func("lag", now.copy()),
            partition_by=[self._key(key) for key in group if key not in times],
            order=exp.Order(expressions=ordered) if ordered else None,
        )
        base = exp.func("nullif", exp.Abs(this=before.copy()), exp.Literal.number(0))
        return (now - before) * HUNDRED / base

    def _is_time(self, key: Key) -> bool:
        kind = column_of(self._table, key.column).type
        is_dated = bool(key.part) or kind in (ColumnType.DATE, ColumnType.QUARTER)
        return is_dated or key.column.casefold() in ("year", "quarter", "month", "jahr", "monat")

    def _outer(self, inner: exp.Select, kind: Kind, name: str) -> exp.Select:
        value = exp.column(name, quoted=True)
        if kind is Kind.SPREAD:
            figure: Expression = exp.Max(this=value) - exp.Min(this=value.copy())
        elif kind in (Kind.COUNT, Kind.DISTINCT):
            figure = exp.Count(this=exp.Star())
        else:
            figure = exp.func(AGGREGATES[kind], value)
        return exp.select(figure.as_(f"{kind} of {name}", quoted=True)).from_(
            inner.subquery("groups")
        )


def key_names(group: Sequence[Key]) -> list[str]:
    """Return the names of the group columns."""
    return [f"{key.column} ({key.part})" if key.part else key.column for key in group]


def _only(select: exp.Select, conditions: Sequence[Expression]) -> exp.Select:
    """Add conditions to a query in place, without copying the tree for each."""
    return select.where(_join_balanced(exp.And, conditions), copy=False)


def _join_balanced(kind: type[exp.Connector], parts: Sequence[Expression]) -> Expression:
    """Join conditions in a balanced tree: writing a deep one exceeds the recursion limit."""
    level = [exp.paren(p, copy=False) if isinstance(p, exp.Connector) else p for p in parts]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        unpaired = level[-1:] if len(level) % 2 else []
        level = [kind(this=one, expression=other) for one, other in pairs] + unpaired
    return level[0]


def _contains_word(text: Expression, word: str) -> Expression:
    return exp.func("contains", text, exp.Literal.string(word))


def _directed(value: Expression, order: Order) -> exp.Ordered:
    return exp.Ordered(this=value.copy(), desc=order.descending, nulls_first=False)


def _number_literal(value: Scalar) -> Expression:
    number = value if isinstance(value, int | float) else read_number(str(value))
    if number is None:
        return exp.null()
    literal = exp.Literal.number(repr(abs(number)))
    return exp.Neg(this=literal) if number < 0 else literal


ROW_NUMBER = "#"  # the column of row numbers, when they are asked for


class ModelSql:
    """A SELECT by a model over one table's own names, with the rows behind its figures."""

    def __init__(self, table: Table, sql: str) -> None:
        """Raises UserError with what is not allowed."""
        self._query = parsed(sql, [QUERY_NAME])
        self.text = self._query.sql(dialect="duckdb", pretty=True)
        self._table = table

    @property
    def query(self) -> exp.Query:
        """The query to run."""
        return self._over(self._query)

    def rows(self, row: Sequence[Any] | None = None) -> exp.Query | None:
        """Return the query for the numbers of the rows it reads, or those behind one result row."""
        readers = [
            select
            for select in self._query.find_all(exp.Select)
            if any(source.name == QUERY_NAME for source in _source_tables(select))
        ]
        if row is not None and (readers != [self._query] or not self._query.args.get("group")):
            return None
        parts = [part for reader in readers for part in self._numbers(reader, row)]
        if not parts:
            return None
        whole = exp.union(*parts, distinct=True) if len(parts) > 1 else parts[0]
        numbers = exp.select(ROW_NUMBER_COLUMN).from_(whole.subquery("used"))
        numbered = exp.column(ROW).as_(ROW_NUMBER, quoted=True)
        ordered = numbers.distinct().order_by(ROW_NUMBER_COLUMN.copy()).limit(MOST_ROWS)
        return self._over(ordered, numbered)

    def added(self) -> Iterator[tuple[str, bool]]:
        """Yield the columns that are aggregated to a figure, and whether as a sum."""
        others = {alias.alias: alias.this for alias in self._query.find_all(exp.Alias)}
        for figure in self._query.find_all(exp.Sum, exp.Avg, exp.Median):
            for name in _underlying_columns(figure.this, others):
                yield name, isinstance(figure, exp.Sum)

    def _over(self, query: exp.Query, *numbers: exp.Expr) -> exp.Query:
        columns = [
            exp.column(f"c{index}").as_(column.name, quoted=True)
            for index, column in enumerate(self._table.columns)
        ]
        data = exp.select(*columns, *numbers).from_(DATA).where(NO_TOTAL)
        whole = query.with_(QUERY_NAME, as_=data)
        clause = whole.args["with_"]
        # Other expressions use it.
        clause.set("expressions", [clause.expressions[-1], *clause.expressions[:-1]])
        return whole

    def _numbers(self, select: exp.Select, row: Sequence[Any] | None) -> list[exp.Select]:
        """Return queries for the row numbers, one for each name under which the table is read."""
        plain = select.copy()
        is_plain = not (
            plain.args.get("group") or plain.find(exp.AggFunc) or plain.args.get("distinct")
        )
        for part in ("group", "having", "distinct", "qualify", "windows", "with_"):
            plain.set(part, None)
        if not is_plain:
            for part in ("order", "limit", "offset"):
                plain.set(part, None)
        if row is not None:  # only the group of this result row
            keys = set(map(_plain_sql, _grouped(select)))
            for expression, value in zip(select.expressions, row, strict=False):
                if _plain_sql(expression.unalias()) in keys:
                    key = expression.unalias().copy()
                    plain = plain.where(exp.NullSafeEQ(this=key, expression=exp.convert(value)))
        return [
            plain.copy().select(
                exp.column(ROW_NUMBER, table=source.alias_or_name, quoted=True), append=False
            )
            for source in _source_tables(select)
            if source.name == QUERY_NAME
        ]


ROW_NUMBER_COLUMN = exp.column(ROW_NUMBER, quoted=True)


def _source_tables(select: exp.Select) -> list[exp.Table]:
    joined = [select.args.get("from_"), *(select.args.get("joins") or ())]
    return [
        source.this
        for source in joined
        if source is not None and isinstance(source.this, exp.Table)
    ]


def _grouped(select: exp.Select) -> list[exp.Expr]:
    """Return the group keys, with column numbers and aliases resolved."""
    group = select.args["group"]
    by_alias = {expression.alias_or_name: expression.unalias() for expression in select.expressions}
    keys = group.expressions or [
        expression for expression in select.expressions if not expression.find(exp.AggFunc)
    ]  # GROUP BY ALL
    results = []
    for key in keys:
        if isinstance(key, exp.Literal) and key.is_int:
            key = select.expressions[int(key.name) - 1]
        elif isinstance(key, exp.Column) and key.name in by_alias:
            key = by_alias[key.name]
        results.append(key.unalias())
    return results


def _plain_sql(key: exp.Expr) -> str:
    return key.sql(dialect="duckdb")


FORBIDDEN = (
    exp.Command, exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Alter, exp.Set,
    exp.Pragma, exp.Attach, exp.Detach, exp.Copy, exp.Into, exp.Lock, exp.Placeholder,
    exp.Parameter, exp.Merge, exp.Use, exp.Transaction, exp.Lateral,
)  # fmt: skip
FUNCTIONS = frozenset(
    """
    contains lower upper trim round abs floor ceil coalesce nullif length substring replace
    strftime year month day quarter date_trunc date_part median regexp_matches starts_with mode
    first last arg_max arg_min stddev variance quantile_cont greatest least try_cast any_value
    count_if sign sqrt ln log power mod concat concat_ws left right strip split_part lag lead
    row_number rank dense_rank percent_rank ntile first_value last_value
    """.split()  # noqa: SIM905  (a list of thirty quoted words reads worse)
)


def parsed(sql: str, tables: Sequence[str]) -> exp.Query:
    """Parse one SELECT over known tables. Raises UserError with what is not allowed."""
    try:
        statements = [statement for statement in parse(sql, read="duckdb") if statement is not None]
    except (SqlglotError, RecursionError) as error:
        raise UserError(f"That is no SQL: {str(error).splitlines()[0][:200]}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise UserError("Only one SELECT can be run.")
    query = statements[0]
    for node in query.walk():
        _check(node)
    names = {cte.alias_or_name for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        is_plain = isinstance(table.this, exp.Identifier) and not table.db and not table.catalog
        if not is_plain or (table.name not in tables and table.name not in names):
            raise UserError(f"There is no table {table.name or table.sql()[:60]!r} to ask.")
    return query


def _check(node: exp.Expr) -> None:
    if isinstance(node, FORBIDDEN):
        raise UserError(f"{type(node).__name__.upper()} is not allowed in a query.")
    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise UserError("RECURSIVE is not allowed in a query.")
    if isinstance(node, exp.Anonymous) and node.name.casefold() not in FUNCTIONS:
        raise UserError(f"The function {node.name}() is not allowed in a query.")


def _underlying_columns(value: exp.Expr, others: Mapping[str, exp.Expr]) -> Iterator[str]:
    """Yield the columns that an expression is computed from, through aliases."""
    if isinstance(value, exp.Column):
        behind = {key: expression for key, expression in others.items() if key != value.name}
        yield value.name
        if value.name in others:
            yield from _underlying_columns(others[value.name], behind)
        return
    is_chosen = isinstance(value, exp.If)  # its condition adds nothing
    chosen = [value.args.get("true"), value.args.get("false")]
    for part in filter(None, chosen if is_chosen else value.iter_expressions()):
        yield from _underlying_columns(part, others)
