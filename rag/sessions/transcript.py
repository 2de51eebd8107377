"""Messages of one session in the database: append, end, read, search, branch.

Statements check the session's owner themselves (see `rag.sessions.rows`). A function with a
session's id alone is called inside a transaction that has checked it.

A branch has its own copies of the turns before its message, so that it survives its parent and
every index stays. All branches of a conversation are a *family* with one register: a chunk has the
same number in each, and a number never means two chunks (`rag.sessions.rows`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import text as sql

from rag.citations.gate import canonical, in_words
from rag.citations.register import unwrapped
from rag.db import (
    answer_fingerprints,
    message_vectors,
    message_words,
    messages,
    sessions,
    sources,
    storable,
    summaries,
    table_results,
)
from rag.errors import Conflict, NotFound, UserError
from rag.records import ImportedMessage, Message, MessageStatus, Role, Session
from rag.seams import FoundMessage, MessageMatches, OpenTurn, SessionHandle, Versions
from rag.sessions.rows import (
    IS_MINE,
    ON_REQUEST,
    OWNED,
    TEXT_COLUMNS,
    SessionKey,
    absent,
    brief_message_from,
    check,
    details_of,
    fetch_rows,
    message_from,
    session_from,
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
_IN_LIST = messages.c.index.in_(bindparam("wanted", expanding=True))


def _of_session(*columns: Any) -> Select[Any]:
    mine = select(*columns).where(messages.c.session_id == bindparam("its_id"), OWNED)
    return mine.order_by(messages.c.index, messages.c.revision)


_MESSAGES = _of_session(messages).where(_IN_RANGE)
_SAVED: Select[Any] = select(literal_column("1")).where(
    message_vectors.c.session_id == messages.c.session_id,
    message_vectors.c.index == messages.c.index,
)
_BY_INDEX = _of_session(messages).where(_IN_LIST)
_TEXTS = _of_session(*TEXT_COLUMNS).where(_IN_RANGE)
_TEXTS_BY_INDEX = _of_session(*TEXT_COLUMNS).where(_IN_LIST)
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


def reserve(
    connection: Connection,
    key: SessionKey,
    count: int,
    *,
    now: datetime,
    title: str = "",
    turns: int = 1,
) -> tuple[int, int, int]:
    """Reserve the next `count` indices and the next turn numbers.

    Return the first index, the first turn, and how many sources there are at this moment. The row
    lock orders writers. `title` names a session that has none. Raises NotFound.
    """
    parameters = key.asking(added=count, turns=turns, now=now, new_title=title)
    row = connection.execute(_RESERVED, parameters).one_or_none()
    if row is None:
        raise absent(key)
    return row.message_count - count, row.turn_count - turns, row.source_count


def store(connection: Connection, session_id: str, *fresh: Message) -> tuple[Message, ...]:
    """Insert messages as they are."""
    insertable = tuple(replace(message, content=storable(message.content)) for message in fresh)
    rows = [
        {
            "session_id": session_id,
            "index": message.index,
            "revision": message.revision,
            "turn": message.turn,
            "role": message.role,
            "content": message.content,
            "status": message.status.value,
            "created_at": message.created_at,
            "details": details_of(message),
        }
        for message in insertable
    ]
    connection.execute(_ADDED, rows)
    return insertable


def begin(connection: Connection, key: SessionKey, question: str, *, now: datetime) -> OpenTurn:
    """Store a question and a pending answer; the first question names the session."""
    index, turn, count = reserve(connection, key, 2, now=now, title=_title_of(question))
    status = MessageStatus.COMPLETE
    message = Message(index, turn, Role.USER, question, status, now, known_sources=count)
    pending = Message(index + 1, turn, Role.ASSISTANT, "", MessageStatus.PENDING, now)
    return OpenTurn(*store(connection, key.id, message, pending))


def _title_of(question: str) -> str:
    return storable(" ".join(unwrapped(question).question.split()))[:TITLE_CHARS]


def begin_again(
    connection: Connection, key: SessionKey, session: Session, index: int, *, now: datetime
) -> OpenTurn:
    """Begin a new revision of the last answer; the caller holds the session's row lock."""
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
    """Return the answer at an index and its question."""
    there = {message.index: message for message in read(connection, key, index - 1, index + 1)}
    old, question = there.get(index), there.get(index - 1)
    if old is None or question is None or old.role != Role.ASSISTANT:
        raise NotFound(f"Message {index} is not an answer of this session.")
    if old.error == ERASED:
        raise NotFound(f"Message {index} was deleted.")
    return old, question


