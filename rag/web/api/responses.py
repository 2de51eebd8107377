"""What programs are sent of conversations: one model per answer, made from records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import to_jsonable_python

from rag.citations.markers import find_markers
from rag.records import (
    Answer,
    Citation,
    ContextConfig,
    FigureStatus,
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
from rag.web.openapi import PLAIN_TEXT, Described

STREAMED = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


class SessionModel(Described):
    """A session of the caller."""

    id: str
    client_id: str | None = None  # what the client that began it calls it
    title: str
    created_at: datetime
    last_used_at: datetime
    message_count: int
    context_config: ContextConfig = Field(validation_alias="config")
    collections: list[str]  # ids of those that were chosen; none: all that the caller may read
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
    position: int  # of the session that was asked for, among them
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
        """Its text leaves by the one gate."""
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
    """The citations of an answer that was imported: nobody has checked them."""
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
