"""Messages of one session in the database: append, end, read, search.

Statements ask for the session's owner themselves (see `rag.sessions.rows`). A function that
is given a session's id alone is called inside a transaction in which that was made sure.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    Text,
    Update,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy import text as sql

from rag.citations.gate import canonical, in_words
from rag.citations.register import unwrapped
from rag.db import answer_fingerprints, message_vectors, messages, sessions, storable
from rag.errors import Conflict, NotFound
from rag.records import ImportedMessage, Message, MessageStatus, Role, Session
from rag.seams import FoundMessage, FoundMessages, OpenTurn
from rag.sessions.rows import (
    IS_MINE,
    OWNED,
    TEXT_COLUMNS,
    SessionKey,
    absent,
    brief_message_from,
    check,
    details_of,
    fetch_rows,
    message_from,
)

SNIPPET_CHARS = 80  # on each side of a match
TITLE_CHARS = 80
ERASED = "Deleted."  # stands where an answer was
BLANKS = " \t\r\n"
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

# Put together once: every turn reads and writes by them.
_IN_RANGE = (messages.c.index >= bindparam("first")) & (messages.c.index < bindparam("stop"))


def _of_session(*columns: Any) -> Select[Any]:
    mine = select(*columns).where(messages.c.session_id == bindparam("its_id"), OWNED)
    return mine.order_by(messages.c.index, messages.c.revision)


_MESSAGES = _of_session(messages).where(_IN_RANGE)
_SAVED: Select[Any] = select(literal_column("1")).where(
    message_vectors.c.session_id == messages.c.session_id,
    message_vectors.c.index == messages.c.index,
)
_BY_INDEX = _of_session(messages).where(messages.c.index.in_(bindparam("wanted", expanding=True)))
_TEXTS = _of_session(*TEXT_COLUMNS).where(_IN_RANGE)
_TEXTS_BY_INDEX = _of_session(*TEXT_COLUMNS).where(
    messages.c.index.in_(bindparam("wanted", expanding=True))
)
_WITHOUT_VECTORS = (
    select(*TEXT_COLUMNS)
    .where(messages.c.session_id == bindparam("its_id"), OWNED)
    .where(messages.c.index < bindparam("stop"))
    .where(func.trim(messages.c.content, BLANKS) != "")
    .where(~_SAVED.exists())
    .order_by(messages.c.index.desc(), messages.c.revision.desc())
    .limit(bindparam("most"))
)
_RESERVED = (
    update(sessions)
    .where(IS_MINE)
    .values(
        message_count=sessions.c.message_count + bindparam("added"),
        turn_count=sessions.c.turn_count + bindparam("turns"),
        last_used_at=bindparam("now"),
        title=case(
            (sessions.c.title == "", bindparam("new_title", type_=Text)), else_=sessions.c.title
        ),
    )
    .returning(sessions.c.message_count, sessions.c.turn_count, sessions.c.source_count)
)
_ADDED = insert(messages)
_UPDATED = (
    update(messages)
    .where(
        messages.c.session_id == bindparam("its_id"),
        messages.c.index == bindparam("at"),
        messages.c.revision == bindparam("at_revision"),
        messages.c.role == Role.ASSISTANT.value,
        OWNED,
    )
    .values(details=bindparam("new_details"))
)
_FINISHED = _UPDATED.where(messages.c.status == MessageStatus.PENDING.value).values(
    content=bindparam("said"), status=bindparam("ended")
)
_JUDGED = _UPDATED.where(messages.c.status == MessageStatus.COMPLETE.value)


@dataclass(frozen=True, slots=True)
class NewMessages:
    """What is taken for new messages, and how many sources there were at that moment."""

    index: int  # of the first message
    turn: int
    sources: int


def reserve(
    connection: Connection,
    key: SessionKey,
    count: int,
    *,
    now: datetime,
    title: str = "",
    turns: int = 1,
) -> NewMessages:
    """Take the next `count` indices and the next turn numbers.

    The row lock orders writers. A session without a title gets this one. Raises NotFound.
    """
    parameters = key.asking(added=count, turns=turns, now=now, new_title=title)
    place = connection.execute(_RESERVED, parameters).one_or_none()
    if place is None:
        raise absent(key)
    return NewMessages(place.message_count - count, place.turn_count - turns, place.source_count)


def store(connection: Connection, session_id: str, *fresh: Message) -> tuple[Message, ...]:
    """Insert messages as they are."""
    insertable = tuple(replace(message, content=storable(message.content)) for message in fresh)
    connection.execute(
        _ADDED, [{"session_id": session_id, **_columns(message)} for message in insertable]
    )
    return insertable


def _columns(message: Message) -> dict[str, Any]:
    return {
        "index": message.index,
        "revision": message.revision,
        "turn": message.turn,
        "role": message.role,
        "content": message.content,
        "status": message.status.value,
        "created_at": message.created_at,
        "details": details_of(message),
    }


def begin(connection: Connection, key: SessionKey, question: str, *, now: datetime) -> OpenTurn:
    """Store a question and the place of its answer; the first one names the session."""
    place = reserve(connection, key, 2, now=now, title=_title_of(question))
    index, turn, status = place.index, place.turn, MessageStatus.COMPLETE
    message = Message(index, turn, Role.USER, question, status, now, known_sources=place.sources)
    pending = Message(index + 1, turn, Role.ASSISTANT, "", MessageStatus.PENDING, now)
    return OpenTurn(*store(connection, key.id, message, pending))


def _title_of(question: str) -> str:
    return storable(" ".join(unwrapped(question).question.split()))[:TITLE_CHARS]


def begin_again(
    connection: Connection, key: SessionKey, session: Session, index: int, *, now: datetime
) -> OpenTurn:
    """A new revision of the last answer; the caller holds the session's row lock."""
    old, question = _answer_with_question(connection, key, index)
    if index != session.message_count - 1:
        raise Conflict(
            f"Only the last answer (message {session.message_count - 1}) can be written again, "
            f"not message {index}: later turns build on it."
        )
    if old.status is MessageStatus.PENDING:
        raise Conflict(f"Message {index} is being written at this moment. Wait for its end.")
    connection.execute(  # recall shall not find the new answer by what the old one meant
        delete(message_vectors).where(
            message_vectors.c.session_id == session.id, message_vectors.c.index == index
        )
    )
    status, revision = MessageStatus.PENDING, old.revision + 1
    fresh = Message(index, old.turn, Role.ASSISTANT, "", status, now, revision)
    return OpenTurn(question, *store(connection, session.id, fresh))


