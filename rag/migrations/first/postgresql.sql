-- The first schema. Frozen: later changes are migrations of their own.
CREATE TABLE documents (
    id VARCHAR(40) NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    media_type TEXT NOT NULL,
    content_hash VARCHAR(64) NOT NULL,
    size_bytes INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL,
    names JSON NOT NULL,
    ingested_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
)
-- next
CREATE TABLE jobs (
    id VARCHAR(40) NOT NULL,
    kind VARCHAR(20) NOT NULL,
    subject TEXT NOT NULL,
    state VARCHAR(20) NOT NULL,
    done INTEGER NOT NULL,
    total INTEGER NOT NULL,
    error TEXT,
    seconds FLOAT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
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
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    last_used_at TIMESTAMP WITH TIME ZONE NOT NULL,
    message_count INTEGER NOT NULL,
    turn_count INTEGER NOT NULL,
    source_count INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (id)
)
-- next
CREATE INDEX sessions_by_owner ON sessions (owner, last_used_at)
-- next
CREATE TABLE chunks (
    row SERIAL NOT NULL,
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
    PRIMARY KEY (row),
    UNIQUE (id),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
-- next
CREATE INDEX chunks_by_document ON chunks (document_id, position)
-- next
CREATE INDEX chunks_to_embed ON chunks (is_embedded)
-- next
CREATE TABLE message_vectors (
    session_id VARCHAR(40) NOT NULL,
    index INTEGER NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (session_id, index),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE messages (
    row SERIAL NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    index INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    role VARCHAR(40) NOT NULL,
    content TEXT NOT NULL,
    status VARCHAR(20) NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    details JSON NOT NULL,
    PRIMARY KEY (row),
    CONSTRAINT one_message_per_index UNIQUE (session_id, index, revision),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE TABLE sections (
    document_id VARCHAR(40) NOT NULL,
    index INTEGER NOT NULL,
    heading_path JSON NOT NULL,
    locator TEXT NOT NULL,
    text TEXT NOT NULL,
    page INTEGER,
    PRIMARY KEY (document_id, index),
    FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
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
    id SERIAL NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    epoch INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    is_fold BOOLEAN NOT NULL,
    is_active BOOLEAN NOT NULL,
    text TEXT NOT NULL,
    required JSON NOT NULL,
    claims JSON NOT NULL,
    report JSON NOT NULL,
    tokens INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT one_summary_per_range UNIQUE (session_id, epoch, start, "end", is_fold),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE INDEX summaries_by_session ON summaries (session_id, is_active, start)
-- next
CREATE TABLE transcript_hashes (
    owner VARCHAR(200) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    session_id VARCHAR(40) NOT NULL,
    index INTEGER NOT NULL,
    PRIMARY KEY (owner, hash, session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE INDEX transcript_hashes_by_session ON transcript_hashes (session_id)
-- next
ALTER TABLE messages ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED
-- next
CREATE INDEX messages_words ON messages USING gin (words)
-- next
ALTER TABLE chunks ADD COLUMN words tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', regexp_replace(translate(translate(lower(heading), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~–—“”„’', '                                      '), 'àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž', 'aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz'), '([ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿])', ' \1 ', 'g')), 'A') || setweight(to_tsvector('english', regexp_replace(translate(translate(lower(text), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~–—“”„’', '                                      '), 'àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž', 'aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz'), '([ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿])', ' \1 ', 'g')), 'B')) STORED
-- next
CREATE INDEX chunks_words ON chunks USING gin (words)
