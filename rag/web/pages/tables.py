"""The pages of tables: their rows, results behind numbers, downloads."""

from collections.abc import Callable
from dataclasses import replace

from flask import Blueprint, Response, redirect, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from rag.errors import NotFound
from rag.render.tables import chart_of, plan_from_form, standalone
from rag.tables.plan import plan_from
from rag.tables.result import TableResult, as_csv, as_xlsx, result_from
from rag.web.access.rights import open_session, readable
from rag.web.pages.layout import index_of_request, search_of_request, show_page
from rag.web.request_context import application, checked_id

table_pages = Blueprint("table_pages", __name__)
ROWS_ON_A_PAGE = 100
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LONGEST_SEARCH = 200


def as_svg(result: TableResult) -> str:
    """Return the chart that the query's `chart` names. Raises NotFound if there is none."""
    chart = chart_of(result, request.args.get("chart", "bar"))
    if chart is None:
        raise NotFound("These rows make no chart: two names with a figure each are needed.")
    return standalone(chart)


DOWNLOADS: dict[str, tuple[Callable[[TableResult], str | bytes], str]] = {
    "csv": (as_csv, "text/csv; charset=utf-8"),
    "xlsx": (as_xlsx, XLSX),
    "svg": (as_svg, "image/svg+xml"),
}


@table_pages.get("/tables/<table_id>")
def table(table_id: str) -> str:
    """Show a table as it is in its document, page by page, with rows marked."""
    library = application().table_answers.library
    table_item = application().tables.table(checked_id(table_id, "table"), readable())
    offset = index_of_request("offset", request.args) or 0
    wanted = search_of_request(LONGEST_SEARCH)
    session_id, number = request.args.get("session", ""), index_of_request("n", request.args)
    row, position = index_of_request("row", request.args), index_of_request("at", request.args)
    marked = _marked(session_id, number, row) if session_id and number else frozenset()
    if position is not None:
        marked |= {position}
    if marked and (position, row) != (None, None) and "offset" not in request.args:
        offset = library.place_of(table_item, min(marked)) // ROWS_ON_A_PAGE * ROWS_ON_A_PAGE
    answered = library.rows(table_item, offset, ROWS_ON_A_PAGE + 1, wanted)
    return show_page(
        "table.html",
        table=table_item,
        rows=answered.rows[:ROWS_ON_A_PAGE],
        has_more=len(answered.rows) > ROWS_ON_A_PAGE,
        offset=offset,
        step=ROWS_ON_A_PAGE,
        query=wanted,
        marked=marked,
        session_id=session_id,
        number=number,
        row=row,
        position=position,
    )


def _marked(session_id: str, number: int, row: int | None) -> frozenset[int]:
    """Return the rows behind a result of the caller's own session, or behind one row of it."""
    stored = open_session(session_id).result(number)
    if not stored:
        return frozenset()
    if row is None:
        return frozenset(stored["used"])
    result = result_from(stored)
    if row >= len(result.rows):
        raise NotFound(f"[{number}] has {len(result.rows)} rows; there is no row {row + 1}.")
    return frozenset(application().table_answers.library.rows_behind(result, row, readable()))


@table_pages.get("/sessions/<session_id>/sources/<int:number>.<ending>")
def download(session_id: str, number: int, ending: str) -> Response:
    """Send a result as CSV or XLSX, or its chart as SVG."""
    stored = open_session(session_id).result(number)
    if stored is None or ending not in DOWNLOADS:
        raise NotFound(f"[{number}] is no table of this conversation.")
    make, kind = DOWNLOADS[ending]
    disposition = f'attachment; filename="result-{number}.{ending}"'
    headers = {"Content-Disposition": disposition}
    return Response(make(result_from(stored)), mimetype=kind, headers=headers)


@table_pages.post("/sessions/<session_id>/sources/<int:number>/plan")
def change_plan(session_id: str, number: int) -> AnyResponse:
    """Compute again on the current table, with the same plan or one changed by the form.

    The result is a new source; the old one stays unchanged.
    """
    session = open_session(session_id)
    stored = session.result(number)
    if stored is None:
        raise NotFound(f"[{number}] is no table of this conversation.")
    answers, result = application().table_answers, result_from(stored)
    table = answers.table_of(result, readable())
    if table is None:
        raise NotFound("The table is gone: its document was deleted, or holds it no longer.")
    if result.is_sql:
        fresh = answers.library.run_sql(table, result.sql, question=result.question)
    else:
        plan = replace(plan_from(result.plan), table=table.id)
        changed = plan_from_form(request.form, plan, table) if "change" in request.form else plan
        fresh = answers.library.run(table, changed, question=result.question)
    fresh_number = answers.keep(session, fresh).number
    url = url_for("pages.source", session_id=session_id, number=fresh_number, _anchor="result")
    return redirect(url, 303)
