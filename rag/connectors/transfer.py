"""Plan a sync and transfer its files into the library; each is recorded once it is stored."""

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import chain, count
from pathlib import PurePosixPath
from uuid import uuid4

from rag.connectors.folder import file_filter
from rag.connectors.kinds import masked, passwords_in_query, without_login, without_secrets
from rag.connectors.table import SourceTable
from rag.documents.chunking import document_id_for
from rag.documents.files import IncomingFile, is_archive
from rag.documents.store import SqlDocumentStore
from rag.errors import Forbidden, NotFound, SourceAway, TooLarge, Unreadable, UserError
from rag.ingestion.pipeline import Ingestion
from rag.records import DocumentSource, SourceFile, Standing, SyncCounts
from rag.runtime.progress import Progress, Stage
from rag.seams import Connector, ListedFile, Resumable

GONE = frozenset({Standing.REMOVING, Standing.REMOVED})


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The files of a sync; each listed and each known file is in exactly one group."""

    new: tuple[ListedFile, ...] = ()
    changed: tuple[tuple[SourceFile, ListedFile], ...] = ()  # or only touched: its content decides
    unchanged: tuple[tuple[SourceFile, ListedFile], ...] = ()
    removed: tuple[SourceFile, ...] = ()  # not listed any more, nor in an unreadable archive
    waiting: tuple[ListedFile, ...] = ()  # still being written to
    lost: tuple[SourceFile, ...] = ()  # not listed, and their documents are deleted already
    back: tuple[SourceFile, ...] = ()  # not listed, to be restored


@dataclass(frozen=True, slots=True)
class Limits:
    """How many removals at once need no confirmation."""

    share: float = 0.2
    most: int = 50

    def allow(self, removed: int, total: int) -> bool:
        """Return whether removals need no confirmation, as one that is not the last file."""
        if removed in (0, 1) and removed < total:
            return True
        return removed <= self.most and removed <= self.share * total


def refused_mark(mark: str, bounds: str) -> str:
    """Return the mark of a file refused within these limits; with other limits it is read again."""
    return f"{mark} {bounds}" if mark else ""


def compare(
    listed: Iterable[ListedFile],
    rows_before: Iterable[SourceFile],
    documents: Mapping[str, str],
    bounds: str,
) -> SyncPlan:
    """Compare the listed files with the known ones, by the source's own marks.

    `documents` are the content hashes of existing documents, by id; `bounds` are the present limits
    of a file. A document that was deleted or replaced by hand is restored from its source.
    """
    standing = [row for row in rows_before if row.standing not in GONE]
    # Files in the source take precedence.
    rows = {row.name: row for row in sorted(standing, key=_is_of_source)}
    new, changed, unchanged, waiting = [], [], [], []
    names, met = set(), set()
    for file in listed:
        if file.name in names:
            continue
        names.add(file.name)
        row = rows.get(file.name)
        if row is not None and not _is_replaced(row, documents):
            met.add(row.document_id)
        else:
            row = None
        if not file.is_settled:
            waiting.append(file)
        elif row is None:
            new.append(file)
        elif _is_same(row, file, documents, bounds):
            unchanged.append((row, file))
        else:
            changed.append((row, file))
    absent = [row for row in standing if row.document_id not in met]
    back = [row for row in absent if row.standing is Standing.BACK]
    others = [row for row in absent if row.standing is not Standing.BACK]
    lost = [row for row in others if row.document_id not in documents]
    gone = [row for row in others if row.document_id in documents and _is_of_source(row)]
    # Listed as files, since they cannot be opened: nothing is known of the files within.
    closed = {name for name in names if is_archive(name)}
    removed = [
        row
        for row in gone
        if not closed or closed.isdisjoint(map(str, PurePosixPath(row.name).parents))
    ]
    return SyncPlan(
        tuple(new),
        tuple(changed),
        tuple(unchanged),
        tuple(removed),
        tuple(waiting),
        (*lost, *(row for row in back if _is_replaced(row, documents))),
        tuple(row for row in back if not _is_replaced(row, documents)),
    )


def _is_of_source(row: SourceFile) -> bool:
    """Return whether a file is expected to be listed: a restored one need not be."""
    return row.standing not in (Standing.KEPT, Standing.BACK)


def _is_replaced(row: SourceFile, documents: Mapping[str, str]) -> bool:
    """Return whether another document has replaced one to be restored: the newer one stays."""
    content = documents.get(row.document_id, row.content_hash)
    return row.standing is Standing.BACK and content != row.content_hash


def _is_same(row: SourceFile, file: ListedFile, documents: Mapping[str, str], bounds: str) -> bool:
    if row.reason:
        return bool(file.mark) and row.mark == refused_mark(file.mark, bounds)
    is_there = documents.get(row.document_id) == row.content_hash
    return bool(file.mark) and row.mark == file.mark and is_there


def free_name(
    name: str, source: DocumentSource, taken: Mapping[str, str], document_id: str = ""
) -> str:
    """Return the file's name, with the source's name in front where it is taken.

    `taken` are the collection's documents by name; the one with `document_id` may keep its name.
    """
    numbered = (f"{source.name} ({n})/{name}" for n in count(2))
    for candidate in chain((name, f"{source.name}/{name}"), numbered):
        if taken.get(candidate, document_id or None) == (document_id or None):
            return candidate
    raise AssertionError("numbers do not end")


def may_have_moved(files: Sequence[ListedFile], gone: Iterable[SourceFile]) -> list[ListedFile]:
    """Return the new files that may be moved ones and are worth reading to find out."""
    sizes = {(row.size, _suffix(row.name)) for row in gone if row.content_hash}
    unsized = {ending for size, ending in sizes if size is None}
    endings = {ending for _size, ending in sizes}
    return [
        file
        for file in files
        if (file.size, _suffix(file.name)) in sizes
        or _suffix(file.name) in unsized
        or (file.size is None and _suffix(file.name) in endings)
    ]


def moves(hashes: Mapping[str, str], gone: Sequence[SourceFile]) -> dict[str, SourceFile]:
    """Match new files, by name, with removed ones of the same content and ending.

    Among several of the same content those of the same name belong together, then of the same file
    name, then of the same folder.
    """
    left = {row.document_id: row for row in gone if row.content_hash}
    results: dict[str, SourceFile] = {}
    likenesses: tuple[Callable[[str], str], ...] = (
        lambda name: name,
        lambda name: PurePosixPath(name).name,
        lambda name: str(PurePosixPath(name).parent),
        lambda name: "",
    )
    for likeness in likenesses:
        alike = defaultdict[tuple[str, str, str], list[SourceFile]](list)
        for row in sorted(left.values(), key=lambda row: row.name, reverse=True):
            alike[row.content_hash, _suffix(row.name), likeness(row.name)].append(row)
        for name in sorted(hashes.keys() - results.keys()):
            rows = alike[hashes[name], _suffix(name), likeness(name)]
            if rows:
                results[name] = rows.pop()
                del left[results[name].document_id]
    return results


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.casefold()


# ── The state of one sync ────────────────────────────────────────────────────────────────────────

ASK_SECONDS = 2.0
MOST_CONTENT_BYTES = 64 * 1024 * 1024  # of files read to compare their content
Report = Callable[[int, int], None]  # files done, files in all; raises to end the sync
MayRead = Callable[[], None]  # raises Forbidden where the source may not be read now


class SourceUnavailable(Unreadable):
    """Raised when the source cannot be read any more: nothing is known about the file."""


class SourceRemoved(Exception):
    """Raised when the source is being removed: its sync ends."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The services and limits that syncs use."""

    table: SourceTable
    documents: SqlDocumentStore
    ingestion: Ingestion
    limits: Limits
    max_bytes: int
    bounds: str  # the limits of a file: when they change, refused files are tried again
    grace: timedelta


