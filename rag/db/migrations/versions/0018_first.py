"""The first schema, with the text indexes that follow its tables.

Its number is that of the schema as it was before the first release, which it is: what was made then
goes on.
"""

from pathlib import Path

from alembic import op

revision = "0018"
down_revision = None

STATEMENTS = Path(__file__).parents[1] / "first"


def upgrade() -> None:
    """Run the statements that were frozen for this database."""
    connection = op.get_bind()
    name = connection.dialect.name
    for statement in (STATEMENTS / f"{name}.sql").read_text(encoding="utf-8").split("\n-- next\n"):
        # The PostgreSQL driver reads a per cent sign as a placeholder.
        is_postgresql = name == "postgresql"
        connection.exec_driver_sql(statement.replace("%", "%%") if is_postgresql else statement)
