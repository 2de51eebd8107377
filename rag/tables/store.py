"""The storage of tables: their profiles in the database, their rows as Parquet files."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select

from rag.db import documents as document_table
from rag.db import inside, reading
from rag.db import tables as table_table
from rag.db.blobs import FolderBlobs, RemoteBlobs, blocks, deletions_wait, local_path, open_blobs
from rag.errors import NotFound
from rag.records import EVERYTHING, ColumnType, RawTable, Readable, Section, Table, TableColumn
from rag.tables.vocabulary import searchable_words, table_words

if TYPE_CHECKING:
    from rag.tables.typed_tables import TypedTable

ENDING = ".parquet"
MAGIC = b"PAR1"  # the last bytes of each Parquet file
INGESTION_TIME = timedelta(hours=1)  # younger files without a table may belong to a running ingest
LONGEST_UNDESCRIBED = 400  # rows; longer tables get a section that describes their columns


class TableFiles:
    """The files of the tables' rows, in a folder or at a URL; remote files are cached."""

    def __init__(self, url: str, cache: Path) -> None:
        """Raises SetupError for a URL that no installed package can open."""
        self._blobs = open_blobs(url)
        if isinstance(self._blobs, RemoteBlobs):
            self._blobs.check()
        self._cache = FolderBlobs(cache)

    def write(self, table_id: str, table: "TypedTable") -> None:
        """Write a table's file completely or not at all."""
        name = f"{table_id}{ENDING}"
        if self._blobs.size(name) is not None:
            return
        with TemporaryDirectory(prefix="groundnote-table-") as folder:
            path = Path(folder) / name
            table.write(path)
            with path.open("rb") as file:
                self._blobs.write(name, blocks(file))

    def path(self, table_id: str) -> str:
        """Return the path of a table's file for DuckDB. Raises NotFound."""
        path = local_path(self._blobs, f"{table_id}{ENDING}", self._cache.folder)
        if path is None:
            raise NotFound("The table's rows are gone: ingest its document again.")
        return str(path)

    def lacking(self, table_ids: Iterable[str]) -> set[str]:
        """Return those of the tables whose file is missing or incomplete."""
        ids = set(table_ids)
        sizes = self._blobs.sizes() if ids else {}
        return {table_id for table_id in ids if not self._is_whole(table_id, sizes)}

    def _is_whole(self, table_id: str, sizes: Mapping[str, int]) -> bool:
        """Return whether a file exists and, on this machine, ends as a complete file does."""
        name = f"{table_id}{ENDING}"
        size = sizes.get(name, 0)
        if not isinstance(self._blobs, FolderBlobs):
            return size > 0
        if size < 2 * len(MAGIC):
            return False
        with self._blobs.open(name) as file:
            file.seek(-len(MAGIC), 2)
            return file.read() == MAGIC

    def remove(self, table_ids: Iterable[str]) -> None:
        """Delete the tables' files that exist."""
        names = [f"{table_id}{ENDING}" for table_id in table_ids]
        for place in (self._blobs, self._cache):
            place.remove(names)

    def forgotten(self, table_ids: set[str]) -> list[str]:
        """Return the ids of files without a table, too old to belong to a running ingest."""
        before = datetime.now(UTC) - INGESTION_TIME
        if isinstance(self._blobs, FolderBlobs):
            self._blobs.remove_halves(before)
        ids = {name.partition(".")[0]: name for name in self._blobs.sizes()}
        return [
            table_id
            for table_id, name in ids.items()
            if table_id not in table_ids and self._blobs.modified(name) < before
        ]


@dataclass(frozen=True, slots=True)
class Origin:
    """The document that a table belongs to."""

    id: str
    name: str
    title: str


