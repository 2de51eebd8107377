"""What the library's documents say about some words, for people who look rather than ask."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rag.errors import ModelError
from rag.language.sentences import Span
from rag.records import Chunk, Filters, Section
from rag.render.evidence import NOWHERE, Marks, text_html
from rag.render.statements import places_of
from rag.web.access.rights import readable
from rag.web.request_context import application

PASSAGES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The best passages first, with the words marked that fit; or why there are none."""

    passages: tuple[tuple[Chunk, Markup], ...] = ()
    problem: str = ""


def passages_for(wanted: str, shown: Sequence[str], filters: Filters) -> FoundPassages:
    """The passages nearest to some words; a library whose index cannot be asked says so."""
    if not wanted:
        return FoundPassages()
    try:
        hits = application().retriever.search(
            wanted, readable().only(shown), limit=PASSAGES_SHOWN, filters=filters
        )
    except ModelError as error:
        return FoundPassages(problem=str(error))
    return FoundPassages(tuple((hit.chunk, _marked(hit.chunk.text, wanted)) for hit in hits))


def _marked(text: str, wanted: str) -> Markup:
    marks = Marks(NOWHERE, places_of(text, [wanted], fewest=1))
    return text_html(text, marks, is_target=False)


def section_html(section: Section, passage: Chunk | None) -> Markup:
    """A section, with a passage marked if it is in there."""
    if passage is None or passage.section_index != section.index:
        return text_html(section.text)
    return text_html(section.text, Marks(Span(passage.start, passage.end)))


def passage_of(document_id: str, chunk_ids: Sequence[str]) -> Chunk | None:
    """The passage of a document that a link names; None if it is gone, or another document's."""
    found = application().documents.chunks(chunk_ids, readable()).values()
    return next((chunk for chunk in found if chunk.document_id == document_id), None)