@dataclass(slots=True)
class Tally:
    """Counters of a sync."""

    new: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    waiting: int = 0

    def counts(self) -> SyncCounts:
        return SyncCounts(**asdict(self))


@dataclass(slots=True)
class SyncRun:
    """The state of one sync of one source; a source has one at a time."""

    parts: Parts
    source: DocumentSource
    opened: Connector
    tally: Tally
    check: MayRead
    # Why the listing is incomplete: nothing is removed then.
    away: SourceAway | Forbidden | None = None
    _is_unreadable: bool = False
    _contents: dict[str, bytes] = field(default_factory=dict)
    _content_bytes: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def listed(self, report: Report) -> list[ListedFile]:
        """Return the files sorted by name; of an incomplete listing, those that were seen.

        Listing may take hours: every few seconds it checks whether the source may still be read,
        still exists, and whether other jobs wait if it can be resumed. Raises Forbidden and
        SourceRemoved.
        """
        checked_at = 0.0
        results: dict[str, ListedFile] = {}
        # Hidden from readers of documents, who see only web addresses, without a login.
        has_secret = bool(passwords_in_query(self.source.address))
        is_wanted = file_filter(self.source.include, self.source.exclude)
        try:
            for file in self.opened.listed():
                if time.monotonic() - checked_at > ASK_SECONDS:
                    self.check()
                    self.write(())
                    if isinstance(self.opened, Resumable) and not self.opened.is_replaying:
                        report(0, len(results))
                    checked_at = time.monotonic()
                if is_wanted(file.name):
                    url = without_secrets(file.url) if has_secret else file.url
                    is_of_web = url.startswith(("https://", "http://"))
                    link = without_login(url) if is_of_web else ""
                    results.setdefault(file.name, replace(file, url=link))
        except SourceAway as error:
            self.away = error
        self.check()
        return [results[name] for name in sorted(results)]

    def read(self, file: ListedFile) -> bytes:
        """Return a file's bytes, once. Raises UserError, also for a source that is away."""
        with self._turn:  # some sources cannot be read by several threads
            if self._is_unreadable:
                raise SourceUnavailable(file.name, str(self.away))
            try:
                self.check()
                ahead = self._contents.pop(file.name, None)
                if ahead is None:
                    return self.opened.read(file)
                self._content_bytes -= len(ahead)
                return ahead
            except (SourceAway, Forbidden) as error:
                self.away, self._is_unreadable = error, True
                raise SourceUnavailable(file.name, str(error)) from error

    def hashes(self, files: Iterable[ListedFile]) -> dict[str, str]:
        """Return content hashes by name; what cannot be read now is reported when transferred."""
        results: dict[str, str] = {}
        for file in files:
            try:
                data = self.read(file)
            except UserError:
                continue
            results[file.name] = hashlib.sha256(data).hexdigest()
            if self._content_bytes + len(data) <= MOST_CONTENT_BYTES:
                self._contents[file.name] = data
                self._content_bytes += len(data)
        return results

    def write(self, files: Iterable[SourceFile]) -> None:
        """Write files. Raises SourceRemoved."""
        if not self.parts.table.write(self.source.id, files):
            raise SourceRemoved

    def rename(self, rows: Iterable[SourceFile]) -> None:
        """Give documents the name and link of their files, if they exist and the name is free."""
        renames = [(row.document_id, row.document_name, row.url) for row in rows]
        if renames:
            self.parts.documents.rename(renames)


