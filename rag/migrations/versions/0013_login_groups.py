"""Logins hold the groups that a login provider named."""

from alembic import op
from sqlalchemy import JSON, Column, inspect

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Logins of before have none. A table made by 0005 today has the column already."""
    if "groups" not in {each["name"] for each in inspect(op.get_bind()).get_columns("logins")}:
        op.add_column("logins", Column("groups", JSON, nullable=False, server_default="[]"))
