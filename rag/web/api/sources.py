"""The JSON API of the sources of documents, for the managers of their collections."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from rag.connectors.kinds import LONGEST_ADDRESS, masked
from rag.connectors.registry import SourceStatus
from rag.records import DEFAULT_COLLECTION, DocumentSource, SyncCounts, SyncState
from rag.web.access import rights
from rag.web.api.schemas import STORABLE, Body, Described, DescribedApi, RequestBody, ShortText
from rag.web.request_context import application

api = DescribedApi("sources", "What collections are kept in step with.")
LONGEST_EVERY = 366 * 86_400  # seconds
Glob = Annotated[str, Field(min_length=1, max_length=300), STORABLE]
Globs = Annotated[list[Glob], Field(max_length=100)]
Interval = Annotated[int, Field(ge=0, le=LONGEST_EVERY)]


class FailureModel(Described):
    """A file that could not be read, and why."""

    name: str
    reason: str


class ProgressModel(Described):
    """Files of the sync that runs: `done` of `total`."""

    done: int
    total: int


class UndoModel(Described):
    """Documents of the last removal that can be had back, and until when."""

    count: int
    until: datetime | None


class DocumentSourceModel(Described):
    """A source and how it stands; `every` is in seconds, null where it is looked at on demand.

    `pending_removals` are the first files whose removal waits for a yes, `pending_count` all.
    """

    id: str
    address: str
    kind: str
    name: str
    collection: str
    include: list[str]
    exclude: list[str]
    depth: int
    every: int | None
    watch: bool
    state: SyncState
    reason: str
    last_synced_at: datetime | None
    next_sync_at: datetime | None
    counts: SyncCounts
    progress: ProgressModel
    pending_removals: list[str]
    pending_count: int
    failures: list[FailureModel]
    undo: UndoModel


class DocumentSourcesModel(Described):
    """The sources of the collections that the caller manages, by address."""

    sources: list[DocumentSourceModel]


class CountModel(Described):
    """How many documents a yes or an undo is about."""

    count: int
    source: DocumentSourceModel


class ManagedPath(BaseModel):
    """Names a source."""

    source_id: str


class SourcesQuery(RequestBody):
    """Which sources; `collection` names one by id or name."""

    collection: ShortText = ""


class NewSourceBody(Body):
    """A source to add: `every` so many seconds it is looked at, and each change if `watch`."""

    address: Annotated[str, Field(min_length=1, max_length=LONGEST_ADDRESS), STORABLE]
    collection: ShortText = ""
    include: Globs = Field([])
    exclude: Globs = Field([])
    depth: Annotated[int, Field(ge=0, le=20)] = 3
    every: Interval | None = None
    watch: bool = False


class SourceBody(Body):
    """What is left out stays as it is; `every` 0 is on demand."""

    include: Globs | None = None
    exclude: Globs | None = None
    every: Interval | None = None
    watch: bool | None = None


class SyncBody(Body):
    """A thorough sync reads every file, whatever its time and size say."""

    thorough: bool = False


class LeavingQuery(RequestBody):
    """Whether the documents of a source stay when it goes."""

    keep_documents: bool = False


@api.get("/sources", responses={"200": DocumentSourcesModel})
def list_sources(query: SourcesQuery) -> DocumentSourcesModel:
    """The sources of the collections that the caller manages."""
    wanted = rights.chosen([query.collection]) if query.collection else ()
    return DocumentSourcesModel(
        sources=[describe_source(source) for source in rights.managed_sources(wanted)]
    )


@api.post("/sources", responses={"201": DocumentSourceModel})
def create_source(body: NewSourceBody) -> tuple[DocumentSourceModel, int]:
    """Keep a collection in step with a folder, a share, a repository or a site."""
    place = rights.chosen([body.collection])[0] if body.collection else DEFAULT_COLLECTION
    wish = DocumentSource(
        "",
        body.address,
        "",
        "",
        place,
        rights.adding_owner(),
        tuple(body.include),
        tuple(body.exclude),
        body.depth,
        body.every or None,
        body.watch,
    )
    return describe_source(rights.add_source(wish)), 201


@api.get("/sources/<source_id>", responses={"200": DocumentSourceModel})
def read_source(path: ManagedPath) -> DocumentSourceModel:
    """One source, and how it stands."""
    return _described(path)


@api.patch("/sources/<source_id>", responses={"200": DocumentSourceModel})
def change_source(path: ManagedPath, body: SourceBody) -> DocumentSourceModel:
    """Say what of it is wanted, and how often it is looked at."""
    application().sources.change(
        _managed_id(path),
        include=body.include,
        exclude=body.exclude,
        every_seconds=body.every,
        watch=body.watch,
    )
    return _described(path)


@api.delete("/sources/<source_id>", responses={"202": None})
def delete_source(path: ManagedPath, query: LeavingQuery) -> tuple[str, int]:
    """Take a source away, with its documents unless they are to stay."""
    application().sources.remove(_managed_id(path), keep_documents=query.keep_documents)
    return "", 202


@api.post("/sources/<source_id>/sync", responses={"202": DocumentSourceModel})
def sync_source(path: ManagedPath, body: SyncBody) -> tuple[DocumentSourceModel, int]:
    """Look at it soon."""
    application().sources.sync(_managed_id(path), thorough=body.thorough)
    return _described(path), 202


@api.post("/sources/<source_id>/confirm", responses={"202": CountModel})
def confirm_removals(path: ManagedPath) -> tuple[CountModel, int]:
    """Say yes to the removals that wait."""
    count = application().sources.confirm(_managed_id(path))
    return CountModel(count=count, source=_described(path)), 202


@api.post("/sources/<source_id>/decline", responses={"200": CountModel})
def decline_removals(path: ManagedPath) -> CountModel:
    """Say no to the removals that wait: those documents stay until they are deleted."""
    count = application().sources.decline(_managed_id(path))
    return CountModel(count=count, source=_described(path))


@api.post("/sources/<source_id>/undo", responses={"202": CountModel})
def undo_removals(path: ManagedPath) -> tuple[CountModel, int]:
    """Have back what was removed last; it stays until it is deleted by hand."""
    count = application().sources.undo(_managed_id(path))
    return CountModel(count=count, source=_described(path)), 202


def _managed_id(path: ManagedPath) -> str:
    """Return the source's id. Raises NotFound where the caller does not manage its collection."""
    return rights.managed_source(path.source_id).source.id


def _described(path: ManagedPath) -> DocumentSourceModel:
    return describe_source(rights.managed_source(path.source_id))


def describe_source(status: SourceStatus) -> DocumentSourceModel:
    """Return a source in the form of the API, also for commands."""
    source = status.source
    return DocumentSourceModel.of(
        source,
        address=masked(source.address),
        collection=source.collection_id,
        every=source.every_seconds,
        state=status.state,
        reason=status.reason,
        next_sync_at=source.next_due_at,
        progress={"done": status.done, "total": status.total},
        pending_removals=list(status.pending),
        pending_count=status.pending_count,
        failures=[{"name": file.name, "reason": file.reason} for file in status.failures],
        undo={"count": status.undo_count, "until": status.undo_until},
    )
