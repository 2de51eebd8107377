"""Vectors in the library's own PostgreSQL database, with the extension `vector`.

They are kept in half precision, with a graph over all of them. A deleted chunk takes its vector
along, in one transaction. A small readable part is compared exactly; a large one is searched by the
graph, which goes on until it has found as many as are wanted.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from rag.db import reading, writing
from rag.errors import IndexAway, IndexMismatch, SetupError
from rag.records import Readable
from rag.seams import ChunkIndex, Matrix

EXACT = 20_000  # of no more vectors that may be read, each is compared
BATCH = 1_000  # rows of a statement
MOST_DIMENSIONS = 4_000  # that the extension's graph takes
OLDEST = (0, 8)  # of the extension: the first whose graph goes on until it has enough
TABLE, NEXT = "chunk_vectors", "chunk_vectors_next"  # what answers; what a reindex fills
# Several processes may meet the database for the first time.
_ALONE = "SELECT pg_advisory_xact_lock(7102387)"
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
_VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
_BUILT = text("SELECT obj_description(to_regclass(:name), 'pg_class')")
_TABLE = (
    "CREATE TABLE {0} (chunk_id varchar(40) PRIMARY KEY REFERENCES chunks (id) "
    "ON DELETE CASCADE, collection_id varchar(40) NOT NULL, vector halfvec({1}) NOT NULL)",
    "CREATE INDEX {0}_by_collection ON {0} (collection_id)",
)
_GRAPH = (
    "CREATE INDEX IF NOT EXISTS {0}_graph ON {0} USING hnsw (vector halfvec_cosine_ops) "
    "WITH (m = 24, ef_construction = 100)"
)
# Chunks first, whoever locks anything: who deletes some takes their vectors along.
_TOGETHER = "LOCK TABLE chunks IN ACCESS SHARE MODE"
# A table that refers to chunks is not dropped with less. Who reads chunks then waits behind it, so
# not for long: less than PostgreSQL waits before it ends one of those who wait for each other.
_ALL_ALONE = ("SET LOCAL lock_timeout = 500", "LOCK TABLE chunks IN ACCESS EXCLUSIVE MODE")
PAUSE_SECONDS, PATIENCE_SECONDS = 2.0, 900.0  # between two tries; then it is given up
_IN_USE = {"55P03", "40P01"}  # the lock did not come in time; a deadlock
_DROP = "DROP TABLE IF EXISTS {}"
_TAKE_OVER = (
    _DROP.format(TABLE),
    f"ALTER TABLE {NEXT} RENAME TO {TABLE}",
    f"ALTER TABLE {TABLE} RENAME CONSTRAINT {NEXT}_chunk_id_fkey TO {TABLE}_chunk_id_fkey",
    *(
        f"ALTER INDEX IF EXISTS {NEXT}_{kind} RENAME TO {TABLE}_{kind}"
        for kind in ("pkey", "by_collection", "graph")
    ),
)
# Of chunks that are still there, in the collection in which they are by now.
_ADD = (
    "INSERT INTO {0} SELECT new.id, chunks.collection_id, new.vector::halfvec FROM "
    "unnest(cast(:ids AS text[]), cast(:vectors AS text[])) AS new (id, vector) "
    "JOIN chunks ON chunks.id = new.id ON CONFLICT (chunk_id) "
    "DO UPDATE SET collection_id = excluded.collection_id, vector = excluded.vector"
)
_MOVE = (
    "UPDATE {0} SET collection_id = chunks.collection_id FROM chunks "
    "WHERE chunk_id = chunks.id AND chunk_id = ANY(:ids)"
)
_REMOVE = "DELETE FROM {0} WHERE chunk_id = ANY(:ids)"
_INSIDE = "WHERE collection_id = ANY(:within)"
_NEAREST = (
    "SELECT chunk_id, 1 - (vector <=> cast(:vector AS halfvec)) FROM chunk_vectors {} "
    "ORDER BY vector <=> cast(:vector AS halfvec) LIMIT :limit"
)
_COUNT = "SELECT count(*) FROM (SELECT 1 FROM chunk_vectors {} LIMIT :most) AS counted"
_EXACTLY = "SET LOCAL enable_indexscan = off"
_BY_GRAPH = "SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = {}"
# Of all; of some, between which others lie. At a million with 2.5 to 5 % readable 200 find .93 of
# the ten nearest, 400 .96, and 800 .99 in half as much time again.
_BEAM, _WIDER_BEAM = 200, 400

Opening = Callable[[Engine], AbstractContextManager[Connection]]  # to read, or to write
_DROPPED = "The vectors in the database were dropped meanwhile. Try again."


class PgVectorIndex:
    """A chunk index as `rag.seams.ChunkIndex` promises."""

    def __init__(self, embedding: str, engine: Engine, *, table: str = TABLE) -> None:
        """`embedding` is the model's name. Raises SetupError for another database."""
        if engine.dialect.name != "postgresql":
            raise SetupError(
                f'retrieval.vectors is "postgresql", but the database is {engine.dialect.name}. '
                'Set sessions.database_url to one of PostgreSQL, or retrieval.vectors to "chroma".'
            )
        self._embedding = embedding
        self._engine = engine
        self._table = table

    def check(self) -> None:
        """Raises SetupError if the extension is missing or too old."""
        with _translate_database_errors(), writing(self._engine) as connection:
            _make_extension(connection)
        with self._there() as there:
            if there is not None:
                self._check_model(there)

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        if not chunk_ids:
            return
        dimensions = int(vectors.shape[1])
        self._create(dimensions)
        rows, statement = [_text(vector) for vector in vectors], text(_ADD.format(self._table))
        with self._there(writing) as connection:
            if connection is None:
                raise IndexAway(_DROPPED)
            self._check_model(connection, dimensions)
            for start in range(0, len(rows), BATCH):
                part = slice(start, start + BATCH)
                connection.execute(statement, {"ids": list(chunk_ids[part]), "vectors": rows[part]})

    def move(self, collections: Mapping[str, str]) -> None:
        self._change(_MOVE, list(collections))

    def remove(self, chunk_ids: Sequence[str]) -> None:
        self._change(_REMOVE, chunk_ids)

    def _change(self, statement: str, chunk_ids: Sequence[str]) -> None:
        """Change the vectors of both models, so that a process that knows only one changes both."""
        with _translate_database_errors(), writing(self._engine) as connection:
            connection.exec_driver_sql(_TOGETHER)
            for table in (TABLE, NEXT):
                if _built(connection, table) is not None:
                    connection.execute(text(statement.format(table)), {"ids": list(chunk_ids)})

    def clear(self) -> None:
        self._replace_tables([_DROP.format(f"{TABLE}, {NEXT}")])

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        none: list[list[tuple[str, float]]] = [[] for _ in vectors]
        if limit <= 0 or readable.ids == frozenset():
            return none
        inside = "" if readable.ids is None else _INSIDE
        values: dict[str, Any] = {"limit": limit}
        if readable.ids is not None:
            values["within"] = sorted(readable.ids)
        with self._there() as connection:
            if connection is None:
                return none
            self._check_model(connection, int(vectors.shape[1]))
            count = connection.scalar(text(_COUNT.format(inside)), values | {"most": EXACT + 1})
            by_graph = _BY_GRAPH.format(_WIDER_BEAM if inside else _BEAM)
            connection.exec_driver_sql(_EXACTLY if count <= EXACT else by_graph)
            query, results = text(_NEAREST.format(inside)), []
            for vector in vectors:
                values["vector"] = _text(vector)
                rows = connection.execute(query, values).all()
                if len(rows) < limit:  # more than were asked for are there
                    connection.exec_driver_sql(_EXACTLY)
                    rows = connection.execute(query, values).all()
                results.append([(chunk_id, float(cosine)) for chunk_id, cosine in rows])
            return results

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        rows = self._rows("SELECT chunk_id, vector::text FROM {0}", chunk_ids)
        return {chunk_id: np.array(json.loads(row), dtype=np.float32) for chunk_id, row in rows}

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        return {chunk_id for (chunk_id,) in self._rows("SELECT chunk_id FROM {0}", among)}

    def count(self) -> int:
        return sum(count for (count,) in self._rows("SELECT count(*) FROM {0}"))

    def close(self) -> None:
        """Do nothing: the index is open as long as the database is."""

    def _rows(self, query: str, among: Sequence[str] | None = None) -> Sequence[Any]:
        query = query.format(self._table)
        if among is not None:
            query = f"{query} WHERE chunk_id = ANY(:ids)"
        with self._there() as connection:
            if connection is None:
                return []
            return connection.execute(text(query), {"ids": list(among or ())}).all()

    def built(self) -> dict[str, Any] | None:
        """Return what the vectors were made by; None if there are none."""
        with _translate_database_errors(), reading(self._engine) as connection:
            return _built(connection, self._table)

    @contextmanager
    def _there(self, opening: Opening = reading) -> Iterator[Connection | None]:
        """Open a transaction in which the table is not replaced; None if there is no table."""
        with _translate_database_errors(), opening(self._engine) as connection:
            connection.exec_driver_sql(_TOGETHER)
            yield None if _built(connection, self._table) is None else connection

    def _check_model(self, connection: Connection, dimensions: int | None = None) -> None:
        """Raises IndexMismatch if the vectors are of another model."""
        built = _built(connection, self._table)
        if built is None:
            raise IndexAway(_DROPPED)
        if built["embedding"] != self._embedding or dimensions not in (None, built["dimensions"]):
            raise IndexMismatch(
                f"The vectors in the database were made by the embedding model "
                f"{built['embedding']!r} ({built['dimensions']} dimensions), but the settings name "
                f"{self._embedding!r}{f' ({dimensions} dimensions)' if dimensions else ''}. "
                "Run `groundnote reindex`, or set embedding.model back."
            )

    def _made_by(self, dimensions: int) -> dict[str, Any]:
        return {"embedding": self._embedding, "dimensions": dimensions}

    def _create(self, dimensions: int) -> None:
        """Create the table if it is missing, with its graph unless it is filled first."""
        if self.built() is not None:
            return
        with _translate_database_errors(), writing(self._engine) as connection:
            connection.execute(text(_ALONE))
            if _built(connection, self._table) is not None:
                return
            _make_extension(connection)
            for statement in _TABLE:
                connection.execute(text(statement.format(self._table, dimensions)))
            if self._table == TABLE and dimensions <= MOST_DIMENSIONS:
                connection.execute(text(_GRAPH.format(TABLE)))
            quoted = json.dumps(self._made_by(dimensions)).replace("'", "''")
            connection.exec_driver_sql(f"COMMENT ON TABLE {self._table} IS '{quoted}'")

    # ── Another model beside this one ────────────────────────────────────────────────────────

    def successor(self, dimensions: int) -> "PgVectorIndex":
        """Return an index to fill while this one answers; one already begun is continued."""
        successor = PgVectorIndex(self._embedding, self._engine, table=NEXT)
        if successor.built() not in (None, self._made_by(dimensions)):
            self._replace_tables([_DROP.format(NEXT)])
        return successor

    def take_over(self, one_writer: Callable[[], AbstractContextManager[object]]) -> None:
        """Replace this index's vectors by those of its successor."""
        built = PgVectorIndex(self._embedding, self._engine, table=NEXT).built()
        if built is None:  # there was nothing to be put into it
            self._replace_tables([_DROP.format(TABLE)], one_writer)
            return
        if built["dimensions"] <= MOST_DIMENSIONS:
            with _translate_database_errors(), writing(self._engine) as connection:
                connection.execute(text(_GRAPH.format(NEXT)))
        self._replace_tables(_TAKE_OVER, one_writer)

    def _replace_tables(
        self,
        statements: Sequence[str],
        one_writer: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Run the statements when nobody uses the tables. Raises IndexAway if they stay in use."""
        end = time.monotonic() + PATIENCE_SECONDS
        with _translate_database_errors():
            while True:
                try:
                    with one_writer(), writing(self._engine) as connection:
                        for statement in (*_ALL_ALONE, *statements):
                            connection.exec_driver_sql(statement)
                    return
                except OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) not in _IN_USE:
                        raise
                    if time.monotonic() >= end:
                        raise IndexAway(_never_free(error)) from error
                time.sleep(PAUSE_SECONDS)


def _never_free(error: OperationalError) -> str:
    return (
        f"The table `chunks` was in use for {PATIENCE_SECONDS / 60:.0f} minutes whenever the "
        "vectors of the library were to be replaced: by a backup, or by a transaction that "
        f"somebody left open; pg_stat_activity says which ({str(error.orig).splitlines()[0]}). "
        "Nothing is lost: do the same again when that is over, and it goes on from here."
    )


def _built(connection: Connection, table: str) -> dict[str, Any] | None:
    description = connection.scalar(_BUILT, {"name": table})
    return None if description is None else dict(json.loads(description))


def _make_extension(connection: Connection) -> None:
    """Create the extension if it is missing; raises SetupError if it is too old."""
    version = connection.scalar(text(_VERSION))
    if version is None:
        connection.execute(text(_EXTENSION))
        version = connection.scalar(text(_VERSION))
    if tuple(int(part) for part in str(version).split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SetupError(
            f"The extension `vector` of the database is {version}, and {oldest} or newer is needed "
            "to find all that may be read. Install pgvector anew beside PostgreSQL, and let a "
            "superuser run in this database: ALTER EXTENSION vector UPDATE; or set "
            'retrieval.vectors to "chroma".'
        )


@contextmanager
def _translate_database_errors() -> Iterator[None]:
    """Raise errors that say in words what PostgreSQL reports."""
    try:
        yield
    except DBAPIError as error:
        message = str(error.orig)
        if "extension" in message and ("vector" in message or "permission" in message):
            raise SetupError(
                'retrieval.vectors is "postgresql", and the database has no extension `vector` '
                f"that this user may make ({message.splitlines()[0]}). Install pgvector "
                "0.8 or newer beside PostgreSQL (Debian: postgresql-17-pgvector), and let a "
                "superuser run in this database: CREATE EXTENSION vector;"
            ) from error
        if isinstance(error, OperationalError):
            raise IndexAway(f"The vectors in the database cannot be had ({error.orig}).") from error
        raise


def _text(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map("{:.6g}".format, vector.tolist())) + "]"


# ── From one index to another ────────────────────────────────────────────────────────────────────

PlacesOfChunks = Callable[[Sequence[str]], Mapping[str, str]]  # of chunks that are there


class ChangingIndex:
    """An old index that answers until the new one is complete; both are written to.

    The process that has copied empties the old one at the end, which tells the others.
    """

    def __init__(self, old: ChunkIndex, new: ChunkIndex) -> None:
        self._old, self._new = old, new
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether the new index is complete."""
        self._is_over = self._is_over or not self._old.count()
        return self._is_over

    @property
    def _answering(self) -> ChunkIndex:
        return self._new if self.is_over else self._old

    @property
    def _written(self) -> list[ChunkIndex]:
        """Return the indexes to write to: the old one only while it answers, or it would be used
        again.
        """
        return [self._new] if self._answering is self._new else [self._old, self._new]

    def copy(self, batches: Callable[[], Iterable[Sequence[str]]], places: PlacesOfChunks) -> int:
        """Copy batches of vectors from the old index to the new one; return how many."""
        if self.is_over:
            return 0
        count, copied = 0, list[int]()
        for ids in batches():
            vectors = self._old.vectors(ids)
            before = places(list(vectors))
            there = [key for key in vectors if key in before]
            if there:
                rows = np.stack([vectors[key] for key in there])
                self._new.add(there, rows, [before[key] for key in there])
                after = places(there)
                self._new.remove([key for key in there if key not in after])
            count += len(there)
            copied.append(hash(frozenset(before.items())))
        # Who moved some meanwhile may have told the old one alone: another process, of before.
        for ids, digest in zip_longest(batches(), copied):
            now = places(ids or ())
            if hash(frozenset(now.items())) != digest:
                self._new.move(now)
        self._old.clear()
        return count

    def check(self) -> None:
        self._answering.check()
        self._new.check()

    def add(self, chunk_ids: Sequence[str], vectors: Matrix, collections: Sequence[str]) -> None:
        for index in self._written:
            index.add(chunk_ids, vectors, collections)

    def move(self, collections: Mapping[str, str]) -> None:
        for index in self._written:
            index.move(collections)

    def remove(self, chunk_ids: Sequence[str]) -> None:
        for index in self._written:
            index.remove(chunk_ids)

    def clear(self) -> None:
        for index in self._written:
            index.clear()

    def nearest(
        self, vectors: Matrix, readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        return self._answering.nearest(vectors, readable, limit=limit)

    def vectors(self, chunk_ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return self._answering.vectors(chunk_ids)

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        return self._answering.chunk_ids(among)

    def count(self) -> int:
        return self._answering.count()

    def close(self) -> None:
        self._old.close()
        self._new.close()
