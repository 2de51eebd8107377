"""Who brought a document, and who asked for a job."""

from alembic import op
from sqlalchemy import Column, String

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """What is there already belongs to whoever runs the server."""
    for table in ("documents", "jobs"):
        op.add_column(table, Column("owner", String(200), nullable=False, server_default=""))
