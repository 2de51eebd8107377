"""What programs are sent about the library: documents, jobs, hits; made from records."""

from datetime import datetime

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from rag.records import Document, Hit, Job


class ReportModel(BaseModel):
    """What reading a file gave; `left_out` says in words what is not searchable, and why."""

    pages: int = 0
    words: int = 0
    tables: int = 0
    form_values: int = 0
    pictures: int = 0
    left_out: list[str] = []


class DocumentModel(BaseModel):
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
    report: ReportModel
    collection_id: str

    @classmethod
    def of(cls, document: Document) -> "DocumentModel":
        return cls.model_validate(to_jsonable_python(document))


class DocumentsModel(BaseModel):
    """A page of the library, by name."""

    documents: list[DocumentModel]
    total: int
    limit: int
    offset: int


class QueuedModel(BaseModel):
    """A job that was just queued for a document."""

    id: str
    document: str


class RefusedModel(BaseModel):
    """A file that was not taken, and why."""

    document: str
    reason: str


class UploadedModel(BaseModel):
    """What became of each file of an upload."""

    jobs: list[QueuedModel]
    refused: list[RefusedModel]


class JobModel(BaseModel):
    """Background work and how far it is: `done` of `total` chunks."""

    id: str
    kind: str
    document: str
    state: str
    done: int
    total: int
    error: str | None
    seconds: float | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, job: Job) -> "JobModel":
        return cls.model_validate(to_jsonable_python(job) | {"document": job.subject})


class JobsModel(BaseModel):
    """Ingest jobs, newest first."""

    jobs: list[JobModel]


class HitModel(BaseModel):
    """A chunk that was found; `score` is comparable within one search only."""

    chunk_id: str
    document_id: str
    document: str
    title: str
    locator: str
    heading_path: list[str]
    text: str
    score: float
    relevance: float

    @classmethod
    def of(cls, hit: Hit) -> "HitModel":
        chunk = hit.chunk
        return cls(
            chunk_id=chunk.id,
            document_id=chunk.document_id,
            document=chunk.document_name,
            title=chunk.document_title,
            locator=chunk.locator,
            heading_path=list(chunk.heading_path),
            text=chunk.text,
            score=hit.score,
            relevance=hit.relevance,
        )


class HitsModel(BaseModel):
    """What a search found, best first, and the query that was searched for."""

    query: str
    is_followup: bool
    hits: list[HitModel]
