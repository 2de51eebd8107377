"""Questions to begin with: those that documents ask themselves, and that the search answers."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product

from rag.errors import RagError
from rag.records import Document, Section
from rag.records.documents import ColumnType, Table
from rag.web.access.rights import readable
from rag.web.request_context import application

HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # of a document, from its beginning
MOST_TRIED = 9  # questions
SHORTEST_SECTION = 60
LONGEST_QUESTION = 70
FEWEST_WORDS = 6  # fewer seldom say what they are about: "Which one do I have?"
LONGEST_TOPIC = 50
SHORTEST_TOPIC = 200  # characters of its text
TOPICS_TRIED = 2  # of a document
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


def topics(documents: Sequence[Document], count: int) -> list[str]:
    """Up to so many sections, by document and heading, that the search surely finds by these.

    One of each document. A heading that several documents have says nothing of any.
    """
    titles = {document.id: document.title for document in documents}
    read = _beginnings(list(titles))
    common = Counter(h for sections in read.values() for h in {*map(_heading, sections)})
    good: list[str] = []
    tried = 0
    for key, sections in read.items():
        own = [s for s in sections if _is_topic(s, titles[key]) and common[_heading(s)] == 1]
        for section in own[:TOPICS_TRIED]:
            if len(good) >= count or tried >= MOST_TRIED:
                return good
            topic, tried = f"{titles[key]}: {_heading(section)}", tried + 1
            if _is_answered(topic, key, section.index):
                good.append(topic)
                break
    return good


def table_offer(table: Table) -> str:
    """A question about a table that was tried and is computed from it; "" where none is."""
    figures = [c.name for c in table.columns if c.type is ColumnType.NUMBER]
    labels = [c.name for c in table.columns if c.type is ColumnType.TEXT and c.distinct > 1]
    for figure, label in product(figures[:2], labels[:2]):
        question = f"Which {label} has the highest {figure}?"
        with suppress(RagError):
            if application().asked.ask(question, readable()).table_id == table.id:
                return question
    return ""


def _beginnings(document_ids: list[str]) -> Mapping[str, Sequence[Section]]:
    return application().documents.stretches(document_ids, readable(), 0, SECTIONS_READ)


def _answered(ids: Sequence[str]) -> list[str]:
    read = _beginnings(list(ids))
    asked = [(key, question) for key in ids for question in _questions(read.get(key, ()))[:1]]
    good: list[str] = []
    for key, question in asked[:MOST_TRIED]:
        if len(good) < HOW_MANY and _is_answered(question, key):
            good.append(question)
    return good


def _is_answered(question: str, document_id: str, section: int | None = None) -> bool:
    """Whether the search surely finds the document that asks it, and the section if one is said."""
    try:
        hits = application().retriever.search(question, readable(), limit=1)
    except RagError:
        return False
    return any(
        hit.chunk.document_id == document_id
        and hit.relevance >= SURE
        and section in (None, hit.chunk.section_index)
        for hit in hits
    )


def _heading(section: Section) -> str:
    return " ".join(section.heading_path[-1].split()) if section.heading_path else ""


def _is_topic(section: Section, title: str) -> bool:
    heading = _heading(section)
    is_more_than_title = heading.casefold() not in title.casefold()
    is_short = len(heading.split()) >= 2 and len(heading) <= LONGEST_TOPIC
    return is_more_than_title and is_short and len(section.text) >= SHORTEST_TOPIC


def _questions(sections: Sequence[Section]) -> list[str]:
    """Headings that are questions, above a text that may answer them."""
    headings = {_heading(s): None for s in sections if len(s.text) >= SHORTEST_SECTION}
    return [
        heading
        for heading in headings
        if heading.endswith("?")
        and len(heading.split()) >= FEWEST_WORDS
        and len(heading) <= LONGEST_QUESTION
    ]
