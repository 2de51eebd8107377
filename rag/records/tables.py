"""Tables of documents: as they were read, and as they are stored."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class RawTable:
    """A grid as a reader found it, before anybody knows what its columns mean.

    `rows` is CSV, all rows equally long, in which the first cell is the row's number.
    """

    name: str  # of the sheet, the file or the heading above it
    locator: str
    rows: str
    width: int  # cells in a row, its number apart
    row_count: int
    typed: tuple[int, ...] = ()  # columns, from 0, whose figures are figures in the file, too


class ColumnType(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    QUARTER = "quarter"  # stored as year * 10 + quarter, the year 0 where none is said
    DURATION = "duration"  # stored in seconds
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column with what is known of its values."""

    name: str  # as people read it; no two columns of a table share one
    type: ColumnType
    unit: str = ""  # of numbers: "€", "%", "kg"
    decimals: int = 0
    has_text: bool = False  # cells hold more than the value: their text is stored beside it
    distinct: int = 0
    blanks: int = 0
    low: str = ""
    high: str = ""
    examples: tuple[str, ...] = ()  # the most frequent values
    note: str = ""  # what had to be assumed: "day before month"
    missing: int = 0  # cells with a formula whose result the file does not hold


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table. Its id follows from its content: another content is another table."""

    id: str
    document_id: str
    document_name: str
    document_title: str
    position: int  # from 0, in its document
    name: str
    locator: str
    row_count: int  # rows of totals apart
    columns: tuple[TableColumn, ...]
    words: str = ""  # of names and values, normalised, to choose a table by

    @property
    def label(self) -> str:
        """Its name with its document's, as people are shown it."""
        if self.name.casefold() in self.document_title.casefold():
            return self.document_title
        return f"{self.name} ({self.document_title})"
