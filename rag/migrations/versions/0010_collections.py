"""Documents belong to collections; what was there is in one that is open to everybody.

The word index learns in which collection a chunk is: on SQLite it is made anew with a column for
it. The vector index is told afterwards, by `moved_chunks`.
"""

from pathlib import Path

from alembic import op
from sqlalchemy import JSON, Column, String

from rag.database import collection_members, collections, moved_chunks

revision = "0010"
down_revision = "0009"

STATEMENTS = Path(__file__).parents[1] / "collections"


def upgrade() -> None:
    """Everybody reads and adds as before, and changes what they added."""
    connection = op.get_bind()
    for table in (collections, collection_members, moved_chunks):
        table.create(connection, checkfirst=True)
    connection.exec_driver_sql(
        "INSERT INTO collections (id, name, owner, everybody) VALUES ('1', 'Library', '', 2)"
    )
    for name in ("chunks", "jobs"):
        column = Column("collection_id", String(40), nullable=False, server_default="1")
        op.add_column(name, column)
    op.create_index("chunks_by_collection", "chunks", ["collection_id"])
    op.add_column("sessions", Column("collections", JSON))
    frozen = (STATEMENTS / f"{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in frozen.split("\n-- next\n"):
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(
        "INSERT INTO moved_chunks (id) SELECT id FROM chunks WHERE is_embedded"
    )
