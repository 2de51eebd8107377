"""Check what Groundnote needs, one finding per thing."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rag.errors import RagError
from rag.settings import Settings
from rag.web.server import running_server


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, and whether it is as it should be."""

    subject: str
    is_ok: bool
    detail: str  # what was found, and what to do where that is not right

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(settings: Settings) -> list[Finding]:
    """Everything, the cheap first; never raises because of what it finds."""
    checks: tuple[tuple[str, Callable[[Settings], str]], ...] = (
        ("data folder", _data_folder),
        ("database", _database),
        ("embedding model", _embedding),
        ("vector index", _vectors),
        ("language model", _language_model),
    )
    return [_finding(subject, check, settings) for subject, check in checks]


def _finding(subject: str, check: Callable[[Settings], str], settings: Settings) -> Finding:
    try:
        return Finding(subject, True, check(settings))
    except (RagError, OSError) as error:
        return Finding(subject, False, str(error))


def _data_folder(settings: Settings) -> str:
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise OSError(f"{folder} is not writable. Change its rights, or set GROUNDNOTE_DATA_DIR.")
    free = shutil.disk_usage(folder).free / 2**30
    return f"{folder}, {free:.1f} GiB free"


def _database(settings: Settings) -> str:
    from rag.wiring import open_documents

    documents = open_documents(settings).documents()
    chunks = sum(document.chunk_count for document in documents)
    return f"{len(documents)} documents, {chunks} chunks"


def _embedding(settings: Settings) -> str:
    from rag.wiring import open_embedder

    embedder = open_embedder(settings)
    embedder.embed(["How long do refunds take?"])
    return f"{embedder.name}, {embedder.dimensions} dimensions"


def _vectors(settings: Settings) -> str:
    from rag.wiring import open_embedder, open_index

    url = running_server(settings.data_dir)
    if url is not None:
        return f"in use by the server at {url}"
    index = open_index(settings, open_embedder(settings))
    try:
        return f"{len(index.chunk_ids())} vectors"
    finally:
        index.close()


def _language_model(settings: Settings) -> str:
    from rag.records import ChatMessage, Role
    from rag.seams import ModelRequest
    from rag.wiring import open_model

    model = open_model(settings)
    if model is None:
        return "none is set: answers are taken word for word from the sources"
    asked = ChatMessage(Role.USER, "Answer with the word yes.")
    replies: Iterator[Any] = model.stream(ModelRequest((asked,), max_tokens=16))
    text = "".join(delta.text for delta in replies)
    return f"{model.name} answers {text.strip()[:40]!r}"
