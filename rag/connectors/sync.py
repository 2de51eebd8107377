"""The sync: update the documents of a source to its current files.

Each step can be interrupted and is resumed by the next sync: a file is recorded with its document's
id before the document is stored, a removal is recorded before it is done, and a file that was read
is marked so after it is stored.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from rag.connectors.kinds import (
    WEB,
    OpenedAddress,
    check_open,
    masked,
    open_source,
    opened_address,
    sealed,
    without_login,
    without_secrets,
)
from rag.connectors.transfer import (
    MayRead,
    Parts,
    PendingFile,
    Report,
    SourceRemoved,
    SyncPlan,
    SyncRun,
    Tally,
    Transfer,
    claimed_files,
    compare,
    free_name,
    may_have_moved,
    moves,
)
from rag.db.audit_trail import acting
from rag.documents.collections import Collections
from rag.documents.store_rows import batches
from rag.errors import Conflict, Forbidden, IndexAway, NotFound, SetupError, SourceAway, UserError
from rag.llm.discovery import SecretBox
from rag.records import Document, DocumentSource, Right, SourceFile, Standing, SyncCounts, SyncState
from rag.runtime.budget import Lane
from rag.seams import Connector, ListedFile, Resumable, SourceOptions
from rag.settings import SourceSettings

# ── Removals: documents of files that disappeared ────────────────────────────────────────────────


def remove(look: SyncRun, plan: SyncPlan, *, moved: Iterable[str], total: int) -> int:
    """Delete the documents of files that disappeared; return how many wait to be confirmed.

    `moved` are the ids of documents whose files only moved. Nothing is deleted while the source
    cannot be listed completely.
    """
    if look.away is not None:
        return 0
    moved_ids = set(moved)
    rows = [row for row in plan.removed if row.document_id not in moved_ids]
    others = [row for row in rows if row.standing is not Standing.AGREED]
    pending = 0
    if not look.parts.limits.allow(len(others), total):
        look.write([replace(row, standing=Standing.ASKED) for row in others])
        rows = [row for row in rows if row.standing is Standing.AGREED]
        pending = len(others)
    now = datetime.now(UTC)
    going = [replace(row, standing=Standing.REMOVING, removed_at=now) for row in rows]
    look.write(going)
    _take_out(look, going)
    look.tally.removed += len(going)
    return pending


def _take_out(look: SyncRun, rows: Sequence[SourceFile]) -> None:
    """Delete the documents of files that are being removed."""
    contents = look.parts.table.contents(row.document_id for row in rows)
    for row in rows:
        # Not a document that replaced it since.
        if contents.get(row.document_id) == row.content_hash:
            delete_document(look.parts, row.document_id)
    look.write([replace(row, standing=Standing.REMOVED) for row in rows])


def delete_document(parts: Parts, document_id: str) -> None:
    """Delete a document if it exists."""
    with suppress(NotFound):
        parts.ingestion.delete(document_id)


def let_go(look: SyncRun) -> None:
    """Forget removed files whose time for restoring them is over."""
    before = datetime.now(UTC) - look.parts.grace
    rows = look.parts.table.files(look.source.id, Standing.REMOVED)
    expired = [row for row in rows if row.removed_at is None or row.removed_at < before]
    look.parts.table.drop(look.source.id, [row.document_id for row in expired])
    _let_go_of(look.parts, expired)


def remove_source(parts: Parts, source: DocumentSource, report: Report) -> None:
    """Delete all documents of a source, then the source."""
    rows = parts.table.files(source.id)
    present = parts.table.present(source.id)
    for done, row in enumerate(rows):
        if row.standing is not Standing.REMOVED and row.document_id in present:
            delete_document(parts, row.document_id)
        report(done + 1, len(rows))
    parts.table.forget(source.id)
    _let_go_of(parts, rows)


def _let_go_of(parts: Parts, rows: Iterable[SourceFile]) -> None:
    """Delete the originals of files; a file that could not be read has none."""
    parts.documents.let_go_of({row.content_hash for row in rows if row.content_hash})


# ── The sync ─────────────────────────────────────────────────────────────────────────────────────

LOOKS = 5  # passes at most, while files are being written to
PAUSE_SECONDS = 1.1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a sync."""

    state: SyncState
    counts: SyncCounts
    reason: str = ""


