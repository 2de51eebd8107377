"""What clients call their sessions, and what models want of the next context."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Sessions that are there have neither."""
    op.add_column("sessions", sa.Column("client_id", sa.String(64)))
    op.add_column("sessions", sa.Column("preferences", sa.JSON))
    op.create_index("one_session_per_client_id", "sessions", ["owner", "client_id"], unique=True)