# ── Ingesting the files of a source ──────────────────────────────────────────────────────────────

# Stored files are recorded at the latest after so many or so long.
WRITE_FILES, WRITE_SECONDS = 200, 0.5


@dataclass(frozen=True, slots=True)
class PendingFile:
    """A file to read, with its row."""

    row: SourceFile
    file: ListedFile | None  # None: not listed, read from its original
    is_new: bool
    is_stored: bool = False


def claimed_files(
    look: SyncRun,
    files: Sequence[ListedFile],
    again: Mapping[str, SourceFile],
    taken: dict[str, str],
) -> list[PendingFile]:
    """Return new files with a row for each, which reserves the id of its document.

    `again` are files that were here before, by name, which get their documents' ids again. A
    document of the same name and content without a source becomes the file's document.
    """
    adopted = _adopted(look, [file for file in files if file.name not in again], taken)
    place = look.source.collection_id
    used = look.parts.table.taken_ids(document_id_for(file.name, place) for file in files)
    coming = []
    for file in files:
        row = again.get(file.name)
        document_id = row.document_id if row else adopted.get(file.name, "")
        name = free_name(file.name, look.source, taken, document_id)
        if not document_id:
            document_id = document_id_for(name, place)
            is_renamed = name != file.name  # its id is not among those looked up above
            if document_id in used or (is_renamed and look.parts.table.taken_ids([document_id])):
                document_id = uuid4().hex
            used.add(document_id)
        taken[name] = document_id
        made = SourceFile(document_id, file.name, name, size=file.size, url=file.url)
        coming.append(PendingFile(made, file, is_new=True))
    look.write([pending.row for pending in coming])
    return coming


def _adopted(
    look: SyncRun, files: Sequence[ListedFile], taken: Mapping[str, str]
) -> dict[str, str]:
    """Return existing documents of these files, for instance from an ingest of the same folder."""
    present = {file.name: taken[file.name] for file in files if file.name in taken}
    if not present:
        return {}
    of_sources = look.parts.table.of_sources(present.values())
    contents = look.parts.table.contents(present.values())
    hashes = look.hashes([file for file in files if present.get(file.name, "") in contents])
    return {
        name: present[name]
        for name, content in hashes.items()
        if contents[present[name]] == content and present[name] not in of_sources
    }


