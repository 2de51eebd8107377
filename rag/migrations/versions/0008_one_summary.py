"""One summary stands for all that is summarised; those that others stood in for are gone."""

import sqlalchemy
from alembic import op

revision = "0008"
down_revision = "0007"

ON_REQUEST = -1  # the epoch of summaries made on request


def upgrade() -> None:
    """Replaced summaries can be made again from the messages; what they claimed, too."""
    op.execute(f"DELETE FROM summaries WHERE NOT is_active AND epoch <> {ON_REQUEST}")
    with op.batch_alter_table("summaries") as table:
        table.drop_index("summaries_by_session")
        table.drop_constraint("one_summary_per_range", type_="unique")
        table.drop_column("is_fold")
        table.drop_column("is_active")
        table.drop_column("claims")
        table.add_column(sqlalchemy.Column("choices", sqlalchemy.JSON, nullable=True))
        table.create_unique_constraint(
            "one_summary_per_range", ["session_id", "epoch", "start", "end"]
        )
