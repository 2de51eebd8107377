"""The pages around a session: list, search, print, settings, summaries, delete; a long sample."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from flask import Blueprint, redirect, render_template, request, stream_template, url_for
from werkzeug.wrappers import Response

from rag.citations.markers import cited_numbers
from rag.errors import UserError
from rag.memory.history import OPENS
from rag.records import Source, Summary, SummaryReport
from rag.render.answers import Register, answer_html
from rag.seams import (
    FoundMessage,
    OwnedSession,
    SessionMemory,
    SessionTranscript,
)
from rag.tokens import count_tokens
from rag.web.access.owner import current_owner
from rag.web.access.rights import open_session
from rag.web.pages.conversations import MessageView, register_for, share_kept, whole_transcript
from rag.web.pages.layout import (
    PageResult,
    config_of_form,
    index_of_request,
    search_of_request,
    show_page,
    title_of_form,
    turns_of_form,
)
from rag.web.request_context import application
from rag.wiring.components import package_folder

session_pages = Blueprint("session_pages", __name__)
SESSIONS_ON_A_PAGE = 50
MOST_RESULTS = 50
PIECES_AT_ONCE = 500  # of a template that is sent while it renders
SNIPPET_CHARS = 80  # on each side of a match


@session_pages.get("/sessions")
def sessions() -> str:
    """Show all sessions of the caller, page by page."""
    offset = index_of_request("offset", request.args) or 0
    one_more = application().store.sessions(
        current_owner(), limit=SESSIONS_ON_A_PAGE + 1, offset=offset, one_version=True
    )
    return show_page(
        "sessions.html",
        sessions=one_more[:SESSIONS_ON_A_PAGE],
        offset=offset,
        step=SESSIONS_ON_A_PAGE,
        has_more=len(one_more) > SESSIONS_ON_A_PAGE,
    )


# ── Search ───────────────────────────────────────────────────────────────────────────────────


@session_pages.get("/search")
def search() -> str:
    """Search in all sessions of the caller."""
    query = search_of_request()
    results = application().store.search(current_owner(), query, limit=MOST_RESULTS)
    return show_page("search.html", query=query, results=results, session=None)


@session_pages.get("/sessions/<session_id>/search")
def search_session(session_id: str) -> str:
    """Search in one session."""
    session, query = open_session(session_id), search_of_request()
    results = session.search(query, limit=MOST_RESULTS)
    return show_page("search.html", query=query, results=results, session=session.read())


@session_pages.app_template_filter("around_match")
def around_match(match: FoundMessage) -> tuple[str, str, str]:
    """Split the snippet at whole words: before the match, the match, behind it."""
    before, after = match.snippet[: match.match_start], match.snippet[match.match_end :]
    if len(before) >= SNIPPET_CHARS and " " in before:
        before = "… " + before.partition(" ")[2]
    if len(after) >= SNIPPET_CHARS and " " in after:
        after = after.rpartition(" ")[0] + " …"
    return before, match.snippet[match.match_start : match.match_end], after


# ── Print ────────────────────────────────────────────────────────────────────────────────────


@session_pages.get("/sessions/<session_id>/print")
def printed(session_id: str) -> Response:
    """Send the whole session and its sources as one page for printing, while it renders."""
    session = open_session(session_id)
    url = url_for("pages.conversation", session_id=session.id)
    cited: dict[int, Source] = {}

    def messages() -> Iterator[MessageView]:
        for message in whole_transcript(session, url):
            cited.update((source.number, source) for source in message.sources)
            yield message

    pieces = stream_template("print.html", session=session.read(), messages=messages(), cited=cited)
    return Response(_in_larger(pieces), mimetype="text/html")


def _in_larger(pieces: Iterator[str]) -> Iterator[str]:
    """Join the pieces of a template, each of which would be a write of its own."""
    while piece := "".join(islice(pieces, PIECES_AT_ONCE)):
        yield piece


# ── Settings ─────────────────────────────────────────────────────────────────────────────────


@session_pages.get("/sessions/<session_id>/settings")
def settings(session_id: str) -> str:
    """Show the form to rename, configure, export and delete a session."""
    return _settings_page(open_session(session_id))


@session_pages.post("/sessions/<session_id>/settings")
def change_settings(session_id: str) -> PageResult:
    """Store the form of a session's settings."""
    session = open_session(session_id)
    try:
        title, config = title_of_form(), config_of_form()
    except UserError as error:
        return _settings_page(session, error=str(error)), error.http_status
    session.rename(title)
    session.configure(config)
    return redirect(url_for("pages.conversation", session_id=session.id), 303)


