"""Work that processes share: claims on chunks, jobs that are tried again, figures of all."""

from alembic import op
from sqlalchemy import Column, DateTime, Integer

from rag.database import embedding_claims, measurements

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Nothing is claimed or counted yet."""
    for table in (embedding_claims, measurements):
        table.create(op.get_bind(), checkfirst=True)
    op.add_column("jobs", Column("attempts", Integer, nullable=False, server_default="0"))
    op.add_column("jobs", Column("due_at", DateTime(timezone=True)))
