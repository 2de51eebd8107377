"""DuckDB over one table at a time: read only, fenced in, with limits of time, memory and rows."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from rag.errors import TooLarge, UserError
from rag.tables.plan import MOST_ROWS

MEMORY = "256MB"
SECONDS = 10.0
THREADS = 2
WIDEST_CELL = 2_000  # characters of one value that are shown


@dataclass(frozen=True, slots=True)
class Answered:
    """What a query gave."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # DuckDB's names of the types
    rows: list[tuple[Any, ...]]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one query."""

    seconds: float = SECONDS
    rows: int = MOST_ROWS


def run(files: Mapping[str, str], query: exp.Expr, limits: Limits | None = None) -> Answered:
    """Run one statement over Parquet files, by the names under which it may see them.

    Raises:
        UserError: DuckDB refused it, with its reason.
        TooLarge: it took too long or too much memory.
    """
    limits = limits or Limits()
    with _fenced(files) as connection:
        return _timed(connection, query.sql(dialect="duckdb"), limits)


@contextmanager
def _fenced(files: Mapping[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read these files and nothing else, and cannot be told otherwise."""
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
    try:
        for name, path in files.items():
            view = exp.func("read_parquet", exp.Literal.string(path))
            seen = exp.select("*").from_(exp.Table(this=view))
            quoted = exp.to_identifier(name, quoted=True).sql(dialect="duckdb")
            connection.execute(f"CREATE VIEW {quoted} AS {seen.sql(dialect='duckdb')}")
        paths = exp.Array(expressions=[exp.Literal.string(path) for path in files.values()])
        connection.execute(f"SET allowed_paths = {paths.sql(dialect='duckdb')}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _timed(connection: duckdb.DuckDBPyConnection, sql: str, limits: Limits) -> Answered:
    timer = threading.Timer(limits.seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        found = connection.execute(sql)
        rows = found.fetchmany(limits.rows + 1)
        described = found.description or []
    except duckdb.InterruptException as error:
        raise TooLarge(
            f"The query took longer than {limits.seconds:g} seconds, the limit. Ask for less: "
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
    return Answered(
        names=tuple(str(each[0]) for each in described),
        kinds=tuple(str(each[1]) for each in described),
        rows=[tuple(map(_plain, row)) for row in rows[: limits.rows]],
        has_more=len(rows) > limits.rows,
    )


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat(" ") if hasattr(value, "hour") else value.isoformat()
    if isinstance(value, str):
        return value[:WIDEST_CELL]
    if value is None or isinstance(value, int | float | bool):
        return value
    return float(value) if hasattr(value, "as_tuple") else str(value)[:WIDEST_CELL]


# ── SQL that a model wrote ───────────────────────────────────────────────────────────────────

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
