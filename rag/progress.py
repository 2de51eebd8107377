"""What an ingest tells of each file on its way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag.documents.storing.store_rows import StoredDocument
from rag.records import Chunk


class Stage(StrEnum):
    """Where a file is on its way; the last three are final."""

    READING = "reading"
    EMBEDDING = "embedding"
    FINISHED = "finished"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """What just happened to one file."""

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


class Waiting:
    """Counts, per document, the chunks that are still to be embedded."""

    def __init__(self, stored: Sequence[StoredDocument], added: Sequence[Chunk]) -> None:
        self._documents = {each.document.id: each.document for each in stored}
        self._total = dict.fromkeys(self._documents, 0)
        for chunk in added:
            self._total[chunk.document_id] += 1
        self._done = dict.fromkeys(self._documents, 0)

    def all(self, stage: Stage) -> Iterator[Progress]:
        for document_id in self._documents:
            yield self._report(document_id, stage)

    def embedded(self, chunks: Sequence[Chunk]) -> Iterator[Progress]:
        touched = dict.fromkeys(chunk.document_id for chunk in chunks)
        for chunk in chunks:
            if chunk.document_id in self._done:
                self._done[chunk.document_id] += 1
        for document_id in touched:
            if document_id in self._documents:
                yield self._report(document_id, Stage.EMBEDDING)

    def failed(self, error: Exception) -> Iterator[Progress]:
        for document_id, document in self._documents.items():
            reason = f"It is stored, but could not be embedded: {error}"
            yield Progress(
                document.name, Stage.FAILED, document_id=document_id, reason=reason, error=error
            )

    def _report(self, document_id: str, stage: Stage) -> Progress:
        total = self._total[document_id]
        done = total if stage is Stage.FINISHED else min(self._done[document_id], total)
        return Progress(self._documents[document_id].name, stage, done, total, document_id)
