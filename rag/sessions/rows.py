"""Database rows to records and back."""

from dataclasses import asdict, fields
from typing import Any

from pydantic import TypeAdapter

from rag.citations.register import source_state
from rag.database import as_utc, messages
from rag.records import (
    Answer,
    Card,
    Citation,
    ContextConfig,
    Message,
    MessageStatus,
    Notice,
    NoticeKind,
    Quotation,
    Role,
    Session,
    Source,
    Summary,
    SummaryReport,
    Unsourced,
    Usage,
    Verdict,
    Within,
)

_REPORTED = frozenset(field.name for field in fields(SummaryReport))
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


def said_from(row: Any) -> Message:
    """A message from the columns of `SAID`: read by the dozen in every turn."""
    index, turn, role, content, status, created_at, revision = row
    return Message(index, turn, role, content, MessageStatus(status), as_utc(created_at), revision)


def _answer_from(stored: dict[str, Any] | None, text: str) -> Answer | None:
    if stored is None:
        return None
    return Answer(
        text=text,
        citations=tuple(_citation_from(citation) for citation in stored["citations"]),
        unsourced=tuple(Unsourced(**each) for each in stored.get("unsourced", ())),
        declined=stored["declined"],
        model=stored["model"],
        usage=None if stored["usage"] is None else Usage(**stored["usage"]),
        result=stored.get("result"),
        notices=tuple(
            Notice(NoticeKind(each["kind"]), each["text"]) for each in stored.get("notices", ())
        ),
        card=_card_from(stored.get("card")),
    )


_CARD = TypeAdapter(Card)


def _card_from(stored: dict[str, Any] | None) -> Card | None:
    return None if stored is None else _CARD.validate_python(stored)


def _citation_from(stored: dict[str, Any]) -> Citation:
    """One that was stored before there were verdicts counts as not checked."""
    return Citation(
        number=stored["number"],
        start=stored["start"],
        end=stored["end"],
        verdict=Verdict(stored.get("verdict", Verdict.OPEN)),
        reason=stored.get("reason", ""),
        attributed=stored["attributed"],
        judged_by=stored.get("judged_by", ""),
    )


def source_columns(source: Source) -> dict[str, Any]:
    """The columns of a source, its session apart."""
    columns = asdict(source)
    del columns["state"]
    return columns | {"heading_path": list(source.heading_path)}


def source_from(row: Any, within: Within) -> Source:
    """A source, with what became of it: the row holds `chunk_now` and `collection_now`.

    A document that its owner may not read any more is told as one that is gone.
    """
    is_there = row.collection_now is not None and within.holds(row.collection_now)
    return Source(
        number=row.number,
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        document_name=row.document_name,
        document_title=row.document_title,
        locator=row.locator,
        heading_path=tuple(row.heading_path),
        text=row.text,
        passage=row.passage,
        content_hash=row.content_hash,
        state=source_state(has_document=is_there, has_chunk=is_there and row.chunk_now is not None),
    )


def summary_columns(summary: Summary) -> dict[str, Any]:
    """The columns of a summary, its session and choices apart."""
    return {
        "start": summary.start,
        "end": summary.end,
        "text": summary.text,
        "report": asdict(summary.report),
        "tokens": summary.tokens,
    }


def summary_from(row: Any) -> Summary:
    """A summary from its row."""
    report: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v
        for key, v in row.report.items()
        if key in _REPORTED  # earlier versions counted other things, too
    }
    return Summary(
        start=row.start,
        end=row.end,
        text=row.text,
        required_numbers=tuple(row.required["numbers"]),
        required_names=tuple(row.required["names"]),
        report=SummaryReport(**report),
        tokens=row.tokens,
        quotations=tuple(Quotation(*each) for each in row.required.get("quotations", ())),
        id=row.summary_id,
    )