def _settings_page(session: OwnedSession, *, error: str = "") -> str:
    return show_page("settings.html", session=session.read(), error=error)


@session_pages.get("/sessions/<session_id>/delete")
def confirm_delete(session_id: str) -> str:
    """Ask before a session is deleted."""
    session = open_session(session_id)
    return show_page("delete_session.html", session=session.read(), versions=len(session.family()))


@session_pages.post("/sessions/<session_id>/delete")
def delete(session_id: str) -> Response:
    """Delete a session with its messages, sources and summaries, or all of its branches."""
    session = open_session(session_id)
    others = session.family() if "all" in request.form else ()
    for other in others:
        if other.id != session.id:
            open_session(other.id).delete()
    session.delete()
    return redirect(url_for("session_pages.sessions"), 303)


# ── Summaries ────────────────────────────────────────────────────────────────────────────────


@session_pages.get("/sessions/<session_id>/summaries")
def summaries(session_id: str) -> str:
    """Show the summaries in the context, and those made on request."""
    return _summaries_page(open_session(session_id))


@session_pages.post("/sessions/<session_id>/summaries")
def summarize(session_id: str) -> PageResult:
    """Summarise some turns; the summary is stored beside them."""
    session = open_session(session_id)
    try:
        start, end = turns_of_form(session.read())
        application().assistant.summarize(session, start, end)
    except UserError as error:
        return _summaries_page(session, error=str(error)), error.http_status
    return _to_summaries(session)


@session_pages.post("/sessions/<session_id>/compact")
def compact(session_id: str) -> Response:
    """Summarise old turns now."""
    session = open_session(session_id)
    application().assistant.compact(session)
    return _to_summaries(session)


@session_pages.post("/sessions/<session_id>/forget")
def forget(session_id: str) -> Response:
    """Delete the summaries; the turns stay."""
    session = open_session(session_id)
    session.forget_summaries()
    return _to_summaries(session)


@session_pages.post("/sessions/<session_id>/summaries/correct")
def correct(session_id: str) -> PageResult:
    """Replace or remove a line of the summary."""
    session = open_session(session_id)
    text = "" if "remove" in request.form else request.form.get("text", "")
    try:
        application().assistant.correct_summary(session, request.form.get("line", ""), text)
    except UserError as error:
        return _summaries_page(session, error=str(error)), error.http_status
    return _to_summaries(session)


def _to_summaries(session: OwnedSession) -> Response:
    return redirect(url_for("session_pages.summaries", session_id=session.id), 303)


def _summaries_page(session: SessionMemory, *, error: str = "") -> str:
    active, requested = session.summaries(), session.requested_summaries()
    read = session.read()
    return show_page(
        "summaries.html",
        session=read,
        turns=(read.message_count + 1) // 2,
        coverage=share_kept(active),
        active=_summary_rows(session, active),
        requested=_summary_rows(session, requested),
        error=error,
    )


def _summary_rows(session: SessionMemory, summaries: list[Summary]) -> list[dict[str, object]]:
    url = url_for("pages.conversation", session_id=session.id)
    register = register_for(session, url, [summary.text for summary in summaries])
    return [
        {"summary": summary, "lines": _lines(summary, session, register)} for summary in summaries
    ]


SECTIONS = {"about": "About the user", "answered": "Answered", "open": "Open"}
MARKS = {
    "written": "one sentence of the conversation carries it",
    "quoted": "word for word from the conversation",
    "put_back": "word for word: the model had left it out",
    "unchecked": "in the model’s words; it has no number and contradicts nothing",
}


