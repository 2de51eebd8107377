"""What must exist beside the database and in it: told as it is, and made again where it can be."""

from rag.operations.backup import Differences, check_room, compare, repair
from rag.operations.snapshot import (
    Manifest,
    Places,
    documents_of,
    note_manifest,
    read_manifest,
    refuse_emptied,
    refuse_foreign,
    set_back,
    tables_without_rows,
)