def _answer_with_question(
    connection: Connection, key: SessionKey, index: int
) -> tuple[Message, Message]:
    """An answer and its question."""
    there = {message.index: message for message in read(connection, key, index - 1, index + 1)}
    old, question = there.get(index), there.get(index - 1)
    if old is None or question is None or old.role != Role.ASSISTANT:
        raise NotFound(f"Message {index} is not an answer of this session.")
    if old.error == ERASED:
        raise NotFound(f"Message {index} was deleted.")
    return old, question


def erase(connection: Connection, key: SessionKey, session: Session, index: int) -> None:
    """Blank a question and all that was answered to it; the caller holds the session's row lock."""
    old, question = _answer_with_question(connection, key, index)
    if old.status is MessageStatus.PENDING:
        raise Conflict(f"Message {index} is being written at this moment. Wait for its end.")
    its = messages.c.session_id == session.id
    connection.execute(
        update(messages)
        .where(its, messages.c.index == index)
        .values(content="", status=MessageStatus.FAILED.value, details={"error": ERASED})
    )
    connection.execute(
        update(messages).where(its, messages.c.index == index - 1).values(content="")
    )
    fingerprints = answer_fingerprints
    connection.execute(
        delete(fingerprints).where(
            fingerprints.c.session_id == session.id, fingerprints.c.index == index
        )
    )
    vectors = message_vectors.c.index.in_([index - 1, index])
    connection.execute(
        delete(message_vectors).where(message_vectors.c.session_id == session.id, vectors)
    )
    begins = (_title_of(question.content), " ".join(question.content.split()))
    if session.title and any(text.startswith(session.title) for text in begins):
        connection.execute(update(sessions).where(sessions.c.id == session.id).values(title=""))


