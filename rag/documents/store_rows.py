"""How documents, sections and chunks are written: many rows in few statements.

A statement costs more than the rows that it carries, so the documents of a batch go together.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from rag.db import chunks as chunk_table
from rag.db import documents as document_table
from rag.db import earlier_chunks, jobs, mark_changed, removed_chunks, storable
from rag.db import identifiers as identifier_table
from rag.db import sections as section_table
from rag.db import tables as table_table
from rag.documents.cleaning import name_in_words
from rag.documents.reports import stored_report
from rag.language.names import identifiers
from rag.records import Chunk, Document, Section, Table
from rag.seams import ChunkChanges

NAME_WORD = re.compile(r"[^\W_]+")
BATCH = 500  # ids in one statement: SQLite takes 999 variables or more
MOVABLE = ("section_index", "position", "locator", "start", "end")  # not what a chunk says


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with everything that is written for it."""

    document: Document
    sections: Sequence[Section]
    chunks: Sequence[Chunk]
    tables: Sequence[Table] = ()
    job_id: str = ""  # of the upload that brought it
    original: bytes | None = None  # the file itself


def write_documents(connection: Connection, stored: Mapping[str, StoredDocument]) -> ChunkChanges:
    """Write them, by their ids, in place of what was there; says which chunks came and went."""
    old = _old_places(connection, stored)
    new = {chunk.id: chunk for document in stored.values() for chunk in document.chunks}
    removed = [chunk_id for chunk_id in old if chunk_id not in new]
    added = tuple(chunk for chunk_id, chunk in new.items() if chunk_id not in old)
    _note_earlier(connection, stored, new)
    _write_document_rows(connection, [document.document for document in stored.values()])
    _write_sections(connection, {key: document.sections for key, document in stored.items()})
    gone = _write_tables(connection, {key: document.tables for key, document in stored.items()})
    remove_chunks(connection, removed)
    _move_chunks(connection, old, new)
    collections = _collections_of(connection, stored)
    _add_chunks(connection, added, collections)
    mark_changed(connection, collections.values())
    mark_arrived(connection, [document.job_id for document in stored.values() if document.job_id])
    return ChunkChanges(added, tuple(removed), gone)


def _note_earlier(
    connection: Connection,
    stored: Mapping[str, StoredDocument],
    new: Mapping[str, Chunk],
) -> None:
    """Of documents whose file is the same, which chunks another reader made of it.

    Of a file that has changed, those of before have changed with it.
    """
    same: set[str] = set()
    for ids in batches(stored):
        query = select(document_table.c.id, document_table.c.content_hash)
        for row in connection.execute(query.where(document_table.c.id.in_(ids))):
            if stored[row.id].document.content_hash == row.content_hash:
                same.add(row.id)
    for ids in batches(each for each in stored if each not in same):
        connection.execute(delete(earlier_chunks).where(earlier_chunks.c.document_id.in_(ids)))
    for ids in batches(new):
        connection.execute(delete(earlier_chunks).where(earlier_chunks.c.id.in_(ids)))
    for ids in batches(same):
        query = select(chunk_table.c.id, chunk_table.c.document_id)
        rows = connection.execute(query.where(chunk_table.c.document_id.in_(ids)))
        gone = [{"id": row.id, "document_id": row.document_id} for row in rows if row.id not in new]
        if gone:
            connection.execute(insert(earlier_chunks), gone)


