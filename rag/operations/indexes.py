"""Whether the indexes hold what the database says, and their repair; room on the disk.

The database is the truth. Vectors and words follow it, and each can be lost on its own: a folder
deleted, a backup put back, a table emptied. What is missing is made again, what is too much goes.
"""

import os
import shutil
from collections.abc import Callable, Set
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from rag.documents.index_changes import IndexDebts
from rag.errors import StorageFailed
from rag.operations.manifest import refuse_emptied
from rag.seams import ChunkIndex
from rag.search.word_repair import count_words, rebuild_words

LEAST_FREE_BYTES = 64 * 1024 * 1024  # with less nothing is begun that writes
REMOVED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Differences:
    """How the indexes differ from the database; all are counts but the ids."""

    chunks: int
    missing_vectors: tuple[str, ...]  # ids of chunks that should have one
    extra_vectors: tuple[str, ...]  # ids that are no chunk's
    words: int  # chunks in the word index

    @property
    def has_all_words(self) -> bool:
        return self.words == self.chunks

    @property
    def is_whole(self) -> bool:
        return self.has_all_words and not self.missing_vectors and not self.extra_vectors

    def __str__(self) -> str:
        results = []
        if self.missing_vectors:
            results.append(f"{len(self.missing_vectors)} of {self.chunks} chunks have no vector")
        if self.extra_vectors:
            results.append(f"{len(self.extra_vectors)} vectors belong to no chunk")
        if not self.has_all_words:
            results.append(f"the word index holds {self.words} of {self.chunks} chunks")
        return "; ".join(results) or f"{self.chunks} chunks, with vectors and words"


def compare(engine: Engine, held: Set[str]) -> Differences:
    """Look at ids, not at contents; `held` are those of the vector index."""
    debts = IndexDebts(engine)
    embedded, chunks = debts.embedded_ids(), debts.chunk_count()
    return Differences(
        chunks,
        tuple(sorted(embedded - held)),
        tuple(sorted(held - embedded)),
        count_words(engine),
    )


def repair(
    engine: Engine,
    index: ChunkIndex,
    *,
    folder: Path,
    embed_missing: Callable[[], int],
) -> Differences:
    """Make what is missing and take away what is too much; returns what there was to do.

    Raises SetupError before anything is taken away for a database that is gone.
    """
    found = compare(engine, index.chunk_ids())
    if found.extra_vectors and not found.chunks:
        refuse_emptied(engine, folder, vectors=len(found.extra_vectors))
    if not found.has_all_words:
        rebuild_words(engine)
    for at in range(0, len(found.extra_vectors), REMOVED_AT_ONCE):
        index.remove(found.extra_vectors[at : at + REMOVED_AT_ONCE])
    if found.missing_vectors:
        IndexDebts(engine).mark_unembedded(found.missing_vectors)
    embed_missing()
    return found


def check_room(folder: Path) -> None:
    """Refuse to begin what the disk has no room for. Raises StorageFailed."""
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise StorageFailed(
            f"The disk of {folder} has {free >> 20} MiB left; {LEAST_FREE_BYTES >> 20} MiB are the "
            "least to work with. Make room; nothing that is stored is lost."
        )
    if os.statvfs(folder).f_flag & os.ST_RDONLY or not os.access(folder, os.W_OK):
        raise StorageFailed(
            f"{folder} can only be read just now. Answers can be looked up, nothing can be added. "
            "Mount it for writing; nothing that is stored is lost."
        )
