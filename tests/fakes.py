"""Fakes at the seams of `rag.seams`: deterministic, quick, remembering what they were asked."""

import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rag.records import Readable, ToolCall, Usage
from rag.seams import Matrix, ModelDelta, ModelRequest

Piece = str | ToolCall | Usage | Exception
Reply = Piece | Sequence[Piece] | Callable[[ModelRequest], "Reply"]


class ScriptedModel:
    """A chat model that answers from a script, word by word, and remembers what it was asked.

    A reply is a text, a tool call, an exception to raise, a sequence of these in order (so a text
    followed by an exception breaks off in the middle), or a function of the request that returns
    one. A function as the last reply is never used up.
    """

    def __init__(self, *replies: Reply, name: str = "scripted") -> None:
        self.name = name
        self.replies = list(replies)
        self.requests: list[ModelRequest] = []
        self.hung_up = 0  # replies that were closed before their end
        self._lock = threading.Lock()

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        reply = self._next_reply(request)
        finished = False
        try:
            for piece in _pieces_of(reply, request):
                yield from _deltas_of(piece)
            finished = True
        except GeneratorExit:
            self.hung_up += not finished
            raise

    def _next_reply(self, request: ModelRequest) -> Reply:
        with self._lock:
            self.requests.append(request)
            assert self.replies, "The model was asked more often than the test scripted."
            if len(self.replies) == 1 and callable(self.replies[0]):
                return self.replies[0]
            return self.replies.pop(0)


def _pieces_of(reply: Reply, request: ModelRequest) -> Iterable[Piece]:
    while callable(reply) and not isinstance(reply, Exception):
        reply = reply(request)
    if isinstance(reply, str | ToolCall | Usage | Exception):
        return [reply]
    return reply


def _deltas_of(piece: Piece) -> Iterator[ModelDelta]:
    match piece:
        case str():
            for word in re.findall(r"\s*\S+|\s+$", piece):
                yield ModelDelta(text=word)
        case ToolCall():
            yield ModelDelta(tool_calls=(piece,))
        case Usage():
            yield ModelDelta(usage=piece)
        case Exception():
            raise piece


class HashEmbedder:
    """A bag of words hashed into unit vectors: texts that share words are near each other."""

    def __init__(
        self, *, dimensions: int = 256, max_tokens: int = 256, name: str = "hash-embedder"
    ) -> None:
        self.name = name
        self.dimensions = dimensions
        self.max_tokens = max_tokens
        self.embedded: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(_words(text)) + 2 for text in texts]

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.embedded.extend(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _words(text) or ["(nothing)"]:
                vectors[row, zlib.crc32(word.encode()) % self.dimensions] += 1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.maximum(lengths, np.float32(1e-9))


def _words(text: str) -> list[str]:
    # A lone surrogate cannot be hashed as UTF-8, and no test is about it.
    return re.findall(r"\w+", text.lower().encode("utf-8", "replace").decode())


class MemoryIndex:
    """A chunk index in a dictionary; at one addition it may break, as a killed process would."""

    def __init__(self) -> None:
        self.rows: dict[str, NDArray[np.float32]] = {}
        self.places: dict[str, str] = {}
        self.additions = 0
        self.fail_at: int | None = None

    def check(self) -> None:
        """There is nothing to open."""

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        assert len(chunk_ids) == len(vectors), "one vector for each chunk"
        self.rows.update(zip(chunk_ids, vectors, strict=True))
        self.places.update(zip(chunk_ids, collections, strict=True))
        self.additions += 1
        if self.additions == self.fail_at:
            raise KeyboardInterrupt

    def move(self, collections: Mapping[str, str]) -> None:
        self.places.update({key: each for key, each in collections.items() if key in self.rows})

    def remove(self, chunk_ids: Sequence[str]) -> None:
        for chunk_id in chunk_ids:
            self.rows.pop(chunk_id, None)

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        rows = {key: row for key, row in self.rows.items() if readable.holds(self.places[key])}
        found = (
            [(chunk_id, float(row @ vector)) for chunk_id, row in rows.items()]
            for vector in vectors
        )
        return [sorted(each, key=lambda pair: (-pair[1], pair[0]))[:limit] for each in found]

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return {chunk_id: self.rows[chunk_id] for chunk_id in chunk_ids if chunk_id in self.rows}

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        return set(self.rows) if among is None else self.rows.keys() & set(among)

    def clear(self) -> None:
        self.rows.clear()
