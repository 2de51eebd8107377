"""What a job of a sync does: ask whether it may, open the source, look, write down how it went."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rag.documents.storing.collections import Collections
from rag.errors import Forbidden, NotFound, RagError, SetupError, SourceAway, UserError
from rag.records import DocumentSource, Right, SyncState
from rag.seams import SourceOptions
from rag.settings import SourceSettings
from rag.sources.kinds import check_open, open_source
from rag.sources.look import Parts, Report, Unwanted
from rag.sources.removing import remove_source
from rag.sources.sync import Outcome, sync

INTERNAL = "It failed for a reason of our own; the server's log says more."


class Syncs:
    """Does syncs, one at a time of each source."""

    def __init__(
        self, parts: Callable[[], Parts], collections: Collections, settings: SourceSettings
    ) -> None:
        self._parts = parts
        self._collections = collections
        self._settings = settings

    def run(self, source_id: str, report: Report) -> None:
        """Of a source that is gone there is nothing to do. Raises what reading files in raises."""
        parts = self._parts()
        try:
            source = parts.table.source(source_id)
        except NotFound:
            return
        if source.state is SyncState.REMOVING:
            remove_source(parts, source, report)
            return
        try:
            outcome = self._outcome(parts, source, report)
        except Unwanted:
            return  # the job that removes it follows
        except RagError as error:
            parts.table.change(source_id, state=SyncState.FAILED, reason=str(error))
            raise
        self._note(parts, source, outcome)

    def _outcome(self, parts: Parts, source: DocumentSource, report: Report) -> Outcome:
        try:
            self._check(source)
            with closing(open_source(source.address, self._options(parts, source))) as opened:
                return sync(parts, source, opened, report)
        except SourceAway as error:
            return Outcome(SyncState.AWAY, source.counts, str(error))
        except (UserError, SetupError) as error:
            if not isinstance(error, UserError) and type(error) is not SetupError:
                raise  # what is away for a while
            return Outcome(SyncState.FAILED, source.counts, str(error))

    def _check(self, source: DocumentSource) -> None:
        """Asked at each sync: rights and settings change. Raises Forbidden."""
        if self._collections.right(source.owner, source.collection_id) < Right.MANAGE:
            raise Forbidden(
                f"{source.owner} may not manage this collection any more, so it was not looked at. "
                "Nothing was removed."
            )
        if not source.is_operators:
            settings = self._settings
            check_open(source.address, folders=settings.folders, stores=settings.stores)

    def _options(self, parts: Parts, source: DocumentSource) -> SourceOptions:
        return SourceOptions(
            source.include,
            source.exclude,
            source.depth,
            self._settings.most_files,
            parts.max_bytes,
            self._settings.private_hosts,
        )

    def _note(self, parts: Parts, source: DocumentSource, outcome: Outcome) -> None:
        values: dict[str, Any] = {"state": outcome.state, "reason": outcome.reason}
        if outcome.state in (SyncState.IDLE, SyncState.WAITING_FOR_YES):
            values["last_synced_at"] = datetime.now(UTC)
        parts.table.finish(source.id, values | {"counts": asdict(outcome.counts)})
