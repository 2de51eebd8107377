"""The JSON API of the library: documents, the jobs that ingest them, search."""

from typing import Any

from flask import Response, json
from flask_openapi3.models.tag import Tag

from rag.errors import NotFound
from rag.records import DEFAULT_COLLECTION
from rag.seams import Retriever
from rag.web.access import rights
from rag.web.api.library import (
    DocumentModel,
    DocumentsModel,
    HitModel,
    HitsModel,
    JobModel,
    JobsModel,
    QueuedModel,
    RefusedModel,
    UploadedModel,
)
from rag.web.api.requests import (
    DocumentPath,
    DocumentsQuery,
    JobPath,
    MoveBody,
    SearchBody,
    UploadForm,
)
from rag.web.api.responses import as_json
from rag.web.api.uploads import Upload, sort_upload
from rag.web.current import application, checked_id, open_session
from rag.web.described import DescribedApi
from rag.web.problems import REFUSALS, FieldProblem, problem, problem_response

api = DescribedApi(
    "documents",
    __name__,
    url_prefix="/api/v1",
    abp_tags=[Tag(name="documents", description="The library, and retrieval alone.")],
    abp_responses=REFUSALS,
)
INGEST = "ingest"


@api.post("/documents", responses={"202": UploadedModel})
def upload_documents(form: UploadForm) -> tuple[dict[str, Any], int] | Response:
    """Ingest files in the background; each gets a job."""
    limit = application().settings.documents.max_file_mb
    upload = sort_upload(form.file, max_file_mb=limit)
    if not upload.taken:
        return _nothing_taken(upload)
    collection_id = rights.chosen([form.collection])[0] if form.collection else DEFAULT_COLLECTION
    queued = []
    for taken in upload.taken:
        job = rights.add_document(taken.name, taken.upload.read(), collection_id)
        queued.append(QueuedModel(id=job.id, document=taken.name))
    refused = [RefusedModel(document=file.name, reason=str(file.error)) for file in upload.refused]
    return as_json(UploadedModel(jobs=queued, refused=refused)), 202


def _nothing_taken(upload: Upload) -> Response:
    errors = [FieldProblem(field=file.name, detail=str(file.error)) for file in upload.refused]
    status = max(file.error.http_status for file in upload.refused)
    detail = "; ".join(error.detail for error in errors[:5])
    return problem_response(problem(status, detail, kind="unreadable", errors=errors))


@api.get("/documents", responses={"200": DocumentsModel})
def list_documents(query: DocumentsQuery) -> dict[str, Any]:
    """The documents of the library, by name."""
    within = rights.readable().only(rights.chosen([query.collection] if query.collection else ()))
    page = application().documents.page(within, limit=query.limit, offset=query.offset)
    return as_json(
        DocumentsModel(
            documents=[DocumentModel.of(document) for document in page.documents],
            total=page.total,
            limit=query.limit,
            offset=query.offset,
        )
    )


@api.get("/documents/<document_id>", responses={"200": DocumentModel})
def read_document(path: DocumentPath) -> dict[str, Any]:
    """One document."""
    document_id = checked_id(path.document_id, "document")
    return as_json(
        DocumentModel.of(application().documents.document(document_id, rights.readable()))
    )


@api.put("/documents/<document_id>", responses={"200": DocumentModel})
def move_document(path: DocumentPath, body: MoveBody) -> dict[str, Any]:
    """Put a document into another collection; what was cited of it stays."""
    document_id = checked_id(path.document_id, "document")
    rights.move_document(document_id, rights.chosen([body.collection])[0])
    return as_json(
        DocumentModel.of(application().documents.document(document_id, rights.readable()))
    )


@api.delete("/documents/<document_id>", responses={"204": None})
def delete_document(path: DocumentPath) -> tuple[str, int]:
    """Take a document out of the library; answers that cite it keep their evidence."""
    rights.delete_document(checked_id(path.document_id, "document"))
    return "", 204


@api.get("/jobs", responses={"200": JobsModel})
def list_jobs() -> dict[str, Any]:
    """The newest ingest jobs, newest first."""
    jobs = [job for job in application().jobs.jobs() if job.kind == INGEST and rights.may_see(job)]
    return as_json(JobsModel(jobs=[JobModel.of(job) for job in jobs]))


@api.get("/jobs/<job_id>", responses={"200": JobModel})
def read_job(path: JobPath) -> dict[str, Any]:
    """How far an ingest job is."""
    job = application().jobs.job(checked_id(path.job_id, "job"))
    if job.kind != INGEST or not rights.may_see(job):
        raise NotFound(f"There is no job {path.job_id!r}.")
    return as_json(JobModel.of(job))


@api.post("/search", responses={"200": HitsModel})
def search(body: SearchBody) -> Response:
    """Find chunks; with a session, the query is resolved in its context first."""
    retriever = application().retriever
    found = _search_in_session(retriever, body) if body.session_id else _search(retriever, body)
    return Response(json.dumps(as_json(found)), mimetype="application/json")


def _search(retriever: Retriever, body: SearchBody) -> HitsModel:
    within = rights.readable().only(rights.chosen(body.collections or ()))
    hits = retriever.search(body.query, within, limit=body.limit)
    return HitsModel(query=body.query, is_followup=False, hits=[HitModel.of(hit) for hit in hits])


def _search_in_session(retriever: Retriever, body: SearchBody) -> HitsModel:
    session = open_session(body.session_id or "")
    resolution = application().assistant.resolve(session, body.query)
    hits = retriever.search(
        resolution.dense_query or resolution.query,
        session.within(),
        lexical_query=resolution.lexical_query,
        dense_context=resolution.dense_context,
        limit=body.limit,
    )
    return HitsModel(
        query=resolution.query,
        is_followup=resolution.is_followup,
        hits=[HitModel.of(hit) for hit in hits],
    )
