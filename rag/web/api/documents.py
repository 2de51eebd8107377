"""The JSON API of the library: documents, the jobs that ingest them, search."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Annotated, Any, Literal

from flask import Response, send_file
from flask_openapi3.models.file import FileStorage as UploadedFile
from pydantic import AliasPath, BaseModel, BeforeValidator, Field, model_validator
from werkzeug.datastructures import FileStorage

from rag.db import storable
from rag.documents.collections import right_named
from rag.documents.files import is_archive, members, name_inside, unpacked
from rag.errors import NotFound, TooLarge, Unreadable, UserError
from rag.records import DEFAULT_COLLECTION, Document, Filters, Job, ReadingReport, Right
from rag.web.access import rights
from rag.web.access.rights import open_session
from rag.web.api.schemas import (
    NOT_BLANK,
    PLAIN_TEXT,
    STORABLE,
    Body,
    Chosen,
    Described,
    DescribedApi,
    DocumentPath,
    PageQuery,
    RequestBody,
    ShortText,
    Title,
)
from rag.web.problems import FieldProblem, problem, problem_response
from rag.web.request_context import application, checked_id
from rag.wiring.stores import syncs_of

MAX_NAME_CHARS = 255
BYTES_PER_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """An uploaded file that is refused, and why."""

    name: str  # as the client sent it
    error: UserError


ReadFile = Callable[[], bytes]  # reads an accepted file, later. Raises UserError


def take_upload(
    uploads: Iterable[FileStorage], collection_id: str
) -> tuple[list[Job], list[RefusedFile]]:
    """Queue a job for each accepted file of an upload; return the jobs and the refused files.

    Raises NotFound and Forbidden where the caller may not see or add to the collection.
    """
    limit = application().settings.documents.max_file_mb
    accepted, refused = sort_upload(uploads, max_file_mb=limit)
    jobs = [rights.add_document(name, read(), collection_id) for name, read in accepted.items()]
    return jobs, refused


def sort_upload(
    uploads: Iterable[FileStorage], *, max_file_mb: float
) -> tuple[dict[str, ReadFile], list[RefusedFile]]:
    """Return the files with a valid, unique name and size, by name; and the refused ones.

    An archive counts as a folder: the files in it are accepted, not the archive itself.
    """
    accepted: dict[str, ReadFile] = {}
    refused: list[RefusedFile] = []
    for upload in uploads:
        filename = upload.filename or ""
        try:
            name = library_name(filename)
            size = upload.stream.seek(0, os.SEEK_END)
            upload.stream.seek(0)
            if size > max_file_mb * BYTES_PER_MB:
                raise TooLarge(
                    f"{name} has {size / BYTES_PER_MB:.1f} MB; "
                    f"documents.max_file_mb allows {max_file_mb:g}."
                )
            if is_archive(name):
                _sort_archive(
                    name, upload.read(), int(max_file_mb * BYTES_PER_MB), accepted, refused
                )
                continue
            if name in accepted:
                raise Unreadable(name, "the upload holds two files of this name; rename one.")
            accepted[name] = upload.read
        except UserError as error:
            refused.append(RefusedFile(name=filename[:MAX_NAME_CHARS], error=error))
    return accepted, refused


def _sort_archive(
    name: str,
    data: bytes,
    max_bytes: int,
    accepted: dict[str, ReadFile],
    refused: list[RefusedFile],
) -> None:
    """Add an archive's files to one or the other. Raises UserError if it cannot be opened."""
    for member, size in members(name, data):
        inner = name_inside(name, member)
        try:
            inner = library_name(inner)
            if size > max_bytes:
                raise TooLarge(f"{inner} has more than {max_bytes:,} bytes, which are allowed.")
            accepted.setdefault(inner, partial(unpacked, name, data, member, max_bytes))
        except UserError as error:
            refused.append(RefusedFile(name=inner[:MAX_NAME_CHARS], error=error))


def library_name(filename: str) -> str:
    """Return a document's name for a file's name: relative, with forward slashes.

    Raises:
        Unreadable: the name is empty, too long, or leads out of the library.
    """
    parts = [
        part for part in storable(filename).replace("\\", "/").split("/") if part not in ("", ".")
    ]
    name = "/".join(parts)
    shown = filename[:80] or "(a file without a name)"
    if not name:
        raise Unreadable(shown, "the file has no name; send one such as manual.pdf.")
    if ".." in parts or filename.startswith(("/", "\\")) or ":" in parts[0]:
        raise Unreadable(shown, "the name leads out of the library; send a relative one without ..")
    if len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise Unreadable(
            shown,
            f"the name has {len(name)} characters; it must have at most {MAX_NAME_CHARS}, all of "
            "them printable.",
        )
    return name


