"""Tables whose rows are gone: a folder was deleted, a file was cut off."""

from typing import TYPE_CHECKING

from rag.records import EVERYTHING

if TYPE_CHECKING:  # loading it takes longer than a page that shows no table
    from rag.tables.store import TableStore


def documents_without_rows(tables: "TableStore") -> dict[str, str]:
    """Names of documents by id, of which the rows of some table cannot be read."""
    lacking = tables.files.lacking(tables.ids(EVERYTHING))
    if not lacking:
        return {}
    of = [each for each in tables.tables(EVERYTHING) if each.id in lacking]
    return {each.document_id: each.document_name for each in of}
