"""The checks of `groundnote doctor`, one finding per part."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from rag.db.audit_trail import AuditTrail
from rag.db.engine import damage_in_words, damaged_tables
from rag.documents.reports import counted, size_in_words
from rag.documents.store import SqlDocumentStore
from rag.errors import RagError, SetupError, StorageFailed
from rag.operations import (
    check_room,
    compare,
    documents_of,
    read_manifest,
    refuse_emptied,
    set_back,
    tables_without_rows,
)
from rag.operations.snapshot import take_inventory
from rag.records import EVERYTHING, ChatMessage, Role
from rag.seams import ModelRequest
from rag.search.index_lock import holding, ids_in_file, is_damaged
from rag.settings import Settings
from rag.wiring.components import (
    file_places,
    index_folder,
    ocr_folder,
    open_chroma,
    open_embedder,
    open_index,
    open_model,
    open_originals,
    open_second,
    open_tables,
    reading_server,
)
from rag.wiring.listeners import running_server
from rag.wiring.stores import make_data_dir, open_database


@dataclass(frozen=True, slots=True)
class Finding:
    """One part that was checked, and whether it is right."""

    subject: str
    is_ok: bool
    detail: str  # the result, and what to do if it is not right


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each part, cheap checks first; never raises because of a finding."""
    checks: tuple[tuple[str, Callable[[Settings], str]], ...] = (
        ("data folder", _data_folder),
        ("database", _database),
        ("embedding model", _embedding),
        ("other languages", _other_languages),
        ("indexes", _indexes),
        ("tables", _check_tables),
        ("originals", _originals),
        ("readers", _readers),
        ("reading server", _reading_server),
        ("pictures", _pictures),
        ("job queue", _job_queue),
        ("judge", _check_judge),
        ("language model", _language_model),
    )
    for subject, check in checks:
        try:
            yield Finding(subject, True, check(settings))
        except (RagError, OSError, SQLAlchemyError) as error:
            yield Finding(subject, False, str(error))


def _data_folder(settings: Settings) -> str:
    make_data_dir(settings)
    check_room(settings.data_dir)
    free = shutil.disk_usage(settings.data_dir).free / 2**30
    return f"{settings.data_dir}, {free:.1f} GiB free"


def _database(settings: Settings) -> str:
    engine = open_database(settings)
    damaged = damaged_tables(engine)
    if damaged:
        raise StorageFailed(damage_in_words(damaged))
    if older := set_back(engine, settings.data_dir):
        raise StorageFailed(older)
    return str(take_inventory(engine))


def _check_tables(settings: Settings) -> str:
    tables = open_tables(settings, open_database(settings))
    before = read_manifest(settings.data_dir)
    rows = before.rows if before else {}
    lost = tables_without_rows(tables, file_places(settings), rows, reads=True)
    if lost:
        lacking = documents_of(tables, lost)
        raise StorageFailed(
            f"The rows of tables of {len(lacking)} documents are gone, cut off or others "
            f"({_some(lacking.values())}). `groundnote doctor --repair` reads them again where the "
            "files are kept; send the others again: `groundnote ingest FILE`."
        )
    return f"their rows are there, {len(rows)} files with their checksums"


def _originals(settings: Settings) -> str:
    if not settings.documents.keep_originals:
        return "none are kept (documents.keep_originals is off)"
    documents = SqlDocumentStore(open_database(settings), open_originals(settings))
    lacking = documents.without_original(reads=True)
    place = settings.documents.originals_url or settings.data_dir / "originals"
    if lacking:
        raise StorageFailed(
            f"The files of {len(lacking)} documents are not in {place}, cut off or others "
            f"({_some(lacking.values())}). Their text is whole, and is answered from. If another "
            "machine keeps them, name one place for all with documents.originals_url, then run "
            "`groundnote originals FOLDER` with the folder where they lie. Else put them back from "
            "a backup, or send them again: `groundnote ingest FILE`."
        )
    return f"{documents.document_counts()[0]} documents, each with its file in {place}"


def _readers(settings: Settings) -> str:
    documents = SqlDocumentStore(open_database(settings))
    older = documents.read_before(EVERYTHING)
    if not older:
        return "all documents were read by the newest"
    size = size_in_words(sum(document.size_bytes for document in older))
    return (
        f"{counted(len(older), 'document')} ({size}) "
        f"{'was' if len(older) == 1 else 'were'} read by an older reader: reread them "
        "with `groundnote reread`, or on the page of documents; until then they are as they were"
    )


def _reading_server(settings: Settings) -> str:
    server = reading_server(settings)
    if server is None:
        return "none: PDF and Office files are read here"
    server.look()
    return f"{settings.documents.reader_url} reads PDF and Office files"


