"""Titles and names of documents in folded case, so that the database looks for words in them."""

from alembic import op
from sqlalchemy import Column, Text, bindparam, column, select, table, update

revision = "0016"
down_revision = "0015"

DOCUMENTS = table("documents", column("id"), column("title"), column("name"), column("folded"))


def upgrade() -> None:
    """SQLite folds the case of ASCII letters alone, so it is done here."""
    op.add_column("documents", Column("folded", Text, nullable=False, server_default=""))
    connection = op.get_bind()
    stored = connection.execute(select(DOCUMENTS.c.id, DOCUMENTS.c.title, DOCUMENTS.c.name)).all()
    rows = [{"its_id": key, "told": f"{title} {name}".casefold()} for key, title, name in stored]
    if rows:
        is_it = DOCUMENTS.c.id == bindparam("its_id")
        connection.execute(update(DOCUMENTS).where(is_it).values(folded=bindparam("told")), rows)
