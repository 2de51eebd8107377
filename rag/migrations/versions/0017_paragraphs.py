"""What is remembered is paragraphs: what was derived in other ways goes, the transcripts stay."""

from alembic import op
from sqlalchemy import Column, Integer

revision = "0017"
down_revision = "0016"

WITHOUT_WORDS = (
    "DROP TRIGGER messages_added",
    "DROP TRIGGER messages_removed",
    "DROP TRIGGER messages_finished",
    "DROP TRIGGER sessions_added",
    "DROP TRIGGER sessions_removed",
    "DROP TABLE messages_words",
    "DROP TABLE messages_words_sessions",
)
ADD = "INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);"
REMOVE = (
    "INSERT INTO messages_substrings (messages_substrings, rowid, content) "
    "VALUES ('delete', old.row, old.content);"
)
WITH_SUBSTRINGS = (
    f"CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN {ADD} END",
    f"CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN {REMOVE} END",
    f"CREATE TRIGGER messages_finished AFTER UPDATE OF content ON messages BEGIN {REMOVE}{ADD} END",
)


def upgrade() -> None:
    """Summaries and vectors are made anew of the messages, with the next turns."""
    op.execute("DELETE FROM summaries")
    op.execute("DELETE FROM message_vectors")
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in WITHOUT_WORDS:
            connection.exec_driver_sql(statement)
    else:
        connection.exec_driver_sql("ALTER TABLE messages DROP COLUMN words")
    op.add_column("sessions", Column("forgotten", Integer, nullable=False, server_default="0"))
    with op.batch_alter_table("summaries") as table:
        table.drop_column("choices")
    if connection.dialect.name == "sqlite":
        for statement in WITH_SUBSTRINGS:
            connection.exec_driver_sql(statement)
