"""Builds single parts from settings, for the application and for commands that need no more."""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import files
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import Engine

from rag.db.blobs import FolderBlobs, open_blobs
from rag.documents.collections import Callers, Collections, groups_at_login
from rag.documents.store import Originals
from rag.errors import SetupError
from rag.llm.windows import ModelWindow
from rag.operations import Places
from rag.runtime.shared import SCHEME
from rag.seams import ChunkIndex, Embedder
from rag.seams.models import JUDGEMENT
from rag.settings import HOME, Settings

if TYPE_CHECKING:
    from rag.connectors.reading_server import ReadingServer
    from rag.documents.limits import LoadLimits
    from rag.documents.sandbox import GuardedLoader
    from rag.llm.openai_compatible import OpenAIChatModel
    from rag.runtime.budget import Lane
    from rag.seams.models import Judge
    from rag.search.hybrid import CrossEncoderReranker
    from rag.search.multilingual import MultilingualVectors
    from rag.tables.store import TableStore

OPENAI = "https://api.openai.com/v1"
SHARES = 8  # one of several owners has at most this part of a model's calls
WAITING_CALLS = 256


def open_collections(settings: Settings, engine: Engine) -> Collections:
    """Build the collections, with what the settings say about callers."""
    auth = settings.auth

    def counts_as(owner: str) -> frozenset[str]:
        return auth.counts_as(owner, groups_at_login(engine, owner) if auth.oidc else ())

    return Collections(
        engine,
        Callers(
            are_one=auth.mode == "single",
            counts_as=counts_as,
            admins=frozenset(auth.admins),
            managers=frozenset(auth.managers),
        ),
    )


def open_tables(settings: Settings, engine: Engine) -> "TableStore":
    """Open the tables, in the data folder unless `tables.url` is set. Raises SetupError."""
    from rag.tables.store import TableFiles, TableStore

    url = settings.tables.url or str(settings.data_dir / "tables")
    try:
        files = TableFiles(url, settings.data_dir / "tables-cache")
    except SetupError as error:
        raise SetupError(f"tables.url: {error}") from error
    return TableStore(engine, files)


def file_places(settings: Settings) -> Places:
    """Return where the files beside the database are, if on this machine."""
    rows = Path(settings.tables.url) if settings.tables.url else settings.data_dir / "tables"
    return Places(None if "://" in str(settings.tables.url) else rows)


def open_originals(settings: Settings) -> Originals:
    """Open the store of the original files of documents."""
    blobs, url = local_originals(settings), settings.documents.originals_url
    return Originals(
        blobs if url is None else open_blobs(url),
        cache=settings.data_dir / "originals-cache",
        local=None if url is None else blobs,
        is_on=settings.documents.keep_originals,
    )


def local_originals(settings: Settings) -> FolderBlobs:
    """Return the default folder of originals, also read for older ones if another is set."""
    return FolderBlobs(settings.data_dir / "originals")


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedding model; it loads at the first use."""
    embedding = settings.embedding
    if embedding.base_url is None:
        from rag.search.embedders.local import LocalEmbedder

        return LocalEmbedder(
            embedding.model,
            batch_size=embedding.batch_size,
            allow_download=embedding.allow_download,
        )
    if embedding.model is None:
        raise SetupError("embedding.base_url is set, but embedding.model is not. Name the model.")
    from rag.search.embedders.engines import OpenAIEmbedder

    return OpenAIEmbedder(
        base_url=embedding.base_url,
        model=embedding.model,
        api_key=os.environ.get(embedding.api_key_env),
        batch_size=embedding.batch_size,
    )


def open_second(settings: Settings, engine: Engine) -> "MultilingualVectors | None":
    """Return the multilingual model beside the packaged one, if installed and wanted."""
    if not (settings.embedding.is_packaged and settings.embedding.multilingual):
        return None
    from rag.search.embedders.local import E5Embedder, packaged_file
    from rag.search.multilingual import MultilingualVectors

    file = packaged_file()
    return MultilingualVectors(engine, E5Embedder(file)) if file is not None else None


def open_index(settings: Settings, embedder: Embedder, engine: Engine) -> ChunkIndex:
    """Open the vector index; if vectors are still in another one, both. Raises SetupError."""
    if settings.retrieval.vectors == "postgresql":
        from rag.search.index_lock import holds_vectors
        from rag.search.pgvector import ChangingIndex, PgVectorIndex

        new = PgVectorIndex(embedder.name, engine)
        if settings.retrieval.chroma_url is None and not holds_vectors(index_folder(settings)):
            return new
        return ChangingIndex(open_chroma(settings, embedder), new)
    chroma = open_chroma(settings, embedder)
    if engine.dialect.name == "postgresql":
        from rag.search.pgvector import ChangingIndex, PgVectorIndex

        old = PgVectorIndex(embedder.name, engine)
        return chroma if old.built() is None else ChangingIndex(old, chroma)
    return chroma


def open_chroma(settings: Settings, embedder: Embedder) -> ChunkIndex:
    """Open an embedded index, one that the workers share, or a Chroma server's."""
    from rag.search.vectors import ChromaIndex, SharedIndex

    if (settings.retrieval.chroma_url or "").startswith(SCHEME):
        return SharedIndex(str(settings.retrieval.chroma_url))
    import_module("chromadb")  # before threads start: see `Application.load`
    if settings.retrieval.chroma_url is not None:
        retrieval = settings.retrieval
        return ChromaIndex(
            embedder.name, url=retrieval.chroma_url, collection=retrieval.chroma_collection
        )
    return ChromaIndex(embedder.name, directory=index_folder(settings))


