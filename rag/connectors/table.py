"""The tables of sources and their files."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from rag.connectors.kinds import masked
from rag.db import (
    as_utc,
    document_sources,
    documents,
    jobs,
    reading,
    source_files,
    storable,
    writing,
)
from rag.db.audit_trail import record
from rag.db.blobs import restored_at
from rag.documents.store_rows import batches, rows_with
from rag.errors import Conflict, NotFound
from rag.records import DocumentSource, SourceFile, Standing, SyncCounts, SyncState

SYNC = "sync"  # the kind of sync jobs; their subject is the source's id
UNFINISHED = ("queued", "running")
MOMENTS = ("created_at", "last_synced_at", "next_due_at")
BY_NAME = source_files.c.name


@dataclass(frozen=True, slots=True)
class LastSync:
    """The progress of a source's newest sync job."""

    state: str
    done: int = 0  # files
    total: int = 0
    error: str = ""

    @property
    def is_unfinished(self) -> bool:
        return self.state in UNFINISHED


class SourceTable:
    """The sources and their files in the database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # ── Sources ──────────────────────────────────────────────────────────────────────────────

    def add(self, source: DocumentSource) -> DocumentSource:
        """Add a source with a new id. Raises Conflict where its collection has its address."""
        now = datetime.now(UTC)
        row = asdict(source) | {"id": uuid4().hex, "created_at": now, "next_due_at": None}
        row |= {"include": list(source.include), "exclude": list(source.exclude)}
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(document_sources).values(**row))
        except IntegrityError as error:
            raise Conflict(
                f"{masked(source.address)} is a source of this collection already. Choose another "
                "collection, or change it on the page of sources; groundnote source remove --keep-"
                "documents takes it away first."
            ) from error
        return self.source(row["id"])

    def source(self, source_id: str) -> DocumentSource:
        """Return a source. Raises NotFound."""
        sources = self._sources_where(document_sources.c.id == source_id)
        if not sources:
            raise NotFound(f"There is no source {source_id[:60]!r}.")
        return sources[0]

    def sources(self, collection_ids: Collection[str] | None = None) -> list[DocumentSource]:
        """Return the sources of these collections, or all, by address."""
        if collection_ids is None:
            return self._sources_where()
        return self._sources_where(document_sources.c.collection_id.in_(sorted(collection_ids)))

    def _sources_where(self, *conditions: Any) -> list[DocumentSource]:
        query = select(document_sources).where(*conditions).order_by(document_sources.c.address)
        with reading(self._engine) as connection:
            return [_source_from(row) for row in connection.execute(query)]

    def change(self, source_id: str, **values: Any) -> None:
        """Set columns of a source."""
        with writing(self._engine) as connection:
            is_it = document_sources.c.id == source_id
            connection.execute(update(document_sources).where(is_it).values(**values))

    def record(self, action: str, subject: str) -> None:
        """Record an action in the audit trail."""
        with writing(self._engine) as connection:
            record(connection, action, subject)

    def finish(self, source_id: str, values: dict[str, Any]) -> None:
        """Write the result of a sync, unless the source is being removed."""
        with writing(self._engine) as connection:
            connection.execute(
                update(document_sources)
                .where(document_sources.c.id == source_id)
                .where(document_sources.c.state != SyncState.REMOVING)
                .values(**values)
            )

    def forget(self, source_id: str) -> None:
        """Delete a source and the rows of its files; their documents stay."""
        with writing(self._engine) as connection:
            connection.execute(delete(source_files).where(source_files.c.source_id == source_id))
            connection.execute(delete(document_sources).where(document_sources.c.id == source_id))

    def claim_due(self) -> list[DocumentSource]:
        """Return the sources that are due; each is given to one of the processes that ask."""
        if self.waits_for_yes():
            return []
        now = datetime.now(UTC)
        results = []
        for source in self._sources_where(document_sources.c.next_due_at <= now):
            is_still_due = and_(
                document_sources.c.id == source.id,
                document_sources.c.next_due_at == source.next_due_at,
            )
            following = {"next_due_at": next_due(source, now)}
            with writing(self._engine) as connection:
                claim = update(document_sources).where(is_still_due).values(following)
                if connection.execute(claim).rowcount == 1:
                    results.append(source)
        return results

    def waits_for_yes(self) -> bool:
        """Return whether the library was restored from a backup and its jobs are still held."""
        with reading(self._engine) as connection:
            return restored_at(connection) is not None

    def syncs(self, source_ids: Collection[str]) -> dict[str, LastSync]:
        """Return each source's sync job that is running, queued, or ended last."""
        query = (
            select(jobs.c.subject, jobs.c.state, jobs.c.done, jobs.c.total, jobs.c.error)
            .where(jobs.c.kind == SYNC, jobs.c.subject.in_(sorted(source_ids)))
            .order_by(jobs.c.created_at)
        )
        results: dict[str, LastSync] = {}
        with reading(self._engine) as connection:
            for row in connection.execute(query):
                before = results.get(row.subject)
                if before is None or not before.is_unfinished:
                    results[row.subject] = LastSync(row.state, row.done, row.total, row.error or "")
        return results

    # ── Their files ──────────────────────────────────────────────────────────────────────────

    def files(self, source_id: str, *standings: Standing) -> list[SourceFile]:
        """Return a source's files of these standings, or all, by name."""
        query = select(source_files).where(source_files.c.source_id == source_id)
        if standings:
            query = query.where(source_files.c.standing.in_(standings))
        with reading(self._engine) as connection:
            return [_file_from(row) for row in connection.execute(query.order_by(BY_NAME))]

    def failed_count(self, source_id: str) -> int:
        """Return how many files could not be read."""
        with reading(self._engine) as connection:
            return int(connection.scalar(select(func.count()).where(_failed_of(source_id))) or 0)

    def failed(self, source_id: str, limit: int) -> list[SourceFile]:
        """Return files that could not be read, by name."""
        query = select(source_files).where(_failed_of(source_id)).order_by(BY_NAME).limit(limit)
        with reading(self._engine) as connection:
            return [_file_from(row) for row in connection.execute(query)]

    def present(self, source_id: str) -> dict[str, str]:
        """Return the content hashes, by id, of the source's documents that exist."""
        ids = select(source_files.c.document_id).where(source_files.c.source_id == source_id)
        query = select(documents.c.id, documents.c.content_hash).where(documents.c.id.in_(ids))
        with reading(self._engine) as connection:
            return {row.id: row.content_hash for row in connection.execute(query)}

    def taken_names(self, collection_id: str) -> dict[str, str]:
        """Return ids by document name: of the collection, and those its sources have reserved."""
        stored = select(documents.c.name, documents.c.id).where(
            documents.c.collection_id == collection_id
        )
        reserved = (
            select(source_files.c.document_name, source_files.c.document_id)
            .join(document_sources, document_sources.c.id == source_files.c.source_id)
            .where(document_sources.c.collection_id == collection_id)
            .where(source_files.c.standing != Standing.REMOVED)
        )
        with reading(self._engine) as connection:
            rows = [*connection.execute(reserved), *connection.execute(stored)]
        return {row[0]: row[1] for row in rows}

    def taken_ids(self, document_ids: Iterable[str]) -> set[str]:
        """Return those of the ids that a document or a source's file has."""
        ids = list(document_ids)
        with reading(self._engine) as connection:
            return {
                row[0]
                for column in (documents.c.id, source_files.c.document_id)
                for row in rows_with(connection, select(column), column, ids)
            }

    def of_sources(self, document_ids: Iterable[str]) -> set[str]:
        """Return those of the documents that a source has made or is about to make."""
        column = source_files.c.document_id
        query = select(column).where(source_files.c.standing != Standing.REMOVED)
        with reading(self._engine) as connection:
            return {row[0] for row in rows_with(connection, query, column, document_ids)}

    def of_document(self, document_id: str) -> tuple[DocumentSource, SourceFile] | None:
        """Return the source and the listed file of a document, or None."""
        query = select(source_files).where(
            source_files.c.document_id == document_id, source_files.c.standing == Standing.LISTED
        )
        with reading(self._engine) as connection:
            row = connection.execute(query).first()
        return None if row is None else (self.source(row.source_id), _file_from(row))

    def contents(self, document_ids: Iterable[str]) -> dict[str, str]:
        """Return the content hashes of documents, by id."""
        query = select(documents.c.id, documents.c.content_hash)
        with reading(self._engine) as connection:
            rows = rows_with(connection, query, documents.c.id, document_ids)
            return {row.id: row.content_hash for row in rows}

    def write(self, source_id: str, files: Iterable[SourceFile]) -> bool:
        """Write files in place of their stored rows; False if the source was removed.

        A source that is being removed is not written to.
        """
        with writing(self._engine) as connection:
            state = select(document_sources.c.state).where(document_sources.c.id == source_id)
            if connection.execute(state).scalar() in (None, SyncState.REMOVING):
                return False
            for some in batches(files):
                _write(connection, source_id, some)
        return True

    def drop(self, source_id: str, document_ids: Iterable[str]) -> None:
        """Delete the rows of these files."""
        of_source = delete(source_files).where(source_files.c.source_id == source_id)
        with writing(self._engine) as connection:
            for ids in batches(document_ids):
                connection.execute(of_source.where(source_files.c.document_id.in_(ids)))

    def stand(self, source_id: str, before: Sequence[Standing], after: Standing) -> int:
        """Change the standing of all files with certain standings; return how many."""
        with writing(self._engine) as connection:
            changed = connection.execute(
                update(source_files)
                .where(source_files.c.source_id == source_id)
                .where(source_files.c.standing.in_(before))
                .values(standing=after)
            )
        return int(changed.rowcount)

    def distrust(self, source_id: str) -> None:
        """Clear the marks of all files, so that the next sync reads every one."""
        with writing(self._engine) as connection:
            is_its = source_files.c.source_id == source_id
            connection.execute(update(source_files).where(is_its).values(mark=""))