def sync(
    parts: Parts, source: DocumentSource, opened: Connector, report: Report, check: MayRead
) -> Outcome:
    """Synchronise a source; repeat where files were being written to.

    Raises SourceRemoved, Forbidden where it may not be read any more, and the errors of ingestion.
    """
    tally = Tally()
    for number in range(LOOKS):
        look = SyncRun(parts, source, opened, tally, check)
        pending = _looked(look, report)
        if not tally.waiting or look.away is not None or number == LOOKS - 1:
            break
        report(0, tally.waiting)
        time.sleep(PAUSE_SECONDS)
    let_go(look)
    tally.failed = parts.table.failed_count(source.id)
    if look.away is not None:
        is_lost = isinstance(look.away, Forbidden)
        state = SyncState.FAILED if is_lost else SyncState.AWAY
        return Outcome(state, tally.counts(), str(look.away))
    if pending:
        question = (
            f"{pending:,} files are not there any more, which is much at once. Their documents "
            "stay until you say that they may go."
        )
        return Outcome(SyncState.WAITING_FOR_YES, tally.counts(), question)
    return Outcome(SyncState.IDLE, tally.counts())


def _looked(look: SyncRun, report: Report) -> int:
    """Do one pass; return how many removals wait for confirmation."""
    table, source = look.parts.table, look.source
    _take_out(look, table.files(source.id, Standing.REMOVING))  # which a killed sync has left
    listed = look.listed(report)
    files = table.files(source.id)
    present = table.present(source.id)
    plan = compare(listed, files, present, look.parts.bounds)
    look.tally.waiting = len(plan.waiting)
    look.tally.unchanged = sum(not row.reason for row, _file in plan.unchanged)

    # Unchanged files that are listed again, or have another link.
    look.rename(replace(row, url=file.url) for row, file in plan.unchanged if row.url != file.url)
    look.write(
        replace(row, standing=Standing.LISTED, url=file.url)
        for row, file in plan.unchanged
        if row.standing is not Standing.LISTED or row.url != file.url
    )

    gone = [
        row for row in files if row.standing is Standing.REMOVED and row.document_id not in present
    ]
    taken = table.taken_names(source.collection_id)
    rest, moved, again = _moved(look, plan, gone, taken)
    pending = remove(look, plan, moved=moved, total=len(files) - len(gone))
    changed = [
        PendingFile(row, file, is_new=row.document_id not in present) for row, file in plan.changed
    ]
    coming = [
        *_renamed(look, changed, taken),
        *_renamed(look, _back(look, plan, present), taken),
        *claimed_files(look, rest, again, taken),
    ]
    Transfer(look, coming).bring(report)
    if look.away is None:
        table.drop(source.id, [row.document_id for row in plan.lost])
    return pending


def _moved(
    look: SyncRun, plan: SyncPlan, gone: Sequence[SourceFile], taken: dict[str, str]
) -> tuple[list[ListedFile], set[str], dict[str, SourceFile]]:
    """Rename the documents of files that moved.

    Returns the files that did not move, the ids of documents that did, and, by name, the files that
    an earlier sync removed and that are listed again, under their name or with their content
    elsewhere.
    """
    candidates = [*plan.removed, *gone]
    hashes = look.hashes(may_have_moved(plan.new, candidates)) if candidates else {}
    moved = moves(hashes, plan.removed)
    if look.away is None:  # otherwise the old place may still exist
        files = {file.name: file for file in plan.new}
        for names in batches(sorted(moved)):
            _move(look, [(moved[name], files[name]) for name in names], taken)
    rest = [file for file in plan.new if file.name not in moved]
    again = moves({name: content for name, content in hashes.items() if name not in moved}, gone)
    used = {row.document_id for row in again.values()}
    newest = sorted(gone, key=lambda row: row.removed_at.timestamp() if row.removed_at else 0.0)
    by_name = {row.name: row for row in newest if row.document_id not in used}
    here = {file.name: by_name[file.name] for file in rest if file.name in by_name}
    return rest, {row.document_id for row in moved.values()}, here | again


