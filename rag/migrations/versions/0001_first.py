"""The first schema."""

from alembic import op

from rag.database import metadata
from rag.retrieval.lexical_schema import POSTGRES_DDL, SQLITE_DDL

revision = "0001"
down_revision = None

# Session ids are words of the index too: a search in one session meets only its own messages.
SQLITE = (
    """CREATE VIRTUAL TABLE messages_substrings USING fts5(
        content, content='messages', content_rowid='row', tokenize='trigram')""",
    """CREATE VIRTUAL TABLE messages_words USING fts5(
        session_id, content, content='messages', content_rowid='row',
        tokenize='porter unicode61 remove_diacritics 2')""",
    """CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
        INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
        INSERT INTO messages_words (rowid, session_id, content)
            VALUES (new.row, new.session_id, new.content);
    END""",
    """CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
        INSERT INTO messages_substrings (messages_substrings, rowid, content)
            VALUES ('delete', old.row, old.content);
        INSERT INTO messages_words (messages_words, rowid, session_id, content)
            VALUES ('delete', old.row, old.session_id, old.content);
    END""",
    """CREATE TRIGGER messages_finished AFTER UPDATE OF content ON messages BEGIN
        INSERT INTO messages_substrings (messages_substrings, rowid, content)
            VALUES ('delete', old.row, old.content);
        INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
        INSERT INTO messages_words (messages_words, rowid, session_id, content)
            VALUES ('delete', old.row, old.session_id, old.content);
        INSERT INTO messages_words (rowid, session_id, content)
            VALUES (new.row, new.session_id, new.content);
    END""",
)
POSTGRESQL = (
    "ALTER TABLE messages ADD COLUMN words tsvector "
    "GENERATED ALWAYS AS (to_tsvector('english', content)) STORED",
    "CREATE INDEX messages_words ON messages USING gin (words)",
)


def upgrade() -> None:
    """Create all tables, and the text indexes that follow them."""
    connection = op.get_bind()
    metadata.create_all(connection)
    if connection.dialect.name == "sqlite":
        for statement in (*SQLITE, *SQLITE_DDL):
            connection.exec_driver_sql(statement)
        return
    for statement in (*POSTGRESQL, *POSTGRES_DDL):
        # The driver reads a per cent sign as a placeholder.
        connection.exec_driver_sql(statement.replace("%", "%%"))
