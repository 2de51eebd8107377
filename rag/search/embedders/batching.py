"""Questions that come at the same time are embedded in one batch."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag.errors import RagError
from rag.seams import Matrix

MOST = 32  # texts in one batch


@dataclass(slots=True)
class _EmbeddingRequest:
    texts: Sequence[str]
    vectors: "Matrix | None" = None
    done: threading.Event = field(default_factory=threading.Event)


class BatchingEmbedder:
    """Whoever finds nobody at work embeds what all wait for; the others only wait.

    A single question is not held up: there is no time in which more are collected.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._waiting: list[_EmbeddingRequest] = []

    def __call__(self, texts: Sequence[str]) -> Matrix:
        request = _EmbeddingRequest(texts)
        with self._lock:
            self._waiting.append(request)
        with self._turn:
            if not request.done.is_set():
                self._work(request)
        if request.vectors is None:
            return self._embed(texts)
        return request.vectors

    def _work(self, request: _EmbeddingRequest) -> None:
        batch = self._taken(request)
        try:
            vectors = self._embed([text for asked in batch for text in asked.texts])
            start = 0
            for asked in batch:
                asked.vectors = vectors[start : start + len(asked.texts)]
                start += len(asked.texts)
        except (RagError, ValueError, RuntimeError, OSError):
            if len(batch) == 1:  # else each tries alone, and one bad text harms nobody else
                raise
        finally:
            for asked in batch:
                asked.done.set()

    def _taken(self, own: _EmbeddingRequest) -> list[_EmbeddingRequest]:
        """The own one first, then who waits longest, as many as go together."""
        with self._lock:
            batch, room = [own], MOST - len(own.texts)
            for request in self._waiting:
                if request is not own and len(request.texts) <= room:
                    batch.append(request)
                    room -= len(request.texts)
            self._waiting = [asked for asked in self._waiting if asked not in batch]
        return batch