def erase(connection: Connection, key: SessionKey, session: Session, index: int) -> None:
    """Blank a question and all its answers; the caller holds the session's row lock."""
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
    """Store the verdicts of a finished answer; its text does not change."""
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


def read(
    connection: Connection, key: SessionKey, start: int, end: int, *, is_brief: bool = False
) -> list[Message]:
    """Return the newest revisions of messages `[start, end)`, in order.

    If it shall be brief, answers have their text only.
    """
    query, made = (_TEXTS, brief_message_from) if is_brief else (_MESSAGES, message_from)
    rows = fetch_rows(connection, key, query, first=start, stop=end)
    return [made(row) for row in _newest(rows)]


def read_at(
    connection: Connection, key: SessionKey, indices: Collection[int], *, is_brief: bool = False
) -> list[Message]:
    """Return the messages with these indices, as `read` does."""
    query, made = (_TEXTS_BY_INDEX, brief_message_from) if is_brief else (_BY_INDEX, message_from)
    return [made(row) for row in _newest(fetch_rows(connection, key, query, wanted=[*indices]))]


def without_vectors(
    connection: Connection, key: SessionKey, *, before: int, limit: int
) -> list[Message]:
    """Return the newest messages before an index that have a text and no vector."""
    rows = fetch_rows(connection, key, _WITHOUT_VECTORS, stop=before, most=limit)
    return [brief_message_from(row) for row in _newest(rows[::-1])]


def _newest(rows: Sequence[Any]) -> Sequence[Any]:
    return list({row.index: row for row in rows}.values())


# ── Search ───────────────────────────────────────────────────────────────────────────────────


def search(connection: Connection, scope: Any, text: str, *, limit: int) -> MessageMatches:
    """Return the newest messages that contain the text, ignoring case, within `scope`."""
    wanted = storable(text).strip()
    if not wanted:
        return MessageMatches((), 0)
    matching = _containing(connection, wanted).where(scope, NEWEST)
    rows = connection.execute(
        matching.order_by(messages.c.created_at.desc(), messages.c.row.desc()).limit(limit)
    ).all()
    total = len(rows)
    if total == limit:
        counted = matching.with_only_columns(func.count()).order_by(None)
        total = connection.execute(counted).scalar_one()
    return MessageMatches(tuple(_message_match(row, wanted) for row in rows), total)


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
    """Append imported messages; each that is not an answer begins a turn."""
    begins = [index == 0 or message.role != Role.ASSISTANT for index, message in enumerate(brought)]
    begun = [*accumulate(map(int, begins))]
    if not begun:
        return
    first, turn_before, _ = reserve(connection, key, len(brought), now=now, turns=begun[-1])
    complete = MessageStatus.COMPLETE
    fresh = [
        Message(index, turn_before + turn - 1, storable(one.role), one.content, complete, now)
        for index, (one, turn) in enumerate(zip(brought, begun, strict=True), start=first)
    ]
    store(connection, key.id, *fresh)


def canonical_message(message: ImportedMessage) -> ImportedMessage:
    """Return an answer in our spelling: citations as `[n]`, a JSON answer as its entries.

    An array of numbers in JSON is no citation; nothing else is changed.
    """
    if message.role != Role.ASSISTANT:
        return message
    return replace(message, content=canonical(in_words(message.content)))


