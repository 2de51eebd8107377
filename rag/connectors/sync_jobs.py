"""What a job of a sync does: ask whether it may, open the source, look, write down how it went."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from rag.connectors.credentials import OpenedAddress, opened_address, sealed
from rag.connectors.kinds import (
    WEB,
    check_open,
    masked,
    open_source,
    without_login,
    without_secrets,
)
from rag.connectors.sync import Outcome, remove_source, sync
from rag.connectors.transfer import Parts, Report, SourceRemoved
from rag.db.audit_trail import acting
from rag.documents.collections import Collections
from rag.errors import Conflict, Forbidden, IndexAway, NotFound, SetupError, SourceAway, UserError
from rag.llm.connection import SecretBox
from rag.records import Document, DocumentSource, Right, SourceFile, SyncState
from rag.runtime.lanes import Lane
from rag.seams import Connector, ListedFile, SourceOptions
from rag.settings import SourceSettings

ASKED = Lane(2, waiting=8, what="originals")  # at once: each looks through a source
LOOK_SECONDS = 30.0  # for one of its files
SOON = timedelta(minutes=1)  # a file that was being written to is looked at again


class Syncs:
    """Does syncs, one at a time of each source."""

    def __init__(
        self,
        parts: Callable[[], Parts],
        collections: Collections,
        settings: SourceSettings,
        folder: Path,
        box: SecretBox,
    ) -> None:
        """`folder` holds what sources keep between two syncs, each in one of its own."""
        self._box = box
        self._parts = parts
        self._folder = folder
        self._collections = collections
        self._settings = settings

    def run(self, source_id: str, report: Report) -> None:
        """Of a source that is gone there is nothing to do. Raises what reading files in raises."""
        parts = self._parts()
        try:
            source = parts.table.source(source_id)
        except NotFound:
            return
        with acting(source.owner, f"source {source.id}"):
            self._run(parts, source, report)

    def _run(self, parts: Parts, source: DocumentSource, report: Report) -> None:
        if source.state is SyncState.REMOVING:
            remove_source(parts, source, report)
            rmtree(self._folder / source.id, ignore_errors=True)
            return
        source = self._sealed(parts, source)
        try:
            outcome = self._outcome(parts, source, report)
        except SourceRemoved:
            return  # the job that removes it follows
        self._note(parts, source, outcome)

    def original(self, document: Document) -> bytes:
        """The file as its source has it, if that is still what was read.

        It is asked as at a sync. Raises NotFound, Conflict where it changed since, UserError where
        the source may not be read any more, SourceAway and Busy.
        """
        parts = self._parts()
        found = parts.table.of_document(document.id)
        if found is None:
            raise NotFound(f"The original of {document.name} was not kept, and no source has it.")
        source, row = found
        self._check(source)
        whole = self._opened(source)
        # Without a folder: a sync may be under way.
        options = replace(self._options(parts, source), aside=None, secrets=whole.secrets)
        with ASKED.place(), closing(open_source(whole.address, options)) as opened:
            data = opened.read(_listed(opened, source, row, whole))
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
            options = replace(self._options(parts, source), secrets=whole.secrets)
            with closing(open_source(whole.address, options)) as opened:
                return sync(parts, source, opened, report, partial(self._check, source))
        except SourceAway as error:
            return Outcome(SyncState.AWAY, source.counts, str(error))
        except (UserError, SetupError) as error:
            if isinstance(error, IndexAway):
                raise  # it comes back, and the job is done again
            return Outcome(SyncState.FAILED, source.counts, str(error))

    def _opened(self, source: DocumentSource) -> OpenedAddress:
        return opened_address(source.address, self._settings.passwords, self._box)

    def _sealed(self, parts: Parts, source: DocumentSource) -> DocumentSource:
        """As it is kept now, also one of earlier days, whose secrets were written out."""
        address = sealed(source.address, self._box)
        if address == source.address:
            return source
        parts.table.change(source.id, address=address)
        return replace(source, address=address)

    def _check(self, source: DocumentSource) -> None:
        """Asked at each sync and before each of its files: rights change. Raises Forbidden."""
        if self._collections.right(source.owner, source.collection_id) < Right.MANAGE:
            raise Forbidden(
                f"{source.owner} may not manage this collection any more, so nothing more is read "
                "of it, and nothing is removed. It goes on when the right is given back."
            )
        if not source.is_operators:
            check_open(source.address, self._settings)

    def _options(self, parts: Parts, source: DocumentSource) -> SourceOptions:
        return SourceOptions(
            source.include,
            source.exclude,
            source.depth,
            self._settings.most_files,
            parts.max_bytes,
            self._settings.private_hosts,
            self._folder / source.id,
        )

    def _note(self, parts: Parts, source: DocumentSource, outcome: Outcome) -> None:
        values: dict[str, Any] = {"state": outcome.state, "reason": masked(outcome.reason)}
        if outcome.state in (SyncState.IDLE, SyncState.WAITING_FOR_YES):
            values["last_synced_at"] = datetime.now(UTC)
        if outcome.counts.waiting and source.every_seconds is not None:
            values["next_due_at"] = datetime.now(UTC) + SOON
        parts.table.finish(source.id, values | {"counts": asdict(outcome.counts)})


def _listed(
    opened: Connector, source: DocumentSource, row: SourceFile, whole: OpenedAddress
) -> ListedFile:
    """The file as its source lists it now; a page of the web is asked for by its address."""
    known = ListedFile(row.name, row.mark, row.size, row.url)
    if source.kind == WEB:
        if without_login(without_secrets(whole.address)) == row.url:
            known = replace(known, url=without_login(whole.address))
        return known
    ends = time.monotonic() + LOOK_SECONDS
    for file in opened.listed():
        if file.name == row.name:
            return file
        if time.monotonic() > ends:
            raise SourceAway(f"{row.name} is not found in {LOOK_SECONDS:.0f} seconds.")
    raise NotFound(f"{row.name} is not at its source any more.")
