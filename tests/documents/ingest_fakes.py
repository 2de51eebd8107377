"""An embedder and an index that need no model."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np


class HashingEmbedder:
    """Each word is a random direction; long words count as several tokens, as in word pieces."""

    name = "hashing"
    dimensions = 16

    def __init__(self, *, max_tokens: int = 256) -> None:
        self.max_tokens = max_tokens
        self.texts: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [2 + sum(1 + len(word) // 4 for word in _words(text)) for text in texts]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        assert all(count <= self.max_tokens for count in self.count_tokens(texts))
        self.texts.extend(texts)
        rows = np.stack([self._vector(text) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def _vector(self, text: str) -> np.ndarray:
        total = np.full(self.dimensions, 1e-3)
        for word in _words(text):
            seed = int.from_bytes(hashlib.sha256(word.lower().encode()).digest()[:4], "big")
            total += np.random.default_rng(seed).normal(size=self.dimensions)
        return total


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


class MemoryIndex:
    """A ChunkIndex in a dict; `fail_after` additions it breaks, as a killed process would."""

    def __init__(self) -> None:
        self.vectors: dict[str, np.ndarray] = {}
        self.additions = 0
        self.fail_at: int | None = None

    def check(self) -> None:
        """There is nothing to open."""

    def add(self, chunk_ids, vectors, collections) -> None:
        self.additions += 1
        self.vectors.update(zip(chunk_ids, vectors, strict=True))
        if self.fail_at == self.additions:
            raise KeyboardInterrupt

    def move(self, collections) -> None:
        pass

    def remove(self, chunk_ids) -> None:
        for chunk_id in chunk_ids:
            self.vectors.pop(chunk_id, None)

    def nearest(self, vectors, within, *, limit):
        rows = self.vectors.items()
        found = [[(key, float(row @ vector)) for key, row in rows] for vector in vectors]
        return [sorted(each, key=lambda pair: -pair[1])[:limit] for each in found]

    def chunk_ids(self) -> set[str]:
        return set(self.vectors)

    def clear(self) -> None:
        self.vectors.clear()
