"""Plans to SQL, as a syntax tree: no word of a question or a document is ever pasted into it."""

from collections.abc import Sequence
from datetime import date, datetime

from sqlglot import exp

from rag.language.dates import read_date
from rag.records import ColumnType, Table
from rag.runtime.budget import paced
from rag.tables.execution.engine import DATA
from rag.tables.parsing.types import ROW, TOTAL, read_number
from rag.tables.plan import (
    MEASURED,
    MOST_ROWS,
    ROWS,
    Filter,
    Key,
    Kind,
    Measure,
    Op,
    Order,
    Part,
    Scalar,
    TablePlan,
    column_of,
    measure_names,
)

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
    """The SQL of plans over one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._index = {column.name: index for index, column in enumerate(table.columns)}

    def query(self, plan: TablePlan) -> exp.Select:
        """What answers the plan; one row more than is shown tells that there are more."""
        if plan.measures:
            found = self._measured(plan)
        else:
            names = plan.columns or tuple(column.name for column in self._table.columns)
            found = exp.select(*(self._shown(name).as_(name, quoted=True) for name in names))
            found = self._ordered(self._from_rows(found, plan), plan)
        return self._cut(found, plan, MOST_ROWS + 1)

    def rows(self, plan: TablePlan) -> exp.Select:
        """The numbers of the rows that the figures are made of."""
        found = self._from_rows(exp.select(exp.column(ROW)), plan)
        if plan.measures:
            return found.limit(MOST_ROWS)
        return self._cut(self._ordered(found, plan), plan, MOST_ROWS)

    def _cut(self, found: exp.Select, plan: TablePlan, most: int) -> exp.Select:
        """The first so many; for each value of a column, so many of its own."""
        if not plan.each or not plan.limit:
            return found.limit(min(plan.limit or most, most))
        order = found.args["order"]
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[self._key(key) for key in plan.each],
            order=exp.Order(expressions=[expression.copy() for expression in order.expressions]),
        )
        keys = [exp.Ordered(this=self._key(key), nulls_first=False) for key in plan.each]
        order.set("expressions", [*keys, *order.expressions])
        found.set("qualify", exp.Qualify(this=place <= plan.limit))
        return found.limit(most)

    def stretch(self, offset: int, limit: int, words: str) -> exp.Select:
        """Rows as they stand in the file, their numbers first; those that hold the words."""
        query = self._as_written_rows()
        sought = dict.fromkeys(words.casefold().split())
        if sought:
            whole = self._whole_row()
            _only(query, [_holding(whole.copy(), word) for word in sought])
        return query.offset(offset, copy=False).limit(limit, copy=False)

    def _whole_row(self) -> Expression:
        """The texts of a row, a line each: a word stands in one of them, or in none."""
        texts = [exp.cast(self._shown(column.name), "text") for column in self._table.columns]
        joined = exp.func("concat_ws", exp.Literal.string("\n"), *texts)
        return exp.Lower(this=joined)

    def numbered(self, numbers: Sequence[int]) -> exp.Select:
        """The rows with these numbers."""
        wanted = exp.column(ROW).isin(*(numbers or (-1,)))
        return _only(self._as_written_rows(), [wanted])

    def before(self, number: int) -> exp.Select:
        """How many rows stand before the one with this number."""
        return exp.select("count(*)").from_(DATA).where(exp.column(ROW) < number)

    def values(self, name: str, limit: int, among: Sequence[str] = ()) -> exp.Select:
        """Different texts of a column; those that are one of some, written small."""
        shown = self._shown(name)
        found = exp.select(shown).distinct().from_(DATA).where(NO_TOTAL)
        if among:
            found = found.where(exp.Lower(this=shown.copy()).isin(*among))
        return found.limit(limit)

    def _as_written_rows(self) -> exp.Select:
        names = [self._shown(column.name) for column in self._table.columns]
        numbered = [name.as_(f"x{index}") for index, name in enumerate(names)]
        return exp.select(ROW, *numbered).from_(DATA, copy=False).order_by(ROW, copy=False)

    def _contains(self, name: str, word: str) -> Expression:
        return _holding(exp.Lower(this=exp.cast(self._shown(name), "text")), word.lower())

    def _from_rows(self, found: exp.Select, plan: TablePlan) -> exp.Select:
        of_rows = [filter_ for filter_ in plan.filters if not filter_.column.startswith(MEASURED)]
        wanted = [NO_TOTAL.copy(), *map(self.condition, paced(of_rows))]
        if plan.step is not None:
            wanted.append(self._beside(plan))
        if plan.among is not None:
            wanted.append(self._among(plan.among))
        return _only(found.from_(DATA, copy=False), wanted)

    def _among(self, plan: TablePlan) -> Expression:
        """Only the rows, or the groups' rows, that another plan gives."""
        if not plan.group:
            return exp.column(ROW).isin(query=self.rows(plan))
        keys = [exp.column(name, quoted=True) for name in key_names(plan.group)]
        given = exp.select(*keys).from_(self.query(plan).subquery("given"))
        own = exp.Tuple(expressions=[self._key(key) for key in plan.group])
        return (
            own.isin(query=given) if len(keys) > 1 else self._key(plan.group[0]).isin(query=given)
        )

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

    def _shown(self, name: str) -> Expression:
        column = column_of(self._table, name)
        at = self._index[column.name]
        return exp.column(f"t{at}" if column.has_text else f"c{at}")

    def _ordered(self, found: exp.Select, plan: TablePlan) -> exp.Select:
        for order in plan.order:
            value = self._value(order.by)
            found.order_by(_directed(value, order), copy=False)
            if order.by != ROWS:
                is_blank = exp.Is(this=value.copy(), expression=exp.null())
                found.where(exp.not_(is_blank), copy=False)
        return found.order_by(exp.column(ROW), copy=False)

    def _beside(self, plan: TablePlan) -> Expression:
        """Rows whose number follows that of the rows named, as many rows on as are asked for."""
        assert plan.step is not None
        row = exp.column(ROW)
        ahead = plan.step.rows > 0
        rows = exp.select(row).from_(DATA).where(NO_TOTAL)
        named = _together(exp.And, [self.condition(each) for each in plan.step.of])
        edge = rows.where(named).order_by(row).limit(1).subquery()
        beside = rows.where(row > edge if ahead else row < edge)
        beside = beside.where(exp.not_(exp.func("coalesce", named, exp.false())))
        beside = beside.order_by(row if ahead else row.desc()).limit(abs(plan.step.rows))
        return row.isin(query=beside)

    def condition(self, filter_: Filter) -> Expression:
        """A filter as SQL; values become literals, which sqlglot writes."""
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
            return self._as_written(filter_)
        literals = [self._literal(filter_, given) for given in filter_.values]
        if filter_.op in BOUNDS:
            return COMPARED[filter_.op](this=value, expression=literals[0])
        same = (exp.Lower(this=value) if self._is_text(filter_) else value).isin(*literals)
        return same if filter_.op is Op.IS else exp.or_(exp.not_(same), value.is_(exp.null()))

    def _containing(self, filter_: Filter) -> Expression:
        found = _together(
            exp.Or, [self._contains(filter_.column, str(v)) for v in paced(filter_.values)]
        )
        return found if filter_.op is Op.HAS else exp.not_(exp.func("coalesce", found, exp.false()))

    def _means_text(self, filter_: Filter) -> bool:
        """Whether texts are compared with a column whose values were read from texts."""
        if filter_.column == ROWS or filter_.part or filter_.op not in (Op.IS, Op.NOT):
            return False
        column = column_of(self._table, filter_.column)
        is_text = all(isinstance(given, str) for given in filter_.values)
        return is_text and column.has_text

    def _as_written(self, filter_: Filter) -> Expression:
        shown = exp.Trim(this=exp.Lower(this=self._shown(filter_.column)))
        same = shown.isin(*(str(given).strip().lower() for given in filter_.values))
        return same if filter_.op is Op.IS else exp.not_(same)

    def _is_text(self, filter_: Filter) -> bool:
        if filter_.column == ROWS:
            return False
        return column_of(self._table, filter_.column).type is ColumnType.TEXT

    def _literal(self, filter_: Filter, given: Scalar) -> Expression:
        column = None if filter_.column == ROWS else column_of(self._table, filter_.column)
        if column is None or filter_.part:
            return _number(given)
        if column.type is ColumnType.TEXT:
            return exp.Literal.string(str(given).lower())
        if column.type is ColumnType.BOOLEAN:
            return exp.true() if given in (True, "yes", "true") else exp.false()
        if column.type is ColumnType.DATE:
            found = read_date(str(given))
            moment = found or date(int(float(given)), 1, 1)
            kind = "timestamp" if isinstance(moment, datetime) else "date"
            return exp.cast(exp.Literal.string(moment.isoformat()), kind)
        return _number(given)

    # ── Figures ──────────────────────────────────────────────────────────────────────────────

    def _measured(self, plan: TablePlan) -> exp.Select:
        names = measure_names(plan.measures)
        keys = [self._key(key) for key in plan.group]
        labels = key_names(plan.group)
        figures = [self._figure(measure, plan.group) for measure in plan.measures]
        found = exp.select(
            *(key.copy().as_(label, quoted=True) for key, label in zip(keys, labels, strict=True)),
            *(figure.as_(name, quoted=True) for figure, name in zip(figures, names, strict=True)),
        )
        found = self._from_rows(found, plan)
        if keys:
            found.group_by(*(key.copy() for key in keys), copy=False)
        for filter_ in plan.filters:
            if filter_.column.startswith(MEASURED):
                figure = figures[int(filter_.column.removeprefix(MEASURED)) - 1]
                bound = COMPARED[filter_.op](
                    this=figure.copy(), expression=_number(filter_.values[0])
                )
                found.having(bound, copy=False)
        if plan.outer is not None:
            return self._outer(found, plan.outer, names[0])
        for order in plan.order:
            by = _directed(self._group_order(plan, order, figures), order)
            found.order_by(by, copy=False)
        for key in keys:
            found.order_by(exp.Ordered(this=key.copy(), nulls_first=False), copy=False)
        return found

    def _key(self, key: Key) -> Expression:
        column = column_of(self._table, key.column)
        if key.part is Part.WHOLE and column.has_text and column.type is not ColumnType.DATE:
            return self._value(key.column) if column.type in PLAIN_KEYS else self._shown(key.column)
        return self._value(key.column, key.part)

    def _group_order(
        self, plan: TablePlan, order: Order, figures: Sequence[Expression]
    ) -> Expression:
        if order.by.startswith(MEASURED):
            return figures[int(order.by.removeprefix(MEASURED)) - 1].copy()
        if order.by == ROWS:
            return exp.Min(this=exp.column(ROW))
        for key in plan.group:
            if key.column == order.by:
                return self._key(key)
        return exp.Min(this=self._value(order.by))

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
        """Fractions are added without the errors of their last digits."""
        has_fractions = column_of(self._table, name).decimals > 0
        return exp.func("fsum" if has_fractions else "sum", self._value(name))

    def _share(self, measure: Measure, *, is_grouped: bool) -> Expression:
        """Of all groups together; where there are none, of the whole table."""
        part = exp.Count(this=exp.Star()) if measure.column == ROWS else self._sum(measure.column)
        whole: Expression = exp.Window(this=exp.Sum(this=part.copy()))
        if not is_grouped:
            every = exp.select(part.copy()).from_(DATA).where(NO_TOTAL)
            whole = every.subquery()
        return part * HUNDRED / exp.func("nullif", whole, exp.Literal.number(0))

    def _change(self, measure: Measure, group: Sequence[Key]) -> Expression:
        """Against the time before, within whatever else rows are put together by."""
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


