"""What reading a document gave, and what was left out of it."""

from alembic import op
from sqlalchemy import JSON, Column

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Documents of before have an empty report until they are read again."""
    op.add_column("documents", Column("report", JSON, nullable=False, server_default="{}"))
