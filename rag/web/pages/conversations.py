"""The conversation's pages; they work as plain forms, and stream where scripts run."""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from rag.errors import NotFound, RagError, UserError
from rag.records import Document, Failed, Role, Section, ShownPassage
from rag.records.documents import ColumnType, Table
from rag.render.evidence import Evidence, evidence_of, lead_of, marked_in, parts_of, passage_html
from rag.render.statements import CitedStatement, shown_statement, statements_in
from rag.render.tables import form_of, shown_result
from rag.seams import SessionHandle, SessionTranscript, SourceRegister
from rag.sessions.branches import edited
from rag.tables.plan import plan_from
from rag.web.access.owner import current_owner
from rag.web.access.rights import choices, linked_source, open_session, pickable_models, readable
from rag.web.api.documents import PDF, has_original
from rag.web.pages.layout import (
    PageResult,
    led_when_due,
    show_page,
    wanted_collections,
    wanted_index,
    wanted_model,
    words,
)
from rag.web.pages.transcript import WantedRange, footnotes, transcript_of
from rag.web.request_context import application, default_config
from rag.web.turns import RunningTurn, turns

HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # of a document, from its beginning
MOST_TRIED = 9  # questions
SHORTEST_SECTION = 60
LONGEST_QUESTION = 70
FEWEST_WORDS = 6  # fewer seldom say what they are about: "Which one do I have?"
LONGEST_TOPIC = 50
SHORTEST_TOPIC = 200  # characters of its text
TOPICS_TRIED = 2  # of a document
SURE = 0.3  # relevance of what answers
KEPT = 64  # for so many sets of documents
_tried: OrderedDict[tuple[str, ...], list[str]] = OrderedDict()


def starters(documents: Sequence[Document]) -> list[str]:
    """Up to three questions about different documents, each tried; the same for the same ones."""
    ids = tuple(document.id for document in documents)
    questions = _tried.pop(ids, None)
    if questions is None:
        questions = _answerable(ids)
    _tried[ids] = questions
    while len(_tried) > KEPT:
        _tried.popitem(last=False)
    return questions


def topics(documents: Sequence[Document], count: int) -> list[str]:
    """Up to so many sections, by document and heading, that the search surely finds by these.

    One of each document. A heading that several documents have says nothing of any.
    """
    titles = {document.id: document.title for document in documents}
    read = _beginnings(list(titles))
    common = Counter(h for sections in read.values() for h in {*map(_heading, sections)})
    good: list[str] = []
    tried = 0
    for key, sections in read.items():
        topical = [s for s in sections if _is_topic(s, titles[key]) and common[_heading(s)] == 1]
        for section in topical[:TOPICS_TRIED]:
            if len(good) >= count or tried >= MOST_TRIED:
                return good
            topic, tried = f"{titles[key]}: {_heading(section)}", tried + 1
            if _is_answered(topic, key, section.index):
                good.append(topic)
                break
    return good


def table_offer(table: Table) -> str:
    """A question about a table that was tried and is computed from it; "" where none is."""
    figures = [c.name for c in table.columns if c.type is ColumnType.NUMBER]
    labels = [c.name for c in table.columns if c.type is ColumnType.TEXT and c.distinct > 1]
    for figure, label in product(figures[:2], labels[:2]):
        question = f"Which {label} has the highest {figure}?"
        with suppress(RagError):
            if application().table_answers.ask(question, readable()).table_id == table.id:
                return question
    return ""


def _beginnings(document_ids: list[str]) -> Mapping[str, Sequence[Section]]:
    return application().documents.stretches(document_ids, readable(), 0, SECTIONS_READ)


def _answerable(ids: Sequence[str]) -> list[str]:
    read = _beginnings(list(ids))
    questions = [(key, question) for key in ids for question in _questions(read.get(key, ()))[:1]]
    good: list[str] = []
    for key, question in questions[:MOST_TRIED]:
        if len(good) < HOW_MANY and _is_answered(question, key):
            good.append(question)
    return good


def _is_answered(question: str, document_id: str, section: int | None = None) -> bool:
    """Whether the search surely finds the document that asks it, and the section if one is said."""
    try:
        hits = application().retriever.search(question, readable(), limit=1)
    except RagError:
        return False
    return any(
        hit.chunk.document_id == document_id
        and hit.relevance >= SURE
        and section in (None, hit.chunk.section_index)
        for hit in hits
    )


def _heading(section: Section) -> str:
    return " ".join(section.heading_path[-1].split()) if section.heading_path else ""


