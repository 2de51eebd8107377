"""What computes the vectors of a model on this disk: OpenVINO, or sentence-transformers."""

import math
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rag.errors import IndexAway, SetupError, needs_extra
from rag.seams import Matrix
from rag.search.embedders.encoder import Encoder, graph

CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
FEW = 4  # texts that one thread embeds sooner than two that wait for each other
# Tokens: for each width that it has not seen the engine writes code anew. What is padded makes up
# most of a question in parts, and little of a chunk.
SHORT, ROUNDED_SHORT, ROUNDED = 32, 8, 16


class Engine(Protocol):
    """Computes vectors of a batch; safe for threads, `at_once` of which it serves at a time."""

    at_once: int

    def vectors(self, texts: Sequence[str]) -> Matrix: ...


class EncoderEngine:
    """An encoder in OpenVINO: one thread for each batch, nobody spins while waiting.

    Neither torch nor transformers is loaded. One stream more than processors: a question finds
    one free while an ingest keeps the processors busy.
    """

    def __init__(self, encoder: Encoder, tokenizer: Any, *, max_tokens: int) -> None:
        """`tokenizer` is without limits."""
        self.at_once = processors()
        self._max_tokens = max_tokens
        self._tokenizer = tokenizer
        self._tokens = encoder.tokens
        self._compiled = _compiled(encoder, streams=self.at_once + 1)

    def vectors(self, texts: Sequence[str]) -> Matrix:
        cleaned = [clean(text) for text in texts]
        encodings = self._tokenizer.encode_batch(cleaned)
        if any(len(encoding.ids) > self._max_tokens for encoding in encodings):
            encodings = self._cutting_tokenizer.encode_batch(cleaned)
        longest = max(len(encoding.ids) for encoding in encodings)
        step = ROUNDED_SHORT if longest <= SHORT else ROUNDED
        width = max(longest, min(-(-longest // step) * step, self._max_tokens))
        ids = np.zeros((len(texts), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        request = self._compiled.create_infer_request()
        request.infer([self._tokens(ids.ravel()).reshape(*ids.shape, -1), mask])
        return unit(request.get_output_tensor(0).data)

    @cached_property
    def _cutting_tokenizer(self) -> Any:
        """Another one, which few need: chunks are never too long."""
        cutting = type(self._tokenizer).from_str(self._tokenizer.to_str())
        cutting.enable_truncation(self._max_tokens)
        return cutting


def _compiled(encoder: Encoder, *, streams: int) -> Any:
    import openvino

    core = openvino.Core()
    # bfloat16 where the processor multiplies it in hardware: its cosines differ by less than 1e-4.
    has_bfloat16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    options = {
        "PERFORMANCE_HINT": "THROUGHPUT",
        "NUM_STREAMS": streams,
        "INFERENCE_NUM_THREADS": streams,
        "INFERENCE_PRECISION_HINT": "bf16" if has_bfloat16 else "f32",
        "ENABLE_CPU_PINNING": False,  # pinned threads wait for whoever else has their processor
    }
    return core.compile_model(graph(encoder), "CPU", options)


class Reference:
    """The model as sentence-transformers runs it: any model, and the measure of all others."""

    at_once = 1

    def __init__(self, folder: Path, *, allow_download: bool = False) -> None:
        self._folder = folder
        self._allow_download = allow_download
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str]) -> Matrix:
        import torch

        with self._lock:  # its tokenizer must not be used by two threads at once
            model = self.model
            torch.set_num_threads(1 if len(texts) <= FEW else processors())
            rows = model.encode(
                [clean(text) for text in texts],
                batch_size=len(texts),
                show_progress_bar=False,
                convert_to_tensor=True,
            )
        return unit(rows.float().numpy())

    @cached_property
    def model(self) -> Any:
        """Raises SetupError if the folder holds none."""
        if not self._allow_download:
            stay_offline()
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            what = f"The embedding model in {self._folder}, no encoder of BERT's kind,"
            text = f"{needs_extra(what, 'models')} Until then words alone find passages."
            raise IndexAway(text) from error
        disable_progress_bar()  # "Loading weights"
        try:
            return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(
                f"The embedding model in {self._folder} cannot be loaded ({error}); expected a "
                "folder that sentence-transformers saved. Set embedding.model to one, or leave it "
                "out for the packaged model."
            ) from error


def processors() -> int:
    """How many this process may use, a container's limit counted."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = CPU_LIMIT.read_text().split()
        return max(1, min(count or 1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        return count or 1


def unit(rows: Matrix) -> Matrix:
    """Each row with length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Matrix = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result


def clean(text: str) -> str:
    """Lone surrogates cannot be tokenised or sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def stay_offline() -> None:
    """Before the libraries are first imported: they read these once."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
