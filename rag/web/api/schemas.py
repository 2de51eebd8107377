"""The models of requests and responses of the APIs, and the APIs' description."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Self

from flask import Response
from flask_openapi3.blueprint import APIBlueprint
from flask_openapi3.models.file import FileStorage
from flask_openapi3.models.tag import Tag
from flask_openapi3.openapi import OpenAPI
from flask_openapi3.types import ResponseDict
from flask_openapi3.utils import parse_parameters
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)
from pydantic_core import to_jsonable_python

from rag.citations.markers import find_markers
from rag.db import storable
from rag.records import (
    Answer,
    Citation,
    ContextConfig,
    FigureStatus,
    Filters,
    Finished,
    Judging,
    Mention,
    Message,
    Notice,
    Offer,
    Quotation,
    Role,
    SetAside,
    SummaryReport,
    Unsourced,
    Usage,
)
from rag.render.gate import outgoing
from rag.seams import FoundMessage
from rag.tables.plan import LONGEST_QUESTION
from rag.web.problems import REFUSALS

# Describes fields that are not Markdown, whatever they look like.
PLAIN_TEXT = "A document's own words, as plain text: to be shown as they are, never rendered."


class Described(BaseModel):
    """What programs are sent, made of records whose fields have the same names, or an alias."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    @classmethod
    def of(cls, record: Any = None, **more: Any) -> Self:
        """Make one from a record and `more` fields, which win; all may hold records."""
        return cls.model_validate(to_jsonable_python(record or {}) | to_jsonable_python(more))

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return self.model_dump(mode="json")


class DescribedApi(APIBlueprint):
    """A blueprint that makes its OpenAPI description late: that takes a fifth of a start."""

    def __init__(
        self,
        name: str,
        says: str = "",
        *,
        prefix: str = "/api/v1",
        tag: str = "",
        refusals: ResponseDict = REFUSALS,
    ) -> None:
        """`says` describes the tag; `refusals` may answer each call."""
        super().__init__(
            name,
            __name__,
            url_prefix=prefix or None,
            abp_tags=[Tag(name=tag or name, description=says or None)],
            abp_responses=refusals,
        )
        self._undescribed: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    def _collect_openapi_info(
        self, rule: str, func: Callable[..., Any], **described: Any
    ) -> tuple[Any, ...]:
        collect = super()._collect_openapi_info
        self._undescribed.append(partial(collect, rule, func, **described))
        types: tuple[Any, ...] = parse_parameters(func, doc_ui=False)
        return types

    def describe(self) -> None:
        """Fill in tags, paths and schemas."""
        with self._lock:
            while self._undescribed:
                self._undescribed.pop(0)()


class DescribedApp(OpenAPI):
    """The app: turns models into JSON, and describes its APIs when the description is read."""

    def make_response(self, rv: Any) -> Response:
        """Return the response; a model, alone or before a status, becomes JSON."""
        body, rest = (rv[0], rv[1:]) if isinstance(rv, tuple) else (rv, ())
        plain = body.as_json() if isinstance(body, Described) else body
        return super().make_response((plain, *rest) if rest else plain)

    def generate_spec_json(self) -> None:
        for api in self.blueprints.values():
            if isinstance(api, DescribedApi):
                api.describe()
                names = {tag.name for tag in self.tags}
                self.tags.extend(tag for tag in api.tags if tag.name not in names)
                self.paths.update(api.paths)
                self.components_schemas.update(api.components_schemas)
        super().generate_spec_json()  # type: ignore[no-untyped-call]


MAX_INDEX = 2**31 - 1  # of messages and offsets: the largest integer in the database
MAX_QUESTION_CHARS = 200_000
MAX_IMPORTED_MESSAGES = 20_000


def storable_text(value: Any) -> Any:
    """Remove from a text what no database can store; leave other values to their type's check."""
    return storable(value) if isinstance(value, str) else value


def as_text(value: Any) -> Any:
    """Turn a number into a text: an id of digits in a form arrives as a number."""
    return str(value) if isinstance(value, int) else value


