"""Answers from your own documents, each statement with a numbered citation that is never lost.

    from groundnote import Library

    with Library("var") as library:
        library.ingest("handbook/")
        chat = library.chat()
        answer = chat.ask("How long does a refund take?")
        print(answer.text)                       # "Within five business days [1]."
        print(answer.sources[1].document_name)   # "support-handbook.md"

`HistoryTrimmer` keeps any chatbot's history small without losing a citation, and `check` tells for
each number of a text whether its source carries it: both need no documents, no model and no server.
Nothing is loaded before it is used; nothing here needs Flask.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundnote.checking import check
    from groundnote.library import Answer, Chat, Ingested, Library
    from rag import HistoryTrimmer, Trimmed
    from rag.citations.verdicts import CheckedText
    from rag.errors import RagError as GroundnoteError
    from rag.records import Citation, Hit, Source, Verdict

_HOMES = {
    "Answer": "groundnote.library",
    "Chat": "groundnote.library",
    "CheckedText": "rag.citations.verdicts",
    "Citation": "rag.records",
    "GroundnoteError": "rag.errors",
    "HistoryTrimmer": "rag",
    "Hit": "rag.records",
    "Ingested": "groundnote.library",
    "Library": "groundnote.library",
    "Source": "rag.records",
    "Trimmed": "rag",
    "Verdict": "rag.records",
    "check": "groundnote.checking",
}
__all__ = [
    "Answer",
    "Chat",
    "CheckedText",
    "Citation",
    "GroundnoteError",
    "HistoryTrimmer",
    "Hit",
    "Ingested",
    "Library",
    "Source",
    "Trimmed",
    "Verdict",
    "check",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'groundnote' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, "RagError" if name == "GroundnoteError" else name)
