"""Managing sources: add, change, sync, confirm, undo, remove; and their status.

Callers decide who may do so.
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
WATCHED_SECONDS = 3600  # between syncs of a watched folder: a change may be missed
FILES_LISTED = 100  # files listed by name
NO_SYNC = LastSync("done")
Submit = Callable[[DocumentSource], object]  # queues a sync


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The status of a source."""

    source: DocumentSource
    state: SyncState
    reason: str = ""
    done: int = 0  # files of the running sync
    total: int = 0
    pending: tuple[str, ...] = ()  # the first files whose removal waits for confirmation
    pending_count: int = 0
    failures: tuple[SourceFile, ...] = ()  # the first of the files that could not be read
    undo_count: int = 0  # documents that can be restored
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
        """Add a source and queue its sync. Raises UserError, Forbidden and Conflict."""
        address = normalised_address(wish.address)
        check_no_password(address)
        if not wish.is_operators:
            check_open(address, self.settings)
        stored = sealed(address, self.box)
        name = short_name(address)
        source = _checked(replace(wish, address=stored, kind=kind_of(address), name=name))
        options = SourceOptions(
            source.include,
            source.exclude,
            source.depth,
            private_hosts=self.settings.private_hosts,
        )
        opened = opened_address(source.address, self.settings.passwords, self.box)
        # Opened to raise its errors at once; a source that cannot be reached is tried later.
        with suppress(SourceAway):
            open_source(opened.address, replace(options, secrets=opened.secrets)).close()
        made = self.table.add(source)
        self._record(made, "added")
        self.table.change(made.id, next_due_at=next_due(made, datetime.now(UTC)))
        self.submit(made)
        return self.table.source(made.id)

    def change(
        self,
        source_id: str,
        *,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        every_seconds: int | None = None,
        watch: bool | None = None,
    ) -> DocumentSource:
        """Change a source; None leaves a value as it is, 0 seconds mean never.

        The filters of a source that the operator added cannot be changed: what they leave out may
        be confidential. Raises NotFound, Forbidden and UserError.
        """
        before = self.table.source(source_id)
        _refuse_leaving(before)
        every = before.every_seconds if every_seconds is None else every_seconds or None
        source = _checked(
            replace(
                before,
                include=before.include if include is None else tuple(include),
                exclude=before.exclude if exclude is None else tuple(exclude),
                watch=before.watch if watch is None else watch,
                every_seconds=every,
            )
        )
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
        """Queue a sync; a thorough one reads every file, whatever its mark."""
        source = self.table.source(source_id)
        _refuse_leaving(source)
        if thorough:
            self.table.distrust(source_id)
        self._record(source, "synced")
        self.submit(source)

    def submit_due(self) -> None:
        """Queue the syncs that are due; of several processes one queues each."""
        for source in self.table.claim_due():
            self.submit(source)

    def confirm(self, source_id: str) -> int:
        """Confirm the pending removals; return how many. Raises Conflict if there are none."""
        source = self.table.source(source_id)
        count = self._answer_pending(source, Standing.AGREED, "removals_confirmed")
        self.submit(source)
        return count

    def decline(self, source_id: str) -> int:
        """Decline the pending removals: their documents stay until they are deleted by hand.

        Returns how many. Raises Conflict if there are none.
        """
        source = self.table.source(source_id)
        return self._answer_pending(source, Standing.KEPT, "removals_declined")

    def _answer_pending(self, source: DocumentSource, standing: Standing, action: str) -> int:
        count = self.table.stand(source.id, [Standing.ASKED], standing)
        if not count:
            raise Conflict("No removal waits for a yes here.")
        self.table.change(source.id, state=SyncState.IDLE, reason="")
        self._record(source, action)
        return count

    def undo(self, source_id: str) -> int:
        """Restore what was removed last; return how many documents. Raises Conflict for none."""
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
        """Remove a source, and soon after its documents, unless they are to stay."""
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
        """Return each source's status: its sync, pending removals, failures, what can be undone."""
        syncs = self.table.syncs([source.id for source in sources])
        results = []
        for source in sources:
            sync = syncs.get(source.id, NO_SYNC)
            pending = self.table.files(source.id, Standing.ASKED)
            rows = self._undoable(source)
            removed_at = rows[0].removed_at if rows else None
            status = SourceStatus(
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
            results.append(status)
        return results

    def _undoable(self, source: DocumentSource) -> list[SourceFile]:
        """Return the files of the last removal that are still kept."""
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
    """Return a source's state and the reason, from its job where that runs or failed."""
    if sync.is_unfinished and source.state is not SyncState.REMOVING:
        waits = "It waits for its turn." if sync.state == "queued" else ""
        return SyncState.RUNNING, sync.error or waits
    if sync.state == "failed":
        return SyncState.FAILED, sync.error
    return source.state, source.reason


def _checked(source: DocumentSource) -> DocumentSource:
    """Check a source; a watched folder without a time gets one. Raises UserError."""
    if source.every_seconds is None and source.watch:
        source = replace(source, every_seconds=WATCHED_SECONDS)
    if source.every_seconds is not None and source.every_seconds < SHORTEST_SECONDS:
        raise UserError(
            f"{source.every_seconds} seconds are too short between two looks: at least "
            f"{SHORTEST_SECONDS} are taken."
        )
    file_filter(source.include, source.exclude)
    if source.watch and source.kind != "folder":
        raise UserError(
            f"{masked(source.address)} cannot be watched: only a folder of the server can. Give a "
            "time instead, such as 1h."
        )
    return source


def _refuse_leaving(source: DocumentSource) -> None:
    if source.state is SyncState.REMOVING:
        raise Conflict("This source is being removed.")
