"""Settings to objects; the only place that names implementations.

Each part is loaded at its first use: a command that lists sessions waits for nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.wiring.application import Application
    from rag.wiring.building import build
    from rag.wiring.parts import (
        load_limits,
        open_collections,
        open_documents,
        open_embedder,
        open_index,
        open_model,
        open_reranker,
    )
    from rag.wiring.stores import make_data_dir, open_database, open_store

__all__ = [
    "Application",
    "build",
    "load_limits",
    "make_data_dir",
    "open_collections",
    "open_database",
    "open_documents",
    "open_embedder",
    "open_index",
    "open_model",
    "open_reranker",
    "open_store",
]
PLACES = {"application": ("Application",), "building": ("build",)} | {
    "stores": ("make_data_dir", "open_database", "open_store")
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rag.wiring' has no attribute {name!r}")
    place = next((place for place, names in PLACES.items() if name in names), "parts")
    return getattr(import_module(f"rag.wiring.{place}"), name)
