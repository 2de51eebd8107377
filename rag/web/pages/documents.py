"""The pages of the library: list, add, delete and read documents; collections."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from flask import Blueprint, redirect, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from rag.db import storable
from rag.documents.collections import right_named
from rag.documents.files import collect
from rag.documents.reports import counted, in_words, kind_in_words, left_out, size_in_words
from rag.documents.store_rows import ORDERS, check
from rag.errors import Conflict, ModelError, NotFound, TooLarge, UserError
from rag.language.sentences import Span
from rag.records import DEFAULT_COLLECTION, Chunk, Document, Filters, Job, JobState, Right, Section
from rag.render.evidence import NOWHERE, Marks, moment_html, text_html
from rag.render.statements import places_of
from rag.web.access import rights
from rag.web.access.owner import current_owner
from rag.web.api.documents import (
    PDF,
    RefusedFile,
    has_original,
    library_name,
    original_of,
    take_upload,
)
from rag.web.pages.conversations import HOW_MANY, starters, table_offer, topics
from rag.web.pages.layout import PageResult, index_of_request, search_of_request, show_page, words
from rag.web.request_context import application, checked_id
from rag.wiring.components import package_folder

document_pages = Blueprint("document_pages", __name__)
document_pages.add_app_template_filter(size_in_words, "size")
document_pages.add_app_template_filter(moment_html, "moment")
document_pages.add_app_template_global(rights.may_change, "may_change")
DOCUMENTS_ON_A_PAGE = 100
SECTIONS_AROUND = 20
LARGEST_SAMPLE = 10_000_000  # bytes
BARS_SHOWN = 5  # more files being read share one bar
LONGEST_PASTED = 100_000  # characters; forms hold no more than half a megabyte
UNFIT_FOR_NAMES = re.compile(r"[\\/:]+")
FILTERED_BY = ("folder", "type", "author", "tag", "after", "before")
FAILURES_STAY = timedelta(days=1)
ADDED_TOGETHER = timedelta(minutes=10)
MOST_ADDED = 24
TABLES_OF = 6  # documents
HEADINGS_SHOWN = 5
NAMES_SHOWN = 8


@document_pages.get("/documents")
def documents() -> str:
    """Show the library, and its running uploads."""
    return _library_page()


@document_pages.post("/documents")
def upload() -> PageResult:
    """Queue the uploaded files; each is ingested in the background."""
    files = [file for file in request.files.getlist("file") if file.filename]
    if not files:
        return _library_page(error="No file came. Choose one or more files first."), 422
    jobs, refused = take_upload(files, _place())
    if refused:
        return _library_page(refused=refused), 200 if jobs else 422
    return _back()


@document_pages.get("/documents/added")
def added() -> PageResult:
    """Show the newest documents: what they are, what they share, what can be asked about them."""
    newest = application().documents.newest(rights.readable(), limit=MOST_ADDED)
    if not newest:
        return _back()
    batch = batch_of([job for job in application().jobs.jobs() if rights.may_see(job)])
    is_upload = newest[0].name in (job.subject for job in batch)
    since = batch[-1].created_at if is_upload else newest[0].ingested_at - ADDED_TOGETHER
    documents = [document for document in newest if document.ingested_at >= since]
    questions = starters(documents)
    if len(questions) < HOW_MANY:
        questions = [*questions, *topics(documents, HOW_MANY - len(questions))]
    tables = [
        {"table": table, "offer": table_offer(table)}
        for document in documents[:TABLES_OF]
        for table in application().tables.tables(rights.readable(), document_id=document.id)[:1]
    ]
    return show_page(
        "added.html",
        documents=[{"document": document, "begins": _headings(document)} for document in documents],
        shared=shared_names(documents),
        questions=questions,
        tables=tables,
    )


def _headings(document: Document) -> list[str]:
    sections = application().documents.stretches([document.id], rights.readable(), 0, 8)
    paths = [section.heading_path[-1:] for section in sections.get(document.id, ())]
    headings = dict.fromkeys(" ".join(heading.split()) for path in paths for heading in path)
    return [heading for heading in headings if heading and heading != document.title][
        :HEADINGS_SHOWN
    ]


def shared_names(documents: Sequence[Document]) -> list[tuple[str, list[Document]]]:
    """Return the product names that several documents share, the most frequent first."""
    holders: dict[str, list[Document]] = {}
    for document in documents:
        for name in dict.fromkeys(document.names):
            holders.setdefault(name, []).append(document)
    several = [(name, among) for name, among in holders.items() if len(among) > 1]
    return sorted(several, key=lambda pair: (-len(pair[1]), pair[0]))[:NAMES_SHOWN]


@document_pages.post("/documents/reread")
def reread() -> Response:
    """Queue reading again of documents that older readers read and the caller may change."""
    older = application().documents.read_before(rights.readable())
    changeable = {document.collection_id for document in older if rights.may_change(document)}
    for collection_id in sorted(changeable):
        application().jobs.submit_reread(collection_id, owner=current_owner())
    return _back()


@document_pages.post("/documents/sample")
def take_sample() -> PageResult:
    """Add the sample documents to the library."""
    for file in collect([package_folder("library")]):
        rights.add_document(file.name, file.read(LARGEST_SAMPLE), _place())
    return _back()


@document_pages.post("/documents/text")
def paste() -> PageResult:
    """Add a typed or pasted text as a document."""
    title, text = " ".join(words("title").split()), words("content").strip()
    try:
        if not title or not text:
            raise UserError("A pasted text needs a title and some words.")
        if len(text) > LONGEST_PASTED:
            raise TooLarge(
                f"The text has {len(text):,} characters; at most {LONGEST_PASTED:,} are taken. "
                "Save it as a file and add that."
            )
        name = library_name(f"pasted/{UNFIT_FOR_NAMES.sub('-', title)}.md")
        if application().documents.find_named([name], rights.readable().only([_place()])):
            raise Conflict(
                f"There is a pasted text called {title} already. Give this one another title, or "
                "delete that one first."
            )
    except UserError as error:
        page = _library_page(paste_error=str(error), title=title, content=text)
        return page, error.http_status
    headed = text if text.startswith("# ") else f"# {title}\n\n{text}"
    rights.add_document(name, headed.encode(), _place())
    return _back()


def _back() -> Response:
    here = url_for("document_pages.documents", collection=request.args.get("collection"))
    return redirect(here, 303)


def _place() -> str:
    """Return the collection that the page shows, to which documents are added."""
    wanted = request.args.get("collection", "")
    return rights.chosen([wanted])[0] if wanted else DEFAULT_COLLECTION


def _library_page(*, refused: Sequence[RefusedFile] = (), error: str = "", **pasted: str) -> str:
    shown = _place() if request.args.get("collection") else ""
    documents, readable = application().documents, rights.readable().only([shown] if shown else [])
    wanted = search_of_request()
    offset = index_of_request("offset", request.args) or 0
    order = request.args.get("order", "")
    order = order if order in ORDERS else "name"
    filters, wrong = _filters_of_address()
    page = documents.page(
        readable,
        limit=DOCUMENTS_ON_A_PAGE,
        offset=offset,
        words=wanted,
        order=order,
        filters=filters,
    )
    collections = rights.readable_collections()
    jobs = [job for job in application().jobs.jobs() if rights.may_see(job)]
    running, failed = jobs_to_show(
        jobs, documents.find_named({job.subject for job in jobs}, readable)
    )
    # What an older reader read and the caller may have read again.
    changeable = list(filter(rights.may_change, documents.read_before(readable)))
    size = size_in_words(sum(document.size_bytes for document in changeable))
    was = "was" if len(changeable) == 1 else "were"
    older = f"{counted(len(changeable), 'document')} ({size}) {was}" if changeable else ""
    managed = shown or DEFAULT_COLLECTION
    right = rights.rights().get(managed, Right.NONE)
    return show_page(
        "documents.html",
        documents=page.documents,
        matching_count=page.matching,
        total=page.total,
        query=wanted,
        results=passages_for(wanted, [shown] if shown else [], filters),
        filters=dict(filters.items()),
        # Counting reads all documents, so it is done only for the filters.
        facets=documents.facets(readable) if filters or wrong or "filter" in request.args else None,
        offset=offset,
        order=order,
        orders=list(ORDERS),
        step=DOCUMENTS_ON_A_PAGE,
        running=running,
        batch=batch_of(jobs) if len(running) > BARS_SHOWN else [],
        failed=failed,
        refused=refused,
        error=error or wrong,
        max_file_mb=application().settings.documents.max_file_mb,
        longest_pasted=LONGEST_PASTED,
        pasted=pasted,
        collections=[] if rights.is_one() and len(collections) == 1 else collections,
        collection_id=shown,
        older=older,
        may_create=rights.may_create(),
        may_change_some=any(map(rights.may_change, page.documents)),
        manages=managed if right >= Right.MANAGE else "",
    )


def _filters_of_address() -> tuple[Filters, str]:
    """Return the filters of the address, and their error; then none filters."""
    stated = {name: storable(request.args.get(name, ""))[:300].strip() for name in FILTERED_BY}
    filters = Filters(**stated)
    try:
        check(filters)
    except UserError as error:
        return Filters(), str(error)
    return filters, ""


def batch_of(jobs: list[Job]) -> list[Job]:
    """Return the newest jobs (newest first) that ran at the same time as the ones before them."""
    batch: list[Job] = []
    for job in jobs:
        is_ended = job.state not in (JobState.QUEUED, JobState.RUNNING)
        if batch and is_ended and job.updated_at < batch[-1].created_at:
            break  # it ended before the next one was queued
        batch.append(job)
    return batch


def jobs_to_show(jobs: list[Job], of_their_names: list[Document]) -> tuple[list[Job], list[Job]]:
    """Return the running jobs, and the recent failures whose file was not read since."""
    running = [job for job in jobs if job.state in (JobState.QUEUED, JobState.RUNNING)]
    ingested = {document.name: document.ingested_at for document in of_their_names}
    since = datetime.now(UTC) - FAILURES_STAY
    failed: dict[str, Job] = {}
    settled: set[str] = {job.subject for job in running}
    for job in jobs:  # newest first
        if job.state is JobState.DONE:
            settled.add(job.subject)
        came_in = ingested.get(job.subject)
        is_news = job.updated_at > since and (came_in is None or came_in < job.created_at)
        if job.state is JobState.FAILED and is_news and job.subject not in settled:
            failed.setdefault(job.subject, job)
    return running, list(failed.values())


@document_pages.get("/documents/<document_id>")
def document(document_id: str) -> str:
    """Show a document as it was read, in parts."""
    item = rights.document(document_id)
    app, readable = application(), rights.readable()
    chunks = app.documents.chunks([storable(request.args.get("passage", ""))[:100]], readable)
    of_it = (chunk for chunk in chunks.values() if chunk.document_id == item.id)
    passage = next(of_it, None)
    position = index_of_request("at", request.args)
    if position is None:
        position = passage.section_index if passage is not None else 0
    try:
        near = app.documents.neighbourhood(item.id, position, readable, reach=SECTIONS_AROUND)
    except NotFound:
        if position != 0:
            raise
        near = []  # a document without text
    sections = [{"section": section, "html": section_html(section, passage)} for section in near]
    return show_page(
        "document.html",
        document=item,
        read=in_words(item.report),
        left_out=left_out(item.report),
        sections=sections,
        position=position,
        tables=app.tables.tables(readable, document_id=item.id),
        has_original=has_original(item),
        is_pdf=item.media_type == PDF,
    )


@document_pages.get("/documents/<document_id>/original")
def original(document_id: str) -> Response:
    """Send the original file: shown in the browser if it is a PDF, or as a download."""
    item = rights.document(document_id)
    return original_of(item, is_shown="download" not in request.args)


@document_pages.get("/documents/<document_id>/delete")
def confirm_delete(document_id: str) -> str:
    """Ask before a document is deleted."""
    item = rights.changeable(document_id)
    return show_page("delete_documents.html", documents=[item], place="")


# ── Words for people ─────────────────────────────────────────────────────────────────────────


@document_pages.app_template_filter("kind")
def kind(document: Document) -> str:
    """Return the kind of a document in one word."""
    return kind_in_words(document.media_type)


PASSAGES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class PassageMatches:
    """The best passages first, with the matching words marked; or why there are none."""

    passages: tuple[tuple[Chunk, Markup], ...] = ()
    problem: str = ""


def passages_for(wanted: str, shown: Sequence[str], filters: Filters) -> PassageMatches:
    """Return the passages nearest to some words, or a problem if the index cannot be reached."""
    if not wanted:
        return PassageMatches()
    try:
        hits = application().retriever.search(
            wanted, rights.readable().only(shown), limit=PASSAGES_SHOWN, filters=filters
        )
    except ModelError as error:
        return PassageMatches(problem=str(error))
    passages = []
    for hit in hits:
        marks = Marks(NOWHERE, places_of(hit.chunk.text, [wanted], fewest=1))
        passages.append((hit.chunk, text_html(hit.chunk.text, marks, is_target=False)))
    return PassageMatches(tuple(passages))


def section_html(section: Section, passage: Chunk | None) -> Markup:
    """Return a section as HTML, with a passage in it marked."""
    if passage is None or passage.section_index != section.index:
        return text_html(section.text)
    return text_html(section.text, Marks(Span(passage.start, passage.end)))


collection_pages = Blueprint("collection_pages", __name__)
NEW_MEMBER = "new_member"


@collection_pages.post("/collections")
def create() -> Response:
    """Create a collection of the caller's, and show it."""
    made = rights.create_collection(words("name"))
    return redirect(url_for("collection_pages.collection", collection_id=made.id), 303)