class TableStore:
    """All tables of the library."""

    def __init__(self, engine: Engine, files: TableFiles) -> None:
        self._engine = engine
        self.files = files

    def make(self, origin: Origin, raw: Sequence[RawTable]) -> Iterator[Table]:
        """Type a document's grids and write their rows; the caller writes the database."""
        if not raw:
            return  # most documents: importing the reader of tables takes a while
        from rag.tables.typed_tables import typed_tables

        position = 0
        for grid in raw:
            for typed in typed_tables(grid):
                if not typed.columns or not typed.row_count:
                    continue
                table = _table(origin, position, grid, typed)
                self.files.write(table.id, typed)
                yield table
                position += 1

    def tables(self, readable: Readable, *, document_id: str | None = None) -> list[Table]:
        """Return the tables by document and position."""
        query = _QUERY.where(inside(document_table.c.collection_id, readable)).order_by(
            document_table.c.name, document_table.c.id, table_table.c.position
        )
        if document_id is not None:
            query = query.where(table_table.c.document_id == document_id)
        with reading(self._engine) as connection:
            return [_from_row(row) for row in connection.execute(query)]

    def ids(self, readable: Readable) -> tuple[str, ...]:
        """Return the ids of all readable tables; they change whenever documents do."""
        query = select(table_table.c.id).order_by(table_table.c.id)
        if readable.ids is not None:
            query = query.join_from(table_table, document_table).where(
                inside(document_table.c.collection_id, readable)
            )
        with reading(self._engine) as connection:
            return tuple(connection.execute(query).scalars())

    def table(self, table_id: str, readable: Readable) -> Table:
        """Return a table. Raises NotFound, also where its document is not readable."""
        query = _QUERY.where(
            table_table.c.id == table_id, inside(document_table.c.collection_id, readable)
        )
        with reading(self._engine) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"There is no table {table_id[:60]!r}: its document changed or is gone.")
        return _from_row(row)

    def has_rows_of(self, document_id: str) -> bool:
        """Return whether the row files of all of a document's tables exist."""
        query = select(table_table.c.id).where(table_table.c.document_id == document_id)
        with reading(self._engine) as connection:
            ids = list(connection.execute(query).scalars())
        return not ids or not self.files.lacking(ids)

    def remove(self, table_ids: Iterable[str]) -> None:
        """Delete the row files of tables that are no longer in the database."""
        if not deletions_wait(self._engine):
            self.files.remove(table_ids)

    def tidy(self) -> None:
        """Delete files that a killed process left."""
        self.remove(self.files.forgotten(set(self.ids(EVERYTHING))))


_QUERY = select(
    table_table,
    document_table.c.name.label("document_name"),
    document_table.c.title.label("document_title"),
).join_from(table_table, document_table)


def _table(origin: Origin, position: int, grid: RawTable, typed: "TypedTable") -> Table:
    content = hashlib.sha256()
    for part in (origin.id, str(position), grid.name, *(c.name for c in typed.columns)):
        content.update(part.encode("utf-8", "replace") + b"\0")
    content.update(grid.rows.encode("utf-8", "replace"))
    texts = chain.from_iterable(  # by which a question may mean this table
        texts if column.type is ColumnType.TEXT else column.examples
        for column, texts in zip(typed.columns, typed.texts, strict=True)
    )
    return Table(
        id=content.hexdigest()[:32],
        document_id=origin.id,
        document_name=origin.name,
        document_title=origin.title,
        position=position,
        name=grid.name,
        locator=grid.locator,
        row_count=typed.row_count,
        columns=typed.columns,
        words=searchable_words((grid.name, origin.title, origin.name), typed.columns, texts),
    )


def _from_row(row: Any) -> Table:
    columns = tuple(
        TableColumn(
            **column | {"type": ColumnType(column["type"]), "examples": tuple(column["examples"])}
        )
        for column in row.columns
    )
    return Table(**{**row._mapping, "columns": columns})


def profiles(tables: Sequence[Table], *, first: int) -> Iterator[Section]:
    """Yield a section for each long table, with all columns and example values, for search."""
    long = [table for table in tables if table.row_count > LONGEST_UNDESCRIBED]
    for index, table in enumerate(long, start=first):
        text = table_words(table.name, table.row_count, table.columns)
        yield Section(index, (), f"columns of {table.name}", text)
