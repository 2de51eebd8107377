"""Questions to begin with: those that documents ask themselves, and that the search answers."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from rag.errors import RagError
from rag.records import Document, Section
from rag.web.access.rights import readable
from rag.web.request_context import application

HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # of a document, from its beginning
MOST_TRIED = 9  # questions
SHORTEST_SECTION = 60
LONGEST_QUESTION = 70
FEWEST_WORDS = 6  # fewer seldom say what they are about: "Which one do I have?"
SURE = 0.3  # relevance of what answers
KEPT = 64  # for so many sets of documents
_tried: OrderedDict[tuple[str, ...], list[str]] = OrderedDict()


def starters(documents: Sequence[Document]) -> list[str]:
    """Up to three questions about different documents, each tried; the same for the same ones."""
    ids = tuple(document.id for document in documents)
    found = _tried.pop(ids, None)
    if found is None:
        found = _answered(ids)
    _tried[ids] = found
    while len(_tried) > KEPT:
        _tried.popitem(last=False)
    return found


def _answered(ids: Sequence[str]) -> list[str]:
    read = application().documents.stretches(list(ids), readable(), 0, SECTIONS_READ)
    asked = [(key, question) for key in ids for question in _questions(read.get(key, ()))[:1]]
    good: list[str] = []
    for key, question in asked[:MOST_TRIED]:
        if len(good) < HOW_MANY and _is_answered(question, key):
            good.append(question)
    return good


def _is_answered(question: str, document_id: str) -> bool:
    """Whether the search surely finds the document that asks it."""
    try:
        hits = application().retriever.search(question, readable(), limit=1)
    except RagError:
        return False
    return any(h.chunk.document_id == document_id and h.relevance >= SURE for h in hits)


def _questions(sections: Sequence[Section]) -> list[str]:
    return list(dict.fromkeys(_asked(sections)))


def _asked(sections: Sequence[Section]) -> Iterator[str]:
    """Headings that are questions, above a text that may answer them."""
    for section in sections:
        heading = " ".join(section.heading_path[-1].split()) if section.heading_path else ""
        is_whole = len(heading.split()) >= FEWEST_WORDS and len(heading) <= LONGEST_QUESTION
        if heading.endswith("?") and is_whole and len(section.text) >= SHORTEST_SECTION:
            yield heading
