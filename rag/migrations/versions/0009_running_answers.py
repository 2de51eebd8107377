"""Answers that are being written, for all processes to see."""

from alembic import op

from rag.database import running_answers

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Nothing is being written yet."""
    running_answers.create(op.get_bind(), checkfirst=True)