def _move(
    look: SyncRun, moved: Sequence[tuple[SourceFile, ListedFile]], taken: dict[str, str]
) -> None:
    rows = []
    for row, file in moved:
        name = free_name(file.name, look.source, taken, row.document_id)
        taken.pop(row.document_name, None)
        taken[name] = row.document_id
        new = SourceFile(
            row.document_id, file.name, name, file.mark, row.content_hash, file.size, file.url
        )
        rows.append(replace(new, reason=row.reason))
    look.rename(rows)
    look.write(rows)
    look.tally.moved += len(rows)


def _back(look: SyncRun, plan: SyncPlan, present: Mapping[str, str]) -> list[PendingFile]:
    """Return documents to restore although their files are not listed."""
    files = [row for row in plan.back if row.document_id in present]  # restored by a killed sync
    look.write([replace(row, standing=Standing.KEPT, removed_at=None) for row in files])
    return [
        PendingFile(row, None, is_new=True) for row in plan.back if row.document_id not in present
    ]


def _renamed(
    look: SyncRun, coming: Sequence[PendingFile], taken: dict[str, str]
) -> list[PendingFile]:
    """Give documents that are read again the name that is free now."""
    files = []
    for file in coming:
        row = file.row
        if file.is_new:
            name = free_name(row.name, look.source, taken, row.document_id)
            taken[name] = row.document_id
            file = replace(file, row=replace(row, document_name=name))
        files.append(file)
    look.write(new.row for old, new in zip(coming, files, strict=True) if old.row != new.row)
    return files


ORIGINALS_LANE = Lane(2, waiting=8, what="originals")  # at once: each lists a source
LOOK_SECONDS = 30.0  # to find one file
SOON = timedelta(minutes=1)  # when a file that was being written to is looked at again