MOST_IN_FAMILY = 200  # that are read; the newest
MOST_VERSIONS = 100  # that people may make of one conversation
_NOT_COPIED = {"row", "id", "session_id"}
_OF_THE_SESSION = ["owner", "title", "config", "epoch", "collections", "expires_at"]


# ── Making one ───────────────────────────────────────────────────────────────────────────────


def edited(session: SessionHandle, index: int) -> SessionHandle:
    """Return a branch in which this question can be replaced.

    Raises:
        UserError: no question stands there, or there are too many versions already.
        Conflict: what stands before it is still being written.
    """
    message = session.message(index)
    if message.role != Role.USER:
        raise UserError(
            f"Message {index} is of the {message.role}; only a question can be edited. "
            f"The question of this turn is message {max(0, index - 1)}."
        )
    if len(session.family()) >= MOST_VERSIONS:
        raise UserError(
            f"This conversation has {MOST_VERSIONS} versions; that is the most. Delete one first."
        )
    return session.branch(index)


def make(
    connection: Connection, parent: Session, branch_id: str, index: int, *, now: datetime
) -> None:
    """Make a session with the messages before an index, and the sources up to there.

    The caller holds the rows of the family.
    """
    its = messages.c.session_id == parent.id
    before = its & (messages.c.index < index)
    pending = before & (messages.c.status == MessageStatus.PENDING.value)
    if connection.execute(select(messages.c.index).where(pending)).first() is not None:
        raise Conflict("The answer before it is being written at this moment. Wait for its end.")
    family = parent.family or parent.id
    if parent.family is None:
        connection.execute(update(sessions).where(sessions.c.id == parent.id).values(family=family))
    turns = select(func.coalesce(func.max(messages.c.turn) + 1, 0)).where(before)
    count = select(func.coalesce(func.max(messages.c.index) + 1, 0)).where(before)
    row = connection.execute(select(sessions).where(sessions.c.id == parent.id)).one()
    connection.execute(
        insert(sessions).values(
            id=branch_id,
            **{name: row._mapping[name] for name in _OF_THE_SESSION},
            created_at=now,
            last_used_at=now,
            message_count=count.scalar_subquery(),
            turn_count=turns.scalar_subquery(),
            source_count=row.source_count,
            forgotten=min(row.forgotten, index),
            parent=parent.id,
            branch_index=index,
            family=family,
        )
    )
    existing = connection.execute(
        select(messages.c.details).where(its, messages.c.index == index)
    ).first()
    highest = None if existing is None else existing.details.get("known_sources")
    for table in (sources, table_results):
        shown = true() if highest is None else table.c.number <= highest
        _copy(connection, table, parent.id, branch_id, shown)
    _copy(connection, messages, parent.id, branch_id, messages.c.index < index)
    _copy(connection, message_vectors, parent.id, branch_id, message_vectors.c.index < index)
    _copy(connection, message_words, parent.id, branch_id, message_words.c.end < index)
    active = summaries.c.epoch.in_([row.epoch, ON_REQUEST]) & (summaries.c.end <= index)
    _copy(connection, summaries, parent.id, branch_id, active)


def _copy(
    connection: Connection,
    table: Table,
    parent_id: str,
    branch_id: str,
    condition: ColumnElement[bool],
) -> None:
    """Copy rows of one session to another, in one statement of the database."""
    columns = [column for column in table.c if column.name not in _NOT_COPIED]
    rows = select(literal(branch_id), *columns).where(table.c.session_id == parent_id, condition)
    names = ["session_id", *(column.name for column in columns)]
    connection.execute(insert(table).from_select(names, rows))


# ── The family ───────────────────────────────────────────────────────────────────────────────


def family(connection: Connection, session: Session) -> list[Session]:
    """Return all sessions that branched from one another, the first one first."""
    if session.family is None:
        return [session]
    its = (sessions.c.family == session.family) & (sessions.c.owner == session.owner)
    newest = select(sessions).where(its).order_by(sessions.c.last_used_at.desc())
    rows = connection.execute(newest.limit(MOST_IN_FAMILY))
    return sorted(map(session_from, rows), key=lambda one: (one.parent is not None, one.created_at))


