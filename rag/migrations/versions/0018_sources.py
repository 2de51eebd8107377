"""Collections are kept in step with sources; documents tell where people open them there."""

from alembic import op
from sqlalchemy import Column, Text, inspect

from rag.database import document_sources, source_files

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """A table made by an earlier revision today has the column already."""
    connection = op.get_bind()
    for table in (document_sources, source_files):
        table.create(connection, checkfirst=True)
    if "url" not in {each["name"] for each in inspect(connection).get_columns("documents")}:
        op.add_column("documents", Column("url", Text, nullable=False, server_default=""))
