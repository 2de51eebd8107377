"""Branches: an earlier question that was edited goes on in a session of its own.

And the model that somebody picked for a conversation.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Those that are there are branches of none."""
    op.add_column("sessions", sa.Column("parent", sa.String(40)))
    op.add_column("sessions", sa.Column("branch_index", sa.Integer))
    op.add_column("sessions", sa.Column("family", sa.String(40)))
    op.add_column("sessions", sa.Column("model", sa.Text))
    op.create_index("sessions_by_family", "sessions", ["family"])
