"""Database rows to records and back."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Executable, bindparam, literal_column, select

from rag.citations.register import source_state
from rag.db import as_utc, messages, sessions, storable
from rag.errors import NotFound
from rag.records import (
    Answer,
    ContextConfig,
    LineEdit,
    Message,
    MessageStatus,
    Quotation,
    Readable,
    Role,
    Session,
    Source,
    Summary,
    SummaryLine,
    SummaryReport,
)

_ANSWER = TypeAdapter(Answer)
_REPORT = TypeAdapter(SummaryReport)  # earlier versions counted other things, too
_LINES = TypeAdapter(tuple[SummaryLine, ...])
_EDITS = TypeAdapter(tuple[LineEdit, ...])
_OF_A_SOURCE = tuple(field.name for field in fields(Source) if field.name != "state")
# What was said, and when: all of a message but `details`.
SAID = (
    messages.c.index,
    messages.c.turn,
    messages.c.role,
    messages.c.content,
    messages.c.status,
    messages.c.created_at,
    messages.c.revision,
)


def session_from(row: Any) -> Session:
    """A session from its row."""
    return Session(
        id=row.id,
        owner=row.owner,
        title=row.title,
        created_at=as_utc(row.created_at),
        last_used_at=as_utc(row.last_used_at),
        message_count=row.message_count,
        config=ContextConfig(**row.config),
        collections=tuple(row.collections or ()),
        expires_at=None if row.expires_at is None else as_utc(row.expires_at),
        parent=row.parent,
        branch_index=row.branch_index,
        family=row.family,
        model=row.model,
        client_id=row.client_id,
    )


def details_of(message: Message) -> dict[str, Any]:
    """The `details` column of a message."""
    if message.role != Role.ASSISTANT:
        known = message.known_sources
        return {} if known is None else {"known_sources": known}
    return {
        "answer": None if message.answer is None else asdict(message.answer) | {"text": None},
        "resolved_query": message.resolved_query,
        "is_followup": message.is_followup,
        "error": message.error,
    }


def message_from(row: Any) -> Message:
    """A message from its row; one without an answer has no citations either."""
    details = row.details
    return Message(
        index=row.index,
        turn=row.turn,
        role=row.role,
        content=row.content,
        status=MessageStatus(row.status),
        created_at=as_utc(row.created_at),
        revision=row.revision,
        answer=_answer_from(details.get("answer"), row.content),
        resolved_query=details.get("resolved_query"),
        is_followup=details.get("is_followup", False),
        error=details.get("error"),
        known_sources=details.get("known_sources"),
    )


def brief_message_from(row: Any) -> Message:
    """A message from the columns of `SAID`: read by the dozen in every turn."""
    index, turn, role, content, status, created_at, revision = row
    return Message(index, turn, role, content, MessageStatus(status), as_utc(created_at), revision)


def _answer_from(stored: dict[str, Any] | None, text: str) -> Answer | None:
    """What was stored by an earlier version lacks what came later: that is as it is by default."""
    if stored is None:
        return None
    card = stored.get("card")
    if card is not None and "parts" in card:  # as earlier versions stored them
        card = {**card, "passages": [each for part in card["parts"] for each in part["passages"]]}
    return _ANSWER.validate_python(stored | {"text": text, "card": card})


def source_columns(source: Source) -> dict[str, Any]:
    """The columns of a source, its session apart."""
    columns = {name: getattr(source, name) for name in _OF_A_SOURCE}
    return {key: storable(v) if isinstance(v, str) else v for key, v in columns.items()}


def source_from(row: Any, readable: Readable) -> Source:
    """A source, with what became of it: the row holds `chunk_now` and `collection_now`.

    A document that its owner may not read any more is told as one that is gone.
    """
    is_there = row.collection_now is not None and readable.holds(row.collection_now)
    state = source_state(has_document=is_there, has_chunk=is_there and row.chunk_now is not None)
    columns = {name: getattr(row, name) for name in _OF_A_SOURCE}
    return Source(**columns | {"heading_path": tuple(row.heading_path), "state": state})


def summary_from(row: Any) -> Summary:
    """A summary from its row."""
    return Summary(
        start=row.start,
        end=row.end,
        text=row.text,
        required_numbers=tuple(row.required["numbers"]),
        required_names=tuple(row.required["names"]),
        report=_REPORT.validate_python(row.report),
        tokens=row.tokens,
        quotations=tuple(Quotation(*each) for each in row.required.get("quotations", ())),
        lines=_LINES.validate_python(row.required.get("lines", ())),
        model_lines=_LINES.validate_python(row.required.get("model_lines", ())),
        written_to=row.required.get("written_to", 0),
        edits=_EDITS.validate_python(row.required.get("edits", ())),
        id=row.summary_id,
    )


# Conditions for statements that are put together once; `SessionKey.asking` gives their values. The
# first is for the row of the session itself, the second for what belongs to the session.
IS_MINE = (sessions.c.id == bindparam("its_id")) & (sessions.c.owner == bindparam("its_owner"))
OWNED = select(literal_column("1")).select_from(sessions).where(IS_MINE).exists()
_THERE = select(sessions.c.id).where(IS_MINE)


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session's id with its owner: neither opens anything without the other."""

    id: str
    owner: str

    def asking(self, **more: Any) -> dict[str, Any]:
        """Parameters of a statement that holds one of the conditions."""
        return {"its_id": self.id, "its_owner": self.owner, **more}


def fetch_rows(
    connection: Connection, key: SessionKey, /, query: Executable, **asked: Any
) -> Sequence[Any]:
    """The rows of a statement that holds one of the conditions. Raises NotFound."""
    rows = connection.execute(query, key.asking(**asked)).all()
    if not rows:
        check(connection, key)
    return rows


def check(connection: Connection, key: SessionKey) -> None:
    """Raises NotFound if the owner has no such session."""
    if connection.execute(_THERE, key.asking()).one_or_none() is None:
        raise absent(key)


def absent(key: SessionKey) -> NotFound:
    """What is said of a session that is not there, or not the asker's."""
    return NotFound(f"There is no session {key.id!r}. It may have been deleted.")
