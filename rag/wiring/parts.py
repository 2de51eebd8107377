"""Single parts by their settings, for the application and for commands that need no more."""

import os
import tempfile
from contextlib import suppress

from alembic.util import CommandError
from sqlalchemy import Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rag.database import migrate, open_engine
from rag.documents.limits import MEBIBYTE, LoadLimits
from rag.documents.store import SqlDocumentStore
from rag.errors import SetupError
from rag.llm.habits import Asking
from rag.llm.openai_compatible import OpenAIChatModel
from rag.retrieval.embed import LocalEmbedder, OpenAIEmbedder
from rag.retrieval.rerank import CrossEncoderReranker
from rag.retrieval.vectors import ChromaIndex
from rag.seams import Embedder
from rag.sessions.store import SqlConversationStore
from rag.settings import Settings
from rag.tables.store import TableFiles, TableStore

OURS = ("groundnote.db", "chroma")
OPENAI = "https://api.openai.com/v1"


def open_database(settings: Settings) -> Engine:
    """The migrated database. Raises SetupError."""
    make_data_dir(settings)
    try:
        engine = open_engine(settings.database_url)
        migrate(engine)
    except ArgumentError as error:
        raise SetupError(f"sessions.database_url is no URL of a database: {error}.") from error
    except (SQLAlchemyError, CommandError, OSError) as error:
        place = make_url(settings.database_url).render_as_string()  # without the password
        raise SetupError(
            f"The database {place} cannot be opened ({getattr(error, 'orig', None) or error}). "
            "Check sessions.database_url, that its server runs, that this user may write there, "
            "and that no newer version of Groundnote used it."
        ) from error
    return engine


def make_data_dir(settings: Settings) -> None:
    """The folder of everything we keep, for its owner only. Raises SetupError."""
    folder = settings.data_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any((folder / name).exists() for name in OURS):  # also where an earlier version made it
            with suppress(PermissionError):  # somebody else's folder that we may write to
                folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SetupError(
            f"The data folder {folder} cannot be written ({error.strerror}). Change its rights, or "
            "name another one with GROUNDNOTE_DATA_DIR."
        ) from error


def open_store(settings: Settings) -> SqlConversationStore:
    """Conversations alone."""
    return SqlConversationStore(open_database(settings))


def open_documents(settings: Settings) -> SqlDocumentStore:
    """Documents alone."""
    return SqlDocumentStore(open_database(settings))


def open_tables(settings: Settings, engine: Engine) -> TableStore:
    """Tables, in the data folder unless another place is set. Raises SetupError."""
    url = settings.tables.url or str(settings.data_dir / "tables")
    try:
        files = TableFiles(url, settings.data_dir / "tables-cache")
    except (ValueError, ImportError) as error:
        raise SetupError(f"tables.url is {url!r}: {error}.") from error
    return TableStore(engine, files)


def open_embedder(settings: Settings) -> Embedder:
    """The embedding model; it loads at the first use."""
    embedding = settings.embedding
    if embedding.base_url is None:
        return LocalEmbedder(
            embedding.model,
            batch_size=embedding.batch_size,
            allow_download=embedding.allow_download,
            cache=embedding.cache_dir or settings.data_dir / "models",
        )
    if embedding.model is None:
        raise SetupError("embedding.base_url is set, but embedding.model is not. Name the model.")
    return OpenAIEmbedder(
        base_url=embedding.base_url,
        model=embedding.model,
        api_key=os.environ.get(embedding.api_key_env),
        batch_size=embedding.batch_size,
    )


def open_index(settings: Settings, embedder: Embedder) -> ChromaIndex:
    """The vector index: a folder of ours, or a Chroma server."""
    if settings.retrieval.chroma_url is not None:
        retrieval = settings.retrieval
        return ChromaIndex(
            embedder.name, url=retrieval.chroma_url, collection=retrieval.chroma_collection
        )
    return ChromaIndex(embedder.name, directory=settings.data_dir / "chroma")


def open_reranker(settings: Settings) -> CrossEncoderReranker | None:
    """The cross-encoder, if one is named."""
    name = settings.retrieval.rerank_model
    if name is None:
        return None
    return CrossEncoderReranker(name, allow_download=settings.embedding.allow_download)


def open_model(settings: Settings, name: str | None = None) -> OpenAIChatModel | None:
    """The language model, or another one at the same server; None if none is set."""
    llm = settings.llm
    chosen = name or llm.model
    if llm.model is None or chosen is None:
        return None
    return OpenAIChatModel(
        llm.base_url or OPENAI,
        chosen,
        api_key=os.environ.get(llm.api_key_env),
        timeout_seconds=llm.timeout_seconds,
        max_retries=llm.max_retries,
        asking=Asking(llm.reasoning, llm.extra_body),
    )


def load_limits(settings: Settings) -> LoadLimits:
    """Bounds of one file."""
    documents = settings.documents
    return LoadLimits(
        max_bytes=int(documents.max_file_mb * MEBIBYTE),
        max_pages=documents.max_pages,
        max_seconds=documents.read_timeout_seconds,
    )
