"""One look at a source: what all steps of a sync share."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta

from rag.connectors.file_filter import file_filter
from rag.connectors.kinds import passwords_in_query, without_login, without_secrets
from rag.connectors.plan import Limits
from rag.connectors.table import SourceTable
from rag.documents.store import SqlDocumentStore
from rag.errors import Forbidden, SourceAway, Unreadable, UserError
from rag.ingestion.pipeline import Ingestion
from rag.records import DocumentSource, SourceFile, SyncCounts
from rag.seams import Connector, ListedFile

ASK_SECONDS = 2.0
HELD_BYTES = 64 * 1024 * 1024  # of files that were read to see what they are
Report = Callable[[int, int], None]  # files done, of how many; raises what ends the sync
MayRead = Callable[[], None]  # whether the source may be read now; raises Forbidden


def _link(url: str) -> str:
    """Where people are led: no other kind of address stands in a page, and no login."""
    return without_login(url) if url.startswith(("https://", "http://")) else ""


class SourceUnavailable(Unreadable):
    """The source went away, or may not be read any more: nothing is known of the file."""


class SourceRemoved(Exception):
    """The source is being removed: its sync ends."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What syncs work with."""

    table: SourceTable
    documents: SqlDocumentStore
    ingestion: Ingestion
    limits: Limits
    max_bytes: int
    bounds: str  # of a file: within others, those that were refused are tried again
    grace: timedelta


@dataclass(slots=True)
class Tally:
    """Counts that grow."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    waiting: int = 0

    def counts(self) -> SyncCounts:
        return SyncCounts(**{field.name: getattr(self, field.name) for field in fields(SyncCounts)})


@dataclass(slots=True)
class SyncRun:
    """One look at one source; only one at a time looks at the same."""

    parts: Parts
    source: DocumentSource
    opened: Connector
    tally: Tally
    check: MayRead
    away: SourceAway | Forbidden | None = None  # why it was not seen whole: nothing is removed then
    _is_unreadable: bool = False
    _held: dict[str, bytes] = field(default_factory=dict)
    _held_bytes: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def listed(self) -> list[ListedFile]:
        """Sorted by name; of a source that could not be seen whole, what was seen.

        Listing may take hours: every few seconds is asked whether it may still be read, and is
        still wanted. Raises Forbidden and Unwanted.
        """
        asked = time.monotonic()
        results: dict[str, ListedFile] = {}
        has_secret = bool(passwords_in_query(self.source.address))  # not for who reads documents
        is_wanted = file_filter(self.source.include, self.source.exclude)
        try:
            for file in self.opened.listed():
                if time.monotonic() - asked > ASK_SECONDS:
                    self.check()
                    self.write(())
                    asked = time.monotonic()
                if is_wanted(file.name):
                    url = without_secrets(file.url) if has_secret else file.url
                    results.setdefault(file.name, replace(file, url=_link(url)))
        except SourceAway as error:
            self.away = error
        self.check()
        return [results[name] for name in sorted(results)]

    def read(self, file: ListedFile) -> bytes:
        """Each file once. Raises UserError; of a source that is away too, and notes that."""
        with self._turn:  # not every kind can be read by several threads
            if self._is_unreadable:
                raise SourceUnavailable(file.name, str(self.away))
            try:
                self.check()
                held = self._held.pop(file.name, None)
                if held is None:
                    return self.opened.read(file)
                self._held_bytes -= len(held)
                return held
            except (SourceAway, Forbidden) as error:
                self.away, self._is_unreadable = error, True
                raise SourceUnavailable(file.name, str(error)) from error

    def ask(self) -> None:
        """Note whether the source may not be read any more."""
        try:
            self.check()
        except Forbidden as error:
            self.away = error

    def hashes(self, files: Iterable[ListedFile]) -> dict[str, str]:
        """Of the content, by name; what cannot be read now is read in its turn, which says why."""
        results: dict[str, str] = {}
        for file in files:
            try:
                data = self.read(file)
            except UserError:
                continue
            results[file.name] = hashlib.sha256(data).hexdigest()
            if self._held_bytes + len(data) <= HELD_BYTES:
                self._held[file.name] = data
                self._held_bytes += len(data)
        return results

    def write(self, files: Iterable[SourceFile]) -> None:
        """Raises Unwanted."""
        if not self.parts.table.write(self.source.id, files):
            raise SourceRemoved

    def rename(self, wanted: Iterable[tuple[SourceFile, str, str]]) -> None:
        """The documents of files, to a name and a link, if they are there and nobody took the name
        meanwhile."""
        named = [(row.document_id, name, url) for row, name, url in wanted]
        if named:
            self.parts.documents.rename(named)
