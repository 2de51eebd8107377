"""What programs may send: one pydantic model per request, with its limits."""

from collections import Counter
from typing import Annotated, Any, Literal

from flask_openapi3.models.file import FileStorage
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)

from rag.db import storable
from rag.records import Filters
from rag.tables.plan import LONGEST_QUESTION

MAX_INDEX = 2**31 - 1  # of messages and offsets: what the database's integers hold
MAX_QUESTION_CHARS = 200_000
MAX_IMPORTED_MESSAGES = 20_000


def storable_text(value: Any) -> Any:
    """Text without what no database can hold; anything else is left to the type's own check."""
    return storable(value) if isinstance(value, str) else value


def as_text(value: Any) -> Any:
    """An id of digits in a form arrives as a number."""
    return str(value) if isinstance(value, int) else value


def not_blank(text: str) -> str:
    """Refuse what holds no visible character."""
    if not text.strip():
        raise ValueError("it is empty; please write some words.")
    return text


class FirstWrong(FailFast):
    """Of a long list only the first entry that is wrong is told: of thousands it takes long."""

    __hash__ = object.__hash__


# Lengths are the text's own, and told so: bounds stand before what is done to it.
STORABLE, NOT_BLANK = BeforeValidator(storable_text), AfterValidator(not_blank)
Words = Annotated[str, STORABLE]
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS), STORABLE, NOT_BLANK]
TableQuestion = Annotated[
    str, Field(min_length=1, max_length=LONGEST_QUESTION), STORABLE, NOT_BLANK
]
SearchWords = Annotated[str, Field(min_length=1, max_length=10_000), STORABLE, NOT_BLANK]
Title = Annotated[str, Field(max_length=300), STORABLE]
ShortId = Annotated[str, Field(max_length=40), STORABLE]
ShortText = Annotated[str, Field(max_length=300)]  # a name or an id
Chosen = Annotated[list[ShortText], Field(max_length=1000)]
MessageIndex = Annotated[int, Field(ge=0, le=MAX_INDEX)]


class RequestBody(BaseModel):
    """Part of a request: unknown fields are refused, and the known ones listed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        unknown = sorted(str(name) for name in values if name not in cls.model_fields)
        if unknown:
            fields = ", ".join(cls.model_fields) or "none"
            raise ValueError(f"{', '.join(unknown)} is not known here. Known: {fields}.")
        return values


class Body(RequestBody):
    """A JSON body: types are taken literally, "5" is not 5."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# ── Paths and queries ────────────────────────────────────────────────────────────────────────


class SessionPath(BaseModel):
    """Names a session of the caller."""

    session_id: str


class MessagePath(SessionPath):
    """Names one message of a session, counted from 0."""

    index: MessageIndex


class SourcePath(SessionPath):
    """Names one source of a session, counted from 1."""

    n: Annotated[int, Field(ge=1, le=MAX_INDEX)]


class DocumentPath(BaseModel):
    """Names a document."""

    document_id: str


class JobPath(BaseModel):
    """Names a job."""

    job_id: str


class PageQuery(RequestBody):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    offset: MessageIndex = 0


class LiveQuery(BaseModel):
    """How an answer that is being written is told."""

    html: bool = False  # for pages: events `html` (what stays of it, what follows), not `delta`


class FacetsQuery(RequestBody):
    """Of which collection, by id or name; of all that you may read without one."""

    collection: ShortText = ""


class DocumentsQuery(PageQuery):
    """Which documents; `collection` names one by id or name."""

    collection: ShortText = ""


class RangeQuery(RequestBody):
    """A half-open range of messages, counted from 0; without `end` at most 1000 of them."""

    start: MessageIndex = 0
    end: MessageIndex | None = None

    @model_validator(mode="after")
    def _ordered(self) -> "RangeQuery":
        if self.end is not None and self.end < self.start:
            raise ValueError(f"end ({self.end}) must not be before start ({self.start}).")
        return self


class MessageSearchQuery(RequestBody):
    """What to look for in messages, ignoring case."""

    q: Annotated[str, Field(min_length=1, max_length=1000), STORABLE, NOT_BLANK]
    limit: Annotated[int, Field(ge=1, le=200)] = 20


class ExportQuery(RequestBody):
    """The form of an export; `test` is a scripted conversation for `groundnote regress`."""

    format: Literal["markdown", "json", "test"] = "markdown"


# ── Bodies ───────────────────────────────────────────────────────────────────────────────────


class UploadForm(RequestBody):
    """Files to ingest."""

    file: Annotated[list[FileStorage], Field(min_length=1, max_length=1000)]
    collection: Annotated[ShortText, BeforeValidator(as_text)] = ""

    @model_validator(mode="before")
    @classmethod
    def _refuse_none(cls, values: Any) -> Any:
        is_known = isinstance(values, dict) and values.keys() <= cls.model_fields.keys()
        if is_known and not isinstance(values.get("file"), list):
            raise ValueError(
                "no file came. Send multipart/form-data with a part `file` for each, and its name."
            )
        return values


