"""DuckDB over one table at a time: read only, fenced in, with limits of time, memory and rows."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag.errors import ClientGone, TooLarge, UserError
from rag.runtime.budget import ITEMS_BETWEEN, paced
from rag.runtime.cancellation import hang_up_reason, on_hang_up
from rag.runtime.lanes import Lane
from rag.tables.plan import MOST_ROWS

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"
SECONDS = 10.0
THREADS = 2
WIDEST_CELL = 2_000  # characters of one value that are shown
DATA = "data"  # the name under which a query sees its table
QUERIES = Lane(4, waiting=64, share=2, what="tables")  # at once, of all who ask
OWN_NAME = "rows"  # what a model calls it, with the columns' own names


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query gave."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # DuckDB's names of the types
    rows: list[tuple[Any, ...]]
    has_more: bool


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one query."""

    seconds: float = SECONDS
    rows: int = MOST_ROWS


def run(path: str, *queries: str, limits: QueryLimits | None = None) -> list[QueryResult]:
    """Run statements over one Parquet file, which they see as `data`.

    Raises:
        UserError: DuckDB refused one, with its reason.
        TooLarge: one took too long or too much memory.
        OverBudget: all of them together did.
        Busy: others are before it, for long.
    """
    if not queries:
        return []
    with QUERIES.place(), _fenced(path) as connection:
        each = paced(queries, weight=ITEMS_BETWEEN)  # the clock is looked at before each
        return [_timed(connection, query, limits or QueryLimits()) for query in each]


@contextmanager
def _fenced(path: str) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection that can read this file and nothing else, and cannot be told otherwise."""
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
    try:
        connection.read_parquet(path).create_view(DATA)
        connection.execute("SET allowed_paths = [?]", [path])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _interrupt(connection: "duckdb.DuckDBPyConnection") -> None:
    """End its query; who asked may leave long after it has ended."""
    import duckdb

    with suppress(duckdb.ConnectionException):
        connection.interrupt()


def _timed(connection: "duckdb.DuckDBPyConnection", sql: str, limits: QueryLimits) -> QueryResult:
    import duckdb

    timer = threading.Timer(limits.seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    on_hang_up(lambda: _interrupt(connection))
    try:
        found = connection.execute(sql)
        rows = found.fetchmany(limits.rows + 1)
        described = found.description or []
    except duckdb.InterruptException as error:
        if (reason := hang_up_reason()) is not None:
            raise ClientGone(reason) from error
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
    return QueryResult(
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
    if isinstance(value, float):
        return float(f"{value:.15g}")  # the sixteenth digit of a sum is noise
    if value is None or isinstance(value, int | bool):
        return value
    return float(value) if hasattr(value, "as_tuple") else str(value)[:WIDEST_CELL]
