"""What a caller may do: every route that finds, opens or changes documents asks here."""

import re
from collections.abc import Callable, Mapping, Sequence

from flask import g, request
from itsdangerous import BadData, URLSafeTimedSerializer

from rag.connectors.registry import SourceStatus
from rag.documents.collections import CollectionOf
from rag.errors import Forbidden, NotFound, UserError
from rag.operations import check_room
from rag.records import (
    DEFAULT_COLLECTION,
    Collection,
    Document,
    DocumentSource,
    Job,
    Readable,
    Right,
    Source,
    SourceState,
)
from rag.seams import OwnedSession, SessionHandle
from rag.settings import WebSettings
from rag.web.access.owner import current_owner, note
from rag.web.request_context import application, checked_id, default_config


def readable() -> Readable:
    """Return the collections whose documents the caller may find, list, count and open."""
    if "readable" not in g:
        g.readable = application().collections.readable(current_owner())
    collections: Readable = g.readable
    return collections


def rights() -> Mapping[str, Right]:
    """Return the caller's right in each collection that it may read."""
    if "rights" not in g:
        g.rights = application().collections.rights(current_owner())
    own_rights: Mapping[str, Right] = g.rights
    return own_rights


def is_one() -> bool:
    """Return whether all callers of this server are one owner."""
    return application().collections.callers.are_one


def is_admin() -> bool:
    """Return whether the caller may change everything."""
    return application().collections.callers.is_admin(current_owner())


def add_document(name: str, data: bytes, collection_id: str = DEFAULT_COLLECTION) -> Job:
    """Queue an upload of the caller. Raises StorageFailed before anything is written.

    Raises NotFound and Forbidden where the caller may not see or add to the collection.
    """
    collection = require_collection(collection_id, least=Right.ADD)
    check_room(application().settings.data_dir)
    job = application().jobs.submit_ingest(
        name, data, owner=adding_owner(), collection_id=collection.id
    )
    note("document.uploaded", name)
    return job


def may_change(document: Document) -> bool:
    """Return whether the caller may replace or delete the document."""
    right = rights().get(document.collection_id, Right.NONE)
    return right >= Right.WRITE or (right == Right.ADD and document.owner == current_owner())


def document(document_id: str) -> Document:
    """Return a document that the caller may read. Raises NotFound."""
    return application().documents.document(checked_id(document_id, "document"), readable())


def changeable(document_id: str) -> Document:
    """Return a document that the caller may move or delete. Raises NotFound and Forbidden."""
    item = document(document_id)
    if not may_change(item):
        raise Forbidden(
            f"{item.name} was not added by you. Ask whoever added it, or an administrator "
            "(auth.admins)."
        )
    return item


def delete_document(document_id: str) -> None:
    """Delete a document from the library. Raises NotFound and Forbidden."""
    item = changeable(document_id)
    application().ingestion.delete(item.id)


def may_see(job: Job) -> bool:
    """Return whether the caller may see the state of this upload."""
    return is_admin() or job.owner == current_owner()


# ── Collections ──────────────────────────────────────────────────────────────────────────────


def readable_collections() -> list[CollectionOf]:
    """Return the collections that the caller may read, with the caller's right in each."""
    return application().collections.readable_by(current_owner())


def choices(chosen: Sequence[str] = ()) -> list[tuple[CollectionOf, bool]]:
    """Return the collections that a session may search, each with whether it is chosen.

    The list is empty where the caller may read only one.
    """
    collections = readable_collections()
    if len(collections) < 2:
        return []
    return [(collection, not chosen or collection.id in chosen) for collection in collections]


def picked_model(name: str) -> str:
    """Return the model's name as a session stores it, "" for the default one. Raises UserError."""
    models = application().pickable_models
    if name and name not in models:
        allowed = ", ".join(models) or "none but the usual one"
        raise UserError(f"The model {name[:100]!r} cannot be picked here. These can: {allowed}.")
    return "" if models and name == models[0] else name


def require_collection(collection_id: str, *, least: Right = Right.READ) -> CollectionOf:
    """Return the collection. Raises NotFound if it cannot be read, Forbidden without the right."""
    collection = application().collections.collection(current_owner(), collection_id)
    if collection.right < least:
        raise Forbidden(f"You may not do this with {collection.name}. Ask somebody who manages it.")
    return collection


def may_create() -> bool:
    """Return whether the caller may create collections."""
    return application().collections.callers.is_manager(current_owner())


def create_collection(name: str, *, everybody: Right = Right.NONE) -> Collection:
    """Create a collection of the caller. Raises Forbidden, UserError and Conflict."""
    if not may_create():
        raise Forbidden("Collections are made by managers (auth.managers). Ask one of them.")
    collection = application().collections.create(current_owner(), name, everybody=everybody)
    _forget()
    return collection