def sharing(connection: Connection, session: Session, index: int) -> Iterator[Session]:
    """Yield the other sessions that hold the same message at this index."""
    everyone = family(connection, session)
    by_id = {other.id: other for other in everyone}
    for other in everyone:
        if other.id != session.id and _shared(by_id, session.id, other.id) > index:
            yield other


def versions_of(session: Session, everyone: Sequence[Session]) -> list[Versions]:
    """Return by index where the conversation branches; each version is its latest session."""
    by_id = {one.id: one for one in everyone}
    others: dict[int, list[Session]] = {}
    for other in everyone:
        is_empty = other.branch_index is not None and other.message_count <= other.branch_index
        if other.id != session.id and not is_empty:
            others.setdefault(_shared(by_id, session.id, other.id), []).append(other)
    versions = []
    for index in sorted(others):
        same = [one for place, ones in others.items() if place > index for one in ones]
        ways = [[session, *same]]
        for other in others[index]:
            for way in ways[1:]:
                if _shared(by_id, way[0].id, other.id) > index:
                    way.append(other)
                    break
            else:
                ways.append([other])
        ways.sort(key=lambda way: min((one.parent is not None, one.created_at) for one in way))
        latest = [
            session if session in way else max(way, key=lambda one: one.last_used_at)
            for way in ways
        ]
        versions.append(Versions(index, tuple(latest), latest.index(session)))
    return versions


def _shared(by_id: Mapping[str, Session], first: str, second: str) -> int:
    """Return how many messages two sessions of a family share."""
    above = dict(_upwards(by_id, first))
    for ancestor, least in _upwards(by_id, second):
        if ancestor in above:
            return min(least, above[ancestor])
    return 0


def _upwards(by_id: Mapping[str, Session], session_id: str) -> Iterator[tuple[str, int]]:
    """Yield a session and its ancestors, each with the number of shared messages."""
    least, current = 2**31 - 1, by_id.get(session_id)
    while current is not None:
        yield current.id, least
        least = min(least, current.branch_index or 0)
        current = by_id.get(current.parent or "")


_later = sessions.alias("later")
# Of a family the session that was used last; one in which nothing was asked yet does not count.
IS_LATEST = or_(
    sessions.c.family.is_(None),
    ~select(literal(1))
    .select_from(_later)
    .where(
        _later.c.family == sessions.c.family,
        _later.c.message_count > func.coalesce(_later.c.branch_index, -1),
        or_(
            _later.c.last_used_at > sessions.c.last_used_at,
            (_later.c.last_used_at == sessions.c.last_used_at) & (_later.c.id > sessions.c.id),
        ),
    )
    .correlate(sessions)
    .exists(),
)


# ── Deleting ─────────────────────────────────────────────────────────────────────────────────


def leave(connection: Connection, session_ids: Sequence[str] | Select[Any]) -> None:
    """Attach the branches of sessions that are deleted to the sessions above them.

    If there is none above, the oldest branch takes the place.
    """
    its = sessions.c.parent.in_(session_ids)
    for parent_id in set(connection.scalars(select(sessions.c.parent).where(its))):
        parent = connection.execute(select(sessions).where(sessions.c.id == parent_id)).one()
        children = connection.execute(
            select(sessions)
            .where(sessions.c.parent == parent_id)
            .order_by(sessions.c.branch_index.desc(), sessions.c.created_at)
        ).all()
        heir, highest = parent.parent, parent.branch_index
        if heir is None:
            heir, highest = children[0].id, children[0].branch_index
        for child in children:
            is_heir = child.id == heir
            place = None if is_heir else min(child.branch_index, highest)
            connection.execute(
                update(sessions)
                .where(sessions.c.id == child.id)
                .values(parent=None if is_heir else heir, branch_index=place)
            )
