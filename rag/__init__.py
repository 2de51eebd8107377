"""Answers from documents, with numbered citations that are never lost.

`from rag import HistoryTrimmer` is the library for any chatbot; it needs no web server, no
embedding model and no documents, and is loaded at its first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag.memory.trimmer import HistoryTrimmer, Trimmed

__all__ = ["HistoryTrimmer", "Trimmed"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rag' has no attribute {name!r}")
    from rag.memory import trimmer

    return getattr(trimmer, name)
