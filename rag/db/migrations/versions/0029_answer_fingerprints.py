"""What answers are known again by, made of those that are stored, so that talks go on."""

import sqlalchemy as sa
from alembic import op

from rag.citations.register import ANYBODY, stored_keys

revision = "0029"
down_revision = "0028"

AT_ONCE = 500  # messages


def upgrade() -> None:
    """Make the table, and fill it."""
    op.create_table(
        "answer_fingerprints",
        sa.Column("owner", sa.String(200), primary_key=True),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column(
            "session_id",
            sa.String(40),
            sa.ForeignKey("sessions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("index", sa.Integer, primary_key=True),
    )
    op.create_index(
        "answer_fingerprints_by_session", "answer_fingerprints", ["session_id", "index"]
    )
    _fill(op.get_bind())


def _fill(connection: sa.Connection) -> None:
    """From each answer with its question, in the order of sessions."""
    messages = sa.table(
        "messages", *map(sa.column, ("session_id", "index", "revision", "role", "content"))
    )
    sessions = sa.table("sessions", sa.column("id"), sa.column("owner"))
    table = sa.table(
        "answer_fingerprints", *map(sa.column, ("owner", "key", "session_id", "index"))
    )
    place = (messages.c.session_id, messages.c.index, messages.c.revision)
    wanted = sa.select(*place, messages.c.role, messages.c.content, sessions.c.owner)
    wanted = wanted.join_from(messages, sessions, sessions.c.id == messages.c.session_id)
    after, question = ("", -1, -1), ("", -1, "")
    while rows := connection.execute(
        wanted.where(sa.tuple_(*place) > sa.tuple_(*map(sa.literal, after)))
        .order_by(*place)
        .limit(AT_ONCE)
    ).all():
        fresh = set()
        for session_id, index, revision, role, content, owner in rows:
            after = (session_id, index, revision)
            if role != "assistant":
                question = (session_id, index, content)
                continue
            asked = question[2] if question[:2] == (session_id, index - 1) else ""
            keys = stored_keys(ANYBODY, asked, content)
            fresh |= {(owner, key, session_id, index) for key in keys}
        known = _known(connection, table, {each[2:] for each in fresh})
        if fresh - known:
            names = ("owner", "key", "session_id", "index")
            values = [dict(zip(names, each, strict=True)) for each in sorted(fresh - known)]
            connection.execute(sa.insert(table), values)


def _known(
    connection: sa.Connection, table: sa.TableClause, places: set[tuple[str, int]]
) -> set[tuple[str, str, str, int]]:
    """Those that an earlier revision of the same answers gave."""
    ids = sorted({session_id for session_id, _ in places})
    if not ids:
        return set()
    rows = connection.execute(sa.select(*table.c).where(table.c.session_id.in_(ids)))
    known = ((row.owner, row.key, row.session_id, int(row[3])) for row in rows)
    return {each for each in known if each[2:] in places}
