"""Every table in SQLAlchemy Core: the schema of a new database and the result of all migrations."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

metadata = MetaData()
# SQLite numbers rows only in a column of type INTEGER, always with 64 bits.
WideInteger = BigInteger().with_variant(Integer, "sqlite")

collections = Table(
    "collections",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("owner", String(200), nullable=False),
    Column("everybody", Integer, nullable=False),  # a Right
    # Raised with every change of its documents: see `versions`.
    Column("version", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("owner", "name", name="one_collection_per_name"),
)

collection_members = Table(
    "collection_members",
    metadata,
    Column("collection_id", ForeignKey("collections.id", ondelete="CASCADE"), primary_key=True),
    Column("member", String(220), primary_key=True),  # an owner, or "group:" and a group
    Column("right", Integer, nullable=False),
    Index("collections_by_member", "member"),
)

documents = Table(
    "documents",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("chunk_count", Integer, nullable=False),
    Column("names", JSON, nullable=False),
    Column("ingested_at", DateTime(timezone=True), nullable=False),
    Column("owner", String(200), nullable=False, server_default=""),  # empty: the operator
    Column("collection_id", ForeignKey("collections.id"), nullable=False),
    UniqueConstraint("collection_id", "name", name="one_document_per_name"),
    Column("report", JSON, nullable=False, server_default="{}"),  # ReadingReport
    # Title and name in case-folded form, for searching words.
    Column("folded", Text, nullable=False, server_default=""),
    Column("url", Text, nullable=False, server_default=""),  # its link at the source
)

# Sources that collections are synchronised with.
document_sources = Table(
    "document_sources",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("address", Text, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("name", Text, nullable=False),
    Column("collection_id", ForeignKey("collections.id"), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("include", JSON, nullable=False),
    Column("exclude", JSON, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("every_seconds", Integer),
    Column("watch", Boolean, nullable=False),
    Column("is_operators", Boolean, nullable=False),
    Column("state", String(20), nullable=False),  # a SyncState
    Column("reason", Text, nullable=False),
    Column("counts", JSON, nullable=False),  # SyncCounts
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("last_synced_at", DateTime(timezone=True)),
    Column("next_due_at", DateTime(timezone=True)),
    UniqueConstraint("collection_id", "address", name="one_source_per_address"),
    Index("sources_by_due", "next_due_at"),
)

# Files of the sources, each with its document; removed ones stay for a while.
source_files = Table(
    "source_files",
    metadata,
    Column("source_id", ForeignKey("document_sources.id", ondelete="CASCADE"), primary_key=True),
    Column("document_id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("document_name", Text, nullable=False),
    Column("mark", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    Column("size", BigInteger),
    Column("url", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("standing", String(20), nullable=False),  # a Standing
    Column("removed_at", DateTime(timezone=True)),
    Index("source_files_by_document", "document_id"),
    Index("source_files_by_content", "content_hash"),
)

sections = Table(
    "sections",
    metadata,
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("heading_path", JSON, nullable=False),
    Column("locator", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("page", Integer),
)

# Word search reads an index that triggers (SQLite) or a generated column (PostgreSQL) keep
# equal to this table; see migrations/first.
chunks = Table(
    "chunks",
    metadata,
    Column("row", WideInteger, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False, unique=True),
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("section_index", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("locator", Text, nullable=False),
    Column("heading", Text, nullable=False),  # Chunk.heading, for word search
    Column("heading_path", JSON, nullable=False),
    Column("text", Text, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    # False until the vector index holds it: `synchronise` embeds what a killed ingest left.
    Column("is_embedded", Boolean, nullable=False, default=False),
    # That of its document; word indexes filter by it.
    Column("collection_id", String(40), nullable=False, server_default="1"),
    Index("chunks_by_document", "document_id", "position"),
    Index("chunks_to_embed", "is_embedded"),
    Index("chunks_by_collection", "collection_id"),
)

# Vectors of the second embedding model: a step, then one byte for each component.
second_vectors = Table(
    "second_vectors",
    metadata,
    Column("chunk_id", ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("model", String(80), nullable=False),
    Column("vector", LargeBinary, nullable=False),
)

# Codes, part numbers, versions that a chunk holds, as `rag.language.names` compares them.
identifiers = Table(
    "identifiers",
    metadata,
    Column("chunk_id", ForeignKey("chunks.id", ondelete="CASCADE"), primary_key=True),
    Column("code", String(40), primary_key=True),
    Column("written", String(80), nullable=False),
    Index("identifiers_by_code", "code"),
)

# Chunks that one of several processes embeds, and until when no other may.
embedding_claims = Table(
    "embedding_claims",
    metadata,
    Column("chunk_id", String(40), primary_key=True),
    Column("until", DateTime(timezone=True), nullable=False),
)

# Chunks deleted here that the vector index may still hold.
removed_chunks = Table("removed_chunks", metadata, Column("id", String(40), primary_key=True))

# Chunks that earlier readers made of the same file: citations of them are not outdated.
earlier_chunks = Table(
    "earlier_chunks",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Index("earlier_chunks_by_document", "document_id"),
)

# Chunks whose collection may still be wrong in the vector index.
moved_chunks = Table("moved_chunks", metadata, Column("id", String(40), primary_key=True))

# Typed tables of documents; their rows are Parquet files named by the id.
tables = Table(
    "tables",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("document_id", ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("locator", Text, nullable=False),
    Column("row_count", Integer, nullable=False),
    Column("columns", JSON, nullable=False),
    Column("words", Text, nullable=False),  # the words by which the table is chosen
    Index("tables_by_document", "document_id", "position"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("title", Text, nullable=False),
    Column("config", JSON, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("last_used_at", DateTime(timezone=True), nullable=False),
    Column("message_count", Integer, nullable=False, default=0),
    Column("turn_count", Integer, nullable=False, default=0),
    Column("source_count", Integer, nullable=False, default=0),
    # Raised when summaries are forgotten or turns erased: results of earlier epochs are dropped.
    Column("epoch", Integer, nullable=False, default=0),
    # Messages to show once, in the next context; the end is not included.
    Column("requested_start", Integer),
    Column("requested_end", Integer),
    Column("collections", JSON),  # ids of the chosen collections
    Column("forgotten", Integer, nullable=False, server_default="0"),  # messages in no summary
    Column("expires_at", DateTime(timezone=True)),  # of a session that is not kept
    Column("parent", String(40)),  # of a branch: the session of its messages before `branch_index`
    Column("branch_index", Integer),
    Column("family", String(40)),  # the first session's id; a family shares one source register
    Column("model", Text),  # the chosen model; none: the default model
    Column("client_id", String(64)),  # an id that the client chose
    # Requested by a model: {"include_search_results", "max_context_messages"}.
    Column("preferences", JSON),
    Index("sessions_by_owner", "owner", "last_used_at"),
    Index("sessions_by_family", "family"),
    Index("one_session_per_client_id", "owner", "client_id", unique=True),
)

messages = Table(
    "messages",
    metadata,
    Column("row", WideInteger, primary_key=True, autoincrement=True),
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("index", Integer, nullable=False),
    Column("revision", Integer, nullable=False, default=0),
    Column("turn", Integer, nullable=False),
    Column("role", String(40), nullable=False),
    Column("content", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("details", JSON, nullable=False),  # answer, resolved_query, is_followup, error
    UniqueConstraint("session_id", "index", "revision", name="one_message_per_index"),
)

# Answers that are being written, each with the time until which its process is surely alive.
running_answers = Table(
    "running_answers",
    metadata,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("lease_until", DateTime(timezone=True), nullable=False),
    Column("is_stopped", Boolean, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("chunk_id", String(40), nullable=False),
    Column("document_id", String(40), nullable=False),
    Column("document_name", Text, nullable=False),
    Column("document_title", Text, nullable=False),
    Column("locator", Text, nullable=False),
    Column("heading_path", JSON, nullable=False),
    Column("text", Text, nullable=False),
    Column("passage", Text, nullable=False),
    Column("content_hash", String(64), nullable=False),
    UniqueConstraint("session_id", "chunk_id", name="one_number_per_chunk"),
)

# Results of table queries, by the number under which their session cites them.
table_results = Table(
    "table_results",
    metadata,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("table_id", String(40), nullable=False),
    Column("content", JSON, nullable=False),  # plan, SQL, columns, rows, rows used
)

summaries = Table(
    "summaries",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("required", JSON, nullable=False),  # {"numbers": [], "names": [], "quotations": []}
    Column("report", JSON, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    # Summaries of the session's own epoch are in the context; those made on request have none.
    UniqueConstraint("session_id", "epoch", "start", "end", name="one_summary_per_range"),
)

# Embedded questions and answers, for recall.
message_vectors = Table(
    "message_vectors",
    metadata,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),
    Column("vector", LargeBinary, nullable=False),  # float32, little-endian
)

# Words of older messages in long sessions, for recall: their places within a block of messages.
# The empty word's row holds the number of paragraphs up to the end of its block.
message_words = Table(
    "message_words",
    metadata,
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("word", Text, primary_key=True),
    Column("end", Integer, primary_key=True),  # the index after the block's last message
    Column("postings", LargeBinary, nullable=False),  # `rag.memory.recall.Postings`
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("subject", Text, nullable=False),  # the document's name, or the session's id
    Column("owner", String(200), nullable=False, server_default=""),  # of an upload
    Column("state", String(20), nullable=False),  # queued running done failed
    Column("done", Integer, nullable=False, default=0),  # chunks embedded
    Column("total", Integer, nullable=False, default=0),
    Column("error", Text),
    Column("seconds", Float),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Column("collection_id", String(40), nullable=False, server_default="1"),  # of an upload
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("due_at", DateTime(timezone=True)),  # of a job that is tried again
    Column("has_arrived", Boolean, nullable=False, server_default=false()),  # an upload is stored
)

# Uploaded files by the id of their job, where several hosts share the work.
uploads = Table(
    "uploads",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

# Keys by which answers are recognised when a client of the OpenAI protocols sends them back.
answer_fingerprints = Table(
    "answer_fingerprints",
    metadata,
    Column("owner", String(200), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, primary_key=True),  # of the answer
    Index("answer_fingerprints_by_session", "session_id", "index"),
)

# Hashes of transcripts of OpenAI clients, and the sessions that they continue.
transcript_hashes = Table(
    "transcript_hashes",
    metadata,
    Column("owner", String(200), primary_key=True),
    Column("hash", String(64), primary_key=True),
    Column("session_id", ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("index", Integer, nullable=False),  # message count of the session at that place
    Index("transcript_hashes_by_session", "session_id"),
)

# Logged-in browsers. The id is the digest of the cookie's value.
logins = Table(
    "logins",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("credential", String(64), nullable=False),  # digest of what they logged in with
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("last_used_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("address", String(100), nullable=False),
    Column("agent", Text, nullable=False),
    Column("groups", JSON, nullable=False, server_default="[]"),  # as the login provider named them
    Index("logins_by_owner", "owner"),
)

# Who did what, when, from where; nothing here is ever changed.
audit = Table(
    "audit",
    metadata,
    Column("row", WideInteger, primary_key=True, autoincrement=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", Text, nullable=False),
    Column("address", String(100), nullable=False),
)

# Counters of each process, so that any process can report the sums.
measurements = Table(
    "measurements",
    metadata,
    Column("process", String(40), primary_key=True),
    Column("samples", JSON, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
)

# Holds: on deletions during a backup, and on jobs of a restored library until released.
holds = Table(
    "holds",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("since", DateTime(timezone=True), nullable=False),
    Column("until", DateTime(timezone=True)),  # none: until it is released
)

# The language model connected in the browser, and the one being tried there.
model_connections = Table(
    "model_connections",
    metadata,
    Column("standing", String(20), primary_key=True),
    Column("base_url", Text, nullable=False),  # empty once it was disconnected
    Column("model", Text, nullable=False),
    Column("api_key", Text, nullable=False),  # encrypted
    Column("choices", JSON, nullable=False, server_default="[]"),
    Column("version", Integer, nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False),
)
