"""How many questions of GeoQuery a plan over one table can say: its reference SQL, as plans.

python -m benchmarks.geoquery --data DIR   (DIR holds geography.sqlite, dev/queries.jsonl)
"""

import argparse
import csv
import io
import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one

from benchmarks.tables import opened
from rag.errors import RagError
from rag.records import EVERYTHING
from rag.tables.plan import ROWS, Filter, Key, Kind, Measure, Op, Order, TablePlan

COMPARED = {exp.EQ: Op.IS, exp.NEQ: Op.NOT, exp.GT: Op.MORE, exp.LT: Op.LESS,
    exp.GTE: Op.AT_LEAST, exp.LTE: Op.AT_MOST}  # fmt: skip
KINDS = {exp.Sum: Kind.SUM, exp.Avg: Kind.AVERAGE, exp.Max: Kind.MAX, exp.Min: Kind.MIN}


class NotSaid(Exception):
    """A plan has no word for it."""


def plan_of(sql: str) -> TablePlan:
    """Raises NotSaid."""
    query = parse_one(sql.rstrip("; "), read="sqlite")
    if not isinstance(query, exp.Select) or query.args.get("joins") or query.args.get("having"):
        raise NotSaid("joins, sets of rows, conditions on groups")
    table = query.args["from_"].this
    if not isinstance(table, exp.Table):
        raise NotSaid("a query over a query")
    filters, order, limit = _conditions(query)
    group = tuple(
        Key(_column(each)) for each in getattr(query.args.get("group"), "expressions", ())
    )
    figures = [each for each in query.expressions if each.unalias().find(exp.AggFunc)]
    measures = tuple(_measure(each.unalias()) for each in figures)
    columns = tuple(_column(each) for each in query.expressions if each not in figures)
    if (measures and order) or (measures and set(columns) - {key.column for key in group}):
        raise NotSaid("a figure of the rows at one end")
    for each in getattr(query.args.get("order"), "expressions", ()):
        by = "measure 1" if each.this.find(exp.AggFunc) else _column(each.this)
        order = (Order(by, bool(each.args.get("desc"))),)
    if query.args.get("limit"):
        limit = int(query.args["limit"].expression.name)
    if group and not measures:
        measures = (Measure(Kind.COUNT),)
    return TablePlan(
        table.name, filters, group, measures, order, limit, () if measures else columns
    )


def _column(each: exp.Expr) -> str:
    each = each.unalias()
    if not isinstance(each, exp.Column):
        raise NotSaid(f"{type(each).__name__} as a column")
    return each.name


def _measure(each: exp.Expr) -> Measure:
    if isinstance(each, exp.Count):
        inner = each.this
        if isinstance(inner, exp.Distinct):
            return Measure(Kind.DISTINCT, _column(inner.expressions[0]))
        return Measure(Kind.COUNT, ROWS if isinstance(inner, exp.Star) else _column(inner))
    if type(each) not in KINDS:
        raise NotSaid("figures reckoned with figures")
    return Measure(KINDS[type(each)], _column(each.this))


def _conditions(query: exp.Select) -> tuple[tuple[Filter, ...], tuple[Order, ...], int | None]:
    where = query.args.get("where")
    filters: list[Filter] = []
    ends: list[Order] = []
    for each in where.this.flatten() if where and isinstance(where.this, exp.And) else (
        [where.this] if where else []
    ):  # fmt: skip
        if type(each) not in COMPARED:
            raise NotSaid(f"{type(each).__name__} in a condition")
        if isinstance(each.expression, exp.Subquery):
            ends.append(_end(_column(each.this), each.expression.this, query))
        elif isinstance(each.expression, exp.Literal | exp.Column):
            value = each.expression.name
            is_figure = isinstance(each.expression, exp.Literal) and not each.expression.is_string
            given = (float(value) if is_figure else value,)
            filters.append(Filter(_column(each.this), COMPARED[type(each)], given))
        else:
            raise NotSaid("a condition against reckoning")
    if len(ends) > 1:
        raise NotSaid("two ends")
    return tuple(filters), tuple(ends), 1 if ends else None


def _end(column: str, inner: exp.Expr, query: exp.Select) -> Order:
    """`x = (SELECT max(x) FROM the same table)`: the row at one end."""
    is_plain = isinstance(inner, exp.Select) and not inner.args.get("joins")
    if not is_plain or inner.args["from_"].this.name != query.args["from_"].this.name:
        raise NotSaid("a condition against another table")
    (figure,) = inner.expressions
    if not isinstance(figure, exp.Max | exp.Min) or _column(figure.this) != column:
        raise NotSaid("a condition against another table")
    return Order(column, isinstance(figure, exp.Max))


def _same(got: Any, want: Any) -> bool:
    def plain(rows: Any) -> set[str]:
        return {_text(row[0]) for row in rows if row[0] is not None}

    return plain(got) == plain(want)


def _text(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return str(value)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    data = parser.parse_args().data
    database = sqlite3.connect(data / "geography.sqlite")
    names = [n for (n,) in database.execute("select name from sqlite_master where type='table'")]
    files = {}
    for name in names:
        found = database.execute(f'select * from "{name}"')
        out = io.StringIO()
        csv.writer(out).writerows([[each[0] for each in found.description], *found.fetchall()])
        files[f"{name.lower()}.csv"] = out.getvalue()
    counts: Counter[str] = Counter()
    with opened(files) as application:
        tables = {t.document_name[:-4]: t for t in application.tables.tables(EVERYTHING)}
        for line in (data / "dev" / "queries.jsonl").read_text().splitlines():
            sql = json.loads(line)["sql"]
            try:
                plan = plan_of(sql)
                result = application.table_answers.library.run(tables[plan.table.lower()], plan)
                exact = _same(result.rows, database.execute(sql).fetchall())
                counts["said, exact" if exact else "said, another result"] += 1
            except NotSaid as error:
                counts[f"not said: {error}"] += 1
            except (RagError, KeyError, sqlite3.Error) as error:
                counts[f"failed: {str(error)[:60]}"] += 1
    whole = sum(counts.values())
    for what, count in counts.most_common():
        print(f"| {what} | {count} of {whole} | {count / whole:.1%} |")


if __name__ == "__main__":
    main()
