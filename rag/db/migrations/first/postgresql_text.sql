-- Text indexes, and the first rows. Who changes them writes a copy for `rag.db.engine.TEXT_INDEXES`.
INSERT INTO collections (id, name, owner, everybody) VALUES ('1', 'Library', '', 2)
-- next
ALTER TABLE chunks ADD COLUMN words tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', regexp_replace(translate(translate(lower(heading), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~–—“”„’', '                                      '), 'àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž', 'aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz'), '([ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿])', ' \1 ', 'g')), 'A') || setweight(to_tsvector('english', regexp_replace(translate(translate(lower(text), '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~–—“”„’', '                                      '), 'àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž', 'aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz'), '([ก-๛ກ-ໟက-႟ក-៹ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-𿿿])', ' \1 ', 'g')), 'B')) STORED
-- next
CREATE INDEX chunks_words ON chunks USING gin (words)
