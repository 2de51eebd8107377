"""The JSON API of tables: their schemas and rows, and questions over them."""

from typing import Any

from flask_openapi3.models.tag import Tag
from pydantic import BaseModel, Field, model_validator

from rag.errors import UserError
from rag.records import Table
from rag.tables.plan import plan_from
from rag.tables.running.result import TableResult
from rag.web.access.rights import readable
from rag.web.api.requests import Body, Question
from rag.web.api.responses import as_json
from rag.web.current import application, checked_id, open_session
from rag.web.described import DescribedApi
from rag.web.problems import REFUSALS

api = DescribedApi(
    "tables",
    __name__,
    url_prefix="/api/v1",
    abp_tags=[Tag(name="tables", description="Tables of the documents, and questions over rows.")],
    abp_responses=REFUSALS,
)


class ColumnModel(BaseModel):
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


class TableModel(BaseModel):
    """A table of a document."""

    id: str
    name: str
    document_id: str
    document: str
    locator: str
    row_count: int
    columns: list[ColumnModel]

    @classmethod
    def of(cls, table: Table) -> "TableModel":
        columns = [ColumnModel.model_validate(c, from_attributes=True) for c in table.columns]
        return cls(
            id=table.id,
            name=table.name,
            document_id=table.document_id,
            document=table.document_name,
            locator=table.locator,
            row_count=table.row_count,
            columns=columns,
        )


class TablesModel(BaseModel):
    """Tables, by document."""

    tables: list[TableModel]
    total: int


class RowsModel(BaseModel):
    """A table with some of its rows as they were written; each begins with its number."""

    table: TableModel
    rows: list[list[Any]]
    offset: int
    has_more: bool


class ResultModel(BaseModel):
    """What a question or a plan gave, and what was assumed; `source` is its number in a session."""

    table: str
    columns: list[str]
    rows: list[list[Any]]
    has_more: bool
    plan: dict[str, Any]
    words: str
    sql: str
    rows_used: list[int]
    notes: list[str]
    source: int | None = None

    @classmethod
    def of(cls, result: TableResult, source: int | None) -> "ResultModel":
        return cls(
            table=result.table_id,
            columns=[column.name for column in result.columns],
            rows=[list(row) for row in result.rows],
            has_more=result.has_more,
            plan=result.plan,
            words=result.words,
            sql=result.sql,
            rows_used=list(result.used),
            notes=list(result.notes),
            source=source,
        )


class TablePath(BaseModel):
    """Names a table."""

    table_id: str


class RowsQuery(BaseModel):
    """A stretch of rows; `q` keeps those that hold all its words."""

    offset: int = Field(0, ge=0, le=2**31)
    limit: int = Field(100, ge=1, le=1000)
    q: str = Field("", max_length=200)


class TablesQuery(BaseModel):
    """A page of the tables."""

    offset: int = Field(0, ge=0, le=2**31)
    limit: int = Field(100, ge=1, le=1000)


class QueryBody(Body):
    """A question in words, or a plan."""

    question: Question | None = None
    plan: dict[str, Any] | None = None
    session_id: str | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _one_of_both(self) -> "QueryBody":
        if (self.question is None) == (self.plan is None):
            raise ValueError("send a question or a plan, one of both")
        return self


@api.get("/tables", responses={"200": TablesModel})
def list_tables(query: TablesQuery) -> dict[str, Any]:
    """The tables of the library with their columns."""
    tables = application().tables.tables(readable())
    page = tables[query.offset : query.offset + query.limit]
    return as_json(TablesModel(tables=[TableModel.of(each) for each in page], total=len(tables)))


@api.get("/tables/<table_id>", responses={"200": RowsModel})
def read_table(path: TablePath, query: RowsQuery) -> dict[str, Any]:
    """One table, and a stretch of its rows."""
    table = application().tables.table(checked_id(path.table_id, "table"), readable())
    found = application().asked.library.rows(table, query.offset, query.limit + 1, query.q)
    return as_json(
        RowsModel(
            table=TableModel.of(table),
            rows=[list(row) for row in found.rows[: query.limit]],
            offset=query.offset,
            has_more=len(found.rows) > query.limit,
        )
    )


@api.post("/tables/query", responses={"200": ResultModel})
def query_tables(body: QueryBody) -> dict[str, Any]:
    """Ask the tables; with a session, in its context, and the result becomes its source."""
    asked = application().asked
    session = open_session(body.session_id) if body.session_id else None
    within = readable() if session is None else session.within()
    if body.plan is not None:
        plan = plan_from(body.plan)
        if not plan.table:
            raise UserError("The plan names no table. `GET /api/v1/tables` lists their ids.")
        result = asked.library.run(application().tables.table(plan.table, within), plan)
    else:
        past = asked.past(session) if session is not None else ()
        result = asked.ask(body.question or "", within, past)
    source = asked.keep(session, result).number if session is not None else None
    return as_json(ResultModel.of(result, source))
