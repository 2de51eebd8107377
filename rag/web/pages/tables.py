"""Pages of tables: their rows, results behind numbers, downloads."""

from flask import Blueprint, Response, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from rag.database import storable
from rag.errors import NotFound
from rag.tables.running.result import as_csv, as_xlsx, result_from
from rag.web.access.rights import readable
from rag.web.current import application, checked_id, open_session
from rag.web.pages.forms import wanted_index
from rag.web.pages.show import show_page

table_pages = Blueprint("table_pages", __name__)
ROWS_ON_A_PAGE = 100
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LONGEST_SEARCH = 200


@table_pages.get("/tables/<table_id>")
def table(table_id: str) -> str:
    """A table as it stands in its document, a page at a time, with rows marked."""
    library = application().asked.library
    found = application().tables.table(checked_id(table_id, "table"), readable())
    offset = wanted_index("offset", request.args) or 0
    wanted = storable(request.args.get("q", "")).strip()[:LONGEST_SEARCH]
    session_id, number = request.args.get("session", ""), wanted_index("n", request.args)
    marked = _marked(session_id, number) if session_id and number else frozenset()
    answered = library.rows(found, offset, ROWS_ON_A_PAGE + 1, wanted)
    return show_page(
        "table.html",
        table=found,
        rows=answered.rows[:ROWS_ON_A_PAGE],
        has_more=len(answered.rows) > ROWS_ON_A_PAGE,
        offset=offset,
        step=ROWS_ON_A_PAGE,
        wanted=wanted,
        marked=marked,
        session_id=session_id,
        number=number,
    )


def _marked(session_id: str, number: int) -> frozenset[int]:
    """The rows that a result of the caller's own session is made of."""
    stored = open_session(session_id).result(number)
    return frozenset(stored["used"]) if stored else frozenset()


@table_pages.get("/sessions/<session_id>/sources/<int:number>.<ending>")
def download(session_id: str, number: int, ending: str) -> Response:
    """A result as CSV or XLSX."""
    stored = open_session(session_id).result(number)
    if stored is None or ending not in ("csv", "xlsx"):
        raise NotFound(f"[{number}] is no table of this conversation.")
    result = result_from(stored)
    body: str | bytes = as_csv(result) if ending == "csv" else as_xlsx(result)
    kind = "text/csv; charset=utf-8" if ending == "csv" else XLSX
    name = f"result-{number}.{ending}"
    return Response(
        body, mimetype=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


@table_pages.get("/sessions/<session_id>/sources/<int:number>/again")
def again(session_id: str, number: int) -> AnyResponse:
    """The question of a result, ready to be asked once more."""
    stored = open_session(session_id).result(number)
    if stored is None:
        raise NotFound(f"[{number}] is no table of this conversation.")
    url = url_for(
        "pages.conversation", session_id=session_id, ask=stored["words"], _anchor="question"
    )
    return redirect(url, 303)