class Transfer:
    """Ingests files and records the result of each."""

    def __init__(self, look: SyncRun, coming: Sequence[PendingFile]) -> None:
        self._look = look
        self._open = {file.row.document_name: file for file in coming}
        self._total = len(self._open)
        self._unnoted: list[PendingFile] = []  # stored, but not recorded yet
        self._refused: list[SourceFile] = []
        self._written_at = time.monotonic()
        self._error: Exception | None = None

    def bring(self, report: Report) -> None:
        """Ingest all files. Raises SourceRemoved and the errors of ingestion.

        A model's error is raised once everything else is stored.
        """
        try:
            with closing(self._look.parts.ingestion.ingest(self._files())) as reports:
                for progress in reports:
                    self._take(progress)
                    if self._is_time():
                        self._note()
                        report(self._total - len(self._open), self._total)
        finally:
            self._note()
        if self._error is not None:
            raise self._error

    def _files(self) -> Iterator[IncomingFile]:
        source = self._look.source
        for coming in list(self._open.values()):
            row, file = coming.row, coming.file
            yield IncomingFile(
                row.document_name,
                partial(self._data, coming),
                source.owner,
                source.collection_id,
                document_id=row.document_id,
                url=file.url if file else row.url,
                author=file.author if file else "",
                date=file.date if file else "",
            )

    def _data(self, coming: PendingFile, max_bytes: int) -> bytes:
        row = coming.row
        if coming.file is None:
            path = self._look.parts.documents.original_of_content(row.content_hash)
            if path is None:
                reason = "its original is not kept any more, or not on this machine."
                raise Unreadable(row.name, reason)
            return path.read_bytes()
        data = self._look.read(coming.file)
        if len(data) > max_bytes:
            raise TooLarge(
                f"{row.name}: the file has {len(data):,} bytes, the limit is {max_bytes:,}. "
                "Split it, or raise documents.max_file_mb."
            )
        return data

    def _take(self, progress: Progress) -> None:
        coming = self._open.get(progress.name)
        if coming is None or progress.stage is Stage.READING:
            return
        has_failed = progress.stage is Stage.FAILED
        is_refused = has_failed and not progress.document_id
        if is_refused:
            self._refuse(coming, progress)
        elif not coming.is_stored:
            self._unnoted.append(coming)
            self._open[progress.name] = replace(coming, is_stored=True)
        if progress.is_final:
            del self._open[progress.name]
            if has_failed and not is_refused:
                # An error of the model: the file is stored and embedded later.
                self._error = progress.error
            if not is_refused:
                self._count(coming, progress)

    def _count(self, coming: PendingFile, progress: Progress) -> None:
        tally = self._look.tally
        if coming.is_new:
            tally.new += 1
        elif progress.stage is Stage.UNCHANGED:
            tally.unchanged += 1
        else:
            tally.changed += 1

    def _refuse(self, coming: PendingFile, progress: Progress) -> None:
        """Record why a file failed; if by its own fault, it is read again only when it changes."""
        if isinstance(progress.error, SourceUnavailable):
            return
        if isinstance(progress.error, NotFound):  # the right was withdrawn since the file was read
            try:
                self._look.check()
            except Forbidden as error:
                self._look.away = error
            return
        is_own = isinstance(progress.error, Unreadable | TooLarge)
        mark = coming.file.mark if coming.file and is_own else ""
        mark = refused_mark(mark, self._look.parts.bounds)
        refused = replace(coming.row, mark=mark, reason=masked(progress.reason))
        self._refused.append(replace(refused, standing=Standing.LISTED))

    def _is_time(self) -> bool:
        is_late = time.monotonic() - self._written_at > WRITE_SECONDS
        return is_late or len(self._unnoted) >= WRITE_FILES

    def _note(self) -> None:
        stored, self._unnoted = self._unnoted, []
        refused, self._refused = self._refused, []
        self._written_at = time.monotonic()
        contents = self._look.parts.table.contents(coming.row.document_id for coming in stored)
        rows, linked = [], []
        for coming in stored:
            before, file = coming.row, coming.file
            content = contents.get(before.document_id)
            if content is None:
                continue
            if file is None:
                row = replace(before, standing=Standing.KEPT, removed_at=None, reason="")
            else:
                row = SourceFile(
                    before.document_id, file.name, before.document_name, file.mark, content,
                    file.size, file.url,
                )  # fmt: skip
            rows.append(row)
            if row.url != before.url:
                linked.append(row)
        self._look.write([*rows, *refused])
        self._look.rename(linked)
