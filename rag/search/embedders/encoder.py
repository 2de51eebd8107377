"""Encoders of BERT's kind as an OpenVINO graph, built from their weights alone.

Neither torch nor a converted copy is needed: the graph is laid out here, operation by operation,
and compiled in less than a second. The table of token vectors stays where it lies on the disk, and
only the rows of a batch are read from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rag.seams import Matrix

Tensors = Mapping[str, "NDArray[Any]"]

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
    """Of a folder that sentence-transformers saved; None for what is no encoder of this kind."""
    config = _json(folder / "config.json")
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
        dict(_named_weights(stored, int(config["num_hidden_layers"]), first)),
        lambda ids: np.asarray(table[ids], dtype=np.float32),
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        takes_first=pooling == "cls",
    )


def _named_weights(stored: Tensors, layers: int, first: int) -> Iterator[tuple[str, NDArray[Any]]]:
    positions = stored["embeddings.position_embeddings.weight"][first:].astype(np.float32)
    yield "positions", positions + stored["embeddings.token_type_embeddings.weight"][0]
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", stored[f"embeddings.LayerNorm.{kind}"]
        for layer in range(layers):
            for ours, theirs in PARTS.items():
                yield f"{layer}.{ours}.{kind}", stored[f"encoder.layer.{layer}.{theirs}.{kind}"]


def _pooling(folder: Path) -> str | None:
    """`mean` or `cls`, where nothing else is done to the tokens' vectors."""
    modules = _json(folder / "modules.json") or []
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds) <= set(PLAIN_MODULES):
        return None
    settings = _json(folder / modules[1]["path"] / "config.json")
    modes = {key for key, is_on in settings.items() if key.startswith("pooling_mode_") and is_on}
    modes |= {f"pooling_mode_{settings['pooling_mode']}"} if "pooling_mode" in settings else set()
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    known |= {"pooling_mode_mean": "mean", "pooling_mode_cls": "cls"}
    return known.get(modes.pop()) if len(modes) == 1 else None


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The file's tensors, none of which is read before it is used."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length)
    return {
        name: data[slice(*of["data_offsets"])].view(DTYPES[of["dtype"]]).reshape(of["shape"])
        for name, of in header.items()
        if name != "__metadata__" and of["dtype"] in DTYPES
    }


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# ── The graph ────────────────────────────────────────────────────────────────────────────────


def graph(encoder: Encoder) -> Any:
    """From token vectors and the mask of what is text to one vector for each text."""
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
