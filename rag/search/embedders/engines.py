"""Compute vectors with a model on this disk: by OpenVINO, or by sentence-transformers.

Neither torch nor a converted copy is needed: the graph is laid out here, operation by operation,
and compiled in less than a second. The table of token vectors stays where it lies on the disk, and
only the rows of a batch are read from it.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag.errors import IndexAway, ModelUnavailable, SetupError, UnreadableReply, needs_extra
from rag.seams import Matrix

Tensors = Mapping[str, NDArray[Any]]

MASKED = 1e9  # what is padded weighs nothing in a softmax
# How the layers' parts are called in files of transformers' BERT, RoBERTa and XLM-R.
PARTS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "norm": "output.LayerNorm",
}
KINDS = {"bert": 0, "roberta": 2, "xlm-roberta": 2}  # with the first position that text takes
PREFIXES = ("bert.", "roberta.", "")
PLAIN_MODULES = ("Transformer", "Pooling", "Normalize")
DTYPES = {"F32": "<f4", "F16": "<f2"}


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder's weights.

    `tensors` holds `positions` (those of token type 0 added), `norm.weight`, `norm.bias`, and for
    each layer `0.query.weight` and the like (see `PARTS`), matrices as (outputs, inputs).
    """

    tensors: Tensors
    tokens: Callable[[NDArray[np.int64]], Matrix]  # the vectors of token ids, one row each
    layers: int
    heads: int
    epsilon: float
    takes_first: bool = False  # the first token's vector stands for the text, else the mean of all

    @property
    def dimensions(self) -> int:
        return int(self.tensors["norm.weight"].shape[0])

    @property
    def max_tokens(self) -> int:
        return int(self.tensors["positions"].shape[0])


def read_encoder(folder: Path) -> Encoder | None:
    """Read a folder that sentence-transformers saved; None if it is no encoder of this kind."""
    config = read_json(folder / "config.json")
    weights = folder / "model.safetensors"
    pooling = _pooling(folder)
    is_known = (
        config.get("model_type") in KINDS
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
    )
    if not is_known or pooling is None or not weights.is_file():
        return None
    stored = read_safetensors(weights)
    prefix = next((p for p in PREFIXES if f"{p}embeddings.LayerNorm.weight" in stored), None)
    if prefix is None:
        return None
    stored = {key.removeprefix(prefix): tensor for key, tensor in stored.items()}
    table = stored["embeddings.word_embeddings.weight"]
    first = KINDS[config["model_type"]]
    return Encoder(
        dict(_weights_by_name(stored, int(config["num_hidden_layers"]), first)),
        lambda ids: np.asarray(table[ids], dtype=np.float32),
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        takes_first=pooling == "cls",
    )


def _weights_by_name(
    stored: Tensors, layers: int, first: int
) -> Iterator[tuple[str, NDArray[Any]]]:
    positions = stored["embeddings.position_embeddings.weight"][first:].astype(np.float32)
    yield "positions", positions + stored["embeddings.token_type_embeddings.weight"][0]
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", stored[f"embeddings.LayerNorm.{kind}"]
        for layer in range(layers):
            for ours, theirs in PARTS.items():
                yield f"{layer}.{ours}.{kind}", stored[f"encoder.layer.{layer}.{theirs}.{kind}"]


def _pooling(folder: Path) -> str | None:
    """Return `mean` or `cls`; None if the folder does more with the tokens' vectors."""
    modules = read_json(folder / "modules.json") or []
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds) <= set(PLAIN_MODULES):
        return None
    settings = read_json(folder / modules[1]["path"] / "config.json")
    modes = {key for key, is_on in settings.items() if key.startswith("pooling_mode_") and is_on}
    modes |= {f"pooling_mode_{settings['pooling_mode']}"} if "pooling_mode" in settings else set()
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    names |= {"pooling_mode_mean": "mean", "pooling_mode_cls": "cls"}
    return names.get(modes.pop()) if len(modes) == 1 else None


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file; each is read when it is first used."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    return {
        name: data[slice(*of["data_offsets"])].view(DTYPES[of["dtype"]]).reshape(of["shape"])
        for name, of in header.items()
        if name != "__metadata__" and of["dtype"] in DTYPES
    }


