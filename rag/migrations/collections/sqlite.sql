-- Collections in SQLite. Frozen: later changes are migrations of their own.
CREATE TABLE documents_again (
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
    PRIMARY KEY (id),
    CONSTRAINT one_document_per_name UNIQUE (collection_id, name),
    FOREIGN KEY(collection_id) REFERENCES collections (id)
)
-- next
INSERT INTO documents_again SELECT id, name, title, media_type, content_hash, size_bytes, chunk_count, names, ingested_at, owner, '1'
    FROM documents
-- next
DROP TABLE documents
-- next
ALTER TABLE documents_again RENAME TO documents
-- next
DROP TRIGGER chunks_added
-- next
DROP TRIGGER chunks_removed
-- next
DROP TRIGGER chunks_changed
-- next
DROP TABLE chunks_fts
-- next
CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, place, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
-- next
CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN INSERT INTO chunks_fts (rowid, heading, text, place) VALUES
    (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(new.heading, n, 2) || ' '
    ELSE substr(new.heading, n, 1) END AS piece
    FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385)
    ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(new.text, n, 2) || ' '
    ELSE substr(new.text, n, 1) END AS piece
    FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385)
    ELSE new.text END, new.collection_id); END
-- next
CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES
    ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(old.heading, n, 2) || ' '
    ELSE substr(old.heading, n, 1) END AS piece
    FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385)
    ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(old.text, n, 2) || ' '
    ELSE substr(old.text, n, 1) END AS piece
    FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385)
    ELSE old.text END, old.collection_id); END
-- next
CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text, collection_id ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES
    ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(old.heading, n, 2) || ' '
    ELSE substr(old.heading, n, 1) END AS piece
    FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385)
    ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(old.text, n, 2) || ' '
    ELSE substr(old.text, n, 1) END AS piece
    FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385)
    ELSE old.text END, old.collection_id); INSERT INTO chunks_fts (rowid, heading, text, place) VALUES
    (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(new.heading, n, 2) || ' '
    ELSE substr(new.heading, n, 1) END AS piece
    FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385)
    ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(new.text, n, 2) || ' '
    ELSE substr(new.text, n, 1) END AS piece
    FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385)
    ELSE new.text END, new.collection_id); END
-- next
INSERT INTO chunks_fts (rowid, heading, text, place) SELECT row, CASE WHEN heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(heading, n, 3) || ' ' WHEN substr(heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(heading, n, 2) || ' '
    ELSE substr(heading, n, 1) END AS piece
    FROM text_positions WHERE n <= length(heading) ORDER BY n)) || substr(heading, 16385)
    ELSE heading END, CASE WHEN text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN
    (SELECT group_concat(piece, '')
    FROM (SELECT CASE WHEN substr(text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN
    ' ' || substr(text, n, 3) || ' ' WHEN substr(text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN
    ' ' || substr(text, n, 2) || ' '
    ELSE substr(text, n, 1) END AS piece
    FROM text_positions WHERE n <= length(text) ORDER BY n)) || substr(text, 16385)
    ELSE text END, collection_id
    FROM chunks
