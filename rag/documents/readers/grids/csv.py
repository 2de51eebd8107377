"""CSV to sections: some rows each, the header repeated."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.grids.grid import CellCount, write_rows
from rag.errors import Unreadable

DELIMITERS = ",;\t|^~"
SAID = re.compile(r"sep=([,;\t|^~])\n", re.IGNORECASE)  # as Excel writes and wants it
SAMPLE_LINES = 30


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from CSV or TSV; broken rows are read as far as they go."""
    csv.field_size_limit(max(limits.max_characters, 131_072))
    cells = CellCount(outline.name, limits)
    rows = cells.counted(_parsed(clean(decode(data)), outline.name))
    write_rows(list(rows), outline, place="rows")


def _parsed(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line on which each begins, counted from 1."""
    match = SAID.match(text)
    text = text[match.end() :] if match else text
    delimiter = match[1] if match else sniff_delimiter(text)
    if _quotes_close(text, delimiter):
        reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    else:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, quoting=csv.QUOTE_NONE)
    above = 1 if match else 0
    first = 1 + above
    try:
        for row in reader:
            yield first, row
            first = reader.line_num + 1 + above
    except csv.Error as error:
        raise Unreadable(name, f"row {reader.line_num} cannot be read: {error}.") from error


def sniff_delimiter(text: str) -> str:
    """The separator that splits the first lines most evenly (csv.Sniffer can take minutes)."""
    lines = [line for line in text[:100_000].split("\n")[: SAMPLE_LINES * 2] if line.strip()]
    return max(DELIMITERS, key=lambda delimiter: _evenness(lines[:SAMPLE_LINES], delimiter))


def _evenness(lines: Sequence[str], delimiter: str) -> float:
    counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    if not counts or max(counts) < 2:
        return 0.0
    usual = max(set(counts), key=lambda count: (counts.count(count), count))
    if usual < 2:
        return 0.1
    return counts.count(usual) / len(counts) + min(usual, 20) / 100


def _quotes_close(text: str, delimiter: str) -> bool:
    """Whether quoting can be trusted: one quote left open would swallow the rest of the file."""
    if text.count('"') % 2 == 0:
        return True
    longest = max(
        (sum(map(len, row)) for row in csv.reader(io.StringIO(text), delimiter=delimiter)),
        default=0,
    )
    return longest < len(text) / 3