def read_json(path: Path) -> Any:
    """Return the content of a file of settings; nothing where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# ── The graph ────────────────────────────────────────────────────────────────────────────────


def graph(encoder: Encoder) -> Any:
    """Lay out the graph from token vectors and their mask to one vector a text."""
    import openvino
    from openvino import opset13 as ops

    layout = _Layout(encoder, ops)
    tokens = ops.parameter([-1, -1, encoder.dimensions], np.float32, name="tokens")
    mask = ops.parameter([-1, -1], np.int64, name="mask")
    is_text = ops.convert(mask, "f32")
    states = layout.embedded(tokens)
    apart = ops.subtract(ops.unsqueeze(is_text, layout.whole([1, 2])), layout.number(1.0))
    bias = ops.multiply(apart, layout.number(MASKED))
    for layer in range(encoder.layers):
        states = layout.layer(states, bias, f"{layer}.")
    if encoder.takes_first:
        text = ops.gather(states, layout.whole(0), layout.whole(1))
    else:
        counted = ops.unsqueeze(is_text, layout.whole([2]))
        total = ops.reduce_sum(ops.multiply(states, counted), layout.whole([1]))
        text = ops.divide(total, ops.reduce_sum(counted, layout.whole([1])))
    return openvino.Model([text], [tokens, mask], "encoder")


class _Layout:
    def __init__(self, encoder: Encoder, ops: Any) -> None:
        self._encoder, self._ops = encoder, ops

    def number(self, value: Any) -> Any:
        return self._ops.constant(np.ascontiguousarray(value, dtype=np.float32))

    def whole(self, value: Any) -> Any:
        return self._ops.constant(np.array(value, dtype=np.int64))

    def embedded(self, tokens: Any) -> Any:
        ops = self._ops
        width = ops.gather(ops.shape_of(tokens), self.whole([1]), self.whole(0))
        table = self.number(self._encoder.tensors["positions"])
        positions = ops.slice(table, self.whole([0]), width, self.whole([1]), self.whole([0]))
        return self._norm(ops.add(tokens, positions), "norm")

    def layer(self, states: Any, bias: Any, prefix: str) -> Any:
        ops = self._ops
        query, key, value = (
            self._heads(self._linear(states, prefix + part)) for part in ("query", "key", "value")
        )
        attended = ops.scaled_dot_product_attention(query, key, value, bias)
        joined = ops.transpose(attended, self.whole([0, 2, 1, 3]))
        joined = ops.reshape(joined, self.whole([0, 0, self._encoder.dimensions]), True)
        attended = self._linear(joined, f"{prefix}attended")
        states = self._norm(ops.add(states, attended), f"{prefix}attended_norm")
        wide = ops.gelu(self._linear(states, f"{prefix}wide"), "erf")
        return self._norm(ops.add(states, self._linear(wide, f"{prefix}narrow")), f"{prefix}norm")

    def _heads(self, states: Any) -> Any:
        heads, ops = self._encoder.heads, self._ops
        shape = self.whole([0, 0, heads, self._encoder.dimensions // heads])
        return ops.transpose(ops.reshape(states, shape, True), self.whole([0, 2, 1, 3]))

    def _linear(self, states: Any, name: str) -> Any:
        ops, tensors = self._ops, self._encoder.tensors
        weighed = ops.matmul(states, self.number(tensors[f"{name}.weight"]), False, True)
        return ops.add(weighed, self.number(tensors[f"{name}.bias"]))

    def _norm(self, states: Any, name: str) -> Any:
        ops, tensors = self._ops, self._encoder.tensors
        even = ops.mvn(states, self.whole([-1]), True, self._encoder.epsilon, "INSIDE_SQRT")
        scaled = ops.multiply(even, self.number(tensors[f"{name}.weight"]))
        return ops.add(scaled, self.number(tensors[f"{name}.bias"]))


CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")
FEW = 4  # texts that one thread embeds sooner than two that wait for each other
# Tokens: for each width that it has not seen the engine writes code anew. What is padded makes up
# most of a question in parts, and little of a chunk.
SHORT, ROUNDED_SHORT, ROUNDED = 32, 8, 16


class Engine(Protocol):
    """Computes the vectors of a batch. Threads may share it; `at_once` batches run at a time."""

    at_once: int

    def vectors(self, texts: Sequence[str]) -> Matrix: ...


class EncoderEngine:
    """An encoder in OpenVINO, one thread a batch, without spinning while it waits.

    Neither torch nor transformers is loaded. There is one stream more than processors, so that a
    question finds one free during an ingest.
    """

    def __init__(self, encoder: Encoder, tokenizer: Any, *, max_tokens: int) -> None:
        """`tokenizer` must not truncate."""
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
        """Return a tokenizer that truncates, which is seldom needed: chunks are never too long."""
        cutting = type(self._tokenizer).from_str(self._tokenizer.to_str())
        cutting.enable_truncation(self._max_tokens)
        return cutting


def _compiled(encoder: Encoder, *, streams: int) -> Any:
    import openvino

    core = openvino.Core()
    # bfloat16 where the processor multiplies it in hardware: its cosines differ by some 1e-4.
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
    """The model as sentence-transformers runs it; other engines are measured by it."""

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
        """Load the model. Raises SetupError if the folder holds none."""
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
    """Return how many processors this process may use, within a container's limit."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = CPU_LIMIT.read_text().split()
        return max(1, min(count or 1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        return count or 1


def unit(rows: Matrix) -> Matrix:
    """Scale each row to length 1."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Matrix = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result


def clean(text: str) -> str:
    """Replace lone surrogates, which cannot be tokenised or sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def stay_offline() -> None:
    """Set the libraries offline; call it before they are first imported."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


# That a server may take, and a second more for each text: a question has words to go on with.
QUESTION_SECONDS, CONNECT_SECONDS = 5.0, 3.0


class OpenAIEmbedder:
    """Any server with OpenAI's /v1/embeddings. It does not count tokens: they are estimated."""

    max_tokens = 512

    def __init__(
        self, *, base_url: str, model: str, api_key: str | None = None, batch_size: int = 64
    ) -> None:
        self.name = model
        self._base_url = base_url
        self._api_key = (
            api_key or "none"
        )  # the client refuses an empty one; local servers ignore it
        self._batch_size = batch_size

    @cached_property
    def dimensions(self) -> int:
        """The length of a vector, which the server is asked for."""
        return len(self._request(["dimensions"])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return upper bounds: common encodings need more than three bytes a token for prose."""
        return [2 + (len(text.encode("utf-8", "replace")) + 2) // 3 for text in texts]

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            rows.extend(self._request(texts[start : start + self._batch_size]))
        return unit(np.asarray(rows, dtype=np.float32))

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        from openai import Timeout

        with _translate_api_errors(self._base_url, self.name):
            reply = self._client.embeddings.create(
                model=self.name,
                input=[clean(text) or " " for text in texts],
                encoding_format="float",
                timeout=Timeout(QUESTION_SECONDS + len(texts), connect=CONNECT_SECONDS),
            )
        rows = [list(row.embedding) for row in sorted(reply.data or [], key=lambda row: row.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1:
            raise UnreadableReply(
                f"{self._base_url} sent {len(rows)} vectors for {len(texts)} texts, or of several "
                f"lengths; expected one vector each. Is {self.name!r} an embedding model?"
            )
        return rows

    @cached_property
    def _client(self) -> Any:
        from openai import OpenAI

        return OpenAI(base_url=self._base_url, api_key=self._api_key, max_retries=1)


@contextmanager
def _translate_api_errors(base_url: str, model: str) -> Iterator[None]:
    from openai import APIConnectionError, APIError, AuthenticationError, OpenAIError

    try:
        yield
    except APIConnectionError as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} cannot be reached ({error}); check that it runs "
            "and that embedding.base_url is right."
        ) from error
    except AuthenticationError as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} refuses the key; check embedding.api_key_env."
        ) from error
    except (APIError, OpenAIError) as error:
        raise ModelUnavailable(
            f"The embedding server at {base_url} failed for model {model!r}: {error}"
        ) from error
    except ValueError as error:  # the client's own reading of a reply that holds no vectors
        raise UnreadableReply(
            f"The server at {base_url} did not answer as /v1/embeddings does: {error}"
        ) from error
