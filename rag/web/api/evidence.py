"""The JSON API for programs with texts of their own: the words of documents, and verdicts."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from rag.errors import NotFound
from rag.web.access import rights
from rag.web.access.rights import open_session
from rag.web.api.documents import OfAChunk
from rag.web.api.schemas import (
    PLAIN_TEXT,
    Body,
    CitationModel,
    Described,
    DescribedApi,
    DocumentPath,
    FigureModel,
    MessageIndex,
    RequestBody,
    SourceModel,
    Words,
)
from rag.web.request_context import application

api = DescribedApi("evidence", "The words of documents, and verdicts over any text.")
MOST_CHARS = 200_000  # of a text to check, and of one page of a document
MOST_SOURCES = 200


class TextQuery(RequestBody):
    """Which part of a document's text, in characters."""

    start: MessageIndex = 0
    limit: Annotated[int, Field(ge=1, le=MOST_CHARS)] = 50_000


class TextModel(Described):
    """A stretch of a document's text; `next` is where the rest begins, null at its end."""

    document_id: str
    document: str
    title: str
    text: str = Field(description=PLAIN_TEXT)
    start: int
    total: int
    next: int | None


class ChunkPath(BaseModel):
    """Names a chunk, as a search does."""

    chunk_id: str


class ChunkModel(OfAChunk):
    """A chunk within its section."""

    section: str


class GivenSource(RequestBody):
    """A source that a text cites as `[n]`."""

    n: Annotated[int, Field(ge=1, le=1_000_000)]
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]
    title: Annotated[str, Field(max_length=300)] = ""


class CheckBody(Body):
    """A text, and what its numbers stand for: sources, or a session's register.

    Without either the library is searched for each statement, and the numbers are given here.
    """

    text: Annotated[Words, Field(min_length=1, max_length=MOST_CHARS)]
    sources: Annotated[list[GivenSource], Field(min_length=1, max_length=MOST_SOURCES)] | None = (
        None
    )
    session_id: str | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _one_register(self) -> "CheckBody":
        numbers = [source.n for source in self.sources or ()]
        if len(numbers) != len(set(numbers)):
            raise ValueError("two sources have the same number n; each number stands for one.")
        if self.sources and self.session_id is not None:
            raise ValueError("send sources or a session_id, not both.")
        return self


class UnsourcedModel(Described):
    """A statement that cites nothing and that no source carries: `text[start:end]`."""

    start: int
    end: int


class CheckedModel(Described):
    """The text as it was read (citations in one spelling), and a verdict for each number in it.

    `sources` are those that were found where none were given: then the numbers are a list of this
    reply's own, which no session knows.
    """

    text: str
    numbers: Literal[
        "sent", "session", "reply"
    ]  # whether they are of the sent sources, the session or this reply
    citations: list[CitationModel]
    unsourced: list[UnsourcedModel]
    figures: list[FigureModel]
    sources: list[SourceModel]


@api.get("/documents/<document_id>/text", responses={"200": TextModel})
def read_text(path: DocumentPath, query: TextQuery) -> TextModel:
    """What a document says, section after section, as it was read from its file."""
    document = rights.document(path.document_id)
    sections = application().documents.sections(document.id, rights.readable())
    text = "\n\n".join(section.text for section in sections)
    end = min(len(text), query.start + query.limit)
    return TextModel(
        document_id=document.id,
        document=document.name,
        title=document.title,
        text=text[query.start : end],
        start=query.start,
        total=len(text),
        next=end if end < len(text) else None,
    )


@api.get("/chunks/<chunk_id>", responses={"200": ChunkModel})
def read_chunk(path: ChunkPath) -> ChunkModel:
    """A chunk that a search found, and the section around it."""
    documents, readable = application().documents, rights.readable()
    chunk = documents.chunks([path.chunk_id[:200]], readable).get(path.chunk_id)
    if chunk is None:
        raise NotFound(f"There is no chunk {path.chunk_id[:60]!r}.")
    key = (chunk.document_id, chunk.section_index)
    return ChunkModel.of(chunk=chunk, section=documents.section_texts([key], readable).get(key, ""))


@api.post("/check", responses={"200": CheckedModel})
def check_any_text(body: CheckBody) -> CheckedModel:
    """A verdict for each number of a text, from the source that it stands for alone."""
    from rag.citations.verdicts import check_text, cite_text, sources_from_texts  # not for pages

    app = application()
    embedder = app.embedder if app.settings.embedding.is_packaged else None
    if body.session_id is not None:
        session = open_session(body.session_id)
        sources, numbers = {source.number: source for source in session.sources()}, "session"
    elif body.sources is not None:
        sent = ((source.n, source.text, source.title) for source in body.sources)
        sources, numbers = sources_from_texts(sent), "sent"
    else:
        text = cite_text(body.text, app.retriever, rights.readable(), embedder=embedder)
        return CheckedModel.of(text, sources=list(text.sources.values()), numbers="reply")
    text = check_text(body.text, sources, embedder=embedder)
    return CheckedModel.of(text, sources=[], numbers=numbers)
