"""The words of each session side by side in SQLite's index, so that a look-up reads no other's.

A row of the index is the session's number above 32 bits, and the message's row below them. The
numbers go after the messages: a deleted session's are still known while its words are taken out.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

ROW = (
    "(SELECT number FROM messages_words_sessions WHERE session_id = {of}.session_id) "
    "* 4294967296 + {of}.row"
)
NEW, OLD = ROW.format(of="new"), ROW.format(of="old")
ADD = f"""
    INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
    INSERT INTO messages_words (rowid, content) VALUES ({NEW}, new.content);
"""
REMOVE = f"""
    INSERT INTO messages_substrings (messages_substrings, rowid, content)
        VALUES ('delete', old.row, old.content);
    INSERT INTO messages_words (messages_words, rowid, content)
        VALUES ('delete', {OLD}, old.content);
"""
STATEMENTS = (
    "DROP TRIGGER messages_added",
    "DROP TRIGGER messages_removed",
    "DROP TRIGGER messages_finished",
    "DROP TABLE messages_words",
    """CREATE TABLE messages_words_sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id VARCHAR(40) NOT NULL UNIQUE
    )""",
    "INSERT INTO messages_words_sessions (session_id) SELECT id FROM sessions",
    """CREATE VIRTUAL TABLE messages_words USING fts5(
        content, content='', tokenize='porter unicode61 remove_diacritics 2')""",
    f"""INSERT INTO messages_words (rowid, content)
        SELECT {ROW.format(of="messages")}, content FROM messages ORDER BY 1""",
    f"CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN {ADD} END",
    f"CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN {REMOVE} END",
    f"CREATE TRIGGER messages_finished AFTER UPDATE OF content ON messages BEGIN {REMOVE}{ADD} END",
    """CREATE TRIGGER sessions_added AFTER INSERT ON sessions BEGIN
        INSERT INTO messages_words_sessions (session_id) VALUES (new.id);
    END""",
    """CREATE TRIGGER sessions_removed AFTER DELETE ON sessions BEGIN
        DELETE FROM messages_words_sessions WHERE session_id = old.id;
    END""",
)


def upgrade() -> None:
    """Number the sessions and index all messages anew; PostgreSQL has no such index."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for statement in STATEMENTS:
            connection.exec_driver_sql(statement)