PLAIN_KEYS = frozenset({ColumnType.NUMBER, ColumnType.BOOLEAN})


def key_names(group: Sequence[Key]) -> list[str]:
    """What the groups' columns are called."""
    return [f"{key.column} ({key.part})" if key.part else key.column for key in group]


def _only(found: exp.Select, wanted: Sequence[Expression]) -> exp.Select:
    """Rows that meet all of these; the tree is changed, not copied for each."""
    return found.where(_together(exp.And, wanted), copy=False)


def _together(kind: type[exp.Connector], parts: Sequence[Expression]) -> Expression:
    """All parts in one tree that is as flat as it can be: writing a deep one overflows."""
    level = [exp.paren(p, copy=False) if isinstance(p, exp.Connector) else p for p in parts]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        unpaired = level[-1:] if len(level) % 2 else []
        level = [kind(this=one, expression=other) for one, other in pairs] + unpaired
    return level[0]


def _holding(text: Expression, word: str) -> Expression:
    return exp.func("contains", text, exp.Literal.string(word))


def _directed(value: Expression, order: Order) -> exp.Ordered:
    return exp.Ordered(this=value.copy(), desc=order.descending, nulls_first=False)


def _number(given: Scalar) -> Expression:
    number = given if isinstance(given, int | float) else read_number(str(given))
    if number is None:
        return exp.null()
    literal = exp.Literal.number(repr(abs(number)))
    return exp.Neg(this=literal) if number < 0 else literal
