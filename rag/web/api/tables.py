"""The JSON API of tables: their schemas and rows, and questions over them."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

from rag.errors import UserError
from rag.runtime.budget import planning
from rag.tables.plan import LONGEST_QUESTION, plan_from
from rag.web.access.rights import open_session, readable
from rag.web.api.schemas import NOT_BLANK, STORABLE, Body, Described, DescribedApi, PageQuery
from rag.web.request_context import application, checked_id

api = DescribedApi("tables", "Tables of the documents, and questions over rows.")
TableQuestion = Annotated[
    str, Field(min_length=1, max_length=LONGEST_QUESTION), STORABLE, NOT_BLANK
]


class ColumnModel(Described):
    """A column: what its values are, and how many."""

    name: str
    type: str
    unit: str
    distinct: int
    blanks: int
    low: str
    high: str
    examples: list[str]
    note: str


class TableModel(Described):
    """A table of a document."""

    id: str
    name: str
    document_id: str
    document: str = Field(validation_alias="document_name")
    locator: str
    row_count: int
    columns: list[ColumnModel]


class TablesModel(Described):
    """Tables, by document."""

    tables: list[TableModel]
    total: int


class RowsModel(Described):
    """A table with some of its rows as they were written; each begins with its number."""

    table: TableModel
    rows: list[list[Any]]
    offset: int
    has_more: bool


class ResultModel(Described):
    """What a question or a plan gave, and what was assumed; `source` is its number in a session."""

    table: str = Field(validation_alias="table_id")
    columns: list[str]
    rows: list[list[Any]]
    has_more: bool
    plan: dict[str, Any]
    words: str
    sql: str
    rows_used: list[int] = Field(validation_alias="used")
    notes: list[str]
    source: int | None = None


class TablePath(BaseModel):
    """Names a table."""

    table_id: str


class RowsQuery(PageQuery):
    """A stretch of rows; `q` keeps those that hold all its words."""

    q: str = Field("", max_length=200)


class QueryBody(Body):
    """A question in words, or a plan."""

    question: TableQuestion | None = None
    plan: dict[str, Any] | None = None
    session_id: str | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _one_of_both(self) -> "QueryBody":
        if (self.question is None) == (self.plan is None):
            raise ValueError("send a question or a plan, one of both")
        return self


@api.get("/tables", responses={"200": TablesModel})
def list_tables(query: PageQuery) -> TablesModel:
    """The tables of the library with their columns."""
    tables = application().tables.tables(readable())
    page = tables[query.offset : query.offset + query.limit]
    return TablesModel.of(tables=page, total=len(tables))


@api.get("/tables/<table_id>", responses={"200": RowsModel})
def read_table(path: TablePath, query: RowsQuery) -> RowsModel:
    """One table, and a stretch of its rows."""
    table = application().tables.table(checked_id(path.table_id, "table"), readable())
    query_result = application().table_answers.library.rows(
        table, query.offset, query.limit + 1, query.q
    )
    has_more = len(query_result.rows) > query.limit
    rows = query_result.rows[: query.limit]
    return RowsModel.of(table=table, rows=rows, offset=query.offset, has_more=has_more)


@api.post("/tables/query", responses={"200": ResultModel})
def query_tables(body: QueryBody) -> ResultModel:
    """Ask the tables; with a session, in its context, and the result becomes its source."""
    answers = application().table_answers
    session = open_session(body.session_id) if body.session_id else None
    permitted = readable() if session is None else session.readable()
    if body.plan is not None:
        plan = plan_from(body.plan)
        if not plan.table:
            raise UserError("The plan names no table. `GET /api/v1/tables` lists their ids.")
        result = answers.library.run(application().tables.table(plan.table, permitted), plan)
    else:
        last = answers.last_result(session) if session is not None else None
        with planning():
            result = answers.ask(body.question or "", permitted, last)
    source = answers.keep(session, result).number if session is not None else None
    columns = [column.name for column in result.columns]
    return ResultModel.of(result, columns=columns, source=source)
