"""Where documents come from by themselves, and how their last look there went."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rag.records.collections import DEFAULT_COLLECTION


class SyncState(StrEnum):
    """How a source stands."""

    IDLE = "idle"
    RUNNING = "running"  # a sync waits for its turn, or has it
    WAITING_FOR_YES = "waiting_for_yes"  # so much is gone there that somebody has to say so
    AWAY = "away"  # it could not be seen whole: nothing was removed
    FAILED = "failed"
    REMOVING = "removing"  # with its documents


class Standing(StrEnum):
    """How a file of a source stands."""

    LISTED = "listed"
    ASKED = "asked"  # not listed any more; its removal waits for a yes
    AGREED = "agreed"  # its removal has its yes
    REMOVING = "removing"  # its document goes
    REMOVED = "removed"  # its document is gone, and can be had back for a while
    BACK = "back"  # its removal was undone; its document has yet to be read again
    KEPT = "kept"  # its document is there though the source lists it no more


@dataclass(frozen=True, slots=True)
class SyncCounts:
    """What a sync found."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0  # could not be read
    waiting: int = 0  # are being written to


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """A folder, a share, a repository or a site that a collection is kept in step with."""

    id: str
    address: str
    kind: str  # folder, web, git, store, or what a package adds
    name: str  # short: goes before names that another document has already
    collection_id: str = DEFAULT_COLLECTION
    owner: str = ""  # of it and of its documents; empty: whoever runs the server
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int = 3
    every_seconds: int | None = None  # between two syncs; None: when somebody says so
    watch: bool = False  # each change is looked at when it happens
    is_operators: bool = False  # added by whoever runs the server, who may read all of its disk
    state: SyncState = SyncState.IDLE
    reason: str = ""  # for people
    counts: SyncCounts = SyncCounts()  # of the last sync
    created_at: datetime | None = None
    last_synced_at: datetime | None = None
    next_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, and the document that was made of it."""

    document_id: str
    name: str  # within the source
    document_name: str  # within the collection
    mark: str = ""  # the source's own for the version that was read; "" is read again
    content_hash: str = ""  # of what was read last
    size: int | None = None
    url: str = ""
    reason: str = ""  # why it could not be read
    standing: Standing = Standing.LISTED
    removed_at: datetime | None = None
