"""Collections count what their documents went through."""

from alembic import op
from sqlalchemy import BigInteger, Column, inspect

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """A table made by 0010 today has the column already."""
    columns = inspect(op.get_bind()).get_columns("collections")
    if "version" not in {each["name"] for each in columns}:
        version = Column("version", BigInteger, nullable=False, server_default="0")
        op.add_column("collections", version)