PDF = "application/pdf"
# The browser's PDF viewer is an object in a page of its own, without content of this server.
VIEWED = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def original_of(document: Document, *, is_shown: bool = False) -> Response:
    """Send a document's file as a download, or a PDF to be shown if `is_shown`.

    A file that was not kept is read from its source. Raises NotFound, and as `Syncs.original` does.

    Browsers never show other files from this server: they might be pages with scripts.
    """
    app = application()
    path = app.documents.original(document)
    if path is None and app.sources.table.of_document(document.id) is None:
        raise NotFound(
            f"The original of {document.name} was not kept, or not on this machine. Ingest the "
            "file again where documents.keep_originals is on."
        )
    is_shown = is_shown and document.media_type == PDF
    response = send_file(
        path or BytesIO(syncs_of(app).original(document)),
        mimetype=document.media_type,
        as_attachment=not is_shown,
        download_name=document.name.rpartition("/")[2],
        etag=document.content_hash,
    )
    if is_shown:
        response.headers["Content-Security-Policy"] = VIEWED
    return response


def has_original(document: Document) -> bool:
    """Return whether the document's file can be opened, kept or at its source."""
    app = application()
    is_kept = app.documents.has_original(document)
    return is_kept or app.sources.table.of_document(document.id) is not None


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


SearchWords = Annotated[str, Field(min_length=1, max_length=10_000), STORABLE, NOT_BLANK]


def as_text(value: Any) -> Any:
    """Turn a number into a text: an id of digits in a form arrives as a number."""
    return str(value) if isinstance(value, int) else value


class JobPath(BaseModel):
    """Names a job."""

    job_id: str


class FacetsQuery(RequestBody):
    """Of which collection, by id or name; of all that you may read without one."""

    collection: ShortText = ""


class DocumentsQuery(PageQuery):
    """Which documents; `collection` names one by id or name."""

    collection: ShortText = ""


class UploadForm(RequestBody):
    """Files to ingest."""

    file: Annotated[list[UploadedFile], Field(min_length=1, max_length=1000)]
    collection: Annotated[ShortText, BeforeValidator(as_text)] = ""

    @model_validator(mode="before")
    @classmethod
    def _refuse_none(cls, values: Any) -> Any:
        is_known = isinstance(values, dict) and values.keys() <= cls.model_fields.keys()
        if is_known and not isinstance(values.get("file"), list):
            raise ValueError(
                "no file came. Send multipart/form-data with a part `file` for each, and its name."
            )
        return values


class MoveBody(Body):
    """Where a document is to be, by id or name."""

    collection: Annotated[ShortText, Field(min_length=1)]


class FiltersBody(Body):
    """Which documents are searched; what is left out filters nothing. Case does not matter."""

    collection: Annotated[ShortText, Field(description="Its id or name.")] | None = None
    title: Annotated[ShortText, Field(description="Words of the title or the file's name.")] = ""
    author: ShortText = ""
    folder: Annotated[ShortText, Field(description="With the folders in it.")] = ""
    type: Annotated[ShortText, Field(description='As GET /facets calls it, such as "PDF".')] = ""
    tag: ShortText = ""
    after: Annotated[ShortText, Field(description="The first day, 2025-03-31.")] = ""
    before: Annotated[ShortText, Field(description="The day behind the last.")] = ""

    @property
    def filters(self) -> Filters:
        return Filters(**self.model_dump(exclude={"collection"}))


