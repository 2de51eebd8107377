"""The first schema, with the text indexes that follow its tables.

Its number is that of the schema as it was before the first release, which it is: what was made then
goes on.
"""

from alembic import op

from rag.db.engine import FIRST_SCHEMA, run_statements

revision = "0018"
down_revision = None


def upgrade() -> None:
    """Run the statements that were frozen for this database."""
    connection = op.get_bind()
    for name in ("{}.sql", "{}_text.sql"):
        run_statements(connection, FIRST_SCHEMA / name.format(connection.dialect.name))