def next_due(source: DocumentSource, now: datetime) -> datetime | None:
    """Return when the source is synchronised next by itself; None for never."""
    if source.every_seconds is None:
        return None
    return now + timedelta(seconds=source.every_seconds)


def _failed_of(source_id: str) -> ColumnElement[bool]:
    return and_(
        source_files.c.source_id == source_id,
        source_files.c.reason != "",
        source_files.c.standing != Standing.REMOVED,
    )


def _write(connection: Connection, source_id: str, files: Sequence[SourceFile]) -> None:
    texts = ("name", "document_name", "mark", "url", "reason")
    rows = [asdict(file) | {key: storable(getattr(file, key)) for key in texts} for file in files]
    is_its = source_files.c.source_id == source_id
    ids = [file.document_id for file in files]
    existing = select(source_files.c.document_id).where(is_its, source_files.c.document_id.in_(ids))
    here = set(connection.execute(existing).scalars())
    changed = [row | {"its_id": row["document_id"]} for row in rows if row["document_id"] in here]
    if changed:
        is_it = and_(is_its, source_files.c.document_id == bindparam("its_id"))
        connection.execute(update(source_files).where(is_it), changed)
    new = [row | {"source_id": source_id} for row in rows if row["document_id"] not in here]
    if new:
        connection.execute(insert(source_files), new)


def _source_from(row: Row[Any]) -> DocumentSource:
    values = dict(row._mapping)
    values |= {name: values[name] and as_utc(values[name]) for name in MOMENTS}
    values |= {"include": tuple(values["include"]), "exclude": tuple(values["exclude"])}
    names = {field.name for field in fields(SyncCounts)}
    counts = {key: count for key, count in values["counts"].items() if key in names}
    values |= {"state": SyncState(row.state), "counts": SyncCounts(**counts)}
    return DocumentSource(**values)


def _file_from(row: Row[Any]) -> SourceFile:
    values = {key: value for key, value in row._mapping.items() if key != "source_id"}
    removed_at = row.removed_at and as_utc(row.removed_at)
    return SourceFile(**values | {"standing": Standing(row.standing), "removed_at": removed_at})