def _some(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:5])


def _embedding(settings: Settings) -> str:
    embedder = open_embedder(settings)
    embedder.embed(["How long do refunds take?"])
    return f"{embedder.name}, {embedder.dimensions} dimensions"


def _other_languages(settings: Settings) -> str:
    second = open_second(settings, open_database(settings))
    if second is None:
        return "one embedding model: what it knows no language of is found by words"
    done, total = second.progress()
    later = "" if done == total else "; `serve` and `ingest` read the rest"
    return f"{second.model}, {done:,} of {total:,} chunks{later}"


def _indexes(settings: Settings) -> str:
    url = running_server(settings.data_dir)
    if url is not None:
        return f"in use by the server at {url}"
    seen = _ids_in_file(settings)
    if seen is not None and (differences := compare(open_database(settings), _Ids(seen))).is_whole:
        return str(differences)
    embedder = open_embedder(settings)
    if settings.retrieval.vectors == "chroma":  # even if the database has none
        with closing(open_chroma(settings, embedder)) as chroma:
            chroma.check()
    engine = open_database(settings)
    with closing(open_index(settings, embedder, engine)) as index:
        index.check()
        differences = compare(engine, index)
    if not differences.is_whole:
        extra = len(differences.extra_vectors)
        refuse_emptied(open_database(settings), settings.data_dir, vectors=extra)
        raise SetupError(
            f"{differences}. `groundnote doctor --repair` or the next `serve` makes it whole."
        )
    return str(differences)


class _Ids:
    """Stands for an index that holds these ids."""

    def __init__(self, ids: set[str]) -> None:
        self._ids = ids

    def chunk_ids(self, among: Sequence[str] | None = None) -> set[str]:
        return set(self._ids) if among is None else self._ids.intersection(among)

    def count(self) -> int:
        return len(self._ids)


def _ids_in_file(settings: Settings) -> set[str] | None:
    """Return the ids in the embedded index, as far as known without loading it."""
    from rag.search.embedders.local import name_of

    if settings.retrieval.is_shared:
        return None
    folder, model = index_folder(settings), settings.embedding.model
    is_local = settings.embedding.base_url is None
    with holding(folder):
        return ids_in_file(folder, embedding=name_of(model) if is_local else str(model))


def repair(settings: Settings) -> str:
    """Complete the indexes; return what was done. Raises SetupError if a server runs."""
    from rag.wiring.application import build

    url = running_server(settings.data_dir)
    if url is not None:
        raise SetupError(f"The server at {url} holds the index; it repairs it when it starts.")
    application = build(settings)
    try:
        application.look_at_database()  # raises if only a backup helps
        aside = _damaged_vectors(settings)
        differences = str(application.repair(is_asked=True))
        AuditTrail(application.engine).add("index.repaired", differences)
    finally:
        application.stop()
    return f"{differences}; what could not be read lies in {aside}" if aside else differences


def _damaged_vectors(settings: Settings) -> Path | None:
    """Move damaged vectors aside and return where; None if nothing is damaged."""
    folder = index_folder(settings)
    if settings.retrieval.is_shared or not is_damaged(folder):
        return None
    aside = folder.with_name(f"{folder.name}-damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    with holding(folder):
        return folder.rename(aside)


def _pictures(settings: Settings) -> str:
    from rag.documents.readers.pictures import check

    return check(settings.documents.ocr_languages, ocr_folder(settings))


def _job_queue(settings: Settings) -> str:
    if settings.jobs.url is None:
        return "in the database"
    from redis import Redis
    from redis.exceptions import RedisError

    try:
        with closing(Redis.from_url(settings.jobs.url, socket_timeout=5)) as redis:
            redis.ping()
    except (RedisError, ValueError) as error:
        raise SetupError(
            f"The Redis server of jobs.url does not answer ({error}). Check that it runs and that "
            "jobs.url is right."
        ) from error
    return "Redis answers"


def _check_judge(settings: Settings) -> str:
    from rag.wiring.readiness import check_judge

    folder = settings.checks.nli_model
    if verdicts := check_judge(folder):
        return f"{folder} tells {verdicts}"
    is_off = settings.checks.model == "off" or settings.llm.model is None
    return "none: what words cannot tell is not checked" if is_off else "the language model"


def _language_model(settings: Settings) -> str:
    model = open_model(settings)
    if model is None:
        return "none is set: answers are taken word for word from the sources"
    message = ChatMessage(Role.USER, "Answer with the word yes.")
    replies: Iterator[Any] = model.stream(ModelRequest((message,), max_tokens=16))
    text = "".join(delta.text for delta in replies)
    return f"{model.name} answers {text.strip()[:40]!r}"
