"""Progress reports of files while they are ingested."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag.records import Chunk, Document


class Stage(StrEnum):
    """The stage of a file; the last three are final."""

    READING = "reading"
    EMBEDDING = "embedding"
    FINISHED = "finished"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """One report about one file."""

    name: str
    stage: Stage
    done: int = 0  # chunks embedded
    total: int = 0
    document_id: str = ""
    reason: str = ""  # of a failure, for people
    error: Exception | None = None

    @property
    def is_final(self) -> bool:
        return self.stage in {Stage.FINISHED, Stage.UNCHANGED, Stage.FAILED}


class Unsearchable:
    """Stored documents that are not yet searchable, with their chunks still to be embedded.

    Chunks may be embedded before their document is added.
    """

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._total: dict[str, int] = {}
        self._left: dict[str, set[str]] = {}
        self._early: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._documents)

    def add(self, documents: Sequence[Document], chunks: Sequence[Chunk]) -> Iterator[Progress]:
        """Add documents that were stored together, with those of their chunks that are new."""
        new: dict[str, set[str]] = {document.id: set() for document in documents}
        for chunk in chunks:
            new[chunk.document_id].add(chunk.id)
        for document in documents:
            ids = new[document.id]
            self._documents[document.id] = document
            self._total[document.id] = len(ids)
            self._left[document.id] = ids - self._early
            self._early -= ids
            yield self._report(document.id, Stage.EMBEDDING)

    def embedded(self, chunks: Sequence[Chunk]) -> Iterator[Progress]:
        touched = dict.fromkeys(chunk.document_id for chunk in chunks)
        for chunk in chunks:
            if chunk.document_id in self._left:
                self._left[chunk.document_id].discard(chunk.id)
            else:
                self._early.add(chunk.id)
        for document_id in touched:
            if document_id in self._documents:
                yield self._report(document_id, Stage.EMBEDDING)

    def chunk_ids(self) -> list[str]:
        """Return the ids of the chunks still to be embedded."""
        return [chunk_id for ids in self._left.values() for chunk_id in ids]

    def document_ids(self) -> list[str]:
        """Return the ids of the documents that have such chunks."""
        return [document_id for document_id, ids in self._left.items() if ids]

    def is_done(self) -> bool:
        return not any(self._left.values())

    def all(self, stage: Stage) -> Iterator[Progress]:
        for document_id in self._documents:
            yield self._report(document_id, stage)

    def finished(self) -> Iterator[Progress]:
        """Yield the last report of each document."""
        yield from self.all(Stage.FINISHED)
        self._forget()

    def failed(self, error: Exception) -> Iterator[Progress]:
        for document_id, document in self._documents.items():
            reason = f"It is stored, but could not be embedded: {error}"
            yield Progress(
                document.name, Stage.FAILED, document_id=document_id, reason=reason, error=error
            )
        self._forget()

    def _forget(self) -> None:
        self._documents, self._total, self._left = {}, {}, {}

    def _report(self, document_id: str, stage: Stage) -> Progress:
        total = self._total[document_id]
        left = 0 if stage is Stage.FINISHED else len(self._left[document_id])
        return Progress(self._documents[document_id].name, stage, total - left, total, document_id)
