"""Settings to objects; the only file that names implementations."""

from rag.wiring.application import Application
from rag.wiring.building import build
from rag.wiring.parts import (
    load_limits,
    make_data_dir,
    open_database,
    open_documents,
    open_embedder,
    open_index,
    open_model,
    open_reranker,
    open_store,
)

__all__ = [
    "Application",
    "build",
    "load_limits",
    "make_data_dir",
    "open_database",
    "open_documents",
    "open_embedder",
    "open_index",
    "open_model",
    "open_reranker",
    "open_store",
]
