"""An optional second look at the best hits: a cross-encoder that reads query and text together."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag.errors import IndexAway, SetupError, needs_extra


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder from this disk, loaded at the first call."""

    def __init__(self, model: str, *, batch_size: int = 16, allow_download: bool = False) -> None:
        """`model` is a folder, or a Hugging Face name in the local model cache."""
        self._model = model
        self._batch_size = batch_size
        self._allow_download = allow_download
        self._lock = threading.Lock()
        self._encoder: Any = None

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            pairs = [(query, text) for text in texts]
            scores = self._encoder.predict(
                pairs, batch_size=self._batch_size, show_progress_bar=False
            )
        return [float(score) for score in scores]

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            what = f"The reranking model {self._model!r} (retrieval.rerank_model)"
            text = f"{needs_extra(what, 'models')} Until then words alone find passages."
            raise IndexAway(text) from error
        is_local = Path(self._model).is_dir() or not self._allow_download
        try:
            return CrossEncoder(self._model, device="cpu", local_files_only=is_local)
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(
                f"The reranking model {self._model!r} cannot be loaded ({error}); expected "
                "a folder or a model in the local cache. Set retrieval.rerank_model to one, or "
                "leave it out."
            ) from error
