"""Folders that are looked at when something changes in them."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from rag.connectors.folder import file_filter
from rag.errors import RagError
from rag.runtime.error_log import log_throttled

QUIET_MS = 1_000  # that nothing has changed before a look is taken: a file is written in pieces
LONGEST_MS = 10_000  # that changes follow each other before it is taken all the same
LOOK_MS = 2_000  # between two looks at which folders are watched
LOOK_SECONDS = LOOK_MS / 1000

Watched = Callable[[], Mapping[str, Path]]  # source ids, with their folders
Changed = Callable[[str], object]

is_whole = file_filter((), ())
log = logging.getLogger(__name__)


def watch(watched: Watched, changed: Changed, stopping: Event) -> None:
    """Until all stops. A folder that begins to be watched, or comes back, has changed."""
    known: dict[str, tuple[Path, int]] = {}
    must_poll = False
    while not stopping.is_set():
        here = _here(watched)
        for source_id in here.keys() - known.keys():
            _tell_changed(changed, [source_id])
        known = here
        if not here:
            stopping.wait(LOOK_SECONDS)
            continue
        try:
            _watch_these(here, watched, changed, stopping, must_poll=must_poll)
        except FileNotFoundError:
            stopping.wait(LOOK_SECONDS)  # one went just now
        except Exception as error:  # noqa: BLE001  (of the system's watching: limits, shares)
            log_throttled(log, "Folders are looked through again and again, not watched", error)
            must_poll = True
            stopping.wait(LOOK_SECONDS)


def _watch_these(
    here: Mapping[str, tuple[Path, int]],
    watched: Watched,
    changed: Changed,
    stopping: Event,
    *,
    must_poll: bool,
) -> None:
    """Until others are to be watched."""
    for changes in _changes({path for path, _ in here.values()}, stopping, must_poll):
        touched = [Path(path) for _kind, path in changes]
        _tell_changed(
            changed,
            [
                source_id
                for source_id, (folder, _) in here.items()
                if any(_is_of(path, folder) for path in touched)
            ],
        )
        if _here(watched) != here:
            return


def _is_of(path: Path, folder: Path) -> bool:
    """Whether a look at the folder would show it: hidden and half-written files are left aside."""
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
    """Those that are there; one that was made anew is another."""
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
