"""The rows of documents, sections and chunks, written many in one statement; lists of documents.

A statement costs more than the rows that it carries, so the documents of a batch go together.
"""

import re
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields
from datetime import UTC
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Executable,
    Row,
    Select,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy import Table as SqlTable

from rag import db
from rag.documents.cleaning import day_in, name_in_words
from rag.documents.reports import READER, kind_in_words, report_from, stored_report
from rag.errors import UserError
from rag.language.names import identifiers
from rag.records import (
    NO_FILTERS,
    Chunk,
    Document,
    DocumentPage,
    Facets,
    FilteredDocuments,
    Filters,
    Readable,
    Section,
    Table,
)
from rag.seams import ChunkChanges

NAME_WORD = re.compile(r"[^\W_]+")
BATCH = 500  # ids in one statement: SQLite takes 999 variables or more
# Where a chunk is, not its content.
MOVABLE = ("section_index", "position", "locator", "start", "end")


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with everything that is stored with it."""

    document: Document
    sections: Sequence[Section]
    chunks: Sequence[Chunk]
    tables: Sequence[Table] = ()
    job_id: str = ""  # of the upload that brought it
    original: bytes | None = None  # the file itself
    in_place: bool = False  # only replaces; a deleted document is not stored again


def write_documents(
    connection: Connection, stored: Mapping[str, StoredDocument], existing: Set[str]
) -> ChunkChanges:
    """Write documents, by id, in place of the stored ones; return the chunks added and removed.

    `existing` are the ids that are stored already, see `existing_ids`.
    """
    places = select(db.chunks.c.id, *(db.chunks.c[name] for name in MOVABLE))
    rows = rows_with(connection, places, db.chunks.c.document_id, stored)
    old: dict[str, tuple[Any, ...]] = {row[0]: tuple(row[1:]) for row in rows}
    new = {chunk.id: chunk for document in stored.values() for chunk in document.chunks}
    removed = [chunk_id for chunk_id in old if chunk_id not in new]
    added = tuple(chunk for chunk_id, chunk in new.items() if chunk_id not in old)
    _note_earlier(connection, stored, new)
    _write_document_rows(connection, [document.document for document in stored.values()], existing)
    _write_sections(connection, {key: document.sections for key, document in stored.items()})
    gone = _write_tables(connection, {key: document.tables for key, document in stored.items()})
    remove_chunks(connection, removed)
    _move_chunks(connection, old, new)
    documents = db.documents.c
    query = select(documents.id, documents.collection_id)
    rows = rows_with(connection, query, documents.id, stored)
    collections = {row.id: row.collection_id for row in rows}
    _add_chunks(connection, added, collections)
    db.mark_changed(connection, collections.values())
    mark_arrived(connection, [document.job_id for document in stored.values() if document.job_id])
    return ChunkChanges(added, tuple(removed), gone)


def existing_ids(connection: Connection, document_ids: Iterable[str]) -> set[str]:
    """Return the ids that are stored, and lock their rows until the transaction ends."""
    query = select(db.documents.c.id).order_by(db.documents.c.id).with_for_update()
    return {row.id for row in rows_with(connection, query, db.documents.c.id, document_ids)}


def _note_earlier(
    connection: Connection, stored: Mapping[str, StoredDocument], new: Mapping[str, Chunk]
) -> None:
    """Note which chunks an earlier reader made of files whose content is the same.

    Where the content has changed, the earlier chunks of the document are forgotten.
    """
    query = select(db.documents.c.id, db.documents.c.content_hash)
    same = {
        row.id
        for row in rows_with(connection, query, db.documents.c.id, stored)
        if stored[row.id].document.content_hash == row.content_hash
    }
    delete_with(connection, db.earlier_chunks.c.document_id, stored.keys() - same)
    delete_with(connection, db.earlier_chunks.c.id, new)
    query = select(db.chunks.c.id, db.chunks.c.document_id)
    chunks = rows_with(connection, query, db.chunks.c.document_id, same)
    _insert(connection, db.earlier_chunks, [row._asdict() for row in chunks if row.id not in new])


def rename_documents(
    connection: Connection, renames: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str]]:
    """Give documents, by id, a new name and link; their chunks stay, none is embedded again.

    A title that was only the file's name becomes the new name. A document that does not exist, or
    whose collection has another of that name, stays as it is. Returns (old name, new name) of each
    document that was renamed.
    """
    table, query = db.documents.c, select(db.documents)
    ids = [document_id for document_id, _name, _url in renames]
    rows = {row.id: row for row in rows_with(connection, query, table.id, ids)}
    namesakes = rows_with(connection, query, table.name, {name for _id, name, _url in renames})
    owners = {(row.collection_id, row.name): row.id for row in namesakes}
    renamed = []
    for document_id, name, url in renames:
        row = rows.get(document_id)
        if row is None or owners.get((row.collection_id, name), row.id) != row.id:
            continue
        if owners.get((row.collection_id, row.name)) == row.id:
            del owners[row.collection_id, row.name]
        owners[row.collection_id, name] = row.id
        is_named = row.title == name_in_words(row.name)
        title = (name_in_words(name) if is_named else row.title) or row.title
        folded = f"{title} {name}".casefold()
        renamed.append(
            {"its_id": row.id, "name": name, "title": title, "url": url, "folded": folded}
        )
    _update(connection, db.documents, renamed)
    heads = {row["its_id"]: (row["name"], row["title"]) for row in renamed}
    before = {key: (rows[key].name, rows[key].title) for key in heads}
    _head_chunks(connection, {key: heads[key] for key in heads if heads[key] != before[key]})
    if heads:
        db.mark_changed(connection, {rows[key].collection_id for key in heads})
    return [(before[key][0], name) for key, (name, _) in heads.items() if before[key][0] != name]


def _head_chunks(connection: Connection, heads: Mapping[str, tuple[str, str]]) -> None:
    """Write the headings that word search reads, from the documents' new (name, title)."""
    chunks = db.chunks.c
    query = select(chunks.id, chunks.document_id, chunks.heading_path)
    headed = []
    for row in rows_with(connection, query, chunks.document_id, heads):
        name, title = heads[row.document_id]
        heading = Chunk("", "", "", title, 0, 0, tuple(row.heading_path), "", "", 0, 0).heading
        headed.append({"its_id": row.id, "heading": _searched_heading(name, heading)})
    _update(connection, db.chunks, headed)


