"""Words of the older messages of long sessions, so that no turn reads all that was said."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """It is filled in the background, after the next answer of a long session."""
    op.create_table(
        "message_words",
        sa.Column(
            "session_id",
            sa.String(40),
            sa.ForeignKey("sessions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("word", sa.Text, primary_key=True),
        sa.Column("end", sa.Integer, primary_key=True),
        sa.Column("postings", sa.LargeBinary, nullable=False),
    )
