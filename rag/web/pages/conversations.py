"""The pages of a session; they work as plain forms, and stream where scripts run."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from rag.citations.markers import cited_numbers
from rag.errors import NotFound, RagError, UserError
from rag.records import (
    Document,
    Failed,
    Message,
    MessageStatus,
    NoticeKind,
    QuotedPassage,
    Role,
    Section,
    Session,
    Source,
    Summary,
)
from rag.records.documents import ColumnType, Table
from rag.render.answers import Register, answer_html, plain_html
from rag.render.evidence import Evidence, evidence_of, lead_of, marked_in, parts_of, passage_html
from rag.render.gate import outgoing
from rag.render.statements import CitedStatement, compare_statement, statements_in, with_warnings
from rag.render.tables import ResultView, form_of, render_result, result_of, without_rows
from rag.seams import (
    LIBRARY,
    TABLES,
    SessionHandle,
    SessionMemory,
    SessionTranscript,
    SourceRegister,
    Versions,
)
from rag.sessions.transcript import edited, versions_of
from rag.tables.plan import plan_from
from rag.web.access.owner import current_owner
from rag.web.access.rights import choices, linked_source, open_session, readable
from rag.web.api.documents import PDF, has_original
from rag.web.pages.layout import (
    PageResult,
    collections_of_request,
    index_of_request,
    led_when_due,
    model_of_form,
    show_page,
    words,
)
from rag.web.request_context import application, default_config
from rag.web.turns import turns

TURNS_SHOWN = 20
MESSAGES_SHOWN = 2 * TURNS_SHOWN
SOURCES_LISTED = 30


@dataclass(frozen=True)
class MessageView:
    """One message, ready to be shown."""

    message: Message
    register: Register
    html: Markup
    sources: tuple[Source, ...]  # the cited ones, by number
    searched_for: str  # the stand-alone question, where it differs from the one asked
    query: str  # the question as it was searched for
    is_last: bool
    result: ResultView | None = None  # the table that was computed

    @property
    def copied(self) -> str:
        """The Markdown of the copy button: the text, and what is wrong with it."""
        return with_warnings(self.message)

    @property
    def footnotes(self) -> str:
        """The footnotes of the copy button."""
        return footnotes(self.sources)

    @property
    def set_aside(self) -> Markup:
        """A model's text that is shown below, because the passages found come first."""
        aside = self.message.answer.set_aside if self.message.answer else None
        return answer_html(aside.text, replace(self.register, answer=None)) if aside else Markup()

    @property
    def is_answer(self) -> bool:
        return self.message.role == Role.ASSISTANT

    @property
    def is_declined(self) -> bool:
        """Whether the answer says that the documents do not answer.

        Neither asking which table is meant does so, nor a card of the closest passages, which
        claims nothing.
        """
        answer = self.message.answer
        if answer is None or answer.card is not None:
            return False
        return answer.declined and answer.model not in (LIBRARY, TABLES)

    @property
    def is_without_model(self) -> bool:
        """Whether a model should have written the answer, but failed."""
        notices = self.message.answer.notices if self.message.answer else ()
        return any(notice.kind is NoticeKind.WITHOUT_MODEL for notice in notices)

    @property
    def can_be_written_again(self) -> bool:
        is_ended = self.message.status is not MessageStatus.PENDING
        return self.is_answer and self.is_last and is_ended


@dataclass(frozen=True, slots=True)
class ShareKept:
    """How much of the summarised turns is still in the summaries."""

    end: int  # the first message that is not summarised
    turns: int  # summarised turns
    citations: int  # in the summaries
    stated: int  # of these citations, with their statement
    citations_required: int
    names: int  # in the summaries
    names_required: int
    brought_back: int  # numbers and names that a question brings back
    lost: int  # neither in the summaries nor brought back: above 0 is a fault
    is_ranged: bool  # whether some numbers stand in ranges, to save tokens


@dataclass(frozen=True, slots=True)
class TranscriptView:
    """Messages `[start, end)` of a session."""

    session: Session
    messages: tuple[MessageView, ...]
    start: int
    end: int
    coverage: ShareKept | None  # None while nothing is summarised
    cited: tuple[Source, ...]  # in the messages that are shown, newest first
    read: tuple[Source, ...]  # the newest that were shown to the writer, but are not cited here
    versions: Mapping[int, Versions]  # of edited questions, by index

    @property
    def is_newest(self) -> bool:
        return self.end >= self.session.message_count


