"""A conversation of which nothing that is said is kept goes after a day."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Those that are there stay."""
    op.add_column("sessions", sa.Column("expires_at", sa.DateTime(timezone=True)))