def not_blank(text: str) -> str:
    """Refuse a text without a visible character. Raises ValueError."""
    if not text.strip():
        raise ValueError("it is empty; please write some words.")
    return text


class FirstWrong(FailFast):
    """Of a long list only the first entry that is wrong is told: of thousands it takes long."""

    __hash__ = object.__hash__


# Bounds of length come before changes of the text, so that errors state the length as sent.
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

    html: bool = False  # for pages: events `html` (length to keep, text to add) instead of `delta`


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


STREAMED = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


class SessionModel(Described):
    """A session of the caller."""

    id: str
    client_id: str | None = None  # the client's own id for it
    title: str
    created_at: datetime
    last_used_at: datetime
    message_count: int
    context_config: ContextConfig = Field(validation_alias="config")
    collections: list[str]  # ids of the chosen ones; none: all that the caller may read
    parent: str | None = Field(
        None, description="Of a branch: the session that its messages before `branch_index` are of."
    )
    branch_index: int | None = None
    model: str | None = Field(None, description="That was picked for it; null: the usual one.")


class SessionsModel(Described):
    """A page of the caller's sessions, newest use first."""

    sessions: list[SessionModel]
    limit: int
    offset: int
    next_offset: int | None


class VersionsModel(Described):
    """A question that was edited: the session of each version, oldest first."""

    index: int
    position: int  # index of the requested session in `sessions`
    sessions: list[SessionModel]


class BranchesModel(Described):
    """Where a conversation went on in several versions."""

    versions: list[VersionsModel]


class SourceModel(Described):
    """A source of a session as it was when first shown, and what became of it since."""

    n: int = Field(validation_alias="number")
    chunk_id: str
    document_id: str
    document: str = Field(validation_alias="document_name")
    title: str = Field(validation_alias="document_title")
    locator: str
    heading_path: list[str]
    text: str = Field(description=PLAIN_TEXT)
    passage: str = Field(description=PLAIN_TEXT)
    content_hash: str
    state: str


class SourcesModel(Described):
    """The session's register of sources, by number."""

    sources: list[SourceModel]


