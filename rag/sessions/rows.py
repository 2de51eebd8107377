"""Database rows to records and back.

Who asks is handled as in `rag.sessions.transcript`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    Connection,
    Executable,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from rag.citations.register import source_state
from rag.db import as_utc, messages, sessions, storable, summaries
from rag.errors import NotFound
from rag.records import (
    Answer,
    ContextConfig,
    ContextPreferences,
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
from rag.seams import Overview

_ANSWER = TypeAdapter(Answer)
_REPORT = TypeAdapter(SummaryReport)  # earlier versions counted other things, too
_LINES = TypeAdapter(tuple[SummaryLine, ...])
_EDITS = TypeAdapter(tuple[LineEdit, ...])
_OF_A_SOURCE = tuple(field.name for field in fields(Source) if field.name != "state")
# What was said, and when: all of a message but `details`.
TEXT_COLUMNS = (
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
        config=ContextConfig(**row.config | {"share": tuple(row.config.get("share", ()))}),
        collections=tuple(row.collections or ()),
        expires_at=None if row.expires_at is None else as_utc(row.expires_at),
        parent=row.parent,
        branch_index=row.branch_index,
        family=row.family,
        source_count=row.source_count,
        model=row.model,
        client_id=row.client_id,
    )


def details_of(message: Message) -> dict[str, Any]:
    """The `details` column of a message."""
    if message.role != Role.ASSISTANT:
        known_sources = message.known_sources
        return {} if known_sources is None else {"known_sources": known_sources}
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
        card = card | {"passages": [one for part in card["parts"] for one in part["passages"]]}
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
        quotations=tuple(Quotation(*quotation) for quotation in row.required.get("quotations", ())),
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
    connection: Connection, key: SessionKey, /, query: Executable, **conditions: Any
) -> Sequence[Any]:
    """The rows of a statement that holds one of the conditions. Raises NotFound."""
    rows = connection.execute(query, key.asking(**conditions)).all()
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


ON_REQUEST = -1  # the epoch of summaries made on request: it never was, and is never over
SUMMARY_COLUMNS = (
    summaries.c.id.label("summary_id"),
    summaries.c.start,
    summaries.c.end,
    summaries.c.text,
    summaries.c.required,
    summaries.c.report,
    summaries.c.tokens,
    summaries.c.created_at.label("summarised_at"),
)
_ACTIVE = and_(
    summaries.c.session_id == sessions.c.id,
    summaries.c.epoch == sessions.c.epoch,
)
# Put together once: every turn reads by it. A session without summaries gives one row, too.
_OVERVIEW = (
    select(sessions, *SUMMARY_COLUMNS)
    .select_from(sessions.outerjoin(summaries, _ACTIVE))
    .where(IS_MINE)
    .order_by(summaries.c.start)
)
_ON_REQUEST = (
    select(*SUMMARY_COLUMNS)
    .where(summaries.c.session_id == bindparam("its_id"), summaries.c.epoch == ON_REQUEST, OWNED)
    .order_by(summaries.c.id)
)
_EPOCH = select(sessions.c.epoch).where(IS_MINE)
_PREFERENCES = select(sessions.c.preferences).where(IS_MINE)


def epoch(connection: Connection, key: SessionKey) -> int:
    """The number that ends when summaries are forgotten."""
    return int(fetch_rows(connection, key, _EPOCH)[0].epoch)


def overview(connection: Connection, key: SessionKey) -> Overview:
    """The session with what is part of its context now."""
    rows = connection.execute(_OVERVIEW, key.asking()).all()
    if not rows:
        raise absent(key)
    wanted = rows[0].preferences or {}
    return Overview(
        session_from(rows[0]),
        tuple(summary_from(row) for row in rows if row.summary_id is not None),
        ContextPreferences(
            rows[0].requested_start,
            rows[0].requested_end,
            include_search_results=wanted.get("include_search_results", False),
            max_context_messages=wanted.get("max_context_messages"),
        ),
        tuple(wanted.get("matches", ())),
        rows[0].forgotten,
    )


def prefer(connection: Connection, key: SessionKey, preferences: ContextPreferences) -> None:
    """For the next context, in the place of what was preferred before."""
    wanted = {
        "include_search_results": preferences.include_search_results,
        "max_context_messages": preferences.max_context_messages,
        "matches": _preferences(connection, key).get("matches", []),
    }
    start, end = preferences.slice or (None, None)
    connection.execute(
        update(sessions)
        .where(sessions.c.id == key.id)
        .values(requested_start=start, requested_end=end, preferences=wanted)
    )


def note_matches(connection: Connection, key: SessionKey, indices: Sequence[int]) -> None:
    """Messages that the last search of the history found."""
    wanted = _preferences(connection, key) | {"matches": list(indices)}
    mine = sessions.c.id == key.id
    connection.execute(update(sessions).where(mine).values(preferences=wanted))


def _preferences(connection: Connection, key: SessionKey) -> dict[str, Any]:
    return dict(fetch_rows(connection, key, _PREFERENCES)[0].preferences or {})


def on_request(connection: Connection, key: SessionKey) -> list[Summary]:
    """Those that somebody asked for, oldest first."""
    return [summary_from(row) for row in fetch_rows(connection, key, _ON_REQUEST)]


def add(
    connection: Connection,
    session_id: str,
    summary: Summary,
    *,
    in_epoch: int,
    now: datetime,
) -> None:
    """Insert a summary, in the place of another one of the same range."""
    connection.execute(
        delete(summaries).where(
            summaries.c.session_id == session_id,
            summaries.c.epoch == in_epoch,
            summaries.c.start == summary.start,
            summaries.c.end == summary.end,
        )
    )
    required = {
        "numbers": list(summary.required_numbers),
        "names": [storable(name) for name in summary.required_names],
        "quotations": [
            [quotation.start, quotation.end, quotation.message] for quotation in summary.quotations
        ],
        "lines": [_line(line) for line in summary.lines],
        "model_lines": [_line(line) for line in summary.model_lines],
        "written_to": summary.written_to,
        "edits": [_edit(edit) for edit in summary.edits],
    }
    connection.execute(
        insert(summaries).values(
            session_id=session_id,
            epoch=in_epoch,
            start=summary.start,
            end=summary.end,
            text=storable(summary.text),
            report=asdict(summary.report),
            tokens=summary.tokens,
            required=required,
            created_at=now,
        )
    )


def _line(line: SummaryLine) -> dict[str, Any]:
    return asdict(line) | {"text": storable(line.text)}


def _edit(edit: LineEdit) -> dict[str, Any]:
    return asdict(edit) | {"original": storable(edit.original), "text": storable(edit.text)}


def overlaps(existing: Sequence[Summary], summary: Summary, replaces: Sequence[int]) -> bool:
    """Whether a new summary meets an active one that it does not stand in for."""
    return any(
        other.id not in replaces and other.start < summary.end and summary.start < other.end
        for other in existing
    )


def remove(connection: Connection, ids: Sequence[int]) -> None:
    """Another summary stands in for these."""
    connection.execute(delete(summaries).where(summaries.c.id.in_(ids)))


def remove_over(connection: Connection, key: SessionKey, start: int, end: int) -> None:
    """Delete those that stand for one of these messages; what they covered is summarised anew.

    One that is being made of them now will come too late. A model's lines of other messages stay,
    and what a person changed, in a record that covers nothing.
    """
    its, now = summaries.c.session_id == key.id, epoch(connection, key)
    over = and_(its, summaries.c.start < end, summaries.c.end > start)
    rows = connection.execute(select(*SUMMARY_COLUMNS).where(over, summaries.c.epoch == now)).all()
    connection.execute(delete(summaries).where(over))
    connection.execute(update(summaries).where(its, summaries.c.epoch == now).values(epoch=now + 1))
    connection.execute(update(sessions).where(sessions.c.id == key.id).values(epoch=now + 1))
    for row in rows:
        left = _without(summary_from(row), set(range(start, end)))
        if left.model_lines or left.edits:
            add(connection, key.id, left, in_epoch=now + 1, now=row.summarised_at)


def _without(summary: Summary, erased: set[int]) -> Summary:
    """What is left of a summary: lines that rest on no erased message."""
    return replace(
        summary,
        end=summary.start,
        text="",
        tokens=0,
        lines=(),
        quotations=(),
        required_numbers=(),
        required_names=(),
        report=SummaryReport(0, 0, 0, 0),
        edits=tuple(e for e in summary.edits if erased.isdisjoint(e.messages)),
        model_lines=tuple(e for e in summary.model_lines if erased.isdisjoint(e.messages)),
        written_to=min(summary.written_to, min(erased)),
    )


def forget(connection: Connection, session_id: str) -> int:
    """Delete all summaries and begin a new epoch; returns how many there were.

    What was summarised is in no summary again: the next one begins behind it.
    """
    its = summaries.c.session_id == session_id
    of_epoch = select(sessions.c.epoch).where(sessions.c.id == session_id).scalar_subquery()
    active = select(func.max(summaries.c.end)).where(its, summaries.c.epoch == of_epoch)
    end = connection.execute(active).scalar()
    removed = connection.execute(delete(summaries).where(its))
    behind = sessions.c.forgotten if end is None else end
    connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(epoch=sessions.c.epoch + 1, forgotten=behind)
    )
    return removed.rowcount
