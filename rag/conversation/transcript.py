"""Messages of one session in the database: append, end, read, search.

Every function takes a connection inside a transaction in which the caller has already made sure
that the session is its owner's (see `rag.conversation.store`).
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    TextClause,
    and_,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy import text as sql

from rag.conversation.rows import answer_details, message_from
from rag.database import messages, sessions, storable
from rag.errors import Conflict, NotFound
from rag.records import Message, MessageStatus, Role, Session
from rag.seams import FoundMessage, FoundMessages, OpenTurn

SNIPPET_CHARS = 80  # on each side of a match
TITLE_CHARS = 80
COMMON = 500  # messages of one session: a word in more of them tells little, and costs much
NEWEST = ~(
    select(literal_column("1"))
    .select_from(messages.alias("later"))
    .where(
        sql("later.session_id = messages.session_id"),
        sql('later."index" = messages."index"'),
        sql("later.revision > messages.revision"),
    )
    .correlate(messages)
    .exists()
)


# Put together once: every turn reads by them.
_OF_SESSION = (
    select(messages)
    .where(messages.c.session_id == bindparam("its_id"))
    .order_by(messages.c.index, messages.c.revision)
)
_IN_RANGE = _OF_SESSION.where(
    messages.c.index >= bindparam("first"), messages.c.index < bindparam("stop")
)
_AT = _OF_SESSION.where(messages.c.index.in_(bindparam("wanted", expanding=True)))


def reserve(connection: Connection, session_id: str, count: int, *, now: datetime) -> Any:
    """Take the next `count` indices and one turn number; the row lock orders writers."""
    return connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(
            message_count=sessions.c.message_count + count,
            turn_count=sessions.c.turn_count + 1,
            last_used_at=now,
        )
        .returning(sessions.c.message_count, sessions.c.turn_count, sessions.c.title)
    ).one()


def store(connection: Connection, session_id: str, message: Message) -> Message:
    """Insert one message as it is."""
    message = replace(message, content=storable(message.content))
    connection.execute(insert(messages).values(session_id=session_id, **_columns(message)))
    return message


def _columns(message: Message) -> dict[str, Any]:
    return {
        "index": message.index,
        "revision": message.revision,
        "turn": message.turn,
        "role": message.role,
        "content": message.content,
        "status": message.status.value,
        "created_at": message.created_at,
        "details": answer_details(message) if message.role == Role.ASSISTANT else {},
    }


def begin(connection: Connection, session_id: str, question: str, *, now: datetime) -> OpenTurn:
    """Store a question and the place of its answer; the first one names the session."""
    place = reserve(connection, session_id, 2, now=now)
    if not place.title:
        title = storable(" ".join(question.split()))[:TITLE_CHARS]
        connection.execute(update(sessions).where(sessions.c.id == session_id).values(title=title))
    first, turn = place.message_count - 2, place.turn_count - 1
    asked = Message(first, turn, Role.USER, question, MessageStatus.COMPLETE, now)
    pending = Message(first + 1, turn, Role.ASSISTANT, "", MessageStatus.PENDING, now)
    return OpenTurn(
        question=store(connection, session_id, asked), answer=store(connection, session_id, pending)
    )


def begin_again(connection: Connection, session: Session, index: int, *, now: datetime) -> OpenTurn:
    """A new revision of the last answer."""
    found = {m.index: m for m in read(connection, session.id, index - 1, index + 1)}
    old, question = found.get(index), found.get(index - 1)
    if old is None or question is None or old.role != Role.ASSISTANT:
        raise NotFound(f"Message {index} is not an answer of this session.")
    if index != session.message_count - 1:
        raise Conflict(
            f"Only the last answer (message {session.message_count - 1}) can be written again, "
            f"not message {index}: later turns build on it."
        )
    if old.status is MessageStatus.PENDING:
        raise Conflict(f"Message {index} is being written at this moment. Wait for its end.")
    fresh = Message(
        index=index,
        turn=old.turn,
        role=Role.ASSISTANT,
        content="",
        status=MessageStatus.PENDING,
        created_at=now,
        revision=old.revision + 1,
    )
    return OpenTurn(question=question, answer=store(connection, session.id, fresh))


def finish(connection: Connection, session_id: str, answer: Message) -> Message:
    """End a pending answer, once."""
    answer = replace(answer, content=storable(answer.content))
    ended = connection.execute(
        update(messages)
        .where(
            messages.c.session_id == session_id,
            messages.c.index == answer.index,
            messages.c.revision == answer.revision,
            messages.c.status == MessageStatus.PENDING.value,
        )
        .values(
            content=answer.content,
            status=answer.status.value,
            details=answer_details(answer),
        )
    )
    if ended.rowcount != 1:
        raise Conflict(f"Message {answer.index} has ended already; nothing was changed.")
    return answer


def read(connection: Connection, session_id: str, start: int, end: int) -> list[Message]:
    """The newest revisions of messages `[start, end)`, in order."""
    rows = connection.execute(_IN_RANGE, {"its_id": session_id, "first": start, "stop": end})
    return _newest(rows)


def read_at(connection: Connection, session_id: str, indices: Sequence[int]) -> list[Message]:
    """The newest revisions of the messages at these indices, in order."""
    return _newest(connection.execute(_AT, {"its_id": session_id, "wanted": list(indices)}))


def _newest(rows: Any) -> list[Message]:
    newest = {row.index: row for row in rows}
    return [message_from(row) for row in newest.values()]


# ── Search ───────────────────────────────────────────────────────────────────────────────────


def search(connection: Connection, scope: Any, text: str, *, limit: int) -> FoundMessages:
    """Newest messages that contain the text, ignoring case; `scope` limits the sessions."""
    wanted = storable(text).strip()
    if not wanted:
        return FoundMessages((), 0)
    matching = _containing(connection, wanted).where(scope, NEWEST)
    rows = connection.execute(
        matching.order_by(messages.c.created_at.desc(), messages.c.row.desc()).limit(limit)
    ).all()
    total = len(rows)
    if total == limit:
        counted = matching.with_only_columns(func.count()).order_by(None)
        total = connection.execute(counted).scalar_one()
    return FoundMessages(tuple(_found(row, wanted) for row in rows), total)


def _containing(connection: Connection, wanted: str) -> Select[Any]:
    columns = (messages, sessions.c.title.label("session_title"))
    joined = select(*columns).join_from(messages, sessions)
    # The trigram index holds no word of one or two letters.
    if connection.dialect.name == "sqlite" and len(wanted) >= 3:
        return joined.where(
            sql(
                "messages.row IN (SELECT rowid FROM messages_substrings "
                "WHERE messages_substrings MATCH :quoted)"
            ).bindparams(quoted='"' + wanted.replace('"', '""') + '"')
        )
    return joined.where(messages.c.content.icontains(wanted, autoescape=True))


def _found(row: Any, wanted: str) -> FoundMessage:
    at = row.content.lower().find(wanted.lower())
    at = max(at, 0)
    start = max(0, at - SNIPPET_CHARS)
    return FoundMessage(
        session_id=row.session_id,
        session_title=row.session_title,
        index=row.index,
        role=row.role,
        snippet=row.content[start : at + len(wanted) + SNIPPET_CHARS],
        match_start=at - start,
        match_end=at - start + len(wanted),
    )


def matching(
    connection: Connection, session_id: str, words: Sequence[str], *, limit: int
) -> list[tuple[int, float]]:
    """Indices of messages that hold any of the words, by BM25, best first."""
    wanted = [word for word in map(storable, words) if any(c.isalnum() for c in word)]
    if not wanted:
        return []
    if connection.dialect.name == "sqlite":
        return _matching_sqlite(connection, session_id, wanted, limit)
    return _matching_postgresql(connection, session_id, wanted, limit)


def _matching_sqlite(
    connection: Connection, session_id: str, words: list[str], limit: int
) -> list[tuple[int, float]]:
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    telling = [word for word in quoted if not _is_common(connection, session_id, word)]
    if telling:
        return _looked_up(connection, session_id, _RANKED, " OR ".join(telling), limit)
    together = _looked_up(connection, session_id, _LATEST, " AND ".join(quoted), limit)
    return together or _looked_up(connection, session_id, _LATEST, " OR ".join(quoted), limit)


_HOLDING = (
    "FROM messages_words JOIN messages ON messages.row = messages_words.rowid "
    "WHERE messages_words MATCH :wanted AND messages.session_id = :session_id "
)
_RANKED = sql(
    'SELECT messages."index", -bm25(messages_words, 0.0, 1.0) AS score '
    f"{_HOLDING} ORDER BY score DESC LIMIT :limit"
)
_LATEST = sql(  # reads no further than the limit
    f'SELECT messages."index", 1.0 {_HOLDING} ORDER BY messages_words.rowid DESC LIMIT :limit'
)
_COUNTED = sql(
    "SELECT count(*) FROM "
    "(SELECT 1 FROM messages_words WHERE messages_words MATCH :wanted LIMIT :limit)"
)


def _is_common(connection: Connection, session_id: str, word: str) -> bool:
    asked = {"wanted": _in_session(session_id, word), "limit": COMMON + 1}
    return bool(connection.execute(_COUNTED, asked).scalar_one() > COMMON)


def _looked_up(
    connection: Connection, session_id: str, query: TextClause, words: str, limit: int
) -> list[tuple[int, float]]:
    wanted = {"wanted": _in_session(session_id, words), "session_id": session_id, "limit": limit}
    return _best_per_index(connection.execute(query, wanted))


def _in_session(session_id: str, words: str) -> str:
    return f'session_id:"{session_id}" AND content:({words})'


def _matching_postgresql(
    connection: Connection, session_id: str, words: list[str], limit: int
) -> list[tuple[int, float]]:
    any_word = or_(
        *(literal_column("words").op("@@")(func.plainto_tsquery("english", w)) for w in words)
    )
    rank = sum(
        (
            func.ts_rank_cd(literal_column("words"), func.plainto_tsquery("english", word))
            for word in words[1:]
        ),
        start=func.ts_rank_cd(literal_column("words"), func.plainto_tsquery("english", words[0])),
    )
    rows = connection.execute(
        select(messages.c.index, rank.label("score"))
        .where(and_(messages.c.session_id == session_id, any_word))
        .order_by(rank.desc())
        .limit(limit)
    )
    return _best_per_index(rows)


def _best_per_index(rows: Any) -> list[tuple[int, float]]:
    best: dict[int, float] = {}
    for row in rows:
        best.setdefault(row[0], float(row[1]))
    return list(best.items())