class CitationModel(Described):
    """One number at one place of a text: `text[start:end]` is its whole marker.

    Of a contradiction by words `stated` is what the statement says, `given` what its source says.
    """

    n: int = Field(validation_alias="number")
    start: int
    end: int
    verdict: str  # supported, computed, contradicted, off_subject, open
    reason: str
    by: Literal["words", "judge"]
    judged_by: str  # the judge's model
    attributed: bool
    stated: str
    given: str

    @model_validator(mode="before")
    @classmethod
    def _with_who(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or "by" in values:
            return values
        return dict(values) | {"by": "judge" if values.get("judged_by") else "words"}


class FigureModel(Described):
    """A figure of a statement that cites something: `text[start:end]`.

    `n` is the source that it stands in; null where only the user said it, where it follows from
    others, and where it stands nowhere (`unfound`).
    """

    start: int
    end: int
    status: FigureStatus
    n: int | None = Field(validation_alias="number")


class ShownPassageModel(Described):
    """A passage of source `n` as it stands there; `marked` is what is nearest to the question."""

    n: int = Field(validation_alias="number")
    heading: str
    text: str = Field(description=PLAIN_TEXT)
    marked: list[tuple[int, int]]


class CardModel(Described):
    """An answer without a model: passages in the order of the search, each with its number.

    `said` comes first where these hardly answer, `perhaps` where that is not sure.
    """

    said: str
    perhaps: str
    passages: list[ShownPassageModel]
    mentions: list[Mention]


class MessageModel(Described):
    """One message of a transcript; an answer's details stand beside its own."""

    index: int
    turn: int
    role: str
    content: str = Field(description="Of an answer Markdown that asks no server; else plain text")
    status: str
    created_at: datetime
    revision: int
    citations: list[CitationModel]
    unsourced: list[Unsourced]
    figures: list[FigureModel]
    declined: bool
    card: CardModel | None
    resolved_query: str | None
    is_followup: bool
    model: str | None
    usage: Usage | None
    error: str | None
    notices: list[Notice]
    judging: Judging  # whether a judge's verdicts are still to come: pending, done, failed, off
    judging_failure: str
    set_aside: SetAside | None
    offers: list[Offer]

    @classmethod
    def of(cls, record: Any = None, **more: Any) -> Self:
        """Make one from a message whose text has passed `outgoing`."""
        return super().of(outgoing(record) if isinstance(record, Message) else record, **more)

    @model_validator(mode="before")
    @classmethod
    def _with_details(cls, values: Any) -> Any:
        unchecked = to_jsonable_python(Answer(""), exclude={"text", "model"}) | {
            "model": None,
            "citations": _unchecked(values),
        }
        return (values.get("answer") or unchecked) | values


def _unchecked(message: Mapping[str, Any]) -> list[Any]:
    """Return the citations of an imported answer, which were not checked."""
    if message["role"] != Role.ASSISTANT:
        return []
    return [
        to_jsonable_python(Citation(number, marker.start, marker.end))
        for marker in find_markers(message["content"])
        for number in marker.numbers
    ]


class StoppedModel(Described):
    """An answer that was asked to end, and how it stood at that moment."""

    index: int
    status: str


class MessagesModel(Described):
    """A range of a transcript; `total` messages in all."""

    messages: list[MessageModel]
    start: int
    end: int
    total: int


class AnswerModel(MessageModel):
    """A finished answer with the sources it was written from."""

    # flask-openapi3 reads this: the same call may answer with a stream of events.
    model_config = ConfigDict(openapi_extra=STREAMED)  # type: ignore[typeddict-unknown-key]

    session_id: str
    sources: list[SourceModel]
    context: dict[str, Any]

    @classmethod
    def finished(cls, end: Finished, *, session_id: str) -> "AnswerModel":
        return cls.of(
            end.message, session_id=session_id, sources=end.sources, context=dict(end.context)
        )


class FoundMessagesModel(Described):
    """The newest matches, and how many there are in all; `snippet[match_start:match_end]`."""

    query: str
    found: list[FoundMessage]
    total: int


class ImportedModel(Described):
    """Where the imported messages stand: `[start, end)`."""

    start: int
    end: int


class LineModel(Described):
    """One line of a summary: how it came to stand there, and the turns (from 0) behind it."""

    section: str
    text: str
    mark: str  # written, quoted, put_back or unchecked
    turns: list[int]
    numbers: list[int]

    @model_validator(mode="before")
    @classmethod
    def _with_turns(cls, values: Any) -> Any:
        messages = values.get("messages", ())
        return {"turns": sorted({message // 2 for message in messages})} | values


class ContextModel(Described):
    """The messages that would be sent to the model now, and what they cost."""

    messages: list[dict[str, Any]]
    stats: dict[str, Any]
    lines: list[LineModel] = Field(default_factory=list)  # of the summaries in it


class StateModel(Described):
    """Whether the server can serve, check by check."""

    status: str
    checks: dict[str, Any] = Field(default_factory=dict)


class SummaryModel(Described):
    """A verified text standing in for the messages `[start, end)`."""

    id: int | None
    start: int
    end: int
    text: str
    required_numbers: list[int]
    required_names: list[str]
    tokens: int
    quotations: list[Quotation]
    lines: list[LineModel]
    report: SummaryReport


class SummariesModel(Described):
    """Summaries standing in the context, and those made on request."""

    summaries: list[SummaryModel]
    requested: list[SummaryModel]


class CompactedModel(Described):
    """The report of a compaction; null when there was nothing to summarise."""

    compacted: bool
    report: SummaryReport | None


class ForgottenModel(Described):
    """How many summaries were forgotten; the transcript stays."""

    forgotten: int


class ExportModel(Described):
    """A whole conversation; `messages` and `sources` can be imported again."""

    session: SessionModel
    messages: list[MessageModel]
    sources: list[SourceModel]
    summaries: list[SummaryModel]
