"""Typed tables of documents, and the results that conversations cite."""

from alembic import op

from rag.database import table_results, tables

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Documents that came before have no tables until they are read again."""
    connection = op.get_bind()
    tables.create(connection, checkfirst=True)
    table_results.create(connection, checkfirst=True)
    connection.exec_driver_sql("UPDATE documents SET content_hash = ''")
