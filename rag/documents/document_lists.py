"""Pages, filters and facets of documents, without reading all of a large library."""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import UTC
from pathlib import PurePosixPath
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, Row, func, select

from rag import db
from rag.documents.cleaning import day_in
from rag.documents.reports import READER, kind_in_words, report_from
from rag.documents.store_rows import Reads
from rag.errors import UserError
from rag.records import (
    NO_FILTERS,
    Document,
    DocumentPage,
    Facets,
    FilteredDocuments,
    Filters,
    Readable,
)

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
        query = (
            select(db.documents).where(_is_readable(readable), *is_wanted).order_by(*ORDERS[order])
        )
        with db.reading(self._engine) as connection:
            total = _count(connection, _is_readable(readable))
            matching = (
                _count(connection, _is_readable(readable), *is_wanted) if is_wanted else total
            )
            rows = connection.execute(query.limit(limit).offset(offset))
            return DocumentPage(list(map(document_from, rows)), matching, total)

    def _filtered_page(
        self, readable: Readable, filters: Filters, words: str, order: str, offset: int, limit: int
    ) -> DocumentPage:
        check(filters)
        everything = self.page(readable, limit=LARGEST, words=words, order=order)
        documents = [
            document for document in everything.documents if lets_through(filters, document)
        ]
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
        chosen = [
            document for document in self.documents(readable) if lets_through(filters, document)
        ]
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
        query = (
            select(db.documents.c.names).where(_is_readable(readable)).order_by(db.documents.c.name)
        )
        return tuple(dict.fromkeys(name for row in self._rows(query) for name in row.names))

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
        query = select(db.documents.c.id).where(
            _is_readable(readable), db.documents.c.chunk_count > 0
        )
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
