"""Tables whose rows are gone: a folder was deleted, a file was cut off or is another one."""

from typing import TYPE_CHECKING

from rag.operations.checksums import Noted, Places, is_as_noted
from rag.records import EVERYTHING

if TYPE_CHECKING:  # loading it takes longer than a page that shows no table
    from rag.tables.store import TableStore


def tables_without_rows(
    tables: "TableStore", places: Places, rows: Noted, *, reads: bool = False
) -> set[str]:
    """Ids of tables whose rows cannot be read, or are not those that were noted."""
    ids = tables.ids(EVERYTHING)
    noted = ((key, kept) for key, kept in rows.items() if key in ids)
    changed = {k for k, kept in noted if not is_as_noted(places.rows_of(k), kept, reads=reads)}
    return tables.files.lacking(ids) | changed


def documents_of(tables: "TableStore", table_ids: set[str]) -> dict[str, str]:
    """Names of the documents of these, by id."""
    of = (
        [table for table in tables.tables(EVERYTHING) if table.id in table_ids] if table_ids else []
    )
    return {each.document_id: each.document_name for each in of}
