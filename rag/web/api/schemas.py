"""The models of requests and responses of the APIs, and the APIs' description."""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal, Self

from flask import Response
from flask_openapi3.blueprint import APIBlueprint
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
    FigureStatus,
    Finished,
    Judging,
    Mention,
    Message,
    Notice,
    Offer,
    Role,
    SetAside,
    Unsourced,
    Usage,
)
from rag.render.gate import outgoing
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


def storable_text(value: Any) -> Any:
    """Remove from a text what no database can store; leave other values to their type's check."""
    return storable(value) if isinstance(value, str) else value


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
Title = Annotated[str, Field(max_length=300), STORABLE]
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


class DocumentPath(BaseModel):
    """Names a document."""

    document_id: str


class PageQuery(RequestBody):
    """Which part of a list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    offset: MessageIndex = 0


STREAMED = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


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
