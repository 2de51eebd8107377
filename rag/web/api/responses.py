"""What programs are sent: one pydantic model per answer, made from records."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from rag.citations.markers import find_markers
from rag.records import (
    Card,
    Citation,
    Finished,
    Message,
    Role,
    Session,
    Source,
)
from rag.seams import FoundMessages
from rag.web.api.summaries import SummaryModel

STREAMED = {"text/event-stream": {"schema": {"type": "string"}}}


class ContextConfigModel(BaseModel):
    """How a session keeps its context small."""

    enabled: bool
    max_tokens: int | None
    compression_strategy: str
    recent_message_count: int


class SessionModel(BaseModel):
    """A session of the caller."""

    id: str
    title: str
    created_at: datetime
    last_used_at: datetime
    message_count: int
    context_config: ContextConfigModel
    collections: list[str]  # ids of those that were chosen; none: all that the caller may read

    @classmethod
    def of(cls, session: Session) -> "SessionModel":
        return cls.model_validate(
            to_jsonable_python(session) | {"context_config": to_jsonable_python(session.config)}
        )


class SessionsModel(BaseModel):
    """A page of the caller's sessions, newest use first."""

    sessions: list[SessionModel]
    limit: int
    offset: int
    next_offset: int | None


class SourceModel(BaseModel):
    """A source of a session as it was when first shown, and what became of it since."""

    n: int
    chunk_id: str
    document_id: str
    document: str
    title: str
    locator: str
    heading_path: list[str]
    text: str
    passage: str
    content_hash: str
    state: str

    @classmethod
    def of(cls, source: Source) -> "SourceModel":
        renamed = {
            "n": source.number,
            "document": source.document_name,
            "title": source.document_title,
        }
        return cls.model_validate(to_jsonable_python(source) | renamed)


class SourcesModel(BaseModel):
    """The session's register of sources, by number."""

    sources: list[SourceModel]


class CitationModel(BaseModel):
    """One number at one place of a text: `text[start:end]` is its whole marker."""

    n: int
    start: int
    end: int
    verdict: str
    reason: str
    attributed: bool
    judged_by: str

    @classmethod
    def of(cls, citation: Citation) -> "CitationModel":
        return cls.model_validate(to_jsonable_python(citation) | {"n": citation.number})


class UnsourcedModel(BaseModel):
    """A stretch of an answer that cites nothing and that no source carries."""

    start: int
    end: int


class UsageModel(BaseModel):
    """Tokens as the model server counted them."""

    prompt_tokens: int
    completion_tokens: int


class ShownPassageModel(BaseModel):
    """A passage of source `n` as it stands there; `marked` is what matters most in its text."""

    n: int
    heading: str
    text: str
    marked: list[tuple[int, int]]


class CardPartModel(BaseModel):
    """What was found for one question: `line` is quoted where it surely answers, else empty."""

    asked: str
    line: str
    is_weak: bool
    passages: list[ShownPassageModel]


class DocumentLinkModel(BaseModel):
    """A document by its id, its file's name and its title."""

    id: str
    name: str
    title: str


class MentionModel(BaseModel):
    """How many documents hold a name of the question, and some of them."""

    name: str
    count: int
    documents: list[DocumentLinkModel]


class CardModel(BaseModel):
    """An answer without a model: passages, each with its number."""

    parts: list[CardPartModel]
    mentions: list[MentionModel]

    @classmethod
    def of(cls, card: Card) -> "CardModel":
        made = to_jsonable_python(card)
        for part in made["parts"]:
            part["passages"] = [shown | {"n": shown["number"]} for shown in part["passages"]]
        return cls.model_validate(made)


class NoticeModel(BaseModel):
    """Why an answer is less than it could be: `cut`, `loop`, `without_model`, `words_alone`."""

    kind: str
    text: str


