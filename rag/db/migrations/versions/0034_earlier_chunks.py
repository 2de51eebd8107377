"""Chunks that earlier readers made of the same file."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """What cites one of them has not changed."""
    op.create_table(
        "earlier_chunks",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column(
            "document_id",
            sa.String(40),
            sa.ForeignKey("documents.id", ondelete="CASCADE"),
            nullable=False,
        ),
    )
    op.create_index("earlier_chunks_by_document", "earlier_chunks", ["document_id"])