class Syncs:
    """Runs syncs, one at a time for each source."""

    def __init__(
        self,
        parts: Callable[[], Parts],
        collections: Collections,
        settings: SourceSettings,
        folder: Path,
        box: SecretBox,
    ) -> None:
        """`folder` holds a folder for each source, for what it keeps between two syncs."""
        self._box = box
        self._parts = parts
        self._folder = folder
        self._collections = collections
        self._settings = settings

    def run(self, source_id: str, report: Report) -> None:
        """Synchronise a source, if it exists. Raises the errors of ingestion."""
        parts = self._parts()
        try:
            source = parts.table.source(source_id)
        except NotFound:
            return
        with acting(source.owner, f"source {source.id}"):
            if source.state is SyncState.REMOVING:
                remove_source(parts, source, report)
                rmtree(self._folder / source.id, ignore_errors=True)
                return
            address = sealed(source.address, self._box)
            if address != source.address:  # an earlier version stored its secrets in plain text
                parts.table.change(source.id, address=address)
                source = replace(source, address=address)
            with suppress(SourceRemoved):  # a later job removes it
                self._note(parts, source, self._outcome(parts, source, report))

    def original(self, document: Document) -> bytes:
        """Return a document's file from its source, if it is still the version that was read.

        Raises NotFound, Conflict where it has changed, UserError where the source may not be read
        any more, SourceAway and Busy.
        """
        parts = self._parts()
        origin = parts.table.of_document(document.id)
        if origin is None:
            raise NotFound(f"The original of {document.name} was not kept, and no source has it.")
        source, row = origin
        self._check(source)
        whole = self._opened(source)
        # Without a folder: a sync may be running.
        options = replace(self._options(parts, source, whole), aside=None)
        with ORIGINALS_LANE.place(), closing(open_source(whole.address, options)) as opened:
            data = opened.read(_find_listed(opened, source, row, whole))
        if sha256(data).hexdigest() != document.content_hash:
            raise Conflict(
                f"{document.name} has changed at its source since it was read, or cannot be had as "
                "it was. What was read of it stands on its page; its source has the new one."
            )
        return data

    def _outcome(self, parts: Parts, source: DocumentSource, report: Report) -> Outcome:
        try:
            self._check(source)
            whole = self._opened(source)
            options = self._options(parts, source, whole)
            with closing(open_source(whole.address, options)) as opened, _resuming_if_left(opened):
                return sync(parts, source, opened, report, partial(self._check, source))
        except IndexAway:
            raise  # temporary: the job is run again
        except SourceAway as error:
            return Outcome(SyncState.AWAY, source.counts, str(error))
        except (UserError, SetupError) as error:
            return Outcome(SyncState.FAILED, source.counts, str(error))

    def _opened(self, source: DocumentSource) -> OpenedAddress:
        return opened_address(source.address, self._settings.passwords, self._box)

    def _check(self, source: DocumentSource) -> None:
        """Check the owner's right, at each sync and before each file. Raises Forbidden."""
        if self._collections.right(source.owner, source.collection_id) < Right.MANAGE:
            raise Forbidden(
                f"{source.owner} may not manage this collection any more, so nothing more is read "
                "of it, and nothing is removed. It goes on when the right is given back."
            )
        if not source.is_operators:
            check_open(source.address, self._settings)

    def _options(self, parts: Parts, source: DocumentSource, whole: OpenedAddress) -> SourceOptions:
        return SourceOptions(
            source.include,
            source.exclude,
            source.depth,
            self._settings.most_files,
            parts.max_bytes,
            self._settings.private_hosts,
            self._folder / source.id,
            str(source.last_synced_at),
            whole.secrets,
        )

    def _note(self, parts: Parts, source: DocumentSource, outcome: Outcome) -> None:
        values: dict[str, Any] = {"state": outcome.state, "reason": masked(outcome.reason)}
        if outcome.state in (SyncState.IDLE, SyncState.WAITING_FOR_YES):
            values["last_synced_at"] = datetime.now(UTC)
        if outcome.counts.waiting and source.every_seconds is not None:
            values["next_due_at"] = datetime.now(UTC) + SOON
        parts.table.finish(source.id, values | {"counts": asdict(outcome.counts)})


@contextmanager
def _resuming_if_left(opened: Connector) -> Iterator[None]:
    """Keep a source's progress if its job is to be run again."""
    try:
        yield
    except Exception as error:
        ends = SourceAway, UserError, SetupError, SourceRemoved
        is_run_again = isinstance(error, IndexAway) or not isinstance(error, ends)
        if is_run_again and isinstance(opened, Resumable):
            opened.keep()
        raise


def _find_listed(
    opened: Connector, source: DocumentSource, row: SourceFile, whole: OpenedAddress
) -> ListedFile:
    """Return a file as its source lists it now; a web page is requested by its address."""
    listed = ListedFile(row.name, row.mark, row.size, row.url)
    if source.kind == WEB:
        if without_login(without_secrets(whole.address)) == row.url:
            listed = replace(listed, url=without_login(whole.address))
        return listed
    ends = time.monotonic() + LOOK_SECONDS
    for file in opened.listed():
        if file.name == row.name:
            return file
        if time.monotonic() > ends:
            raise SourceAway(f"{row.name} is not found in {LOOK_SECONDS:.0f} seconds.")
    raise NotFound(f"{row.name} is not at its source any more.")
