"""The one condition that keeps documents from those who may not read them."""

from typing import Any

from sqlalchemy import ColumnElement, true

from rag.records import Within


def inside(column: ColumnElement[Any], within: Within) -> ColumnElement[bool]:
    """Rows of the collections that the asker may read."""
    return true() if within.ids is None else column.in_(sorted(within.ids))
