"""Branches of a conversation: from an earlier message on it goes on in a session of its own.

A branch has the turns before that message for itself, copied row by row as they are, so that it
survives its parent and every index stays what it was. All branches of a conversation are one
*family* with one register: a chunk has the same number in each, and no number is ever given
otherwise in another (`rag.sessions.register_rows`).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)

from rag.db import (
    message_vectors,
    message_words,
    messages,
    sessions,
    sources,
    summaries,
    table_results,
)
from rag.errors import Conflict, NotFound, UserError
from rag.records import MessageStatus, Role, Session
from rag.seams import SessionHandle, Versions
from rag.sessions.rows import ON_REQUEST, session_from

MOST_IN_FAMILY = 200  # that are read; the newest
MOST_VERSIONS = 100  # that people may make of one conversation
_NOT_COPIED = {"row", "id", "session_id"}
_OF_THE_SESSION = ["owner", "title", "config", "epoch", "collections", "expires_at"]


# ── Making one ───────────────────────────────────────────────────────────────────────────────


def edited(session: SessionHandle, index: int) -> SessionHandle:
    """A branch in which another question can be asked in place of this one.

    Raises:
        UserError: no question stands there, or there are too many versions already.
        Conflict: what stands before it is still being written.
    """
    message = next(iter(session.messages(index, index + 1)), None)
    if message is None:
        raise NotFound(f"There is no message {index} in this session.")
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
    """A session with the messages before an index and the sources that they were asked with.

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
    """Rows of one session for another, by one statement in the database."""
    columns = [column for column in table.c if column.name not in _NOT_COPIED]
    rows = select(literal(branch_id), *columns).where(table.c.session_id == parent_id, condition)
    names = ["session_id", *(column.name for column in columns)]
    connection.execute(insert(table).from_select(names, rows))


# ── The family ───────────────────────────────────────────────────────────────────────────────


def family(connection: Connection, session: Session) -> list[Session]:
    """All sessions that branched from one another, the first one first; of one alone, itself."""
    if session.family is None:
        return [session]
    its = (sessions.c.family == session.family) & (sessions.c.owner == session.owner)
    newest = select(sessions).where(its).order_by(sessions.c.last_used_at.desc())
    rows = connection.execute(newest.limit(MOST_IN_FAMILY))
    return sorted(map(session_from, rows), key=lambda one: (one.parent is not None, one.created_at))


def sharing(connection: Connection, session: Session, index: int) -> Iterator[Session]:
    """Other sessions that hold the same message at this index."""
    everyone = family(connection, session)
    by_id = {other.id: other for other in everyone}
    for other in everyone:
        if other.id != session.id and _shared(by_id, session.id, other.id) > index:
            yield other


def versions_of(session: Session, everyone: Sequence[Session]) -> list[Versions]:
    """Where the conversation went on in several ways, by index; each way is its latest session."""
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
    """How many messages two sessions of a family have in common."""
    above = dict(_upwards(by_id, first))
    for ancestor, least in _upwards(by_id, second):
        if ancestor in above:
            return min(least, above[ancestor])
    return 0


def _upwards(by_id: Mapping[str, Session], session_id: str) -> Iterator[tuple[str, int]]:
    """A session and those that it branched from, each with how many messages are still shared."""
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
    """Hang the branches of sessions that are about to go where these hung.

    Of one that hung nowhere the oldest branch takes the place.
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
