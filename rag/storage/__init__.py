"""What must exist beside the database and in it: told as it is, and made again where it can be."""

from rag.storage.indexes import Differences, check_room, compare, repair
from rag.storage.manifest import Manifest, note_manifest, refuse_emptied
from rag.storage.rows import documents_without_rows

__all__ = [
    "Differences",
    "Manifest",
    "check_room",
    "compare",
    "documents_without_rows",
    "note_manifest",
    "refuse_emptied",
    "repair",
]
