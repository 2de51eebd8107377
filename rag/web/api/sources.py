"""The JSON API of the sources of documents, for the managers of their collections."""

from datetime import datetime
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from rag.connectors.kinds import LONGEST_ADDRESS, masked
from rag.connectors.registry import SourceStatus
from rag.records import DEFAULT_COLLECTION, DocumentSource, SyncCounts, SyncState
from rag.web.access import rights
from rag.web.access.rights import (
    add_source,
    adding_owner,
    managed_source,
    managed_sources,
    source_registry,
    with_source,
)
from rag.web.api.schemas import STORABLE, Body, Described, DescribedApi, RequestBody, ShortText

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
        sources=[describe_source(source) for source in managed_sources(wanted)]
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
        adding_owner(),
        tuple(body.include),
        tuple(body.exclude),
        body.depth,
        body.every or None,
        body.watch,
    )
    return describe_source(add_source(wish)), 201


@api.get("/sources/<source_id>", responses={"200": DocumentSourceModel})
def read_source(path: ManagedPath) -> DocumentSourceModel:
    """One source, and how it stands."""
    return describe_source(managed_source(path.source_id))


@api.patch("/sources/<source_id>", responses={"200": DocumentSourceModel})
def change_source(path: ManagedPath, body: SourceBody) -> DocumentSourceModel:
    """Say what of it is wanted, and how often it is looked at."""
    change = partial(
        source_registry().change,
        include=body.include,
        exclude=body.exclude,
        every_seconds=body.every,
        watch=body.watch,
    )
    with_source(path.source_id, change)
    return describe_source(managed_source(path.source_id))


@api.delete("/sources/<source_id>", responses={"202": None})
def delete_source(path: ManagedPath, query: LeavingQuery) -> tuple[str, int]:
    """Take a source away, with its documents unless they are to stay."""
    remove = partial(source_registry().remove, keep_documents=query.keep_documents)
    with_source(path.source_id, remove)
    return "", 202


@api.post("/sources/<source_id>/sync", responses={"202": DocumentSourceModel})
def sync_source(path: ManagedPath, body: SyncBody) -> tuple[DocumentSourceModel, int]:
    """Look at it soon."""
    sync = partial(source_registry().sync, thorough=body.thorough)
    with_source(path.source_id, sync)
    return describe_source(managed_source(path.source_id)), 202


@api.post("/sources/<source_id>/confirm", responses={"202": CountModel})
def confirm_removals(path: ManagedPath) -> tuple[CountModel, int]:
    """Say yes to the removals that wait."""
    count = with_source(path.source_id, source_registry().confirm)
    return _counted(path, count), 202


@api.post("/sources/<source_id>/decline", responses={"200": CountModel})
def decline_removals(path: ManagedPath) -> CountModel:
    """Say no to the removals that wait: those documents stay until they are deleted."""
    count = with_source(path.source_id, source_registry().decline)
    return _counted(path, count)


@api.post("/sources/<source_id>/undo", responses={"202": CountModel})
def undo_removals(path: ManagedPath) -> tuple[CountModel, int]:
    """Have back what was removed last; it stays until it is deleted by hand."""
    count = with_source(path.source_id, source_registry().undo)
    return _counted(path, count), 202


def _counted(path: ManagedPath, count: int) -> CountModel:
    return CountModel(count=count, source=describe_source(managed_source(path.source_id)))


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
