"""The JSON API of the library: documents, the jobs that ingest them, search."""

from datetime import datetime

from flask import Response
from pydantic import AliasPath, Field

from rag.errors import NotFound
from rag.records import DEFAULT_COLLECTION, Filters, Readable, ReadingReport
from rag.web.access import rights
from rag.web.access.rights import open_session
from rag.web.api.requests import (
    DocumentPath,
    DocumentsQuery,
    FacetsQuery,
    JobPath,
    MoveBody,
    SearchBody,
    UploadForm,
)
from rag.web.api.uploads import RefusedFile, original_of, take_upload
from rag.web.openapi import PLAIN_TEXT, Described, DescribedApi
from rag.web.problems import FieldProblem, problem, problem_response
from rag.web.request_context import application, checked_id


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


api = DescribedApi("documents", "The library, and retrieval alone.")
INGEST = "ingest"


@api.post("/documents", responses={"202": UploadedModel})
def upload_documents(form: UploadForm) -> tuple[UploadedModel, int] | Response:
    """Ingest files in the background; each gets a job."""
    collection_id = rights.chosen([form.collection])[0] if form.collection else DEFAULT_COLLECTION
    jobs, refused = take_upload(form.file, collection_id)
    if not jobs:
        return _nothing_taken(refused)
    told = [{"document": file.name, "reason": str(file.error)} for file in refused]
    return UploadedModel.of(jobs=jobs, refused=told), 202


def _nothing_taken(refused: list[RefusedFile]) -> Response:
    errors = [FieldProblem(field=file.name, detail=str(file.error)) for file in refused]
    status = max(file.error.http_status for file in refused)
    detail = "; ".join(error.detail for error in errors[:5])
    return problem_response(problem(status, detail, kind="unreadable", errors=errors))


@api.get("/documents", responses={"200": DocumentsModel})
def list_documents(query: DocumentsQuery) -> DocumentsModel:
    """The documents of the library, by name."""
    within = rights.readable().only(rights.chosen([query.collection] if query.collection else ()))
    page = application().documents.page(within, limit=query.limit, offset=query.offset)
    return DocumentsModel.of(page, limit=query.limit, offset=query.offset)


@api.get("/documents/<document_id>", responses={"200": DocumentModel})
def read_document(path: DocumentPath) -> DocumentModel:
    """One document."""
    return DocumentModel.of(rights.document(path.document_id))


@api.get(
    "/documents/<document_id>/original",
    responses={
        "200": {
            "description": "The file itself, as it came in.",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
def read_original(path: DocumentPath) -> Response:
    """The file that a document was read from, if it was kept."""
    return original_of(rights.document(path.document_id))


@api.put("/documents/<document_id>", responses={"200": DocumentModel})
def move_document(path: DocumentPath, body: MoveBody) -> DocumentModel:
    """Put a document into another collection; what was cited of it stays."""
    rights.move_document(path.document_id, rights.chosen([body.collection])[0])
    return DocumentModel.of(rights.document(path.document_id))


@api.delete("/documents/<document_id>", responses={"204": None})
def delete_document(path: DocumentPath) -> tuple[str, int]:
    """Take a document out of the library; answers that cite it keep their evidence."""
    rights.delete_document(path.document_id)
    return "", 204


@api.get("/jobs", responses={"200": JobsModel})
def list_jobs() -> JobsModel:
    """The newest ingest jobs, newest first."""
    jobs = [job for job in application().jobs.jobs() if job.kind == INGEST and rights.may_see(job)]
    return JobsModel.of(jobs=jobs)


@api.get("/jobs/<job_id>", responses={"200": JobModel})
def read_job(path: JobPath) -> JobModel:
    """How far an ingest job is."""
    job = application().jobs.job(checked_id(path.job_id, "job"))
    if job.kind != INGEST or not rights.may_see(job):
        raise NotFound(f"There is no job {path.job_id!r}.")
    return JobModel.of(job)


@api.post("/search", responses={"200": HitsModel})
def search(body: SearchBody) -> HitsModel:
    """Find chunks; with a session, the query is resolved in its context first."""
    retriever = application().retriever
    filters = body.filters.filters
    if not body.session_id:
        within = rights.readable().only(rights.chosen(body.chosen))
        hits = retriever.search(body.query, within, limit=body.limit, filters=filters)
        filtered = _filtered(filters, within)
        return HitsModel.of(query=body.query, is_followup=False, filtered=filtered, hits=hits)
    session = open_session(body.session_id)
    within = session.within().only(rights.chosen(body.chosen))
    resolution, hits = application().assistant.search(
        session, body.query, body.limit, filters=filters, readable=within
    )
    return HitsModel.of(
        query=resolution.query,
        is_followup=resolution.is_followup,
        filtered=_filtered(filters, within),
        hits=hits,
    )


@api.get("/facets", responses={"200": FacetsModel})
def list_facets(query: FacetsQuery) -> FacetsModel:
    """By what a search can be filtered: of the documents that you may read."""
    within = rights.readable().only(rights.chosen([query.collection] if query.collection else ()))
    return FacetsModel.of(**application().documents.facets(within))


def _filtered(filters: Filters, within: Readable) -> FilteredModel | None:
    if not filters:
        return None
    names = application().documents.filtered(filters, within).names
    return FilteredModel.of(filters=dict(filters.items()), documents=len(names))
