"""Words as tables are asked by them, and a table in words."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from rag.language.languages import read_lists
from rag.records import TableColumn

LONGEST_EXAMPLE = 80  # characters of a value that a profile shows
MOST_WORDS = 4_000  # of one table's values
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")
_NAMES = read_lists("rows")["names"]
COUNTED = re.compile(_NAMES["counted"], re.IGNORECASE)
NAMING = frozenset(_NAMES["naming"].split())


def normalised(text: str) -> str:
    """Small letters without accents and signs, single blanks: what words are compared by."""
    return " ".join(WORD.findall(unaccented(text).replace("'", "").replace("’", "")))


def spelled_words(name: str) -> str:
    """A column's name as people say it: "maxHeight", "Number.of.Bags" and "n_covers" are words."""
    return normalised(CAMEL.sub(" ", name).replace(".", " "))


def is_identifier(column: TableColumn) -> bool:
    """Whether its figures name things: adding them up says nothing."""
    words = column.name.casefold().replace("_", " ").replace(".", " ").split()
    return not COUNTED.search(column.name) and not NAMING.isdisjoint(words)


def unaccented(text: str) -> str:
    """Small letters without accents and trade marks."""
    decomposed = unicodedata.normalize("NFKD", text.replace("™", "").casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def words_of(names: Iterable[str], columns: Sequence[TableColumn], texts: Iterable[str]) -> str:
    """The words that a table can be chosen by."""
    results: dict[str, None] = {}
    for text in (*names, *(column.name for column in columns), *texts):
        results.update(dict.fromkeys(normalised(text).split()))
        if len(results) > MOST_WORDS:
            break
    return " ".join(results)


def table_words(name: str, row_count: int, columns: Sequence[TableColumn]) -> str:
    """A table in words: what is embedded for a long one."""
    lines = [f"Table {name}: {row_count:,} rows, {len(columns)} columns."]
    for column in columns:
        unit = f" in {column.unit}" if column.unit else ""
        span = f", from {column.low} to {column.high}" if column.low else ""
        shown = ", ".join(column.examples[:6])
        lines.append(
            f"- {column.name}: {column.type}{unit}, {column.distinct:,} different{span}"
            + (f", such as {shown}" if shown else "")
        )
    return "\n".join(lines)
