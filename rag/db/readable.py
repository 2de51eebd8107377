"""The one condition that keeps documents from those who may not read them."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, true, update

from rag.db.schema import collections
from rag.records import Readable


def inside(column: ColumnElement[Any], within: Readable) -> ColumnElement[bool]:
    """Rows of the collections that the asker may read."""
    return true() if within.ids is None else column.in_(sorted(within.ids))


def versions(connection: Connection, within: Readable) -> dict[str, int]:
    """Of the collections: what was read of one holds until its version is another."""
    if within.ids is None:  # as every search asks: what is built anew each time costs five times it
        found = connection.exec_driver_sql("SELECT id, version FROM collections")
    else:
        table = collections
        query = select(table.c.id, table.c.version)
        found = connection.execute(query.where(inside(table.c.id, within)))
    return {row.id: row.version for row in found}


def mark_changed(connection: Connection, collection_ids: Iterable[str]) -> None:
    """Documents of these were written, moved or deleted."""
    table = collections
    is_one = table.c.id.in_(sorted(set(collection_ids)))
    connection.execute(update(table).where(is_one).values(version=table.c.version + 1))
