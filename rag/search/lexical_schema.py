"""What the database needs for lexical search: DDL that the first migration copies.

One index over headings, texts and collections of chunks, kept equal to the table: SQLite
`chunks_fts` by triggers, PostgreSQL `chunks.words` as a generated column. Scripts that are written
without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) or whose words carry particles
(Korean) have no words to index, so their letters are set apart first: SQLite indexes runs of two
letters (three in the alphabetic scripts), PostgreSQL single letters with their positions.
"""

# Character ranges of a GLOB or a regular expression.
ALPHABETIC_UNSPACED = "ก-๛ກ-ໟက-႟ក-៹"  # Thai, Lao, Burmese, Khmer
OTHER_UNSPACED = "ぁ-ヿㄅ-ㄯ㐀-䶿一-鿿가-힣豈-﫿ｦ-ﾟ𠀀-\U0003ffff"  # Kana, Bopomofo, Han, Hangul
UNSPACED = f"[{ALPHABETIC_UNSPACED}{OTHER_UNSPACED}]"

MAX_POSITIONS = 16384  # the letters of one chunk beyond this are not set apart


def set_apart(column: str) -> str:
    """An SQL expression: the text with each run of unspaced letters as overlapping runs."""
    letter = f"substr({column}, n, 1)"
    piece = (
        f"CASE WHEN {letter} GLOB '[{ALPHABETIC_UNSPACED}]' "
        f"THEN ' ' || substr({column}, n, 3) || ' ' "
        f"WHEN {letter} GLOB '[{OTHER_UNSPACED}]' "
        f"THEN ' ' || substr({column}, n, 2) || ' ' "
        f"ELSE {letter} END"
    )
    return (
        f"CASE WHEN {column} GLOB '*{UNSPACED}*' THEN "
        f"(SELECT group_concat(piece, '') FROM (SELECT {piece} AS piece FROM text_positions "
        f"WHERE n <= length({column}) ORDER BY n)) || substr({column}, {MAX_POSITIONS + 1}) "
        f"ELSE {column} END"
    )


_ADD = (
    "INSERT INTO chunks_fts (rowid, heading, text, place) VALUES "
    f"(new.row, {set_apart('new.heading')}, {set_apart('new.text')}, new.collection_id);"
)
# The index holds no text: it has to be told what it indexed.
_REMOVE = (
    "INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, place) VALUES "
    f"('delete', old.row, {set_apart('old.heading')}, {set_apart('old.text')}, old.collection_id);"
)

# Marks (M*) are part of a word in Devanagari, Arabic and others; the default splits there.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"

SQLITE_DDL: tuple[str, ...] = (
    "CREATE VIRTUAL TABLE chunks_fts USING fts5(heading, text, place, content='', "
    f'tokenize="{TOKENIZER}")',
    "CREATE TABLE text_positions (n INTEGER PRIMARY KEY)",
    "INSERT INTO text_positions WITH RECURSIVE counted(n) AS "
    f"(SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {MAX_POSITIONS}) "
    "SELECT n FROM counted",
    f"CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN {_ADD} END",
    f"CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN {_REMOVE} END",
    "CREATE TRIGGER chunks_changed AFTER UPDATE OF heading, text, collection_id ON chunks "
    f"BEGIN {_REMOVE} {_ADD} END",
)

# Latin letters lose their accents in the index of PostgreSQL, and in what is looked up there.
ACCENTED = "àáâãäåçèéêëìíîïñòóôõöùúûüýÿāăąćčďēėęěğīįıłńňōőřśşšťūůűųźżž"
UNACCENTED = "aaaaaaceeeeiiiinooooouuuuyyaaaccdeeeegiiilnnoorssstuuuuzzz"
