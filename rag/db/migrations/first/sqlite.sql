-- The first schema. Frozen: later changes are migrations of their own.
CREATE TABLE audit (
    "row" INTEGER NOT NULL,
    at DATETIME NOT NULL,
    owner VARCHAR(200) NOT NULL,
    action VARCHAR(40) NOT NULL,
    subject TEXT NOT NULL,
    address VARCHAR(100) NOT NULL,
    PRIMARY KEY ("row")
)
-- next
CREATE TABLE collections (
    id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    owner VARCHAR(200) NOT NULL,
    everybody INTEGER NOT NULL,
    version BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT one_collection_per_name UNIQUE (owner, name)
)
-- next
CREATE TABLE embedding_claims (
    chunk_id VARCHAR(40) NOT NULL,
    until DATETIME NOT NULL,
    PRIMARY KEY (chunk_id)
)
-- next
CREATE TABLE jobs (
    id VARCHAR(40) NOT NULL,
    kind VARCHAR(20) NOT NULL,
    subject TEXT NOT NULL,
    owner VARCHAR(200) DEFAULT '' NOT NULL,
    state VARCHAR(20) NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER NOT NULL,
    error TEXT,
    seconds FLOAT,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    collection_id VARCHAR(40) DEFAULT '1' NOT NULL,
    attempts INTEGER DEFAULT '0' NOT NULL,
    due_at DATETIME,
    has_arrived BOOLEAN DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE TABLE logins (
    id VARCHAR(64) NOT NULL,
    owner VARCHAR(200) NOT NULL,
    credential VARCHAR(64) NOT NULL,
    created_at DATETIME NOT NULL,
    last_used_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    address VARCHAR(100) NOT NULL,
    agent TEXT NOT NULL,
    groups JSON DEFAULT '[]' NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE INDEX logins_by_owner ON logins (owner)
-- next
CREATE TABLE measurements (
    process VARCHAR(40) NOT NULL,
    samples JSON NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (process)
)
-- next
CREATE TABLE moved_chunks (
    id VARCHAR(40) NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE TABLE removed_chunks (
    id VARCHAR(40) NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE TABLE sessions (
    id VARCHAR(40) NOT NULL,
    owner VARCHAR(200) NOT NULL,
    title TEXT NOT NULL,
    config JSON NOT NULL,
    created_at DATETIME NOT NULL,
    last_used_at DATETIME NOT NULL,
    message_count INTEGER NOT NULL,
    turn_count INTEGER NOT NULL,
    source_count INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    requested_start INTEGER,
    requested_end INTEGER,
    collections JSON,
    forgotten INTEGER DEFAULT '0' NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE INDEX sessions_by_owner ON sessions (owner, last_used_at)
-- next
CREATE TABLE uploads (
    id VARCHAR(40) NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE TABLE collection_members (
    collection_id VARCHAR(40) NOT NULL,
    member VARCHAR(220) NOT NULL,
    "right" INTEGER NOT NULL,
    PRIMARY KEY (collection_id, member),
    FOREIGN KEY(collection_id) REFERENCES collections (id) ON DELETE CASCADE
)
-- next
CREATE INDEX collections_by_member ON collection_members (member)
-- next
CREATE TABLE document_sources (
    id VARCHAR(40) NOT NULL,
    address TEXT NOT NULL,
    kind VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    collection_id VARCHAR(40) NOT NULL,
    owner VARCHAR(200) NOT NULL,
    include JSON NOT NULL,
    exclude JSON NOT NULL,
    depth INTEGER NOT NULL,
    every_seconds INTEGER,
    watch BOOLEAN NOT NULL,
    is_operators BOOLEAN NOT NULL,
    state VARCHAR(20) NOT NULL,
    reason TEXT NOT NULL,
    counts JSON NOT NULL,
    created_at DATETIME NOT NULL,
    last_synced_at DATETIME,
    next_due_at DATETIME,
    PRIMARY KEY (id),
    CONSTRAINT one_source_per_address UNIQUE (collection_id, address),
    FOREIGN KEY(collection_id) REFERENCES collections (id)
)
-- next
CREATE INDEX sources_by_due ON document_sources (next_due_at)
-- next
CREATE TABLE documents (
    id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content_hash VARCHAR(64) NOT NULL,
    size_bytes INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL,
    names JSON NOT NULL,
    ingested_at DATETIME NOT NULL,
    owner VARCHAR(200) DEFAULT '' NOT NULL,
    collection_id VARCHAR(40) NOT NULL,
    report JSON DEFAULT '{}' NOT NULL,
    folded TEXT DEFAULT '' NOT NULL,
    url TEXT DEFAULT '' NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT one_document_per_name UNIQUE (collection_id, name),
    FOREIGN KEY(collection_id) REFERENCES collections (id)
)
-- next
CREATE TABLE message_vectors (
    session_id VARCHAR(40) NOT NULL,
    "index" INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (session_id, "index"),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE messages (
    "row" INTEGER NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    "index" INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    role VARCHAR(40) NOT NULL,
    content TEXT NOT NULL,
    status VARCHAR(20) NOT NULL,
    created_at DATETIME NOT NULL,
    details JSON NOT NULL,
    PRIMARY KEY ("row"),
    CONSTRAINT one_message_per_index UNIQUE (session_id, "index", revision),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE running_answers (
    session_id VARCHAR(40) NOT NULL,
    "index" INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    text TEXT NOT NULL,
    lease_until DATETIME NOT NULL,
    is_stopped BOOLEAN NOT NULL,
    PRIMARY KEY (session_id, "index", revision),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE sources (
    session_id VARCHAR(40) NOT NULL,
    number INTEGER NOT NULL,
    chunk_id VARCHAR(40) NOT NULL,
    document_id VARCHAR(40) NOT NULL,
    document_name TEXT NOT NULL,
    document_title TEXT NOT NULL,
    locator TEXT NOT NULL,
    heading_path JSON NOT NULL,
    text TEXT NOT NULL,
    passage TEXT NOT NULL,
    content_hash VARCHAR(64) NOT NULL,
    PRIMARY KEY (session_id, number),
    CONSTRAINT one_number_per_chunk UNIQUE (session_id, chunk_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE summaries (
    id INTEGER NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    epoch INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    text TEXT NOT NULL,
    required JSON NOT NULL,
    report JSON NOT NULL,
    tokens INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT one_summary_per_range UNIQUE (session_id, epoch, start, "end"),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE table_results (
    session_id VARCHAR(40) NOT NULL,
    number INTEGER NOT NULL,
    table_id VARCHAR(40) NOT NULL,
    content JSON NOT NULL,
    PRIMARY KEY (session_id, number),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE transcript_hashes (
    owner VARCHAR(200) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    "index" INTEGER NOT NULL,
    PRIMARY KEY (owner, hash, session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE INDEX transcript_hashes_by_session ON transcript_hashes (session_id)
-- next
CREATE TABLE chunks (
    "row" INTEGER NOT NULL,
    id VARCHAR(40) NOT NULL,
    document_id VARCHAR(40) NOT NULL,
    section_index INTEGER NOT NULL,
    position INTEGER NOT NULL,
    locator TEXT NOT NULL,
    heading TEXT NOT NULL,
    heading_path JSON NOT NULL,
    text TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    is_embedded BOOLEAN NOT NULL,
    collection_id VARCHAR(40) DEFAULT '1' NOT NULL,
    PRIMARY KEY ("row"),
    UNIQUE (id),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
-- next
CREATE INDEX chunks_by_collection ON chunks (collection_id)
-- next
CREATE INDEX chunks_by_document ON chunks (document_id, position)
-- next
CREATE INDEX chunks_to_embed ON chunks (is_embedded)
-- next
CREATE TABLE sections (
    document_id VARCHAR(40) NOT NULL,
    "index" INTEGER NOT NULL,
    heading_path JSON NOT NULL,
    locator TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER,
    PRIMARY KEY (document_id, "index"),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
-- next
CREATE TABLE source_files (
    source_id VARCHAR(40) NOT NULL,
    document_id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    document_name TEXT NOT NULL,
    mark TEXT NOT NULL,
    content_hash VARCHAR(64) NOT NULL,
    size BIGINT,
    url TEXT NOT NULL,
    reason TEXT NOT NULL,
    standing VARCHAR(20) NOT NULL,
    removed_at DATETIME,
    PRIMARY KEY (source_id, document_id),
    FOREIGN KEY(source_id) REFERENCES document_sources (id) ON DELETE CASCADE
)
-- next
CREATE INDEX source_files_by_content ON source_files (content_hash)
-- next
CREATE INDEX source_files_by_document ON source_files (document_id)
-- next
CREATE TABLE tables (
    id VARCHAR(40) NOT NULL,
    document_id VARCHAR(40) NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    locator TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    columns JSON NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
-- next
CREATE INDEX tables_by_document ON tables (document_id, position)