def _is_topic(section: Section, title: str) -> bool:
    heading = _heading(section)
    is_more_than_title = heading.casefold() not in title.casefold()
    is_short = len(heading.split()) >= 2 and len(heading) <= LONGEST_TOPIC
    return is_more_than_title and is_short and len(section.text) >= SHORTEST_TOPIC


def _questions(sections: Sequence[Section]) -> list[str]:
    """Headings that are questions, above a text that may answer them."""
    headings = {_heading(s): None for s in sections if len(s.text) >= SHORTEST_SECTION}
    return [
        heading
        for heading in headings
        if heading.endswith("?")
        and len(heading.split()) >= FEWEST_WORDS
        and len(heading) <= LONGEST_QUESTION
    ]


pages = Blueprint("pages", __name__)
for part_of_a_card in (lead_of, parts_of, passage_html):
    pages.add_app_template_filter(part_of_a_card)


@pages.app_template_filter()
def gist(passage: ShownPassage) -> str:
    """What a folded card shows of a passage; what writes cards is loaded with the first one."""
    from rag.chat.markdown import gist as gist_of

    return gist_of(passage)


SOURCES_ON_A_PAGE = 100
NEWEST_LISTED = 12
ROWS_BEHIND = 50
FORM_SECONDS = 3.0  # that a form waits for its answer


@pages.get("/")
def new() -> str:
    """A new conversation."""
    return _new_page(question=request.args.get("ask", ""))


@pages.post("/ask")
def ask_first() -> PageResult:
    """The first question of a conversation."""
    question, chosen = words("content"), wanted_collections() or ()
    model = wanted_model()

    def begin() -> Response:
        session = application().store.create(
            current_owner(), config=default_config(), collections=chosen
        )
        if model:
            session.pick_model(model)
        try:
            return _answered(session, question)
        except UserError:
            session.delete()  # nothing was said in it
            raise

    try:
        return led_when_due(begin)
    except UserError as error:
        return _new_page(question=question, error=str(error)), error.http_status


def _new_page(*, question: str, error: str = "") -> str:
    documents, permitted = application().documents, readable()
    return show_page(
        "new.html",
        starters=starters(documents.spread(permitted, limit=DOCUMENTS_TRIED)),
        document_count=documents.page(permitted, limit=0).total,
        newest=documents.newest(permitted, limit=NEWEST_LISTED),
        choice=choices(),
        models=pickable_models(),
        question=question,
        error=error,
    )


@pages.get("/sessions/<session_id>")
def conversation(session_id: str) -> str:
    """A stretch of a conversation, the newest turns if no other is named."""
    return _conversation_page(open_session(session_id), question=request.args.get("ask", ""))


@pages.post("/sessions/<session_id>/ask")
def ask(session_id: str) -> PageResult:
    """The next question."""
    session = open_session(session_id)
    question, chosen = words("content"), wanted_collections()
    place, model = wanted_index("edit", request.form), wanted_model()

    def begin() -> Response:
        branch = session if place is None else edited(session, place)
        if chosen is not None:
            branch.choose(chosen)
        if model is not None:
            branch.pick_model(model)
        try:
            return _answered(branch, question)
        except UserError:
            if branch.id != session.id:
                branch.delete()  # nothing was asked in it
            raise

    try:
        return led_when_due(begin)
    except UserError as error:
        page = _conversation_page(session, question=question, error=str(error), editing=place)
        return page, error.http_status


@pages.post("/sessions/<session_id>/regenerate")
def regenerate(session_id: str) -> Response:
    """Write the last answer anew."""
    session = open_session(session_id)
    index = wanted_index("index", request.form)
    if index is None:
        raise UserError("Say which answer is to be written again: its index is missing.")

    def begin() -> Response:
        assistant = application().assistant
        turn = turns().start(session, lambda note: assistant.regenerate(session, index, note=note))
        turn.end(timeout=FORM_SECONDS)
        return _redirect_to_message(session.id, index)

    return led_when_due(begin)


def _answered(session: SessionHandle, question: str) -> Response:
    """Ask; the page shows what there is by then, a model's failure too, and loads itself again.

    Raises:
        UserError: the question cannot be asked; nothing was stored.
    """
    assistant = application().assistant
    turn: RunningTurn = turns().start(
        session, lambda note: assistant.ask(session, question, note=note)
    )
    end = turn.end(timeout=FORM_SECONDS)
    if isinstance(end, Failed) and not isinstance(end.error, RagError):
        raise end.error
    return _redirect_to_message(session.id, (turn.index or 1) - 1)


