"""The files that documents were read from, kept by what they hold, so that people can open them."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path

from rag.db.blobs import Blobs, FolderBlobs, blocks, local_path
from rag.runtime.error_log import log_throttled

Holds = Callable[[str], bool]  # whether any document has a file of this content

log = logging.getLogger(__name__)


def blob_name(content_hash: str) -> str:
    """The name of a file in a store of originals."""
    return f"{content_hash[:2]}/{content_hash}"


class Originals:
    """A store of them; each stays as long as a document has its content, and no longer.

    `local` is the folder of this machine where earlier ones lie, if the store is elsewhere: what
    is not in the store is read there. That a document is there never hangs on its original: a disk
    that is full is told of in the log.
    """

    def __init__(
        self, store: Blobs, *, cache: Path, local: FolderBlobs | None = None, is_on: bool = True
    ) -> None:
        self._store = store
        self._cache = cache
        self._local = local
        self._is_on = is_on
        self._turn = threading.Lock()  # between what comes and what goes

    def keep(self, content_hash: str, data: bytes) -> None:
        """Of a document that is stored: whoever deletes another of the same content sees it."""
        if not self._is_on:
            return
        name = blob_name(content_hash)
        try:
            with self._turn:
                if self._store.size(name) != len(data):
                    self._store.write(name, [data])
        except OSError as error:
            log_throttled(log, "An original cannot be kept", error)

    def path(self, content_hash: str, size: int | None = None) -> Path | None:
        """Where it lies on this machine, or lies now; None if it was not kept, or was cut off."""
        if not self._is_on:
            return None
        for place in self._places():
            path = local_path(place, blob_name(content_hash), self._cache)
            if path is not None and size in (None, path.stat().st_size):
                return path
        return None

    def has(self, content_hash: str, size: int | None = None) -> bool:
        """Whether `path` would find it; nothing is fetched for that."""
        lengths = (place.size(blob_name(content_hash)) for place in self._places())
        return self._is_on and any(
            length is not None and size in (None, length) for length in lengths
        )

    def is_whole(self, content_hash: str) -> bool:
        """Whether what is there, read from its beginning to its end, has this content."""
        for place in self._places():
            with suppress(OSError):
                digest = hashlib.sha256()
                for block in blocks(place.open(blob_name(content_hash))):
                    digest.update(block)
                return digest.hexdigest() == content_hash
        return False

    def sizes(self) -> dict[str, int]:
        """The lengths of all that are there, by the hash of their content."""
        return {
            name.rpartition("/")[2]: size
            for place in reversed(self._places())
            for name, size in place.sizes().items()
        }

    def discard(self, content_hashes: Iterable[str], holds: Holds) -> None:
        """Let go of those that no document has any more."""
        for content_hash in content_hashes:
            with self._turn:
                for place in () if holds(content_hash) else self._places():
                    place.remove([blob_name(content_hash)])

    def tidy(self, contents: Callable[[], Set[str]]) -> None:
        """Let go of what a killed process left, and of all of them where none shall be kept."""
        for place in self._places():
            if isinstance(place, FolderBlobs):
                place.remove_halves()
            names = place.sizes()
            needed = contents() if names and self._is_on else set()  # what came since is kept
            place.remove(name for name in names if name.rpartition("/")[2] not in needed)

    def bring(self, folder: FolderBlobs, needed: Set[str]) -> int:
        """Copy what documents need of a folder into the store; returns how many came."""
        brought = 0
        for name, size in folder.sizes().items():
            content_hash = name.rpartition("/")[2]
            if content_hash not in needed or self._store.size(blob_name(content_hash)) == size:
                continue
            with folder.open(name) as file:
                data = file.read()
            if hashlib.sha256(data).hexdigest() == content_hash:
                self._store.write(blob_name(content_hash), [data])
                brought += 1
        return brought

    def _places(self) -> list[Blobs]:
        return [self._store, self._local] if self._local is not None else [self._store]
