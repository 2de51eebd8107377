-- Text indexes, and the first rows. Who changes them writes a copy for `rag.db.engine.TEXT_INDEXES`.
INSERT INTO collections (id, name, owner, everybody) VALUES ('1', 'Library', '', 2)
-- next
CREATE VIRTUAL TABLE messages_substrings USING fts5(
    content, content='messages', content_rowid='row', tokenize='trigram')
-- next
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
    INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
END
-- next
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
    INSERT INTO messages_substrings (messages_substrings, rowid, content) VALUES ('delete', old.row, old.content);
END
-- next
CREATE TRIGGER messages_finished AFTER UPDATE OF content ON messages BEGIN
    INSERT INTO messages_substrings (messages_substrings, rowid, content) VALUES ('delete', old.row, old.content);
    INSERT INTO messages_substrings (rowid, content) VALUES (new.row, new.content);
END
-- next
CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, place, content='', tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'")
-- next
CREATE TABLE text_positions (n INTEGER PRIMARY KEY)
-- next
INSERT INTO text_positions WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 16384) SELECT n FROM counted
-- next
CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN INSERT INTO chunks_fts (rowid, heading, text, place) VALUES (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.heading, n, 2) || ' ' ELSE substr(new.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385) ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.text, n, 2) || ' ' ELSE substr(new.text, n, 1) END AS piece FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385) ELSE new.text END, new.collection_id); END
-- next
CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.heading, n, 2) || ' ' ELSE substr(old.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385) ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.text, n, 2) || ' ' ELSE substr(old.text, n, 1) END AS piece FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385) ELSE old.text END, old.collection_id); END
-- next
CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text, collection_id ON chunks BEGIN INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES ('delete', old.row, CASE WHEN old.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.heading, n, 3) || ' ' WHEN substr(old.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.heading, n, 2) || ' ' ELSE substr(old.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(old.heading) ORDER BY n)) || substr(old.heading, 16385) ELSE old.heading END, CASE WHEN old.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(old.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(old.text, n, 3) || ' ' WHEN substr(old.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(old.text, n, 2) || ' ' ELSE substr(old.text, n, 1) END AS piece FROM text_positions WHERE n <= length(old.text) ORDER BY n)) || substr(old.text, 16385) ELSE old.text END, old.collection_id); INSERT INTO chunks_fts (rowid, heading, text, place) VALUES (new.row, CASE WHEN new.heading GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.heading, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.heading, n, 3) || ' ' WHEN substr(new.heading, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.heading, n, 2) || ' ' ELSE substr(new.heading, n, 1) END AS piece FROM text_positions WHERE n <= length(new.heading) ORDER BY n)) || substr(new.heading, 16385) ELSE new.heading END, CASE WHEN new.text GLOB '*[ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]*' THEN (SELECT group_concat(piece, '') FROM (SELECT CASE WHEN substr(new.text, n, 1) GLOB '[ก-๛ກ-ໟက-႟ក-៹]' THEN ' ' || substr(new.text, n, 3) || ' ' WHEN substr(new.text, n, 1) GLOB '[ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿]' THEN ' ' || substr(new.text, n, 2) || ' ' ELSE substr(new.text, n, 1) END AS piece FROM text_positions WHERE n <= length(new.text) ORDER BY n)) || substr(new.text, 16385) ELSE new.text END, new.collection_id); END
