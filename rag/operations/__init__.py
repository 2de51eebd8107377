"""Backup, restore, repair and measurements of a library."""

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
