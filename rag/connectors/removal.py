"""Documents of files that went: taken out, had back for a while, and let go of."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from rag.connectors.plan import SyncPlan
from rag.connectors.sync_run import Parts, Report, SyncRun
from rag.errors import NotFound
from rag.records import DocumentSource, SourceFile, Standing


def finish_removals(look: SyncRun) -> None:
    """Take out what an interrupted sync was about to."""
    rows = look.parts.table.files(look.source.id, Standing.REMOVING)
    _take_out(look, rows)


def remove(look: SyncRun, plan: SyncPlan, *, moved: Iterable[str], known: int) -> int:
    """Take out the documents of files that went; returns how many wait for a yes instead.

    `moved` are the ids of those that only moved. Nothing goes while a source is away.
    """
    if look.away is not None:
        return 0
    kept = set(moved)
    rows = [row for row in plan.removed if row.document_id not in kept]
    others = [row for row in rows if row.standing is not Standing.AGREED]
    if not look.parts.limits.allow(len(others), known):
        look.write([replace(row, standing=Standing.ASKED) for row in others])
        rows = [row for row in rows if row.standing is Standing.AGREED]
        asked = len(others)
    else:
        asked = 0
    now = datetime.now(UTC)
    going = [replace(row, standing=Standing.REMOVING, removed_at=now) for row in rows]
    look.write(going)
    _take_out(look, going)
    look.tally.removed += len(going)
    return asked


def _take_out(look: SyncRun, rows: Sequence[SourceFile]) -> None:
    contents = look.parts.table.contents(row.document_id for row in rows)
    for row in rows:
        if contents.get(row.document_id) == row.content_hash:  # not what came in its place since
            delete_document(look.parts, row.document_id)
    look.write([replace(row, standing=Standing.REMOVED) for row in rows])


def delete_document(parts: Parts, document_id: str) -> None:
    """If it is there."""
    with suppress(NotFound):
        parts.ingestion.delete(document_id)


def let_go(look: SyncRun) -> None:
    """Forget what was removed so long ago that it cannot be had back."""
    before = datetime.now(UTC) - look.parts.grace
    rows = look.parts.table.files(look.source.id, Standing.REMOVED)
    past = [row for row in rows if row.removed_at is None or row.removed_at < before]
    look.parts.table.drop(look.source.id, [row.document_id for row in past])
    _let_go_of(look.parts, past)


def remove_source(parts: Parts, source: DocumentSource, report: Report) -> None:
    """Take out all of its documents, then forget it."""
    rows = parts.table.files(source.id)
    present = parts.table.present(source.id)
    for done, row in enumerate(rows):
        if row.standing is not Standing.REMOVED and row.document_id in present:
            delete_document(parts, row.document_id)
        report(done + 1, len(rows))
    parts.table.forget(source.id)
    _let_go_of(parts, rows)


def _let_go_of(parts: Parts, rows: Iterable[SourceFile]) -> None:
    """Of their originals; a file that could not be read has none."""
    parts.documents.let_go_of({row.content_hash for row in rows if row.content_hash})
