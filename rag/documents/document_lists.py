"""Documents by the page: a library of ten thousand is not read to show a hundred."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Row, func, select

from rag.db import chunks as chunk_table
from rag.db import documents as document_table
from rag.db import inside, reading, storable, versions
from rag.documents.filters import check, facets_of, lets_through
from rag.documents.reports import READER, report_from
from rag.documents.store_rows import batches
from rag.records import (
    NO_FILTERS,
    Document,
    DocumentPage,
    Facets,
    FilteredDocuments,
    Filters,
    Readable,
)

CacheKey = TypeVar("CacheKey", bound=Hashable)
Cached = TypeVar("Cached")

LARGEST = 10_000_000  # documents: all
REMEMBERED = 16  # facets of sets of collections; filters that were asked for
MOST_WORDS = 50  # looked for: databases take no condition of a thousand parts
_BY_NAME = (document_table.c.name, document_table.c.id)
ORDERS = {
    "name": _BY_NAME,
    "newest": (document_table.c.ingested_at.desc(), *_BY_NAME),
    "largest": (document_table.c.size_bytes.desc(), *_BY_NAME),
}


class DocumentLists:
    """The part of the document store that pages and programs list documents with."""

    _engine: Engine
    _facets: dict[Readable, tuple[dict[str, int], Facets]]
    _chosen: dict[tuple[Readable, Filters], tuple[dict[str, int], FilteredDocuments]]

    def documents(self, readable: Readable) -> list[Document]:
        """All, by name."""
        query = select(document_table).where(_open(readable))
        with reading(self._engine) as connection:
            return [document_from(row) for row in connection.execute(query.order_by(*_BY_NAME))]

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
        """Some of those that have all of these words in title or name, in one of the ORDERS."""
        if filters:
            return self._filtered_page(readable, filters, words, order, offset, limit)
        is_wanted = [
            document_table.c.folded.contains(storable(word), autoescape=True)
            for word in list(dict.fromkeys(words.casefold().split()))[:MOST_WORDS]
        ]
        found = select(document_table).where(_open(readable), *is_wanted).order_by(*ORDERS[order])
        with reading(self._engine) as connection:
            total = _count(connection, _open(readable))
            matching = _count(connection, _open(readable), *is_wanted) if is_wanted else total
            rows = connection.execute(found.limit(limit).offset(offset))
            return DocumentPage([document_from(row) for row in rows], matching, total)

    def _filtered_page(
        self,
        readable: Readable,
        filters: Filters,
        words: str,
        order: str,
        offset: int,
        limit: int,
    ) -> DocumentPage:
        check(filters)
        everything = self.page(readable, limit=LARGEST, words=words, order=order)
        documents = [
            document for document in everything.documents if lets_through(filters, document)
        ]
        return DocumentPage(documents[offset : offset + limit], len(documents), everything.total)

    def named(self, names: Iterable[str], readable: Readable) -> list[Document]:
        """Those of these names."""
        with reading(self._engine) as connection:
            return [
                document_from(row)
                for some in batches(names)
                for row in connection.execute(
                    select(document_table).where(_open(readable), document_table.c.name.in_(some))
                )
            ]

    def filtered(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        """The documents that all filters let through, chosen anew when they change.

        Raises UserError.
        """
        check(filters)
        return self._remembered(
            self._chosen, (readable, filters), readable, lambda: self._choose(filters, readable)
        )

    def _choose(self, filters: Filters, readable: Readable) -> FilteredDocuments:
        chosen = [
            document for document in self.documents(readable) if lets_through(filters, document)
        ]
        ids: set[str] = set()
        with reading(self._engine) as connection:
            for some in batches(document.id for document in chosen):
                is_one = chunk_table.c.document_id.in_(some)
                ids.update(connection.scalars(select(chunk_table.c.id).where(is_one)))
        return FilteredDocuments(tuple(document.name for document in chosen), frozenset(ids))

    def facets(self, readable: Readable) -> Facets:
        """By what the documents can be filtered; counted anew when they change."""
        return self._remembered(
            self._facets, readable, readable, lambda: facets_of(self.documents(readable))
        )

    def _remembered(
        self,
        cache: dict[CacheKey, tuple[dict[str, int], Cached]],
        key: CacheKey,
        readable: Readable,
        make: Callable[[], Cached],
    ) -> Cached:
        """What was made of documents that are still the same, or made now; the oldest go."""
        with reading(self._engine) as connection:
            now = versions(connection, readable)
        cached = cache.pop(key, None)
        if cached is None or cached[0] != now:
            cached = now, make()
        cache[key] = cached
        while len(cache) > REMEMBERED:
            cache.pop(next(iter(cache)), None)
        return cached[1]

    def newest(self, readable: Readable, *, limit: int) -> list[Document]:
        """Those that came in last."""
        return list(self.page(readable, limit=limit, order="newest").documents)

    def read_before(self, readable: Readable) -> list[Document]:
        """Those that an older reader read, by name."""
        reader = document_table.c.report["reader"].as_integer()
        is_older = func.coalesce(reader, 0) < READER
        query = select(document_table).where(_open(readable), is_older).order_by(*_BY_NAME)
        with reading(self._engine) as connection:
            return [document_from(row) for row in connection.execute(query)]

    def spread(self, readable: Readable, *, limit: int) -> list[Document]:
        """Some with text from all over the list, so that folders and kinds take turns."""
        query = select(document_table.c.id).where(_open(readable), document_table.c.chunk_count > 0)
        with reading(self._engine) as connection:
            ids = list(connection.scalars(query.order_by(*_BY_NAME)))
            return _in_order(connection, ids[:: max(1, len(ids) // limit)][:limit])


def _open(readable: Readable) -> Any:
    return inside(document_table.c.collection_id, readable)


def _count(connection: Connection, *conditions: Any) -> int:
    counted = select(func.count()).select_from(document_table).where(*conditions)
    return connection.scalar(counted) or 0


def _in_order(connection: Connection, ids: Sequence[str]) -> list[Document]:
    query = select(document_table).where(document_table.c.id.in_(ids))
    results = {row.id: document_from(row) for row in connection.execute(query)}
    return [results[id_] for id_ in ids]


def document_from(row: Row[Any]) -> Document:
    """A row of the table as a record."""
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