def mark_arrived(connection: Connection, job_ids: Sequence[str]) -> None:
    """Mark upload jobs as arrived: run again, they do not bring back a deleted document."""
    update_with(connection, db.jobs.c.id, job_ids, has_arrived=True)


def batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the values in lists of at most `BATCH`, as many as one statement may name."""
    rest = iter(values)
    while batch := list(islice(rest, BATCH)):
        yield batch


def rows_with(
    connection: Connection, query: Select[Any], column: Column[Any], values: Iterable[Any]
) -> Iterator[Row[Any]]:
    """Yield the rows of a query in which the column holds one of the values, in batches."""
    for some in batches(values):
        yield from connection.execute(query.where(column.in_(some)))


def delete_with(connection: Connection, column: Column[Any], values: Iterable[Any]) -> None:
    """Delete the rows in which the column holds one of the values, in batches."""
    for some in batches(values):
        connection.execute(delete(column.table).where(column.in_(some)))


def update_with(
    connection: Connection, column: Column[Any], values: Iterable[Any], **changes: Any
) -> None:
    """Set columns in the rows in which `column` holds one of the values, in batches."""
    for some in batches(values):
        connection.execute(update(column.table).where(column.in_(some)).values(**changes))


class Reads:
    """The base of the stores over one engine: their read queries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _rows(self, query: Executable, values: Mapping[str, Any] | None = None) -> list[Any]:
        with db.reading(self._engine) as connection:
            return list(connection.execute(query, values))

    def _rows_with(
        self, query: Select[Any], column: Column[Any], values: Iterable[Any]
    ) -> list[Any]:
        with db.reading(self._engine) as connection:
            return list(rows_with(connection, query, column, values))


