"""Originals: the files that documents were read from, kept by content hash for people to open."""

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
    """Return the name of a file in a store of originals."""
    return f"{content_hash[:2]}/{content_hash}"


class Originals:
    """A store of originals; each stays as long as a document has its content.

    `local` is the folder on this machine with earlier originals, if the store is elsewhere; what
    the store lacks is read from there. A document is stored even if its original cannot be: a full
    disk is only logged.
    """

    def __init__(
        self, store: Blobs, *, cache: Path, local: FolderBlobs | None = None, is_on: bool = True
    ) -> None:
        self._store = store
        self._cache = cache
        self._local = local
        self._is_on = is_on
        self._turn = threading.Lock()  # so that an original is not written and deleted at once

    def keep(self, content_hash: str, data: bytes) -> None:
        """Keep the file of a stored document; a concurrent `discard` of this content sees it."""
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
        """Return the file's path on this machine; None if it was not kept or is truncated.

        A file of a remote store is fetched first.
        """
        if not self._is_on:
            return None
        for place in self._places():
            path = local_path(place, blob_name(content_hash), self._cache)
            if path is not None and size in (None, path.stat().st_size):
                return path
        return None

    def has(self, content_hash: str, size: int | None = None) -> bool:
        """Return whether `path` would find the file; nothing is fetched."""
        lengths = (place.size(blob_name(content_hash)) for place in self._places())
        return self._is_on and any(
            length is not None and size in (None, length) for length in lengths
        )

    def is_whole(self, content_hash: str) -> bool:
        """Read the stored file completely and return whether it has this content hash."""
        for place in self._places():
            with suppress(OSError):
                digest = hashlib.sha256()
                for block in blocks(place.open(blob_name(content_hash))):
                    digest.update(block)
                return digest.hexdigest() == content_hash
        return False

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all stored files in bytes, by content hash."""
        return {
            name.rpartition("/")[2]: size
            for place in reversed(self._places())
            for name, size in place.sizes().items()
        }

    def discard(self, content_hashes: Iterable[str], holds: Holds) -> None:
        """Delete the files that no document has any more."""
        for content_hash in content_hashes:
            with self._turn:
                for place in () if holds(content_hash) else self._places():
                    place.remove([blob_name(content_hash)])

    def tidy(self, contents: Callable[[], Set[str]]) -> None:
        """Delete what a killed process left, and every file where originals shall not be kept."""
        for place in self._places():
            if isinstance(place, FolderBlobs):
                place.remove_halves()
            names = place.sizes()
            needed = contents() if names and self._is_on else set()  # read last: newer files stay
            place.remove(name for name in names if name.rpartition("/")[2] not in needed)

    def bring(self, folder: FolderBlobs, needed: Set[str]) -> int:
        """Copy the needed files from a folder into the store; return how many were copied."""
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
