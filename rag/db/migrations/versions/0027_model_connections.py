"""A language model can be connected in the browser."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0018"


def upgrade() -> None:
    """One small table."""
    op.create_table(
        "model_connections",
        sa.Column("standing", sa.String(20), primary_key=True),
        sa.Column("base_url", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("api_key", sa.Text, nullable=False),
        sa.Column("choices", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
    )