def rename_documents(
    connection: Connection, wanted: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str]]:
    """Call them, by id, otherwise, with another link: their chunks stay, nothing is embedded again.

    A title that was only a name is the new name. One that is gone, or whose collection has another
    of that name, stays as it is. Returns the old and the new name of those that have another.
    """
    table, names = document_table.c, {name for _id, name, _url in wanted}
    is_wanted = table.id.in_([document_id for document_id, _name, _url in wanted])
    rows = {row.id: row for row in connection.execute(select(document_table).where(is_wanted))}
    taken = select(table.collection_id, table.name, table.id).where(table.name.in_(names))
    held = {(row.collection_id, row.name): row.id for row in connection.execute(taken)}
    renamed = []
    for document_id, name, url in wanted:
        row = rows.get(document_id)
        if row is None or held.get((row.collection_id, name), row.id) != row.id:
            continue
        if held.get((row.collection_id, row.name)) == row.id:
            del held[row.collection_id, row.name]
        held[row.collection_id, name] = row.id
        is_named = row.title == name_in_words(row.name)
        title = (name_in_words(name) if is_named else row.title) or row.title
        folded = f"{title} {name}".casefold()
        renamed.append(
            {"its_id": row.id, "name": name, "title": title, "url": url, "folded": folded}
        )
    if renamed:
        is_it = table.id == bindparam("its_id")  # the other keys are what is set
        connection.execute(update(document_table).where(is_it), renamed)
        heads = {each["its_id"]: (each["name"], each["title"]) for each in renamed}
        before = {key: (rows[key].name, rows[key].title) for key in heads}
        _head_chunks(connection, {key: heads[key] for key in heads if heads[key] != before[key]})
        mark_changed(connection, {rows[key].collection_id for key in heads})
    pairs = [(rows[each["its_id"]].name, each["name"]) for each in renamed]
    return [(old, new) for old, new in pairs if old != new]


def _head_chunks(connection: Connection, heads: Mapping[str, tuple[str, str]]) -> None:
    """As word search reads them, by their documents' names and titles."""
    chunks = chunk_table.c
    query = select(chunks.id, chunks.document_id, chunks.heading_path)
    headed = [
        {
            "its_id": row.id,
            "headed": _searched_heading(name, _heading(title, row.heading_path)),
        }
        for row in connection.execute(query.where(chunks.document_id.in_(list(heads))))
        for name, title in [heads[row.document_id]]
    ]
    if headed:
        is_it = chunks.id == bindparam("its_id")
        connection.execute(
            update(chunk_table).where(is_it).values(heading=bindparam("headed")), headed
        )


def mark_arrived(connection: Connection, job_ids: Sequence[str]) -> None:
    """Whatever becomes of the documents from now on, doing their uploads again brings none back."""
    for ids in batches(job_ids):
        connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(has_arrived=True))


def batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    """As many as one statement may name."""
    rest = iter(values)
    while batch := list(islice(rest, BATCH)):
        yield batch


def chunk_ids_of(connection: Connection, document_id: str) -> list[str]:
    """Ids of a document's chunks, in no order."""
    query = select(chunk_table.c.id).where(chunk_table.c.document_id == document_id)
    return list(connection.execute(query).scalars())


def remove_chunks(connection: Connection, chunk_ids: Sequence[str]) -> None:
    """Delete them, and remember that the vector index may still hold them."""
    for ids in batches(chunk_ids):
        connection.execute(delete(chunk_table).where(chunk_table.c.id.in_(ids)))
        connection.execute(delete(removed_chunks).where(removed_chunks.c.id.in_(ids)))
        connection.execute(insert(removed_chunks), [{"id": id_} for id_ in ids])


