"""A second model's vectors, and the codes that passages hold."""

import sqlalchemy as sa
from alembic import op

from rag.language.names import identifiers

revision = "0033"
down_revision = "0030"

BATCH = 2_000


def upgrade() -> None:
    """Two tables; the codes of what is there are read now."""
    op.create_table(
        "second_vectors",
        sa.Column(
            "chunk_id",
            sa.String(40),
            sa.ForeignKey("chunks.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("model", sa.String(80), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    codes = op.create_table(
        "identifiers",
        sa.Column(
            "chunk_id",
            sa.String(40),
            sa.ForeignKey("chunks.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("code", sa.String(40), primary_key=True),
        sa.Column("written", sa.String(80), nullable=False),
    )
    op.create_index("identifiers_by_code", "identifiers", ["code"])
    connection, last = op.get_bind(), 0
    after = sa.text(
        "SELECT row, id, heading, text FROM chunks WHERE row > :last ORDER BY row LIMIT :many"
    )
    while rows := connection.execute(after, {"last": last, "many": BATCH}).all():
        last = rows[-1].row
        results = [
            {"chunk_id": row.id, "code": identifier.code, "written": identifier.written}
            for row in rows
            for identifier in identifiers(f"{row.heading}\n{row.text}")
        ]
        if results:
            connection.execute(sa.insert(codes), results)