class MoveBody(Body):
    """Where a document is to be, by id or name."""

    collection: Annotated[ShortText, Field(min_length=1)]


class FiltersBody(Body):
    """Which documents are searched; what is left out filters nothing. Case does not matter."""

    collection: Annotated[ShortText, Field(description="Its id or name.")] | None = None
    title: Annotated[ShortText, Field(description="Words of the title or the file's name.")] = ""
    author: ShortText = ""
    folder: Annotated[ShortText, Field(description="With the folders in it.")] = ""
    type: Annotated[ShortText, Field(description='As GET /facets calls it, such as "PDF".')] = ""
    tag: ShortText = ""
    after: Annotated[ShortText, Field(description="The first day, 2025-03-31.")] = ""
    before: Annotated[ShortText, Field(description="The day behind the last.")] = ""

    @property
    def filters(self) -> Filters:
        return Filters(**self.model_dump(exclude={"collection"}))


class SearchBody(Body):
    """A search in the documents; with a session, the query is resolved in its context first."""

    query: SearchWords
    limit: Annotated[int, Field(ge=1, le=100)] = 8
    session_id: str | None = None
    collections: Chosen | None = None
    filters: FiltersBody = FiltersBody()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The collections that are searched, whichever way they are named."""
        single = (self.filters.collection,) if self.filters.collection else ()
        return (*(self.collections or ()), *single)


class ContextConfigBody(Body):
    """How a session keeps its context small; what is left out stays as it is."""

    enabled: bool | None = None
    max_tokens: Annotated[int, Field(ge=500, le=10_000_000)] | None = None
    compression_strategy: Literal["smart", "sliding_window"] | None = None
    recent_message_count: Annotated[int, Field(ge=0, le=10_000)] | None = None
    share: Annotated[
        list[Annotated[str, Field(max_length=64)]] | None,
        Field(max_length=20, description="Other sessions of the caller that are read as well."),
    ] = None


class SessionBody(Body):
    """A session's title and configuration."""

    title: Title | None = None
    context_config: ContextConfigBody | None = None
    collections: Chosen | None = None
    model: Annotated[
        str | None,
        Field(max_length=500, description="One that people may pick; empty: the usual one."),
    ] = None
    knowledge_base_id: Annotated[
        str | None, Field(max_length=200, description="One collection, by its id or name.")
    ] = None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The collections that are asked, whichever way they are named."""
        single = (self.knowledge_base_id,) if self.knowledge_base_id else ()
        return (*(self.collections or ()), *single)


class BranchBody(Body):
    """The question that another one is to take the place of."""

    index: MessageIndex


class QuestionBody(Body):
    """A question; `wait_for_judge` seconds at most are waited for a judge's verdicts."""

    content: Question
    wait_for_judge: Annotated[float, Field(ge=0, le=600)] = 0


class LineBody(Body):
    """A line of the summary as it stands there, and what is to stand in its place."""

    line: Annotated[str, Field(min_length=1, max_length=4000)]
    text: Annotated[str, Field(max_length=1000, description="Empty: the line goes.")] = ""


class RangeBody(Body):
    """A half-open range of messages, counted from 0."""

    start: MessageIndex
    end: MessageIndex

    @model_validator(mode="after")
    def _not_empty(self) -> "RangeBody":
        if self.end <= self.start:
            raise ValueError(f"end ({self.end}) must be after start ({self.start}).")
        return self


class Brought(BaseModel):
    """Part of an export, which may come back as it is: other fields are left aside."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class ImportedMessageBody(Brought):
    """One message of a transcript from elsewhere."""

    role: Annotated[str, Field(min_length=1, max_length=40), STORABLE]
    content: Words | None  # null where an assistant only called tools


class ImportedSourceBody(Brought):
    """One source of a transcript from elsewhere, with the number under which it is cited."""

    n: Annotated[int, Field(ge=1, le=1_000_000)]
    text: Words
    document: Words = ""
    title: Words = ""
    locator: Words = ""
    passage: Words = ""
    heading_path: Annotated[list[Words], Field(max_length=1000), FirstWrong()] = []
    chunk_id: ShortId = ""
    document_id: ShortId = ""


class ImportBody(Body):
    """A transcript from elsewhere, or from our own JSON export."""

    messages: Annotated[
        list[ImportedMessageBody],
        Field(min_length=1, max_length=MAX_IMPORTED_MESSAGES),
        FirstWrong(),
    ]
    sources: Annotated[list[ImportedSourceBody], Field(max_length=10_000), FirstWrong()] = []
    session: Annotated[Any, Field(description="Of an export; left aside.")] = None
    summaries: Annotated[Any, Field(description="Of an export; left aside.")] = None

    @model_validator(mode="after")
    def _numbered_once(self) -> "ImportBody":
        for field in ("n", "chunk_id"):
            counted = Counter(getattr(source, field) for source in self.sources)
            twice = [value for value, count in counted.items() if count > 1 and value]
            if twice:
                raise ValueError(f"two sources have the {field} {twice[0]!r}; it names one source.")
        return self