def _old_places(connection: Connection, document_ids: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    columns = [chunk_table.c[name] for name in MOVABLE]
    places: dict[str, tuple[Any, ...]] = {}
    for ids in batches(document_ids):
        query = select(chunk_table.c.id, *columns).where(chunk_table.c.document_id.in_(ids))
        places.update((row[0], tuple(row[1:])) for row in connection.execute(query))
    return places


def _write_document_rows(connection: Connection, documents: Sequence[Document]) -> None:
    known: set[str] = set()
    for ids in batches(document.id for document in documents):
        query = select(document_table.c.id).where(document_table.c.id.in_(ids))
        known.update(connection.execute(query).scalars())
    rows = [_document_row(document) for document in documents]
    changed = [
        # Where it is now says whoever moves it.
        {key: value for key, value in row.items() if key != "collection_id"} | {"its_id": row["id"]}
        for row in rows
        if row["id"] in known
    ]
    if changed:
        is_it = document_table.c.id == bindparam("its_id")
        connection.execute(update(document_table).where(is_it), changed)
    first = [row for row in rows if row["id"] not in known]
    if first:
        connection.execute(insert(document_table), first)


def _document_row(document: Document) -> dict[str, Any]:
    row = {field.name: getattr(document, field.name) for field in fields(document)}
    return row | {
        "names": list(document.names),
        "report": stored_report(document.report),
        "folded": f"{document.title} {document.name}".casefold(),
    }


def _write_sections(connection: Connection, sections: Mapping[str, Sequence[Section]]) -> None:
    for ids in batches(sections):
        connection.execute(delete(section_table).where(section_table.c.document_id.in_(ids)))
    rows = [
        {
            "document_id": document_id,
            "index": section.index,
            "heading_path": list(section.heading_path),
            "locator": section.locator,
            "text": section.text,
            "page": section.page,
        }
        for document_id, of_document in sections.items()
        for section in of_document
    ]
    if rows:
        connection.execute(insert(section_table), rows)


def _write_tables(connection: Connection, tables: Mapping[str, Sequence[Table]]) -> tuple[str, ...]:
    """In place of what was there; the ids of those that went."""
    gone: set[str] = set()
    for ids in batches(tables):
        gone.update(table_ids_of(connection, ids))
        connection.execute(delete(table_table).where(table_table.c.document_id.in_(ids)))
    rows = [_table_row(table) for of_document in tables.values() for table in of_document]
    if rows:
        connection.execute(insert(table_table), rows)
    return tuple(gone - {row["id"] for row in rows})


def table_ids_of(connection: Connection, document_ids: Sequence[str]) -> list[str]:
    """Ids of the tables of some documents."""
    query = select(table_table.c.id).where(table_table.c.document_id.in_(document_ids))
    return list(connection.execute(query).scalars())


def _table_row(table: Table) -> dict[str, Any]:
    row = asdict(table)
    del row["document_name"], row["document_title"]
    return row | {"columns": _storable(row["columns"]), "name": storable(table.name)}


def _storable(value: Any) -> Any:
    """All texts of a profile, as databases take them."""
    if isinstance(value, dict):
        return {key: _storable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(each) for each in value]
    return storable(value) if isinstance(value, str) else value


def _move_chunks(
    connection: Connection, old: dict[str, tuple[Any, ...]], new: dict[str, Chunk]
) -> None:
    """Chunks that say the same at another place: only their place is written."""
    moved = []
    for chunk_id in old.keys() & new.keys():
        place = {name: getattr(new[chunk_id], name) for name in MOVABLE}
        if tuple(place.values()) != old[chunk_id]:
            moved.append(place | {"its_id": chunk_id})
    if moved:
        connection.execute(
            update(chunk_table).where(chunk_table.c.id == bindparam("its_id")), moved
        )


def _collections_of(connection: Connection, document_ids: Iterable[str]) -> dict[str, str]:
    results: dict[str, str] = {}
    for ids in batches(document_ids):
        query = select(document_table.c.id, document_table.c.collection_id)
        rows = connection.execute(query.where(document_table.c.id.in_(ids)))
        results.update((row.id, row.collection_id) for row in rows)
    return results


def _add_chunks(
    connection: Connection, added: Sequence[Chunk], collections: Mapping[str, str]
) -> None:
    if not added:
        return
    for ids in batches(chunk.id for chunk in added):
        connection.execute(delete(removed_chunks).where(removed_chunks.c.id.in_(ids)))
    connection.execute(
        insert(chunk_table),
        [
            {
                "id": chunk.id,
                "document_id": chunk.document_id,
                "section_index": chunk.section_index,
                "position": chunk.position,
                "locator": chunk.locator,
                "heading": _searched_heading(chunk.document_name, chunk.heading),
                "heading_path": list(chunk.heading_path),
                "text": chunk.text,
                "start": chunk.start,
                "end": chunk.end,
                "is_embedded": False,
                "collection_id": collections[chunk.document_id],
            }
            for chunk in added
        ],
    )
    codes = [
        {"chunk_id": chunk.id, "code": identifier.code, "written": identifier.written}
        for chunk in added
        for identifier in identifiers(f"{chunk.heading}\n{chunk.text}")
    ]
    if codes:
        connection.execute(insert(identifier_table), codes)


def _heading(title: str, path: Sequence[str]) -> str:
    return Chunk("", "", "", title, 0, 0, tuple(path), "", "", 0, 0).heading


def _searched_heading(document_name: str, heading: str) -> str:
    """The heading, and what else the file's name says: `2023 Q3 ACME.pdf` tells reports apart."""
    known = set(NAME_WORD.findall(heading.lower()))
    stem = PurePosixPath(document_name).stem
    more = [word for word in NAME_WORD.findall(stem) if word.lower() not in known]
    return " ".join([heading, *more])