class MessageModel(BaseModel):
    """One message of a transcript."""

    index: int
    turn: int
    role: str
    content: str
    status: str
    created_at: datetime
    revision: int
    citations: list[CitationModel]
    unsourced: list[UnsourcedModel]
    declined: bool
    card: CardModel | None
    resolved_query: str | None
    is_followup: bool
    model: str | None
    usage: UsageModel | None
    error: str | None
    notices: list[NoticeModel]

    @classmethod
    def of(cls, message: Message) -> "MessageModel":
        return cls.model_validate(message_fields(message))


def message_fields(message: Message) -> dict[str, Any]:
    """A message with its answer's details beside its own."""
    answer = message.answer
    fields: dict[str, Any] = to_jsonable_python(message)
    fields |= {"citations": [], "unsourced": [], "declined": False, "card": None}
    fields |= {"model": None, "usage": None, "notices": []}
    if answer is None:
        return fields | {"citations": _unchecked(message)}
    return fields | {
        "citations": [CitationModel.of(citation) for citation in answer.citations],
        "unsourced": to_jsonable_python(answer.unsourced),
        "declined": answer.declined,
        "card": None if answer.card is None else CardModel.of(answer.card),
        "model": answer.model,
        "usage": to_jsonable_python(answer.usage),
        "notices": to_jsonable_python(answer.notices),
    }


def _unchecked(message: Message) -> list[CitationModel]:
    """The citations of an answer that was imported: nobody has checked them."""
    if message.role != Role.ASSISTANT:
        return []
    return [
        CitationModel.of(Citation(number, marker.start, marker.end))
        for marker in find_markers(message.content)
        for number in marker.numbers
    ]


class StoppedModel(BaseModel):
    """An answer that was asked to end, and how it stood at that moment."""

    index: int
    status: str


class MessagesModel(BaseModel):
    """A range of a transcript; `total` messages in all."""

    messages: list[MessageModel]
    start: int
    end: int
    total: int


class AnswerModel(MessageModel):
    """A finished answer with the sources it was written from."""

    # flask-openapi3 reads this: the same call may answer with a stream of events.
    model_config = {"openapi_extra": {"content": STREAMED}}  # type: ignore[typeddict-unknown-key]

    session_id: str
    sources: list[SourceModel]
    context: dict[str, Any]

    @classmethod
    def finished(cls, finished: Finished, *, session_id: str) -> "AnswerModel":
        return cls.model_validate(
            message_fields(finished.message)
            | {
                "session_id": session_id,
                "sources": [SourceModel.of(source) for source in finished.sources],
                "context": to_jsonable_python(dict(finished.context)),
            }
        )


class FoundMessageModel(BaseModel):
    """A message that contains what was looked for: `snippet[match_start:match_end]`."""

    session_id: str
    session_title: str
    index: int
    role: str
    snippet: str
    match_start: int
    match_end: int


class FoundMessagesModel(BaseModel):
    """The newest matches, and how many there are in all."""

    query: str
    found: list[FoundMessageModel]
    total: int

    @classmethod
    def of(cls, query: str, found: FoundMessages) -> "FoundMessagesModel":
        return cls.model_validate(
            {"query": query, "found": to_jsonable_python(found.found), "total": found.total}
        )


class ImportedModel(BaseModel):
    """Where the imported messages stand: `[start, end)`."""

    start: int
    end: int


class ContextModel(BaseModel):
    """The messages that would be sent to the model now, and what they cost."""

    messages: list[dict[str, Any]]
    stats: dict[str, Any]


class StateModel(BaseModel):
    """Whether the server can serve, check by check."""

    status: str
    checks: dict[str, Any] = {}


def as_json(model: BaseModel) -> dict[str, Any]:
    """The model as Flask answers with it."""
    return model.model_dump(mode="json")


def sources_of(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Sources as they stand in events."""
    return [as_json(SourceModel.of(source)) for source in sources]


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with dataclasses, dates and enums made plain JSON."""
    made: dict[str, Any] = to_jsonable_python(dict(values))
    return made


class ExportModel(BaseModel):
    """A whole conversation; `messages` and `sources` can be imported again."""

    session: SessionModel
    messages: list[MessageModel]
    sources: list[SourceModel]
    summaries: list[SummaryModel]
