"""Collections on pages: made, shared, renamed and emptied with plain forms."""

from flask import Blueprint, redirect, request, url_for
from werkzeug.wrappers import Response

from rag.documents.collections import right_named
from rag.errors import UserError
from rag.records import Right
from rag.web.access import rights
from rag.web.pages.forms import words
from rag.web.pages.layout import PageResult, show_page
from rag.web.request_context import application, checked_id

collection_pages = Blueprint("collection_pages", __name__)
NEW_MEMBER = "new_member"


@collection_pages.post("/collections")
def create() -> Response:
    """Make a collection of the caller's, and show it."""
    made = rights.create_collection(words("name"))
    return redirect(url_for("collection_pages.collection", collection_id=made.id), 303)


@collection_pages.get("/collections/<collection_id>")
def collection(collection_id: str) -> str:
    """Its name, and who may do what."""
    return _page(checked_id(collection_id, "collection"))


@collection_pages.post("/collections/<collection_id>")
def change(collection_id: str) -> PageResult:
    """Keep what the form says."""
    members = {
        name.removeprefix("member:"): right_named(value)
        for name, value in request.form.items()
        if name.startswith("member:")
    }
    if words(NEW_MEMBER).strip():
        members[words(NEW_MEMBER).strip()] = right_named(words("new_right"))
    try:
        rights.change_collection(
            checked_id(collection_id, "collection"),
            name=words("name"),
            everybody=right_named(words("everybody")),
            members=members,
        )
    except UserError as error:
        if error.http_status in (403, 404):
            raise
        return _page(collection_id, error=str(error)), error.http_status
    return redirect(url_for("collection_pages.collection", collection_id=collection_id), 303)


@collection_pages.post("/collections/<collection_id>/delete")
def delete(collection_id: str) -> Response:
    """Take away an empty collection."""
    rights.delete_collection(checked_id(collection_id, "collection"))
    return redirect(url_for("document_pages.documents"), 303)


@collection_pages.post("/documents/chosen")
def change_chosen() -> PageResult:
    """Move the documents that were ticked, or delete them after asking: all of them, or none."""
    place, act = words("place"), words("act")
    ticked = dict.fromkeys(request.form.getlist("document"))
    documents = [rights.changeable(each) for each in ticked]
    if not documents:
        raise UserError("No document was chosen. Tick one or more first.")
    if act == "ask":
        return show_page("delete_documents.html", documents=documents, place=place)
    to = "" if act == "delete" else checked_id(words("to"), "collection")
    for document in documents:
        if to:
            rights.move_document(document.id, to)
        else:
            rights.delete_document(document.id)
    return redirect(url_for("document_pages.documents", collection=place or None), 303)


def _page(collection_id: str, *, error: str = "") -> str:
    held = rights.held_collection(collection_id)
    is_managed = held.right >= Right.MANAGE
    return show_page(
        "collection.html",
        held=held,
        is_managed=is_managed,
        is_one=rights.is_one(),
        members=application().collections.members(held.id) if is_managed else {},
        rights=[right.name.lower() for right in Right if right > Right.NONE],
        error=error,
    )