def _insert(connection: Connection, table: SqlTable, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _update(connection: Connection, table: SqlTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Update each row by its id, given as `its_id`; the other keys are the columns to set."""
    if rows:
        connection.execute(update(table).where(table.c.id == bindparam("its_id")), rows)


def chunk_ids_of(connection: Connection, document_id: str) -> list[str]:
    """Return the ids of a document's chunks, in no order."""
    query = select(db.chunks.c.id).where(db.chunks.c.document_id == document_id)
    return list(connection.execute(query).scalars())


def remove_chunks(connection: Connection, chunk_ids: Sequence[str]) -> None:
    """Delete chunks, and note that the vector index may still hold them."""
    delete_with(connection, db.chunks.c.id, chunk_ids)
    delete_with(connection, db.removed_chunks.c.id, chunk_ids)
    _insert(connection, db.removed_chunks, [{"id": chunk_id} for chunk_id in chunk_ids])


def _write_document_rows(
    connection: Connection, documents: Sequence[Document], existing: Set[str]
) -> None:
    new, changed = [], []
    for document in documents:
        row = {field.name: getattr(document, field.name) for field in fields(document)}
        row |= {
            "names": list(document.names),
            "report": stored_report(document.report),
            "folded": f"{document.title} {document.name}".casefold(),
        }
        if document.id in existing:
            del row["collection_id"]  # changed by `move` only
            changed.append(row | {"its_id": document.id})
        else:
            new.append(row)
    _update(connection, db.documents, changed)
    _insert(connection, db.documents, new)


def _write_sections(connection: Connection, sections: Mapping[str, Sequence[Section]]) -> None:
    delete_with(connection, db.sections.c.document_id, sections)
    rows = [
        asdict(section) | {"document_id": document_id, "heading_path": list(section.heading_path)}
        for document_id, of_document in sections.items()
        for section in of_document
    ]
    _insert(connection, db.sections, rows)


def _write_tables(connection: Connection, tables: Mapping[str, Sequence[Table]]) -> tuple[str, ...]:
    """Write the documents' tables in place of the stored ones; return the ids no longer used."""
    gone = set(table_ids_of(connection, tables))
    delete_with(connection, db.tables.c.document_id, tables)
    rows = []
    for table in (table for of_document in tables.values() for table in of_document):
        row = asdict(table)
        del row["document_name"], row["document_title"]
        row |= {"columns": _storable(row["columns"]), "name": db.storable(table.name)}
        rows.append(row)
    _insert(connection, db.tables, rows)
    return tuple(gone - {row["id"] for row in rows})


def table_ids_of(connection: Connection, document_ids: Iterable[str]) -> list[str]:
    """Return the ids of the documents' tables."""
    query, column = select(db.tables.c.id), db.tables.c.document_id
    return [row.id for row in rows_with(connection, query, column, document_ids)]


def _storable(value: Any) -> Any:
    """Make all strings of a table profile storable in a database."""
    if isinstance(value, dict):
        return {key: _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_storable, value))
    return db.storable(value) if isinstance(value, str) else value


def _move_chunks(
    connection: Connection, old: dict[str, tuple[Any, ...]], new: dict[str, Chunk]
) -> None:
    """Write the new place of chunks whose content is the same."""
    moved = []
    for chunk_id in old.keys() & new.keys():
        place = {name: getattr(new[chunk_id], name) for name in MOVABLE}
        if tuple(place.values()) != old[chunk_id]:
            moved.append(place | {"its_id": chunk_id})
    _update(connection, db.chunks, moved)


def _add_chunks(
    connection: Connection, added: Sequence[Chunk], collections: Mapping[str, str]
) -> None:
    delete_with(connection, db.removed_chunks.c.id, [chunk.id for chunk in added])
    rows = [
        {name: getattr(chunk, name) for name in ("id", "document_id", "text", *MOVABLE)}
        | {
            "heading": _searched_heading(chunk.document_name, chunk.heading),
            "heading_path": list(chunk.heading_path),
            "is_embedded": False,
            "collection_id": collections[chunk.document_id],
        }
        for chunk in added
    ]
    _insert(connection, db.chunks, rows)
    codes = [
        {"chunk_id": chunk.id, "code": identifier.code, "written": identifier.written}
        for chunk in added
        for identifier in identifiers(f"{chunk.heading}\n{chunk.text}")
    ]
    _insert(connection, db.identifiers, codes)


def _searched_heading(document_name: str, heading: str) -> str:
    """Return the heading with the words that only the file's name has.

    `2023 Q3 ACME.pdf` tells reports apart.
    """
    words = set(NAME_WORD.findall(heading.lower()))
    stem = PurePosixPath(document_name).stem
    more = [word for word in NAME_WORD.findall(stem) if word.lower() not in words]
    return " ".join([heading, *more])


_FIELDS = [field.name for field in fields(Chunk)]
_PATH = _FIELDS.index("heading_path")


def chunk_query() -> Select[Any]:
    """Select chunks with their document's name and title, in the order of Chunk's fields."""
    of_documents = {
        "document_name": db.documents.c.name.label("document_name"),
        "document_title": db.documents.c.title.label("document_title"),
    }
    columns: list[Any] = [of_documents.get(name, db.chunks.c.get(name)) for name in _FIELDS]
    return select(*columns).join_from(db.chunks, db.documents)


def chunk_from(row: Row[Any]) -> Chunk:
    """Make a chunk from a row of `chunk_query`."""
    values = list(row)
    values[_PATH] = tuple(values[_PATH])
    return Chunk(*values)


FACETS = ("folder", "type", "author", "tag")
MOST_VALUES = 100  # of one facet, the most frequent


def check(filters: Filters) -> None:
    """Raise UserError where `after` or `before` is no valid day."""
    for name, value in filters.items():
        if name in ("after", "before") and day_in(value) != value:
            raise UserError(f"{name} is {value[:40]!r}; expected a day such as 2025-03-31.")


def lets_through(filters: Filters, document: Document) -> bool:
    """Return whether a document passes every filter.

    A document without a date passes no `after` or `before`.
    """
    title, day = f"{document.title} {document.name}".casefold(), document.report.date
    values = {(name, value.casefold()) for name, value in _values(document)}
    expected = {
        (name, value.casefold().strip("/ ")) for name, value in filters.items() if name in FACETS
    }
    return (
        expected <= values
        and all(word in title for word in filters.title.casefold().split())
        and filters.after <= day
        and (not filters.before or "" < day < filters.before)
    )


def facets_of(documents: Iterable[Document]) -> Facets:
    """Count the documents with each value of each facet, most frequent first.

    Values that differ only in case count together, under their most frequent spelling.
    """
    spellings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for document in documents:
        values = {(name, value.casefold()): value for name, value in _values(document)}
        for key, value in values.items():
            spellings[key][value] += 1
    counts: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for (name, _), written in spellings.items():
        counts[name][written.most_common(1)[0][0]] = written.total()
    return {name: dict(counts[name].most_common(MOST_VALUES)) for name in FACETS}


def _values(document: Document) -> Iterator[tuple[str, str]]:
    for folder in PurePosixPath(document.name).parents:
        if folder.name:
            yield "folder", str(folder)
    yield "type", kind_in_words(document.media_type)
    if document.report.author:
        yield "author", document.report.author
    yield from (("tag", tag) for tag in document.report.tags)


CacheKey = TypeVar("CacheKey", bound=Hashable)
Cached = TypeVar("Cached")

LARGEST = 10_000_000  # more documents than any library has
MOST_WORDS = 50  # in one search: databases refuse conditions of a thousand parts
_BY_NAME = (db.documents.c.name, db.documents.c.id)
ORDERS = {
    "name": _BY_NAME,
    "newest": (db.documents.c.ingested_at.desc(), *_BY_NAME),
    "largest": (db.documents.c.size_bytes.desc(), *_BY_NAME),
}


class VersionedCache(Generic[CacheKey, Cached]):
    """A cache of values computed from documents, valid until their collections change.

    Beyond `most` values, the one not used for longest is dropped.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[CacheKey, tuple[dict[str, int], Cached]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, key: CacheKey, versions: dict[str, int], make: Callable[[], Cached]) -> Cached:
        """Return the value cached for these collection versions, or make it."""
        with self._turn:
            cached = self._made.pop(key, None)
        if cached is None or cached[0] != versions:
            cached = versions, make()
        with self._turn:
            self._made[key] = cached
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return cached[1]


class DocumentLists(Reads):
    """The part of the document store that lists documents for pages and clients."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._facets = VersionedCache[Readable, Facets](16)
        self._chosen = VersionedCache[tuple[Readable, Filters], FilteredDocuments](16)
        self._lexicons = VersionedCache[Readable, tuple[str, ...]](64)

    def documents(self, readable: Readable) -> list[Document]:
        """Return all readable documents, by name."""
        query = select(db.documents).where(_is_readable(readable)).order_by(*_BY_NAME)
        return list(map(document_from, self._rows(query)))

    def page(
        self,
        readable: Readable,
        *,
        limit: int,
        offset: int = 0,
        words: str = "",
        order: str = "name",
        filters: Filters = NO_FILTERS,
    ) -> DocumentPage:
        """Return one page of the documents with all `words` in title or name, in one of ORDERS."""
        if filters:
            return self._filtered_page(readable, filters, words, order, offset, limit)
        is_wanted = [
            db.documents.c.folded.contains(db.storable(word), autoescape=True)
            for word in list(dict.fromkeys(words.casefold().split()))[:MOST_WORDS]
        ]
        is_readable = _is_readable(readable)
        query = select(db.documents).where(is_readable, *is_wanted).order_by(*ORDERS[order])
        with db.reading(self._engine) as connection:
            total = _count(connection, is_readable)
            matching = _count(connection, is_readable, *is_wanted) if is_wanted else total
            rows = connection.execute(query.limit(limit).offset(offset))
            return DocumentPage(list(map(document_from, rows)), matching, total)

    def _filtered_page(
        self, readable: Readable, filters: Filters, words: str, order: str, offset: int, limit: int
    ) -> DocumentPage:
        check(filters)
        everything = self.page(readable, limit=LARGEST, words=words, order=order)
        documents = [one for one in everything.documents if lets_through(filters, one)]
        return DocumentPage(documents[offset : offset + limit], len(documents), everything.total)

    def find_named(self, names: Iterable[str], readable: Readable) -> list[Document]:
        """Return the readable documents with these names."""
        query = select(db.documents).where(_is_readable(readable))
        return list(map(document_from, self._rows_with(query, db.documents.c.name, names)))

    def filtered(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        """Return the documents that pass all filters, cached until the documents change.

        Raises UserError.
        """
        check(filters)
        key, versions = (readable, filters), self._versions(readable)
        return self._chosen.get(key, versions, lambda: self._choose(filters, readable))

    def _choose(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        chosen = [one for one in self.documents(readable) if lets_through(filters, one)]
        ids = (document.id for document in chosen)
        chunks = self._rows_with(select(db.chunks.c.id), db.chunks.c.document_id, ids)
        names = tuple(document.name for document in chosen)
        return FilteredDocuments(names, frozenset(row.id for row in chunks))

    def facets(self, readable: Readable) -> Facets:
        """Return the values that documents can be filtered by, cached until a document changes."""
        versions = self._versions(readable)
        return self._facets.get(readable, versions, lambda: facets_of(self.documents(readable)))

    def lexicon(self, readable: Readable) -> tuple[str, ...]:
        """Return the product names of the documents, each once, cached until a document changes."""
        return self._lexicons.get(readable, self._versions(readable), lambda: self._names(readable))

    def _versions(self, readable: Readable) -> dict[str, int]:
        with db.reading(self._engine) as connection:
            return db.versions(connection, readable)

    def _names(self, readable: Readable) -> tuple[str, ...]:
        query = select(db.documents.c.names).where(_is_readable(readable))
        rows = self._rows(query.order_by(db.documents.c.name))
        return tuple(dict.fromkeys(name for row in rows for name in row.names))

    def newest(self, readable: Readable, *, limit: int) -> list[Document]:
        """Return the documents that were added last, newest first."""
        return list(self.page(readable, limit=limit, order="newest").documents)

    def read_before(self, readable: Readable) -> list[Document]:
        """Return the documents that an older version of the reader read, by name."""
        reader = db.documents.c.report["reader"].as_integer()
        is_older = func.coalesce(reader, 0) < READER
        query = select(db.documents).where(_is_readable(readable), is_older).order_by(*_BY_NAME)
        return list(map(document_from, self._rows(query)))

    def spread(self, readable: Readable, *, limit: int) -> list[Document]:
        """Return documents with text, evenly spread over the list of names.

        So examples come from different folders and kinds.
        """
        has_text = db.documents.c.chunk_count > 0
        query = select(db.documents.c.id).where(_is_readable(readable), has_text)
        ids = [row.id for row in self._rows(query.order_by(*_BY_NAME))]
        some = ids[:: max(1, len(ids) // limit)][:limit]
        rows = self._rows_with(select(db.documents), db.documents.c.id, some)
        documents = {row.id: document_from(row) for row in rows}
        return [documents[document_id] for document_id in some if document_id in documents]


def _is_readable(readable: Readable) -> Any:
    return db.inside(db.documents.c.collection_id, readable)


def _count(connection: Connection, *conditions: Any) -> int:
    counted = select(func.count()).select_from(db.documents).where(*conditions)
    return connection.scalar(counted) or 0


def document_from(row: Row[Any]) -> Document:
    """Make a Document from a row of the table."""
    moment = row.ingested_at
    return Document(
        row.id,
        row.name,
        row.title,
        row.media_type,
        row.content_hash,
        row.size_bytes,
        row.chunk_count,
        moment if moment.tzinfo else moment.replace(tzinfo=UTC),  # SQLite stores no zone
        tuple(row.names),
        row.owner,
        row.collection_id,
        report_from(row.report),
        row.url,
    )
