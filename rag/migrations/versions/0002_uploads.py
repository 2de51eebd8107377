"""Uploads in the database, for several hosts."""

from alembic import op

from rag.database import uploads

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table, unless the first schema was created after it was thought of."""
    uploads.create(op.get_bind(), checkfirst=True)