def transcript_of(
    handle: SessionHandle,
    session_url: str,
    *,
    before: int | None,
    middle: int | None,
    after: int | None,
) -> TranscriptView:
    """Return the newest turns, those before or after a message, or those around one."""
    session = handle.read()
    count = session.message_count
    end = count if before is None else min(before, count)
    if middle is not None:
        end = min(count, middle // 2 * 2 + MESSAGES_SHOWN // 2)
    start = max(0, end - MESSAGES_SHOWN)
    start += start % 2  # a question stays with its answer
    if after is not None and after < count:
        start, end = after, min(count, after + MESSAGES_SHOWN)
    messages = handle.messages(start, end)
    newest = session.source_count
    listed = handle.sources(range(max(1, newest - SOURCES_LISTED + 1), newest + 1))
    shown = view_messages(handle, messages, session_url, last=count - 1)
    cited = {source.number: source for message in shown for source in message.sources}
    return TranscriptView(
        session=session,
        messages=shown,
        start=start,
        end=end,
        coverage=share_kept(handle.summaries()),
        cited=tuple(cited[number] for number in sorted(cited, reverse=True)),
        read=tuple(source for source in reversed(listed) if source.number not in cited),
        versions={versions.index: versions for versions in versions_of(session, handle.family())},
    )


def whole_transcript(handle: SessionMemory, session_url: str) -> Iterator[MessageView]:
    """Yield all messages, read in stretches."""
    count = handle.read().message_count
    for start in range(0, count, MESSAGES_SHOWN):
        stretch = handle.messages(start, min(count, start + MESSAGES_SHOWN))
        messages = [outgoing(message) for message in stretch]
        register, questions = _read(handle, messages, session_url)
        for message in messages:
            yield _view_message(message, register, questions.get(message.turn, ""), is_last=False)


def register_for(handle: SourceRegister, session_url: str, texts: Sequence[str]) -> Register:
    """Return a register with the sources that the texts cite."""
    numbers = sorted({number for text in texts for number in cited_numbers(text)})
    sources = handle.sources(numbers) if numbers else []
    return Register(session_url, {source.number: source for source in sources})


def view_messages(
    handle: SessionMemory, messages: Sequence[Message], session_url: str, *, last: int
) -> tuple[MessageView, ...]:
    """Return the messages with everything that the page shows of them."""
    messages = [outgoing(message) for message in messages]
    register, questions = _read(handle, messages, session_url)
    views = []
    for message in messages:
        question, is_last = questions.get(message.turn, ""), message.index == last
        view = _view_message(message, register, question, is_last=is_last)
        result = result_of(handle, message)
        if result is not None:  # its table is shown below the text, instead of in it
            text = replace(message, content=without_rows(message.content))
            view = replace(view, html=_html(text, view.register), result=result)
        views.append(view)
    return tuple(views)


def _read(
    handle: SourceRegister, messages: Sequence[Message], session_url: str
) -> tuple[Register, dict[int, str]]:
    """Return the sources that the messages cite, and the question of each turn."""
    register = register_for(handle, session_url, [message.content for message in messages])
    questions = {message.turn: message.content for message in messages if message.role == Role.USER}
    return register, questions


def _view_message(
    message: Message, register: Register, question: str, *, is_last: bool
) -> MessageView:
    is_answer, of_answer = message.role == Role.ASSISTANT, replace(register, answer=message.index)
    numbers = sorted(cited_numbers(message.content)) if is_answer else []
    resolved = message.resolved_query or ""
    is_other = message.is_followup and resolved.strip() != question.strip()
    return MessageView(
        message=message,
        register=of_answer,
        html=_html(message, of_answer) if is_answer else plain_html(message.content, register),
        sources=tuple(register.sources[n] for n in numbers if n in register.sources),
        searched_for=resolved if is_other else "",
        query=resolved or question,
        is_last=is_last,
    )


def _html(message: Message, register: Register) -> Markup:
    answer = message.answer
    if answer is None:
        return answer_html(message.content, register)
    return answer_html(
        message.content,
        register,
        citations=answer.citations,
        unsourced=answer.unsourced,
        figures=answer.figures,
    )


def footnotes(sources: Sequence[Source]) -> str:
    """Return lines that say where a text comes from, wherever it is pasted."""
    places = (f", {source.locator}" if source.locator else "" for source in sources)
    return "\n".join(
        f"{cited.marker} {cited.document_title}{place} ({cited.document_name})"
        for cited, place in zip(sources, places, strict=True)
    )


def share_kept(summaries: Sequence[Summary]) -> ShareKept | None:
    """Return how much of the summarised turns the summaries keep; None without summaries."""
    if not summaries:
        return None
    reports = [summary.report for summary in summaries]
    return ShareKept(
        end=max(summary.end for summary in summaries),
        turns=sum(summary.end - summary.start + 1 for summary in summaries) // 2,
        citations=sum(report.citations_in_summary for report in reports),
        stated=sum(len(report.stated_citations) for report in reports),
        citations_required=sum(report.citations_required for report in reports),
        names=sum(report.names_kept for report in reports),
        names_required=sum(report.names_required for report in reports),
        brought_back=sum(
            report.citations_brought_back + report.names_brought_back for report in reports
        ),
        lost=sum(report.citations_lost + report.names_lost for report in reports),
        is_ranged=any(report.ranged_citations for report in reports),
    )


HOW_MANY = 3
DOCUMENTS_TRIED = 24
SECTIONS_READ = 12  # from the beginning of a document
MOST_TRIED = 9  # questions
SHORTEST_SECTION = 60
LONGEST_QUESTION = 70
FEWEST_WORDS = 6  # shorter questions seldom name their subject: "Which one do I have?"
LONGEST_TOPIC = 50
SHORTEST_TOPIC = 200  # characters of its text
TOPICS_TRIED = 2  # of a document
SURE = 0.3  # least relevance of a passage that answers
MOST_EXAMPLES = 64  # sets of documents whose questions are cached
_tried: OrderedDict[tuple[str, ...], list[str]] = OrderedDict()


def starters(documents: Sequence[Document]) -> list[str]:
    """Return up to three questions about different documents, each tried.

    The same documents give the same questions.
    """
    ids = tuple(document.id for document in documents)
    questions = _tried.pop(ids, None)
    if questions is None:
        questions = []
        sections = _beginnings(list(ids))
        candidates = [(key, _first_question(sections.get(key, ()))) for key in ids]
        for key, question in [pair for pair in candidates if pair[1]][:MOST_TRIED]:
            if len(questions) < HOW_MANY and _is_answered(question, key):
                questions.append(question)
    _tried[ids] = questions
    while len(_tried) > MOST_EXAMPLES:
        _tried.popitem(last=False)
    return questions


def topics(documents: Sequence[Document], count: int) -> list[str]:
    """Return up to `count` "document: heading" texts by which the search finds the section.

    At most one of each document. A heading that several documents have identifies none.
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
    """Return a tried question that is computed from the table; "" if there is none."""
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


def _is_answered(question: str, document_id: str, section: int | None = None) -> bool:
    """Return whether the search surely finds the document, and the section if one is given."""
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


def _first_question(sections: Sequence[Section]) -> str:
    """Return the first heading that is a question above a text that may answer it; or ""."""
    for section in sections:
        heading = _heading(section)
        is_question = heading.endswith("?") and len(heading.split()) >= FEWEST_WORDS
        is_short = len(heading) <= LONGEST_QUESTION
        if is_question and is_short and len(section.text) >= SHORTEST_SECTION:
            return heading
    return ""


pages = Blueprint("pages", __name__)
for part_of_a_card in (lead_of, parts_of, passage_html):
    pages.add_app_template_filter(part_of_a_card)


@pages.app_template_filter()
def gist(passage: QuotedPassage) -> str:
    """What a folded card shows of a passage; what writes cards is loaded at the first use."""
    from rag.chat.card import gist as gist_of

    return gist_of(passage)


SOURCES_ON_A_PAGE = 100
NEWEST_LISTED = 12
ROWS_BEHIND = 50
FORM_SECONDS = 3.0  # for which a form waits for its answer


@pages.get("/")
def new() -> str:
    """Show the page of a new session."""
    return _new_page(question=request.args.get("ask", ""))


@pages.post("/ask")
def ask_first() -> PageResult:
    """Ask the first question of a session."""
    question, chosen = words("content"), collections_of_request() or ()
    model = model_of_form()

    def begin() -> Response:
        session = application().store.create(
            current_owner(), config=default_config(), collections=chosen
        )
        if model:
            session.pick_model(model)
        try:
            return _answered(session, question)
        except UserError:
            session.delete()  # it holds no message
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
        models=application().pickable_models,
        question=question,
        error=error,
    )


@pages.get("/sessions/<session_id>")
def conversation(session_id: str) -> str:
    """Show a part of a session, by default the newest turns."""
    return _conversation_page(open_session(session_id), question=request.args.get("ask", ""))


@pages.post("/sessions/<session_id>/ask")
def ask(session_id: str) -> PageResult:
    """Ask the next question."""
    session = open_session(session_id)
    question, chosen = words("content"), collections_of_request()
    place, model = index_of_request("edit", request.form), model_of_form()

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
                branch.delete()  # the question was not stored
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
    index = index_of_request("index", request.form)
    if index is None:
        raise UserError("Say which answer is to be written again: its index is missing.")

    def begin() -> Response:
        assistant = application().assistant
        turn = turns().start(session, lambda note: assistant.regenerate(session, index, note=note))
        turn.end(timeout=FORM_SECONDS)
        return _redirect_to_message(session.id, index)

    return led_when_due(begin)


def _answered(session: SessionHandle, question: str) -> Response:
    """Ask; redirect to the answer, which the page loads again while it is being written.

    A model's failure is shown there too.

    Raises:
        UserError: the question cannot be asked; nothing was stored.
    """
    assistant = application().assistant
    turn = turns().start(session, lambda note: assistant.ask(session, question, note=note))
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
    """`editing` is the index of the question that another one will replace."""
    if editing is None and (editing := index_of_request("edit", request.args)) is not None:
        question = question or session.message(editing).content
    before, middle, after = (index_of_request(n, request.args) for n in ("before", "at", "after"))
    url = url_for("pages.conversation", session_id=session.id)
    transcript = transcript_of(session, url, before=before, middle=middle, after=after)
    return show_page(
        "conversation.html",
        transcript=transcript,
        question=question,
        error=error,
        editing=editing,
        choice=choices(transcript.session.collections),
        models=application().pickable_models,
    )


@pages.get("/sessions/<session_id>/sources")
def sources(session_id: str) -> str:
    """Show all sources of a session, page by page."""
    session = open_session(session_id)
    shown = session.read()
    first = max(1, index_of_request("from", request.args) or 1)
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
    """Show the evidence behind one number."""
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
            compare_statement(statement, evidence.quotes)
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
    """Show one source to anyone with a signed link; the page has no further links."""
    return render_template("linked_source.html", source=linked_source(token))


def _original_link(evidence: Evidence, stated: Sequence[CitedStatement]) -> dict[str, Any] | None:
    """Return the original file of a passage, if it was kept, and what to mark on its page."""
    document = evidence.document
    if document is None or not has_original(document):
        return None
    marked = evidence.quotes or ((evidence.source.text,) if not stated else ())
    page = evidence.page if document.media_type == PDF else None
    return {"document": document, "page": page, "marked": marked}


def _table_of(evidence: Evidence) -> str:
    """Return the id of the table that has the rows, if it is certain; else ""."""
    if evidence.document is None or not evidence.rows:
        return ""
    tables = application().tables.tables(readable(), document_id=evidence.document.id)
    named = [table for table in tables if f"sheet {table.name}," in evidence.source.locator]
    (only,) = named if len(named) == 1 else tables if len(tables) == 1 else (None,)
    return only.id if only is not None else ""


def _computed(session: SourceRegister, number: int) -> dict[str, Any] | None:
    """Return the result behind a number, with the first of its rows while the table exists."""
    view = render_result(
        session,
        number,
        order=request.args.get("order", ""),
        chart=request.args.get("chart", ""),
    )
    if view is None:
        return None
    answers, result = application().table_answers, view.result
    table = answers.table_of(result, readable())
    if table is None:
        return {"view": view}
    values = {"view": view, "can_run": True}
    if not result.is_sql:
        values["form"] = form_of(plan_from(result.plan), table)
    if table.id == result.table_id:
        used = answers.library.numbered_rows(table, result.used[:ROWS_BEHIND])
        values |= {"table": table, "rows": used.rows}
    return values


def _cited_for(session: SessionTranscript, number: int) -> Sequence[CitedStatement]:
    """Return the statements for which answer `m` cites the source: at marker `c`, or at all.

    For a card: what it marks in the passage.
    """
    index = index_of_request("m", request.args)
    for message in session.messages(index, index + 1) if index is not None else ():
        if message.answer is not None and message.answer.card is not None:
            return [
                CitedStatement(statement) for statement in marked_in(message.answer.card, number)
            ]
        if message.role == Role.ASSISTANT:
            return statements_in(message, number, index_of_request("c", request.args))
    return ()
