"""What people ask of sources: add, change, look, say yes, have back, take away; and how they stand.

Who may ask is decided at the edges.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from rag.connectors.folder import file_filter
from rag.connectors.kinds import (
    check_no_password,
    check_open,
    kind_of,
    masked,
    normalised_address,
    open_source,
    opened_address,
    sealed,
    short_name,
)
from rag.connectors.table import LastSync, SourceTable, next_due
from rag.documents.store import SqlDocumentStore
from rag.errors import Conflict, Forbidden, SourceAway, UserError
from rag.llm.discovery import SecretBox
from rag.records import DocumentSource, SourceFile, Standing, SyncState
from rag.seams import SourceOptions
from rag.settings import SourceSettings

SHORTEST_SECONDS = 60
WATCHED_SECONDS = 3600  # between two looks at a folder that is watched: a change may be missed
FILES_LISTED = 100  # files that are told by name
NO_SYNC = LastSync("done")
Submit = Callable[[DocumentSource], object]  # queues a sync


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """How a source stands."""

    source: DocumentSource
    state: SyncState
    reason: str = ""
    done: int = 0  # files of the sync that runs
    total: int = 0
    pending: tuple[str, ...] = ()  # files whose removal waits for a yes, the first of them
    pending_count: int = 0
    failures: tuple[SourceFile, ...] = ()  # the first of the files that could not be read
    undo_count: int = 0  # documents that can be had back
    undo_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceRegistry:
    """All sources."""

    table: SourceTable
    documents: SqlDocumentStore
    settings: SourceSettings
    submit: Submit
    box: SecretBox

    def add(self, wish: DocumentSource) -> DocumentSource:
        """One more, looked at soon. Raises UserError, Forbidden and Conflict."""
        address = normalised_address(wish.address)
        check_no_password(address)
        if not wish.is_operators:
            check_open(address, self.settings)
        source = replace(
            wish,
            address=sealed(address, self.box),
            kind=kind_of(address),
            name=short_name(address),
            every_seconds=_checked_every(wish.every_seconds, watch=wish.watch),
        )
        _check(source)
        self._try(source)
        made = self.table.add(source)
        self._record(made, "added")
        self.table.change(made.id, next_due_at=next_due(made, datetime.now(UTC)))
        self.submit(made)
        return self.table.source(made.id)

    def _try(self, source: DocumentSource) -> None:
        """Have it say at once what is wrong with it; one that is away is looked at later."""
        private = self.settings.private_hosts
        options = SourceOptions(source.include, source.exclude, source.depth, private_hosts=private)
        opened = opened_address(source.address, self.settings.passwords, self.box)
        with suppress(SourceAway):
            open_source(opened.address, replace(options, secrets=opened.secrets)).close()

    def change(
        self,
        source_id: str,
        *,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        every_seconds: int | None = None,
        watch: bool | None = None,
    ) -> DocumentSource:
        """What is given replaces what was; 0 seconds are never.

        What is wanted of one that whoever runs the server added stays: what it leaves out may be
        for nobody else. Raises NotFound, Forbidden and UserError.
        """
        before = self.table.source(source_id)
        _refuse_leaving(before)
        watches = before.watch if watch is None else watch
        every = before.every_seconds if every_seconds is None else every_seconds or None
        source = replace(
            before,
            include=before.include if include is None else tuple(include),
            exclude=before.exclude if exclude is None else tuple(exclude),
            watch=watches,
            every_seconds=_checked_every(every, watch=watches),
        )
        _check(source)
        is_other = (source.include, source.exclude) != (before.include, before.exclude)
        if is_other and before.is_operators:
            raise Forbidden(
                "Whoever runs the server added this source, and says what of it is wanted. Remove "
                "it there and add it again."
            )
        self.table.change(
            source_id,
            include=list(source.include),
            exclude=list(source.exclude),
            watch=source.watch,
            every_seconds=source.every_seconds,
            next_due_at=next_due(source, datetime.now(UTC)),
        )
        self._record(source, "changed")
        if is_other:
            self.submit(source)
        return self.table.source(source_id)

    def sync(self, source_id: str, *, thorough: bool = False) -> None:
        """Look soon; a thorough look reads every file, whatever its time and size say."""
        source = self.table.source(source_id)
        _refuse_leaving(source)
        if thorough:
            self.table.distrust(source_id)
        self._record(source, "synced")
        self.submit(source)

    def submit_due(self) -> None:
        """Those whose time has come; of several processes that ask, one queues each."""
        for source in self.table.claim_due():
            self.submit(source)

    def confirm(self, source_id: str) -> int:
        """Say yes to the removals that wait; returns how many. Raises Conflict if none does."""
        source = self.table.source(source_id)
        count = self.table.stand(source_id, [Standing.ASKED], Standing.AGREED)
        if not count:
            raise Conflict("No removal waits for a yes here.")
        self.table.change(source_id, state=SyncState.IDLE, reason="")
        self._record(source, "removals_confirmed")
        self.submit(source)
        return count

    def decline(self, source_id: str) -> int:
        """Say no to the removals that wait: those documents stay until they are deleted by hand.

        Returns how many. Raises Conflict if none waits.
        """
        source = self.table.source(source_id)
        count = self.table.stand(source_id, [Standing.ASKED], Standing.KEPT)
        if not count:
            raise Conflict("No removal waits for a yes here.")
        self.table.change(source_id, state=SyncState.IDLE, reason="")
        self._record(source, "removals_declined")
        return count

    def undo(self, source_id: str) -> int:
        """Have back what was removed last; returns how many documents. Raises Conflict."""
        source = self.table.source(source_id)
        rows = self._undoable(source)
        if not rows:
            raise Conflict(
                "There is nothing to be had back: nothing was removed, or it was too long ago, or "
                "originals are not kept (documents.keep_originals)."
            )
        back = [replace(row, standing=Standing.BACK) for row in rows]
        if not self.table.write(source_id, back):
            raise Conflict("This source is being removed.")
        self._record(source, "removals_undone")
        self.submit(source)
        return len(back)

    def remove(self, source_id: str, *, keep_documents: bool = False) -> None:
        """Take it away, and its documents soon after, unless they are to stay."""
        source = self.table.source(source_id)
        self._record(source, "left" if keep_documents else "removed")
        if keep_documents:
            self.table.forget(source_id)
            return
        self.table.change(source_id, state=SyncState.REMOVING, reason="", next_due_at=None)
        self.submit(source)

    def _record(self, source: DocumentSource, action: str) -> None:
        self.table.record(f"source.{action}", f"{source.collection_id} {masked(source.address)}")

    # ── How they stand ───────────────────────────────────────────────────────────────────────

    def statuses(self, sources: Collection[DocumentSource]) -> list[SourceStatus]:
        """Each with its sync that runs, what waits, what failed, and what can be had back."""
        syncs = self.table.syncs([source.id for source in sources])
        return [self._status(source, syncs.get(source.id, NO_SYNC)) for source in sources]

    def _status(self, source: DocumentSource, sync: LastSync) -> SourceStatus:
        pending = self.table.files(source.id, Standing.ASKED)
        rows = self._undoable(source)
        removed_at = rows[0].removed_at if rows else None
        return SourceStatus(
            source,
            *_standing(source, sync),
            sync.done if sync.is_unfinished else 0,
            sync.total if sync.is_unfinished else 0,
            tuple(row.name for row in pending[:FILES_LISTED]),
            len(pending),
            tuple(self.table.failed(source.id, FILES_LISTED)),
            len(rows),
            removed_at + self._grace if removed_at else None,
        )

    def _undoable(self, source: DocumentSource) -> list[SourceFile]:
        """What the last removal took, as far as it is still kept."""
        since = datetime.now(UTC) - self._grace
        rows = [
            row
            for row in self.table.files(source.id, Standing.REMOVED)
            if row.removed_at is not None and row.removed_at >= since
        ]
        last = max((row.removed_at for row in rows if row.removed_at), default=None)
        return [
            row
            for row in rows
            if row.removed_at == last and self.documents.original_of_content(row.content_hash)
        ]

    @property
    def _grace(self) -> timedelta:
        return timedelta(days=self.settings.grace_days)


def _standing(source: DocumentSource, sync: LastSync) -> tuple[SyncState, str]:
    """Its state and why: a job tells more than the source where it runs, or failed by itself."""
    if sync.is_unfinished and source.state is not SyncState.REMOVING:
        waits = "It waits for its turn." if sync.state == "queued" else ""
        return SyncState.RUNNING, sync.error or waits
    if sync.state == "failed":
        return SyncState.FAILED, sync.error
    return source.state, source.reason


def _check(source: DocumentSource) -> None:
    """Raises UserError."""
    file_filter(source.include, source.exclude)
    if source.watch and source.kind != "folder":
        raise UserError(
            f"{masked(source.address)} cannot be watched: only a folder of the server can. Give a "
            "time instead, such as 1h."
        )


def _checked_every(seconds: int | None, *, watch: bool) -> int | None:
    if seconds is None:
        return WATCHED_SECONDS if watch else None
    if seconds < SHORTEST_SECONDS:
        raise UserError(
            f"{seconds} seconds are too short between two looks: at least {SHORTEST_SECONDS} are "
            "taken."
        )
    return seconds


def _refuse_leaving(source: DocumentSource) -> None:
    if source.state is SyncState.REMOVING:
        raise Conflict("This source is being removed.")
