"""What the database needs for lexical search: DDL that the migrations copy.

Two indexes are kept equal to the table `chunks`:

* *words* (SQLite `chunks_fts`, PostgreSQL `chunks.words`): stemmed words of heading and text;
* *grams* (SQLite `chunks_grams`, PostgreSQL `chunks.letters`): scripts that are written without
  spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) or whose words carry particles (Korean)
  have no words to index, so runs of two letters (three in the alphabetic ones) stand in for them.
  Only chunks that hold such letters take room there.
"""

# As character ranges of a GLOB or of a regular expression. Alphabetic first.
ALPHABETIC_UNSPACED = "ก-๛ກ-ໟက-႟ក-៹"  # Thai, Lao, Burmese, Khmer
OTHER_UNSPACED = "ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-\U0003ffff"  # Kana, Bopomofo, Han, Hangul
_ANY = f"[{ALPHABETIC_UNSPACED}{OTHER_UNSPACED}]"

MAX_POSITIONS = 16384  # letters of one chunk beyond this have no grams

# Marks (M*) are part of a word in Devanagari, Arabic and others; the default would split there.
_TOKENIZE = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"


def _grams(column: str) -> str:
    """An SQL expression: the runs of unspaced letters in a column, separated by spaces."""
    length = f"CASE WHEN substr({column}, n, 1) GLOB '[{ALPHABETIC_UNSPACED}]' THEN 3 ELSE 2 END"
    gram = f"substr({column}, n, {length})"
    whole = f"({gram} GLOB '{_ANY}{_ANY}' OR {gram} GLOB '{_ANY}{_ANY}{_ANY}')"
    return (
        f"(SELECT group_concat({gram}, ' ') FROM gram_positions "
        f"WHERE n < length({column}) AND {whole})"
    )


_ADD_WORDS = (
    "INSERT INTO chunks_fts (rowid, heading, text) VALUES (new.row, new.heading, new.text);"
)
_REMOVE_WORDS = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, heading, text) "
    "VALUES ('delete', old.row, old.heading, old.text);"
)
_ADD_GRAMS = (
    "INSERT INTO chunks_grams (rowid, heading, text) "
    f"SELECT new.row, {_grams('new.heading')}, {_grams('new.text')} "
    f"WHERE new.heading || new.text GLOB '*{_ANY}*';"
)
_REMOVE_GRAMS = "DELETE FROM chunks_grams WHERE rowid = old.row;"

SQLITE_DDL: tuple[str, ...] = (
    "CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, content='chunks', "
    f"content_rowid='row', tokenize=\"{_TOKENIZE}\")",
    "CREATE VIRTUAL TABLE chunks_grams USING fts5(heading, text, "
    "tokenize=\"unicode61 remove_diacritics 0 categories 'L* N* M* Co'\")",
    "CREATE TABLE gram_positions (n INTEGER PRIMARY KEY)",
    "INSERT INTO gram_positions WITH RECURSIVE counted(n) AS "
    f"(SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {MAX_POSITIONS}) "
    "SELECT n FROM counted",
    f"CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN {_ADD_WORDS} {_ADD_GRAMS} END",
    f"CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN {_REMOVE_WORDS} {_REMOVE_GRAMS} "
    "END",
    "CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text ON chunks BEGIN "
    f"{_REMOVE_WORDS} {_REMOVE_GRAMS} {_ADD_WORDS} {_ADD_GRAMS} END",
)

# PostgreSQL's parser reads `AX-5400` as a word and a negative number, and hosts and paths as one
# word: punctuation becomes blanks first, and Latin letters lose their accents.
_PUNCTUATION = "!\"#$%&''()*+,-./:;<=>?@[\\]^_`{|}~–—“”„’"
_ACCENTED = "àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž"
_PLAIN = "aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz"


def _plain(column: str) -> str:
    blank = " " * len(_PUNCTUATION.replace("''", "'"))
    return (
        f"translate(translate(lower({column}), '{_PUNCTUATION}', '{blank}'), "
        f"'{_ACCENTED}', '{_PLAIN}')"
    )


def _letters(column: str) -> str:
    return f"to_tsvector('simple', regexp_replace({column}, '([^{_ANY[1:]})+|(.)', ' \\2 ', 'g'))"


POSTGRES_DDL: tuple[str, ...] = (
    "ALTER TABLE chunks ADD COLUMN words tsvector GENERATED ALWAYS AS ("
    f"setweight(to_tsvector('english', {_plain('heading')}), 'A') || "
    f"setweight(to_tsvector('english', {_plain('text')}), 'B')) STORED",
    "CREATE INDEX chunks_words ON chunks USING gin (words)",
    "ALTER TABLE chunks ADD COLUMN letters tsvector GENERATED ALWAYS AS ("
    f"setweight({_letters('heading')}, 'A') || setweight({_letters('text')}, 'B')) STORED",
    "CREATE INDEX chunks_letters ON chunks USING gin (letters)",
)
