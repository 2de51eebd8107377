"""The slice that a model asked to see next, where every process sees it."""

from alembic import op
from sqlalchemy import Column, Integer

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Nothing is asked for in the sessions so far."""
    op.add_column("sessions", Column("requested_start", Integer))
    op.add_column("sessions", Column("requested_end", Integer))