@collection_pages.get("/collections/<collection_id>")
def collection(collection_id: str) -> str:
    """Show a collection's name and rights."""
    return _collection_page(checked_id(collection_id, "collection"))


@collection_pages.post("/collections/<collection_id>")
def change(collection_id: str) -> PageResult:
    """Store the form of a collection."""
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
        return _collection_page(collection_id, error=str(error)), error.http_status
    return redirect(url_for("collection_pages.collection", collection_id=collection_id), 303)


@collection_pages.post("/collections/<collection_id>/delete")
def delete(collection_id: str) -> Response:
    """Delete an empty collection."""
    rights.delete_collection(checked_id(collection_id, "collection"))
    return redirect(url_for("document_pages.documents"), 303)


@collection_pages.post("/documents/chosen")
def change_chosen() -> PageResult:
    """Move the ticked documents, or delete them after asking: all of them, or none."""
    place, act = words("place"), words("act")
    ticked = dict.fromkeys(request.form.getlist("document"))
    documents = [rights.changeable(document_id) for document_id in ticked]
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


def _collection_page(collection_id: str, *, error: str = "") -> str:
    collection = rights.require_collection(collection_id)
    is_managed = collection.right >= Right.MANAGE
    return show_page(
        "collection.html",
        collection=collection,
        is_managed=is_managed,
        is_one=rights.is_one(),
        members=application().collections.members(collection.id) if is_managed else {},
        rights=[right.name.lower() for right in Right if right > Right.NONE],
        error=error,
    )
