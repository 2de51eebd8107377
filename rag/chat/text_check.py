"""Verdicts over any text, whoever wrote it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rag.citations.gate import canonical
from rag.citations.markers import without_markers
from rag.citations.register import as_source, brought_source
from rag.citations.statements import read_statements
from rag.citations.verdicts import attribute, check
from rag.records import CheckedFigure, Citation, Hit, Readable, Source, Unsourced
from rag.seams import Embedder, Retriever
from rag.seams.models import Judge

LOOKED_UP = 40  # statements of one text for which the library is searched
LONGEST_LOOKED_UP = 600  # characters of one that are searched for
HITS_OF_A_CLAIM = 3


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text with its citations in one spelling, a verdict for each, and what carries nothing."""

    text: str
    citations: tuple[Citation, ...]
    unsourced: tuple[Unsourced, ...]
    sources: Mapping[int, Source]  # what the numbers stand for
    figures: tuple[CheckedFigure, ...] = ()  # of statements that cite something


def check_text(
    text: str,
    sources: Mapping[int, Source],
    *,
    embedder: Embedder | None = None,
    judge: Judge | None = None,
) -> CheckedText:
    """A verdict for each number of a text, from the source that it stands for alone."""
    read = canonical(text)
    answer = check(read, sources, judge, embedder=embedder)
    return CheckedText(read, answer.citations, answer.unsourced, sources, answer.figures)


def cite_text(
    text: str, retriever: Retriever, readable: Readable, *, embedder: Embedder | None = None
) -> CheckedText:
    """As `check_text`, with numbers given here to what the library has for each statement."""
    bare = without_markers(canonical(text))
    sources = _looked_up(bare, retriever, readable)
    return check_text(attribute(bare, sources).text, sources, embedder=embedder)


def _looked_up(text: str, retriever: Retriever, readable: Readable) -> dict[int, Source]:
    hits: dict[str, Hit] = {}
    statements = [statement for statement in read_statements(text) if statement.states]
    for statement in statements[:LOOKED_UP]:
        claim = text[statement.start : statement.end][:LONGEST_LOOKED_UP]
        for hit in retriever.search(claim, readable, limit=HITS_OF_A_CLAIM):
            hits.setdefault(hit.chunk.id, hit)
    return {number: as_source(hit, number) for number, hit in enumerate(hits.values(), start=1)}


def sources_from_texts(texts: Iterable[tuple[int, str, str]]) -> dict[int, Source]:
    """Sources by number, of texts that somebody brings along: number, text and title."""
    return {
        number: brought_source(
            number,
            text,
            title or f"source {number}",
            document_title=title or f"Source {number}",
            chunk_id=f"given:{number}",
        )
        for number, text, title in texts
    }