def finish(connection: Connection, key: SessionKey, answer: Message) -> Message:
    """End a pending answer, once."""
    answer = replace(answer, content=storable(answer.content))
    ended = {"said": answer.content, "ended": answer.status.value}
    _change(connection, key, answer, _FINISHED, "has ended already", **ended)
    return answer


def judge(connection: Connection, key: SessionKey, answer: Message) -> Message:
    """Tell more of a finished answer, without a word of it."""
    _change(connection, key, answer, _JUDGED, "is not a finished answer")
    return answer


def _change(
    connection: Connection,
    key: SessionKey,
    answer: Message,
    change: Update,
    reason: str,
    **more: str,
) -> None:
    parameters = {
        "at": answer.index,
        "at_revision": answer.revision,
        "new_details": details_of(answer),
    }
    if connection.execute(change, key.asking(**parameters, **more)).rowcount != 1:
        check(connection, key)
        raise Conflict(f"Message {answer.index} {reason}; nothing was changed.")


def read(connection: Connection, key: SessionKey, start: int, end: int) -> list[Message]:
    """The newest revisions of messages `[start, end)`, in order."""
    rows = fetch_rows(connection, key, _MESSAGES, first=start, stop=end)
    return [message_from(row) for row in _newest(rows)]


def read_at(connection: Connection, key: SessionKey, indices: Collection[int]) -> list[Message]:
    """As `read`, those with these indices."""
    return [
        message_from(row)
        for row in _newest(fetch_rows(connection, key, _BY_INDEX, wanted=[*indices]))
    ]


def read_brief(connection: Connection, key: SessionKey, start: int, end: int) -> list[Message]:
    """As `read`, without what is known of answers beside their text."""
    rows = fetch_rows(connection, key, _TEXTS, first=start, stop=end)
    return [brief_message_from(row) for row in _newest(rows)]


def read_brief_at(
    connection: Connection, key: SessionKey, indices: Collection[int]
) -> list[Message]:
    """As `read_brief`, those with these indices."""
    rows = fetch_rows(connection, key, _TEXTS_BY_INDEX, wanted=[*indices])
    return [brief_message_from(row) for row in _newest(rows)]


def without_vectors(
    connection: Connection, key: SessionKey, *, before: int, limit: int
) -> list[Message]:
    """The newest messages before an index that say something and have no vector."""
    rows = fetch_rows(connection, key, _WITHOUT_VECTORS, stop=before, most=limit)
    return [brief_message_from(row) for row in _newest(rows[::-1])]


def _newest(rows: Sequence[Any]) -> Sequence[Any]:
    return list({row.index: row for row in rows}.values())


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
    return FoundMessages(tuple(_message_match(row, wanted) for row in rows), total)


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


def _message_match(row: Any, wanted: str) -> FoundMessage:
    start_of_match = max(row.content.lower().find(wanted.lower()), 0)
    start = max(0, start_of_match - SNIPPET_CHARS)
    return FoundMessage(
        session_id=row.session_id,
        session_title=row.session_title,
        index=row.index,
        role=row.role,
        snippet=row.content[start : start_of_match + len(wanted) + SNIPPET_CHARS],
        match_start=start_of_match - start,
        match_end=start_of_match - start + len(wanted),
    )


def bring(
    connection: Connection, key: SessionKey, brought: Sequence[ImportedMessage], *, now: datetime
) -> None:
    """Append messages from elsewhere; a turn begins at each that is not an answer."""
    begins = [index == 0 or message.role != Role.ASSISTANT for index, message in enumerate(brought)]
    begun = [*accumulate(map(int, begins))]
    if not begun:
        return
    place = reserve(connection, key, len(brought), now=now, turns=begun[-1])
    fresh = [
        Message(
            place.index + index,
            place.turn + turn - 1,
            storable(message.role),
            message.content,
            MessageStatus.COMPLETE,
            now,
        )
        for index, (message, turn) in enumerate(zip(brought, begun, strict=True))
    ]
    store(connection, key.id, *fresh)


def canonical_message(message: ImportedMessage) -> ImportedMessage:
    """An answer with its citations spelled as ours are, JSON as its entries, where no array is a
    citation; nothing else is touched."""
    if message.role != Role.ASSISTANT:
        return message
    return replace(message, content=canonical(in_words(message.content)))