def index_folder(settings: Settings) -> Path:
    """Return the folder of the embedded vector index."""
    return settings.data_dir / "chroma"


def open_reranker(settings: Settings) -> "CrossEncoderReranker | None":
    """Return the cross-encoder, or None if none is named."""
    name = settings.retrieval.rerank_model
    if name is None:
        return None
    from rag.search.hybrid import CrossEncoderReranker

    return CrossEncoderReranker(name, allow_download=settings.embedding.allow_download)


def open_model(settings: Settings, name: str | None = None) -> "OpenAIChatModel | None":
    """Return the language model, or another one at the same server; None if none is set."""
    llm = settings.llm
    chosen = name or llm.model
    if llm.model is None or chosen is None:
        return None
    from rag.llm.dialects import RequestOptions
    from rag.llm.openai_compatible import OpenAIChatModel

    model = OpenAIChatModel(
        llm.base_url or OPENAI,
        chosen,
        api_key=llm.api_key,
        timeout_seconds=llm.timeout_seconds,
        max_retries=llm.max_retries,
        asking=RequestOptions(llm.reasoning, llm.extra_body, llm.written_calls),
    )
    calls = max(1, llm.calls_at_once // settings.web.workers)
    model.wait_in(_lane(llm.base_url or OPENAI, calls, settings.auth.mode == "single"))
    return model


@cache
def _lane(base_url: str, calls: int, are_one: bool) -> "Lane":
    """Return the one lane of a server: answers, judgements and summaries share its queue."""
    from rag.runtime.budget import Lane

    share = None if are_one else max(1, calls // SHARES)
    return Lane(calls, waiting=WAITING_CALLS, share=share)


def open_window(settings: Settings, picked: str | None = None) -> ModelWindow | None:
    """Return the window of the language model, or of one that was picked; None if none is set.

    The settings limit only the default model's window.
    """
    llm = settings.llm
    if llm.model is None:
        return None
    configured = None if picked else llm.context_window
    base_url, model = llm.base_url or OPENAI, picked or llm.model
    return ModelWindow(base_url, model, api_key=llm.api_key, configured=configured)


def load_limits(settings: Settings) -> "LoadLimits":
    """Return the limits of one file."""
    from rag.documents.limits import MEBIBYTE, LoadLimits
    from rag.documents.readers.pictures import models_for

    documents = settings.documents
    return LoadLimits(
        max_bytes=int(documents.max_file_mb * MEBIBYTE),
        max_pages=documents.max_pages,
        max_seconds=documents.read_timeout_seconds,
        ocr_models=models_for(documents.ocr_languages, ocr_folder(settings)),
    )


def open_loader(settings: Settings) -> "GuardedLoader":
    """Return what reads files: this machine, or a server if one is set. Raises SetupError."""
    from rag.documents.sandbox import GuardedLoader

    limits, server = load_limits(settings), reading_server(settings)
    if server is None:
        return GuardedLoader(limits)
    from rag.connectors.reading_server import ServedLoader

    return ServedLoader(limits, server)


def reading_server(settings: Settings) -> "ReadingServer | None":
    """Return the configured server that reads files, or None. Raises SetupError."""
    documents = settings.documents
    if documents.reader_url is None:
        return None
    from rag.connectors.reading_server import ReadingServer, most_bytes

    key = documents.reader_api_key
    return ReadingServer(
        documents.reader_url,
        api_key=key.get_secret_value() if key else "",
        seconds=documents.reader_timeout_seconds,
        max_bytes=most_bytes(load_limits(settings)),
    )


def ocr_folder(settings: Settings) -> Path:
    """Return the folder of the models that read pictures in other scripts."""
    return settings.data_dir / "ocr"


def open_judge(settings: Settings) -> "Judge | None":
    """Return the judge of what words leave open, or None."""
    from rag.llm.judges import InferenceJudge, ModelJudge

    wanted = settings.checks
    if wanted.nli_model is not None:
        return InferenceJudge(wanted.nli_model)
    if wanted.model == "off":
        return None
    model = open_model(settings, None if wanted.model == "auto" else wanted.model)
    patience = JUDGEMENT.set_to(wanted.timeout_seconds)
    return ModelJudge(model, patience=patience) if model else None


Made = TypeVar("Made")
_MAKING = RLock()  # one lock for all: making one may need others, in any order


class once(Generic[Made]):  # noqa: N801 - it is read as a decorator
    """Calls the method once, even with several threads, and keeps what it returns.

    Modules that only one attribute needs are imported in its method, so that they load with it.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self._name = make.__name__

    def __get__(self, owner: Any, kind: type) -> Made:
        # Only called the first time: then the value is in the object's `__dict__`.
        with _MAKING:
            if self._name not in owner.__dict__:
                owner.__dict__[self._name] = self._make(owner)
            made: Made = owner.__dict__[self._name]
            return made


SHARED = "share/groundnote"


def package_folder(name: str, *, beside: Path = HOME, package: str = "groundnote") -> Path:
    """Return a folder: `templates`, `static`, or the sample `library`. Raises SetupError."""
    for place in (beside / name, beside / "data" / name):
        if place.is_dir():
            return place
    mark = f"{SHARED}/{name}/"
    for file in files(package) or ():
        path = Path(str(file.locate())).as_posix()
        if mark in path:
            return Path(path[: path.index(mark) + len(mark)]).resolve()
    raise SetupError(f"This installation lacks its folder {name}. Install groundnote again.")
