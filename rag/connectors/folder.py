"""A folder of this machine, or of a mounted share, as a source.

The module also watches folders for changes.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Event
from time import time as now
from typing import Any

from pathspec import GitIgnoreSpec
from sqlalchemy.exc import SQLAlchemyError

from rag.connectors.kinds import folder_of
from rag.documents.files import (
    fit_name,
    is_archive,
    is_within,
    members,
    name_inside,
    read_steadily,
    unpacked,
)
from rag.errors import RagError, SourceAway, Unreadable, UserError
from rag.runtime.error_log import log_throttled
from rag.seams import ListedFile, SourceOptions

# ── Filters: globs as in `.gitignore` ────────────────────────────────────────────────────────────

# Incomplete files of other programs, and lock files.
PASSING = GitIgnoreSpec.from_lines(
    ["*.part", "*.partial", "*.filepart", "*.tmp", "*.crdownload", "*.swp", "*~", "~$*", ".~lock.*"]
)


@cache
def file_filter(include: tuple[str, ...], exclude: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a test of which names in a source are wanted. Raises UserError for an invalid glob."""
    included, excluded = _spec(include), _spec(exclude)

    def is_wanted(name: str) -> bool:
        if PASSING.match_file(name) or excluded.match_file(name):
            return False
        return not include or included.match_file(name)

    return is_wanted


