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
    ingested_at DATETIME NOT NULL,
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
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
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
    PRIMARY KEY (id)
)
-- next
CREATE INDEX sessions_by_owner ON sessions (owner, last_used_at)
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
    PRIMARY KEY ("row"),
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
    is_fold BOOLEAN NOT NULL,
    is_active BOOLEAN NOT NULL,
    text TEXT NOT NULL,
    required JSON NOT NULL,
    claims JSON NOT NULL,
    report JSON NOT NULL,
    tokens INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
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
    "index" INTEGER NOT NULL,
    PRIMARY KEY (owner, hash, session_id),
    FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
)
-- next
CREATE INDEX transcript_hashes_by_session ON transcript_hashes (session_id)
-- next
CREATE VIRTUAL TABLE messages_substrings USING fts5(
        content, content='messages', content_rowid='row', tokenize='trigram')
-- next
CREATE VIRTUAL TABLE messages_words USING fts5(
        session_id, content, content='messages', content_rowid='row',
        tokenize='porter unicode61 remove_diacritics 2')
-- next
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
        INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
        INSERT INTO messages_words (rowid, session_id, content)
            VALUES (new.row, new.session_id, new.content);
    END
-- next
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
        INSERT INTO messages_substrings (messages_substrings, rowid, content)
            VALUES ('delete', old.row, old.content);
        INSERT INTO messages_words (messages_words, rowid, session_id, content)
            VALUES ('delete', old.row, old.session_id, old.content);
    END
-- next
CREATE TRIGGER messages_finished AFTER UPDATE OF content ON messages BEGIN
        INSERT INTO messages_substrings (messages_substrings, rowid, content)
            VALUES ('delete', old.row, old.content);
        INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
        INSERT INTO messages_words (messages_words, rowid, session_id, content)
            VALUES ('delete', old.row, old.session_id, old.content);
        INSERT INTO messages_words (rowid, session_id, content)
            VALUES (new.row, new.session_id, new.content);
    END
-- next
CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
-- next
CREATE TABLE text_positions (n INTEGER PRIMARY KEY)
-- next
INSERT INTO text_positions WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 16384) SELECT n FROM counted
-- next
CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN INSERT INTO chunks_fts (rowid, heading, text) VALUES (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.heading, n, 2) || ' ' ELSE substr(new.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385) ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.text, n, 2) || ' ' ELSE substr(new.text, n, 1) END AS piece FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385) ELSE new.text END); END
-- next
CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text) VALUES ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.heading, n, 2) || ' ' ELSE substr(old.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385) ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.text, n, 2) || ' ' ELSE substr(old.text, n, 1) END AS piece FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385) ELSE old.text END); END
-- next
CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text) VALUES ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.heading, n, 2) || ' ' ELSE substr(old.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385) ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.text, n, 2) || ' ' ELSE substr(old.text, n, 1) END AS piece FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385) ELSE old.text END); INSERT INTO chunks_fts (rowid, heading, text) VALUES (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.heading, n, 2) || ' ' ELSE substr(new.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385) ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.text, n, 2) || ' ' ELSE substr(new.text, n, 1) END AS piece FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385) ELSE new.text END); END
