"""Jobs tell whether the text of their upload has arrived among the documents."""

from alembic import op
from sqlalchemy import Boolean, Column, false, inspect

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """A table made by an earlier revision today has the column already."""
    columns = inspect(op.get_bind()).get_columns("jobs")
    if "has_arrived" not in {each["name"] for each in columns}:
        op.add_column(
            "jobs", Column("has_arrived", Boolean, nullable=False, server_default=false())
        )