def _spec(globs: Sequence[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(globs)
    except ValueError as error:
        raise UserError(
            f"One of {', '.join(globs)[:100]} is no pattern of names. Write such as *.pdf, "
            "drafts/ or manuals/**/*.md."
        ) from error


# ── Listing and reading a folder ─────────────────────────────────────────────────────────────────

WRITING_SECONDS = 1.0  # a file changed more recently may still be written to
CERTAIN_SECONDS = 2.0  # the coarsest file system clock: two versions may have one time
DIGEST_CHARS = 8
ATTEMPTS = 3  # to list a folder that changes meanwhile


class FolderChanged(Exception):
    """Raised when a folder disappears while its parent is listed: its files may be elsewhere."""


@dataclass(frozen=True, slots=True)
class FileInFolder:
    """The path of a listed file, and its name within an archive."""

    path: Path
    member: str = ""  # its name within an archive


class FolderSource:
    """The files below a folder, without hidden ones and links that lead out of it."""

    def __init__(self, root: Path, options: SourceOptions) -> None:
        self._root = root
        self._max_bytes = options.max_bytes
        self._most_files = options.most_files
        self._is_wanted = file_filter(options.include, options.exclude)
        self._places: dict[str, FileInFolder] = {}
        self._unseen = ""  # why a part could not be listed

    def listed(self) -> Iterator[ListedFile]:
        """Yield all files that can be listed, then raise SourceAway if a part cannot."""
        for _attempt in range(ATTEMPTS):
            self._places, self._unseen = {}, ""
            results: list[ListedFile] = []
            away: SourceAway | None = None
            try:
                results.extend(self._walk())
            except FolderChanged:
                continue
            except SourceAway as error:  # too many files, or the folder is missing
                away = error
            yield from results
            if away is not None or self._unseen:
                raise away or self._away(self._unseen)
            return
        raise SourceAway(f"{self._root} changed while it was listed. It is looked at again later.")

    def read(self, file: ListedFile) -> bytes:
        """Return a file's bytes. Raises Unreadable, TooLarge; SourceAway for a missing folder."""
        place = self._places.get(file.name)
        if place is None:
            raise Unreadable(file.name, "it is not there any more.")
        if not is_within(place.path, self._root):  # replaced by a link since it was listed
            raise Unreadable(file.name, "it leads out of the folder now, and is not followed.")
        try:
            if place.member:
                return unpacked(file.name, place.path, place.member, self._max_bytes)
            return read_steadily(place.path, name=file.name, max_bytes=self._max_bytes)
        except UserError:
            if not self._root.is_dir():
                raise self._away("it is not there") from None
            raise

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _walk(self) -> Iterator[ListedFile]:
        waiting = [(self._root, "", frozenset[str]())]
        while waiting:
            folder, prefix, above = waiting.pop()
            real = os.path.realpath(folder)
            if real in above:  # a link back to a folder above this one
                continue
            for entry in self._entries(folder):
                path = Path(entry.path)
                is_hidden = entry.name.startswith(".")
                if is_hidden or (entry.is_symlink() and not is_within(path, self._root)):
                    continue
                if _is_folder(entry):
                    waiting.append((path, f"{prefix}{entry.name}/", above | {real}))
                else:
                    yield from self._file(entry, self._name(prefix + entry.name))

    def _name(self, written: str) -> str:
        """Return a name in NFC; where two names become the same, the second gets a hash."""
        name = fit_name(written)
        if name not in self._places:
            return name
        stem, dot, ending = name.rpartition(".")
        digest = sha256(os.fsencode(written)).hexdigest()[:DIGEST_CHARS]
        return f"{stem}-{digest}.{ending}" if dot and "/" not in ending else f"{name}-{digest}"

    def _entries(self, folder: Path) -> list["os.DirEntry[str]"]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if folder == self._root:
                raise self._away("it is not there, or may not be read") from error
            if isinstance(error, FileNotFoundError):
                raise FolderChanged from error
            self._unseen = f"{folder.relative_to(self._root)} cannot be listed ({error.strerror})"
            return []

    def _file(self, entry: "os.DirEntry[str]", name: str) -> Iterator[ListedFile]:
        """Yield a file, or the files of an archive, where they are wanted."""
        path = Path(entry.path)
        try:
            status = entry.stat()
        except OSError:  # deleted meanwhile, or a broken link
            return
        if not stat.S_ISREG(status.st_mode):
            return
        mark, is_settled = mark_of(status, now())
        if not is_archive(entry.name):
            if self._is_wanted(name):
                day = day_of(status.st_mtime)
                listed = ListedFile(name, mark, status.st_size, "", is_settled, date=day)
                yield self._listed(FileInFolder(path), listed)
            return
        try:
            contents = list(members(name, path))
        except (UserError, OSError):  # listed as a file, whose reader reports the fault
            yield self._listed(FileInFolder(path), ListedFile(name, mark, None, "", is_settled))
            return
        for member, size in contents:
            inner = fit_name(name_inside(name, member))
            if inner not in self._places and self._is_wanted(inner):
                listed = ListedFile(inner, mark, size, "", is_settled)
                yield self._listed(FileInFolder(path, member), listed)

    def _listed(self, place: FileInFolder, file: ListedFile) -> ListedFile:
        if len(self._places) >= self._most_files:
            raise SourceAway(
                f"{self._root} has more than {self._most_files:,} files. Leave some out with "
                "exclude, add its folders one by one, or raise sources.most_files."
            )
        self._places[file.name] = place
        return file

    def _away(self, reason: str) -> SourceAway:
        return SourceAway(
            f"{self._root}: {reason}. See whether its disk or share is there; nothing is removed."
        )


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def day_of(moment: float) -> str:
    """Return the day of a time stamp in UTC; "" for a time outside the calendar."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(moment, UTC).date().isoformat()
    return ""


def mark_of(status: os.stat_result, moment: float) -> tuple[str, bool]:
    """Return a version's mark from its time and size, and whether it seems completely written.

    The mark is "" where the clock cannot tell two versions apart; the file is then read again.
    """
    newest = max(status.st_mtime, status.st_ctime)
    age = moment - newest
    is_settled = not 0 <= age < WRITING_SECONDS
    if age < CERTAIN_SECONDS:  # also a time in the future
        return "", is_settled
    return f"{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_size}", is_settled


def open_folder(address: str, options: SourceOptions) -> FolderSource:
    """Open a folder. Raises UserError for an invalid pattern."""
    return FolderSource(folder_of(address), options)


QUIET_MS = 1_000  # how long nothing must change before a sync: files are written in pieces
LONGEST_MS = 10_000  # after which a sync starts although changes go on
LOOK_MS = 2_000  # between checks of which folders to watch
LOOK_SECONDS = LOOK_MS / 1000

Watched = Callable[[], Mapping[str, Path]]  # source ids, with their folders
Changed = Callable[[str], object]

is_whole = file_filter((), ())
log = logging.getLogger(__name__)


def watch(watched: Watched, changed: Changed, stopping: Event) -> None:
    """Watch folders and report changes until `stopping` is set.

    A folder that is newly watched, or exists again, counts as changed.
    """
    watching: dict[str, tuple[Path, int]] = {}
    must_poll = False
    while not stopping.is_set():
        here = _here(watched)
        _tell_changed(changed, here.keys() - watching.keys())
        watching = here
        if not here:
            stopping.wait(LOOK_SECONDS)
            continue
        try:
            for changes in _changes({path for path, _ in here.values()}, stopping, must_poll):
                paths = [Path(path) for _kind, path in changes]
                touched = [
                    source_id
                    for source_id, (folder, _inode) in here.items()
                    if any(_is_of(path, folder) for path in paths)
                ]
                _tell_changed(changed, touched)
                if _here(watched) != here:
                    break
        except FileNotFoundError:
            stopping.wait(LOOK_SECONDS)  # a folder disappeared just now
        except Exception as error:  # noqa: BLE001  (of the system's watching: limits, shares)
            log_throttled(log, "Folders are looked through again and again, not watched", error)
            must_poll = True
            stopping.wait(LOOK_SECONDS)


def _is_of(path: Path, folder: Path) -> bool:
    """Return whether a path would be listed in the folder: not hidden, not incomplete."""
    if not path.is_relative_to(folder):
        return False
    name = path.relative_to(folder).as_posix()
    return not any(part.startswith(".") for part in name.split("/")) and is_whole(name)


def _changes(folders: Iterable[Path], stopping: Event, must_poll: bool) -> Iterable[Any]:
    from watchfiles import watch as watch_files

    return watch_files(
        *folders,
        watch_filter=None,
        debounce=LONGEST_MS,
        step=QUIET_MS,
        stop_event=stopping,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        force_polling=must_poll or None,
    )


def _here(watched: Watched) -> dict[str, tuple[Path, int]]:
    """Return the watched folders that exist, with their inodes: a recreated folder is another."""
    results: dict[str, tuple[Path, int]] = {}
    with suppress(SQLAlchemyError):
        for source_id, folder in watched().items():
            with suppress(OSError):
                results[source_id] = folder, folder.stat().st_ino
    return results


def _tell_changed(changed: Changed, source_ids: Iterable[str]) -> None:
    for source_id in source_ids:
        try:
            changed(source_id)
        except (RagError, SQLAlchemyError, OSError) as error:
            log_throttled(log, "A change of a source could not be noted", error)
