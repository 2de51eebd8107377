"""The pages of a collection's sources of documents, with plain forms."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Blueprint, redirect, url_for
from werkzeug.wrappers import Response

from rag.connectors.kinds import masked
from rag.documents.reports import counted
from rag.errors import UserError
from rag.records import DocumentSource, Right, SyncCounts, SyncState
from rag.web.access import rights
from rag.web.pages.layout import PageResult, index_of_request, show_page, words
from rag.web.request_context import application, checked_id

source_pages = Blueprint("source_pages", __name__)
source_pages.add_app_template_filter(masked, "shown")
WATCH = "watch"
INTERVALS = {
    "3600": "every hour",
    "86400": "every day",
    "604800": "every week",
    "900": "every quarter of an hour",
    WATCH: "at each change (folders of the server)",
    "": "when I say so",
}
DEFAULT_DEPTH, DEEPEST = 3, 20
STATES = {
    SyncState.IDLE: "In step",
    SyncState.RUNNING: "Being looked at",
    SyncState.WAITING_FOR_YES: "Waits for your yes",
    SyncState.AWAY: "Cannot be seen now",
    SyncState.FAILED: "Failed",
    SyncState.REMOVING: "Being removed",
}


@source_pages.get("/collections/<collection_id>/sources")
def sources(collection_id: str) -> str:
    """Show the sources of a collection, and their states."""
    return _page(checked_id(collection_id, "collection"))


@source_pages.post("/collections/<collection_id>/sources")
def add(collection_id: str) -> PageResult:
    """Add a source, which is synced soon."""
    try:
        rights.add_source(_wish(checked_id(collection_id, "collection")))
    except UserError as error:
        if error.http_status == 404:
            raise
        fields = ("address", "include", "exclude", "every", "depth")
        values = {name: words(name) for name in fields}
        return _page(collection_id, error=str(error), values=values), error.http_status
    return redirect(url_for("source_pages.sources", collection_id=collection_id), 303)


@source_pages.post("/document-sources/<source_id>")
def change(source_id: str) -> Response:
    """Change a source's interval and its patterns of names."""
    every = words("every")
    return _act_then_redirect(
        source_id,
        partial(
            application().sources.change,
            include=_globs("include"),
            exclude=_globs("exclude"),
            every_seconds=_seconds(every) or 0,
            watch=every == WATCH,
        ),
    )


@source_pages.post("/document-sources/<source_id>/<act>")
def do(source_id: str, act: str) -> Response:
    """Sync a source, confirm, decline or undo its removals, or remove it."""
    registry = application().sources
    acts: dict[str, Callable[[str], Any]] = {
        "sync": registry.sync,
        "confirm": registry.confirm,
        "decline": registry.decline,
        "undo": registry.undo,
        "remove": registry.remove,
        "leave": partial(registry.remove, keep_documents=True),
    }
    if act not in acts:
        raise UserError(f"{act[:40]!r} is nothing that a source can do.")
    return _act_then_redirect(source_id, acts[act])


@source_pages.app_template_filter("in_words")
def counts_in_words(counts: SyncCounts) -> str:
    """Return `2 new, 1 changed, 118 as they were`; "" before the first sync."""
    parts = (
        (counts.new, "new"),
        (counts.changed, "changed"),
        (counts.moved, "moved"),
        (counts.removed, "removed"),
        (counts.unchanged, "as they were" if counts.unchanged != 1 else "as it was"),
        (counts.waiting, "still being written"),
    )
    return ", ".join(f"{count:,} {word}" for count, word in parts if count)


@source_pages.app_template_filter("interval_in_words")
def interval_in_words(source: DocumentSource) -> str:
    """Return how often a source is synced."""
    if source.watch:
        return "at each change"
    seconds = source.every_seconds
    if seconds is None:
        return "when somebody says so"
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"every {name}" if count == 1 else f"every {counted(count, name)}"
    return f"every {counted(seconds, 'second')}"


def _act_then_redirect(source_id: str, act: Callable[[str], Any]) -> Response:
    source = rights.managed_source(source_id).source
    act(source.id)
    return redirect(url_for("source_pages.sources", collection_id=source.collection_id), 303)


def _wish(collection_id: str) -> DocumentSource:
    every, depth = words("every"), index_of_request("depth", {"depth": words("depth")})
    return DocumentSource(
        "", words("address").strip(), "", "", collection_id, rights.adding_owner(),
        _globs("include"), _globs("exclude"),
        min(DEFAULT_DEPTH if depth is None else depth, DEEPEST), _seconds(every), every == WATCH,
    )  # fmt: skip


def _seconds(every: str) -> int | None:
    return index_of_request("every", {"every": every}) if every != WATCH else None


def _globs(name: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, re.split(r"[,\n]", words(name)))))


def _page(collection_id: str, *, error: str = "", values: dict[str, str] | None = None) -> str:
    collection = rights.require_collection(collection_id, least=Right.MANAGE)
    statuses = rights.managed_sources([collection.id])
    busy = (SyncState.RUNNING, SyncState.REMOVING)
    return show_page(
        "document_sources.html",
        collection=collection,
        statuses=statuses,
        running=sum(status.state in busy for status in statuses),
        states=STATES,
        intervals=INTERVALS,
        form=values or {"every": "3600", "depth": str(DEFAULT_DEPTH)},
        error=error,
    )