def change_collection(
    collection_id: str,
    *,
    name: str | None = None,
    everybody: Right | None = None,
    members: Mapping[str, Right] | None = None,
) -> None:
    """Replace what is not None; each change of a right is written into the audit trail."""
    collection = require_collection(collection_id, least=Right.MANAGE)
    application().collections.change(collection.id, name=name, everybody=everybody, members=members)
    _forget()


def delete_collection(collection_id: str) -> None:
    """Delete an empty collection. Raises NotFound, Forbidden and Conflict."""
    collection = require_collection(collection_id, least=Right.MANAGE)
    application().collections.delete(collection.id)
    _forget()


def move_document(document_id: str, collection_id: str) -> None:
    """Move a document that the caller may change into a collection that it may add to."""
    item = changeable(document_id)
    collection = require_collection(collection_id, least=Right.ADD)
    application().ingestion.move(item.id, collection.id)


def chosen(wanted: Sequence[str]) -> list[str]:
    """Return the ids of collections given by id or name. Raises NotFound and UserError."""
    named = application().collections.find
    return list(dict.fromkeys(named(current_owner(), name).id for name in wanted))


def _forget() -> None:
    """Drop the rights that this request has cached, after it changed them."""
    g.pop("readable", None)
    g.pop("rights", None)


_CLIENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_OUR_ID = re.compile(r"[0-9a-f]{32}")


def open_session(session_id: str) -> SessionHandle:
    """Open the caller's session by its id, or the client's own id for it.

    Raises NotFound, also if the session is another owner's.
    """
    if not _CLIENT_ID.fullmatch(session_id):
        raise NotFound(f"There is no session {session_id[:60]!r}.")
    return application().store.open(session_id, owner=current_owner())


def open_or_begin_session(session_id: str) -> SessionHandle:
    """Open a session, or create it if the id is a client's own and is new.

    An id in the server's form (32 hexadecimal digits) is never a client's own: if that session was
    deleted, or is another owner's, NotFound is raised.
    """
    if _OUR_ID.fullmatch(session_id) or not _CLIENT_ID.fullmatch(session_id):
        return open_session(session_id)
    return application().store.open_or_create(
        session_id, owner=current_owner(), config=default_config()
    )


def managed_sources(collection_ids: Sequence[str] = ()) -> list[SourceStatus]:
    """Return the sources of documents in collections that the caller manages, by address.

    `collection_ids`, if any, limits them to these collections.
    """
    managed = [key for key, right in rights().items() if right >= Right.MANAGE]
    wanted = [key for key in managed if not collection_ids or key in collection_ids]
    return application().sources.statuses(application().sources.table.sources(wanted))


def managed_source(source_id: str) -> SourceStatus:
    """Return a source. Raises NotFound, also where the caller does not manage its collection."""
    source = application().sources.table.source(checked_id(source_id, "source"))
    if rights().get(source.collection_id, Right.NONE) < Right.MANAGE:
        raise NotFound(f"There is no source {source_id!r}.")
    return application().sources.statuses([source])[0]


def add_source(wish: DocumentSource) -> SourceStatus:
    """Add a source of documents. Raises NotFound, Forbidden, UserError and Conflict."""
    require_collection(wish.collection_id, least=Right.MANAGE)
    if wish.is_operators:
        raise Forbidden("Only whoever runs the server adds a source in its name.")
    source = application().sources.add(wish)
    return application().sources.statuses([source])[0]


def adding_owner() -> str:
    """Return the owner of what the caller adds; "" where all callers are one."""
    return "" if is_one() else current_owner()


SALT = "groundnote source"
GONE = "This link is not valid, or not any more. Ask for the answer again."


def source_links(session: OwnedSession) -> Callable[[int], str]:
    """Return a function from a source's number to its public address, signed if there are keys."""
    web, owner = application().settings.web, session.owner
    root, signer = (web.public_url or request.host_url).rstrip("/"), _signer(web)
    if signer is None:
        return lambda number: f"{root}/sessions/{session.id}/sources/{number}"
    return lambda number: f"{root}/links/{signer.dumps([session.id, owner, number])}"


def linked_source(token: str) -> Source:
    """Return the source of a signed link, while the link's owner may read it. Raises NotFound."""
    web = application().settings.web
    signer = _signer(web)
    try:
        if signer is None:
            raise NotFound(GONE)
        session_id, owner, number = signer.loads(token, max_age=int(web.link_hours * 3600))
        session = application().store.open(session_id, owner=owner)
    except (BadData, NotFound) as error:
        raise NotFound(GONE) from error
    for source in session.sources([number]):
        if source.state is not SourceState.DELETED:
            return source
    raise NotFound(GONE)


def _signer(web: WebSettings) -> URLSafeTimedSerializer | None:
    """Return the signer; its first configured key signs, all verify, so keys can be rotated."""
    if not web.link_keys:
        return None
    keys = [key.get_secret_value() for key in reversed(web.link_keys)]
    return URLSafeTimedSerializer(keys, salt=SALT)
