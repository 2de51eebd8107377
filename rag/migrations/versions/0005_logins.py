"""Logins of browsers, and the audit trail."""

from alembic import op

from rag.database import audit, logins

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Whoever was logged in logs in again: cookies of before hold no secret."""
    for table in (logins, audit):
        table.create(op.get_bind(), checkfirst=True)
