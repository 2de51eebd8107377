"""What programs are sent about the library: documents, jobs, hits; made from records."""

from datetime import datetime

from pydantic import AliasPath, Field

from rag.records import ReadingReport
from rag.web.openapi import PLAIN_TEXT, Described


class DocumentModel(Described):
    """A document of the library."""

    id: str
    name: str
    title: str
    media_type: str
    content_hash: str
    size_bytes: int
    chunk_count: int
    ingested_at: datetime
    names: list[str]
    report: ReadingReport
    collection_id: str
    url: str  # where people open it at its source; "" where that is nowhere


class DocumentsModel(Described):
    """A page of the library, by name."""

    documents: list[DocumentModel]
    total: int
    limit: int
    offset: int


class QueuedModel(Described):
    """A job that was just queued for a document."""

    id: str
    document: str = Field(validation_alias="subject")


class RefusedModel(Described):
    """A file that was not taken, and why."""

    document: str
    reason: str


class UploadedModel(Described):
    """What became of each file of an upload."""

    jobs: list[QueuedModel]
    refused: list[RefusedModel]


class JobModel(Described):
    """Background work and how far it is: `done` of `total` chunks."""

    id: str
    kind: str
    document: str = Field(validation_alias="subject")
    state: str
    done: int
    total: int
    error: str | None
    seconds: float | None
    created_at: datetime
    updated_at: datetime


class JobsModel(Described):
    """Ingest jobs, newest first."""

    jobs: list[JobModel]


class OfAChunk(Described):
    """What is told of a chunk wherever it is."""

    chunk_id: str = Field(validation_alias=AliasPath("chunk", "id"))
    document_id: str = Field(validation_alias=AliasPath("chunk", "document_id"))
    document: str = Field(validation_alias=AliasPath("chunk", "document_name"))
    title: str = Field(validation_alias=AliasPath("chunk", "document_title"))
    locator: str = Field(validation_alias=AliasPath("chunk", "locator"))
    heading_path: list[str] = Field(validation_alias=AliasPath("chunk", "heading_path"))
    text: str = Field(validation_alias=AliasPath("chunk", "text"), description=PLAIN_TEXT)


class HitModel(OfAChunk):
    """A chunk that was found; `score` is comparable within one search only."""

    score: float
    relevance: float


class FilteredModel(Described):
    """What a search was filtered by, and how many documents that leaves."""

    filters: dict[str, str]
    documents: int


class FacetsModel(Described):
    """By what the documents that you may read can be filtered: documents of each value."""

    folder: dict[str, int]
    type: dict[str, int]
    author: dict[str, int]
    tag: dict[str, int]


class HitsModel(Described):
    """What a search found, best first, and the query that was searched for."""

    query: str
    is_followup: bool
    filtered: FilteredModel | None = Field(description="What was filtered; null where nothing was.")
    hits: list[HitModel]
