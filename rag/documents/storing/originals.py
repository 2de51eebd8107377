"""The files that documents were read from, kept by what they hold, so that people can open them."""

import logging
import threading
from collections.abc import Callable, Iterable, Set
from pathlib import Path

from rag.calm import tell

Holds = Callable[[str], bool]  # whether any document has a file of this content

log = logging.getLogger(__name__)


class Originals:
    """A folder of them; each stays as long as a document has its content, and no longer.

    That a document is there never hangs on its original: a disk that is full is told of in the log.
    """

    def __init__(self, folder: Path, *, is_on: bool = True) -> None:
        self._folder = folder
        self._is_on = is_on
        self._turn = threading.Lock()  # between what comes and what goes

    def keep(self, content_hash: str, data: bytes) -> None:
        """Of a document that is stored: whoever deletes another of the same content sees it."""
        if not self._is_on:
            return
        path = self._path(content_hash)
        part = path.with_suffix(".part")
        try:
            with self._turn:
                if path.is_file() and path.stat().st_size == len(data):
                    return
                path.parent.mkdir(parents=True, exist_ok=True)
                part.write_bytes(data)
                part.rename(path)
        except OSError as error:
            part.unlink(missing_ok=True)  # a full disk needs the room
            tell(log, "An original cannot be kept", error)

    def path(self, content_hash: str, size: int | None = None) -> Path | None:
        """Where it lies; None if it was not kept, or was cut off."""
        path = self._path(content_hash)
        is_there = self._is_on and path.is_file() and size in (None, path.stat().st_size)
        return path if is_there else None

    def discard(self, content_hashes: Iterable[str], holds: Holds) -> None:
        """Let go of those that no document has any more."""
        for each in content_hashes:
            with self._turn:
                if not holds(each):
                    self._path(each).unlink(missing_ok=True)

    def tidy(self, held: Callable[[], Set[str]]) -> None:
        """Let go of what a killed process left, and of all of them where none shall be kept."""
        found = [path for path in self._folder.glob("??/*") if path.is_file()]
        known = held() if found and self._is_on else set()  # asked after: what came since is kept
        for path in found:
            if path.name not in known:
                path.unlink(missing_ok=True)

    def _path(self, content_hash: str) -> Path:
        return self._folder / content_hash[:2] / content_hash