def _lines(
    summary: Summary, session: SessionTranscript, register: Register
) -> list[dict[str, object]]:
    """Return each line with its mark and its turns, then the lists, as the model is sent them."""
    lines: list[dict[str, object]] = []
    section = ""
    url = partial(url_for, "pages.conversation", session_id=session.id)
    for line in summary.lines:
        messages = line.messages
        checked = session.message(messages[0]).checked(line.text) if messages else ()
        turns = [(message // 2 + 1, url(at=message, _anchor=f"m{message}")) for message in messages]
        lines.append(
            {
                "title": SECTIONS[line.section] if line.section != section else "",
                "html": answer_html(line.text, register, citations=checked),
                "text": line.text,
                "mark": line.mark.value.replace("_", " "),
                "meaning": MARKS[line.mark],
                "turns": turns,
            }
        )
        section = line.section
    shown = {f"- {line.text}" for line in summary.lines}
    others = [row for row in summary.text.splitlines() if row.strip(" -<>")]
    visible = [other for other in others if other not in shown and not other.endswith(":")]
    listed = visible if not summary.lines else [row for row in visible if cited_numbers(row)]
    lines += [{"html": answer_html(line, register)} for line in listed if OPENS not in line]
    return lines


long_talk = Blueprint("long_talk", __name__)
WINDOWS = (1_000, 2_000, 4_000)  # tokens of a history to choose from
RULES = "Answer from the sources alone, each statement with its number [n]."


@dataclass(frozen=True, slots=True)
class SentTurn:
    """The messages that one question was sent with."""

    messages: tuple[dict[str, Any], ...]  # in the protocol's form, the question last
    tokens: tuple[int, ...]  # of each
    report: SummaryReport | None  # None while everything fits

    @property
    def total(self) -> int:
        return sum(self.tokens)

    @property
    def verbatim_from(self) -> int:
        """The number of messages between the first and the question."""
        return len(self.messages) - 2


@lru_cache(maxsize=1)
def read_talk() -> dict[str, Any]:
    """Return the packaged sample session: its note, products, sources and turns."""
    talk: dict[str, Any] = json.loads(
        (package_folder("long-talk") / "talk.json").read_text(encoding="utf-8")
    )
    return talk


@lru_cache(maxsize=len(WINDOWS))
def replay(window: int) -> tuple[SentTurn, ...]:
    """Return every question of the sample with its messages, in order, by one trimmer."""
    from rag.memory.trimmer import HistoryTrimmer

    talk = read_talk()
    trimmer = HistoryTrimmer(
        max_tokens=window, recent_message_count=4, products=talk["products"], summarise=False
    )
    history: list[dict[str, Any]] = [{"role": "system", "content": RULES}]
    sent = []
    for turn in talk["turns"]:
        history.append({"role": "user", "content": turn["question"]})
        trimmed = trimmer.trim(history)
        messages = tuple(trimmed.messages)
        tokens = tuple(count_tokens(message["content"]) + 4 for message in messages)
        sent.append(SentTurn(messages, tokens, trimmed.report))
        history.append({"role": "assistant", "content": turn["answer"]})
    return tuple(sent)


@long_talk.get("/long-talk")
def show() -> str:
    """Show one turn of the sample; `turn` counts from 1, `window` is one of `WINDOWS`."""
    talk = read_talk()
    window = index_of_request("window", request.args) or WINDOWS[1]
    if window not in WINDOWS:
        choices = ", ".join(map(str, WINDOWS))
        raise UserError(f"window is {window}; one of {choices} is expected.")
    turns = replay(window)
    falls = [index for index, turn in enumerate(turns, start=1) if turn.report is not None]
    wanted = index_of_request("turn", request.args)
    turn = min(max(1, falls[0] if wanted is None and falls else wanted or 1), len(turns))
    return render_template(
        "long_talk.html",
        talk=talk,
        turn=turn,
        turns=turns,
        sent=turns[turn - 1],
        first_fall=falls[0] if falls else None,
        window=window,
        windows=WINDOWS,
    )