class SearchBody(Body):
    """A search in the documents; with a session, the query is resolved in its context first."""

    query: SearchWords
    limit: Annotated[int, Field(ge=1, le=100)] = 8
    session_id: str | None = None
    collections: Chosen | None = None
    filters: FiltersBody = FiltersBody()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The collections that are searched, whichever way they are named."""
        single = (self.filters.collection,) if self.filters.collection else ()
        return (*(self.collections or ()), *single)


api = DescribedApi("documents", "The library, and retrieval alone.")
INGEST = "ingest"


@api.post("/documents", responses={"202": UploadedModel})
def upload_documents(form: UploadForm) -> tuple[UploadedModel, int] | Response:
    """Ingest files in the background; each gets a job."""
    collection_id = rights.chosen([form.collection])[0] if form.collection else DEFAULT_COLLECTION
    jobs, refused = take_upload(form.file, collection_id)
    if not jobs:
        errors = [FieldProblem(field=file.name, detail=str(file.error)) for file in refused]
        status = max(file.error.http_status for file in refused)
        detail = "; ".join(error.detail for error in errors[:5])
        return problem_response(problem(status, detail, kind="unreadable", errors=errors))
    reasons = [{"document": file.name, "reason": str(file.error)} for file in refused]
    return UploadedModel.of(jobs=jobs, refused=reasons), 202


@api.get("/documents", responses={"200": DocumentsModel})
def list_documents(query: DocumentsQuery) -> DocumentsModel:
    """The documents of the library, by name."""
    readable = rights.readable().only(rights.chosen([query.collection] if query.collection else ()))
    page = application().documents.page(readable, limit=query.limit, offset=query.offset)
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
    app, filters = application(), body.filters.filters
    session = open_session(body.session_id) if body.session_id else None
    permitted = rights.readable() if session is None else session.readable()
    readable = permitted.only(rights.chosen(body.chosen))
    query, is_followup, filtered = body.query, False, None
    if session is None:
        hits = app.retriever.search(query, readable, limit=body.limit, filters=filters)
    else:
        resolution, hits = app.assistant.search(
            session, query, body.limit, filters=filters, readable=readable
        )
        query, is_followup = resolution.query, resolution.is_followup
    if filters:
        count = len(app.documents.filtered(filters, readable).names)
        filtered = FilteredModel.of(filters=dict(filters.items()), documents=count)
    return HitsModel.of(query=query, is_followup=is_followup, filtered=filtered, hits=hits)


@api.get("/facets", responses={"200": FacetsModel})
def list_facets(query: FacetsQuery) -> FacetsModel:
    """By what a search can be filtered: of the documents that you may read."""
    readable = rights.readable().only(rights.chosen([query.collection] if query.collection else ()))
    return FacetsModel.of(**application().documents.facets(readable))


collections_api = DescribedApi("collections", "What may be asked, and by whom.")
Everybodys = Literal["none", "read", "add"]
MemberRight = Literal["read", "add", "write", "manage"]


RightName = Annotated[str, BeforeValidator(lambda right: Right(right).name.lower())]


class CollectionModel(Described):
    """A collection as the caller sees it; who its members are is told to those who manage it."""

    id: str = Field(validation_alias=AliasPath("collection", "id"))
    name: str = Field(validation_alias=AliasPath("collection", "name"))
    owner: str = Field(validation_alias=AliasPath("collection", "owner"))
    right: RightName  # the caller's
    everybody: RightName = Field(validation_alias=AliasPath("collection", "everybody"))
    document_count: int
    members: dict[str, RightName] | None = None


class CollectionsModel(Described):
    """The collections that the caller may read."""

    collections: list[CollectionModel]


class CollectionPath(BaseModel):
    """Names a collection."""

    collection_id: str


class NewCollectionBody(Body):
    """A collection to make."""

    name: Title
    everybody: Everybodys = "none"


class CollectionBody(Body):
    """What is left out stays as it is; `members` are all of them."""

    name: Title | None = None
    everybody: Everybodys | None = None
    members: Annotated[dict[str, MemberRight], Field(max_length=1000)] | None = None


@collections_api.get("/collections", responses={"200": CollectionsModel})
def list_collections() -> CollectionsModel:
    """The collections that the caller may read."""
    return CollectionsModel.of(collections=rights.readable_collections())


@collections_api.post("/collections", responses={"201": CollectionModel})
def create_collection(body: NewCollectionBody) -> tuple[CollectionModel, int]:
    """Make a collection of the caller's."""
    collection = rights.create_collection(body.name, everybody=right_named(body.everybody))
    return _collection_model(collection.id), 201


@collections_api.get("/collections/<collection_id>", responses={"200": CollectionModel})
def read_collection(path: CollectionPath) -> CollectionModel:
    """One collection; with its members for those who manage it."""
    return _collection_model(path.collection_id)


@collections_api.put("/collections/<collection_id>", responses={"200": CollectionModel})
def change_collection(path: CollectionPath, body: CollectionBody) -> CollectionModel:
    """Rename it, or say who may do what."""
    members = body.members
    rights.change_collection(
        path.collection_id,
        name=body.name,
        everybody=None if body.everybody is None else right_named(body.everybody),
        members=None if members is None else {w: right_named(r) for w, r in members.items()},
    )
    return _collection_model(path.collection_id)


@collections_api.delete("/collections/<collection_id>", responses={"204": None})
def delete_collection(path: CollectionPath) -> tuple[str, int]:
    """Delete an empty collection."""
    rights.delete_collection(path.collection_id)
    return "", 204


def _collection_model(collection_id: str) -> CollectionModel:
    collection = rights.require_collection(collection_id)
    is_managed = collection.right >= Right.MANAGE
    members = application().collections.members(collection.id) if is_managed else None
    return CollectionModel.of(collection, members=members)