def _redirect_to_message(session_id: str, index: int) -> Response:
    url = url_for("pages.conversation", session_id=session_id, _anchor=f"m{index}")
    return redirect(url, 303)


def _conversation_page(
    session: SessionHandle, *, question: str = "", error: str = "", editing: int | None = None
) -> str:
    """`editing` is the index of the question that another one is to take the place of."""
    if editing is None and (editing := wanted_index("edit", request.args)) is not None:
        question = question or session.message(editing).content
    place = WantedRange(*(wanted_index(name, request.args) for name in ("before", "at", "after")))
    url = url_for("pages.conversation", session_id=session.id)
    transcript = transcript_of(session, url, place)
    return show_page(
        "conversation.html",
        transcript=transcript,
        question=question,
        error=error,
        editing=editing,
        choice=choices(transcript.session.collections),
        models=pickable_models(),
    )


@pages.get("/sessions/<session_id>/sources")
def sources(session_id: str) -> str:
    """Every source that the conversation has numbered, a page at a time."""
    session = open_session(session_id)
    shown = session.read()
    first = max(1, wanted_index("from", request.args) or 1)
    numbers = range(first, min(first + SOURCES_ON_A_PAGE, shown.source_count + 1))
    return show_page(
        "sources.html",
        session=shown,
        sources=session.sources(numbers),
        first=first,
        step=SOURCES_ON_A_PAGE,
        count=shown.source_count,
    )


@pages.get("/sessions/<session_id>/sources/<int:number>")
def source(session_id: str, number: int) -> str:
    """The evidence behind one number."""
    session = open_session(session_id)
    sources = session.sources([number])
    if not sources:
        raise NotFound(f"This conversation has no source [{number}].")
    stated = _cited_for(session, number)
    evidence = evidence_of(sources[0], stated, application().documents, readable())
    return show_page(
        "source.html",
        session=session.read(),
        evidence=evidence,
        statements=[
            shown_statement(statement, evidence.quotes)
            for statement in stated
            if statement.citation
        ],
        footnote=footnotes(sources),
        original=_original_link(evidence, stated),
        table_id=_table_of(evidence),
        computed=_computed(session, number),
    )


@pages.get("/links/<token>")
def linked(token: str) -> str:
    """One source for whoever holds a signed link; nothing else leads on from there."""
    return render_template("linked_source.html", source=linked_source(token))


def _original_link(evidence: Evidence, stated: Sequence[CitedStatement]) -> dict[str, Any] | None:
    """The file behind a passage, if it was kept, and what is marked on its page."""
    document = evidence.document
    if document is None or not has_original(document):
        return None
    marked = evidence.quotes or ((evidence.source.text,) if not stated else ())
    page = evidence.page if document.media_type == PDF else None
    return {"document": document, "page": page, "marked": marked}


def _table_of(evidence: Evidence) -> str:
    """The id of the table that has the rows, where there can be no doubt; else ""."""
    if evidence.document is None or not evidence.rows:
        return ""
    tables = application().tables.tables(readable(), document_id=evidence.document.id)
    named = [table for table in tables if f"sheet {table.name}," in evidence.source.locator]
    (only,) = named if len(named) == 1 else tables if len(tables) == 1 else (None,)
    return only.id if only is not None else ""


def _computed(session: SourceRegister, number: int) -> dict[str, Any] | None:
    """The result behind a number, with the first rows that it is made of while they are there."""
    shown = shown_result(
        session,
        number,
        order=request.args.get("order", ""),
        chart=request.args.get("chart", ""),
    )
    if shown is None:
        return None
    answers, result = application().table_answers, shown.result
    table = answers.table_of(result, readable())
    if table is None:
        return {"shown": shown}
    values = {"shown": shown, "can_run": True}
    if not result.is_sql:
        values["form"] = form_of(plan_from(result.plan), table)
    if table.id == result.table_id:
        used = answers.library.numbered_rows(table, result.used[:ROWS_BEHIND])
        values |= {"table": table, "rows": used.rows}
    return values


def _cited_for(session: SessionTranscript, number: int) -> Sequence[CitedStatement]:
    """What the answer `m` cites the source for: at the marker from `c` on, or wherever it does.

    For a card this is what it marks.
    """
    index = wanted_index("m", request.args)
    for message in session.messages(index, index + 1) if index is not None else ():
        if message.answer is not None and message.answer.card is not None:
            return [
                CitedStatement(statement) for statement in marked_in(message.answer.card, number)
            ]
        if message.role == Role.ASSISTANT:
            return statements_in(message, number, wanted_index("c", request.args))
    return ()
