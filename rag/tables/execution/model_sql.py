"""SQL that a model wrote: one SELECT over the table that it was shown, and nothing else."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from rag.errors import UserError
from rag.records import Table
from rag.tables.execution.engine import DATA, OWN_NAME
from rag.tables.parsing.types import ROW, TOTAL
from rag.tables.plan import MOST_ROWS

ROW_NUMBER = "#"  # under which it carries its rows' numbers when these are asked for


class ModelSql:
    """A SELECT over one table by its own names, with a way to the rows behind its figures."""

    def __init__(self, table: Table, sql: str) -> None:
        """Raises UserError that says what is not allowed."""
        self._own = parsed(sql, [OWN_NAME])
        self.text = self._own.sql(dialect="duckdb", pretty=True)
        self._table = table

    @property
    def query(self) -> exp.Query:
        """What is run."""
        return self._over(self._own, *self._columns())

    def rows(self, row: Sequence[Any] | None = None) -> exp.Query | None:
        """The numbers of the rows that it reads: all, or those of one row of its result."""
        readers = [each for each in self._own.find_all(exp.Select) if self._reads(each)]
        if row is not None and (readers != [self._own] or not self._own.args.get("group")):
            return None
        parts = [part for reader in readers for part in self._numbers(reader, row)]
        if not parts:
            return None
        whole = exp.union(*parts, distinct=True) if len(parts) > 1 else parts[0]
        found = exp.select(ROW_NUMBER_COLUMN).from_(whole.subquery("used"))
        numbered = exp.column(ROW).as_(ROW_NUMBER, quoted=True)
        ordered = found.distinct().order_by(ROW_NUMBER_COLUMN.copy()).limit(MOST_ROWS)
        return self._over(ordered, *self._columns(), numbered)

    def _columns(self) -> list[exp.Expr]:
        columns = enumerate(self._table.columns)
        return [exp.column(f"c{at}").as_(each.name, quoted=True) for at, each in columns]

    def _over(self, query: exp.Query, *columns: exp.Expr) -> exp.Query:
        own = exp.select(*columns).from_(DATA).where(exp.not_(exp.column(TOTAL)))
        whole = query.with_(OWN_NAME, as_=own)
        named = whole.args["with_"]
        named.set("expressions", [named.expressions[-1], *named.expressions[:-1]])  # others use it
        return whole

    def _reads(self, select: exp.Select) -> bool:
        return any(source.name == OWN_NAME for source in _sources(select))

    def _numbers(self, select: exp.Select, row: Sequence[Any] | None) -> list[exp.Select]:
        """Its rows by number, once for each name under which it reads the table."""
        plain = select.copy()
        is_plain = not (
            plain.args.get("group") or plain.find(exp.AggFunc) or plain.args.get("distinct")
        )
        for part in ("group", "having", "distinct", "qualify", "windows", "with_"):
            plain.set(part, None)
        if not is_plain:
            for part in ("order", "limit", "offset"):
                plain.set(part, None)
        for condition in self._of_row(select, row):
            plain = plain.where(condition)
        return [
            plain.copy().select(
                exp.column(ROW_NUMBER, table=source.alias_or_name, quoted=True), append=False
            )
            for source in _sources(select)
            if source.name == OWN_NAME
        ]

    def _of_row(self, select: exp.Select, row: Sequence[Any] | None) -> list[exp.Expr]:
        """Conditions that keep the group of one row of the result."""
        if row is None:
            return []
        shown = dict(zip(select.expressions, row, strict=False))
        keys = set(map(_plain, _grouped(select)))
        return [
            exp.NullSafeEQ(this=each.unalias().copy(), expression=exp.convert(value))
            for each, value in shown.items()
            if _plain(each.unalias()) in keys
        ]


ROW_NUMBER_COLUMN = exp.column(ROW_NUMBER, quoted=True)


def _sources(select: exp.Select) -> list[exp.Table]:
    joined = [select.args.get("from_"), *(select.args.get("joins") or ())]
    return [each.this for each in joined if each is not None and isinstance(each.this, exp.Table)]


def _grouped(select: exp.Select) -> list[exp.Expr]:
    """What it groups by: columns, numbers of columns and names given to them written out."""
    group = select.args["group"]
    named = {expression.alias_or_name: expression.unalias() for expression in select.expressions}
    keys = group.expressions or [
        expression for expression in select.expressions if not expression.find(exp.AggFunc)
    ]  # GROUP BY ALL
    results = []
    for key in keys:
        if isinstance(key, exp.Literal) and key.is_int:
            key = select.expressions[int(key.name) - 1]
        elif isinstance(key, exp.Column) and key.name in named:
            key = named[key.name]
        results.append(key.unalias())
    return results


def _plain(key: exp.Expr) -> str:
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
    """One SELECT over known tables only. Raises UserError that says what is not allowed."""
    try:
        statements = [each for each in parse(sql, read="duckdb") if each is not None]
    except (SqlglotError, RecursionError) as error:
        raise UserError(f"That is no SQL: {str(error).splitlines()[0][:200]}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise UserError("Only one SELECT can be run.")
    query = statements[0]
    for node in query.walk():
        _check(node)
    own = {each.alias_or_name for each in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        is_plain = isinstance(table.this, exp.Identifier) and not table.db and not table.catalog
        if not is_plain or (table.name not in tables and table.name not in own):
            raise UserError(f"There is no table {table.name or table.sql()[:60]!r} to ask.")
    return query


def _check(node: exp.Expr) -> None:
    if isinstance(node, FORBIDDEN):
        raise UserError(f"{type(node).__name__.upper()} is not allowed in a query.")
    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise UserError("RECURSIVE is not allowed in a query.")
    if isinstance(node, exp.Anonymous) and node.name.casefold() not in FUNCTIONS:
        raise UserError(f"The function {node.name}() is not allowed in a query.")
