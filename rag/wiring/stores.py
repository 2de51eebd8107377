"""Opens database, sources and backups from settings, for commands that need no more."""

import logging
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy import Engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rag.connectors.kinds import FOLDER, folder_of
from rag.db import migrate, open_engine
from rag.db.audit_trail import AuditTrail
from rag.db.blobs import FolderBlobs, open_blobs
from rag.db.engine import UNREADABLE, damage_in_words, is_damage
from rag.errors import SetupError, StorageFailed
from rag.llm.discovery import SecretBox
from rag.operations import refuse_emptied, refuse_foreign
from rag.operations.backup import EmptyLibrary, Library, back_up, refuse_unfinished
from rag.operations.repository import BackupRepository
from rag.records import DocumentSource, SyncState
from rag.runtime.error_log import log_throttled
from rag.settings import Settings
from rag.wiring.components import load_limits, local_originals

log = logging.getLogger(__name__)
OURS = ("groundnote.db", "chroma")


def open_database(settings: Settings, *, backs_up: bool = True) -> Engine:
    """Open the migrated database, after a backup of an older one.

    Raises SetupError and StorageFailed.
    """
    make_data_dir(settings)
    refuse_unfinished(settings.data_dir)
    try:
        engine = open_engine(settings.database_url)
        older = migrate(engine, before=partial(_back_up, settings, engine) if backs_up else None)
        if older is not None:
            AuditTrail(engine).add("database.migrated", f"from {older}")
        refuse_emptied(engine, settings.data_dir)
        refuse_foreign(engine, settings.data_dir)
    except ArgumentError as error:
        raise SetupError(f"sessions.database_url is no URL of a database: {error}.") from error
    except (SQLAlchemyError, OSError) as error:
        if is_damage(error):
            raise SetupError(damage_in_words([UNREADABLE])) from error
        place = make_url(settings.database_url).render_as_string()  # without password
        raise SetupError(
            f"The database {place} cannot be opened ({getattr(error, 'orig', None) or error}). "
            "Check sessions.database_url, that its server runs, and that this user may write there."
        ) from error
    return engine


def _back_up(settings: Settings, engine: Engine, revision: str) -> None:
    """Back the library up beside it: files as hard links, the database as a copy."""
    repository = BackupRepository(FolderBlobs(settings.data_dir / BEFORE_MIGRATION))
    try:
        manifest = back_up(library_of(settings, engine), repository, links=True)
        repository.keep(BACKUPS_KEPT)
    except StorageFailed as error:
        raise StorageFailed(
            f"The database (schema {revision}) is of an older version, and is backed up before it "
            f"is changed. {error} `groundnote migrate --without-backup` goes on without a way back."
        ) from error
    text = f"schema {revision}: backup {manifest.id} in {settings.data_dir / BEFORE_MIGRATION}"
    log_throttled(log, "The database was backed up before it is brought to this version", text)


def make_data_dir(settings: Settings) -> None:
    """Create the data folder, readable by its owner only. Raises SetupError."""
    folder = settings.data_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any((folder / name).exists() for name in OURS):  # also if an earlier version created it
            with suppress(PermissionError):  # another user's folder that is writable
                folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SetupError(
            f"The data folder {folder} cannot be written ({error.strerror}). Change its rights, or "
            "name another one with GROUNDNOTE_DATA_DIR."
        ) from error


# ── Sources of documents: what keeps collections in step with them ────────────────────────────────

BOUNDS_CHARS = 12  # enough to tell two settings of bounds apart

if TYPE_CHECKING:
    from rag.connectors.sync import Syncs
    from rag.wiring.application import Application


def syncs_of(application: "Application") -> "Syncs":
    """Build what runs the syncs."""
    from rag.connectors.sync import Syncs
    from rag.connectors.transfer import Limits, Parts

    settings = application.settings.sources
    bounds = load_limits(application.settings)
    fingerprint = sha256(repr(bounds).encode()).hexdigest()[:BOUNDS_CHARS]

    def parts() -> Parts:
        return Parts(
            application.sources.table,
            application.documents,
            application.ingestion,
            Limits(settings.most_removed_share, settings.most_removed),
            bounds.max_bytes,
            fingerprint,
            timedelta(days=settings.grace_days),
        )

    folder = application.settings.data_dir / "sources"
    box = SecretBox(application.settings.data_dir)
    return Syncs(parts, application.collections, settings, folder, box)


def watch_of(application: "Application") -> None:
    """Watch folders, and sync them when something changes, until the application stops."""
    from rag.connectors.folder import watch

    book = application.sources

    def is_under_way(source: DocumentSource) -> bool:
        """Whether a change may be synced: not before the first sync, nor during a removal."""
        is_new = source.state is SyncState.IDLE and source.last_synced_at is None
        return not is_new and source.state is not SyncState.REMOVING

    def watched() -> dict[str, Path]:
        if book.table.waits_for_yes():
            return {}
        return {
            source.id: folder_of(source.address)
            for source in book.table.sources()
            if source.watch and source.kind == FOLDER and is_under_way(source)
        }

    watch(watched, book.sync, application.stopping)


# ── Backups by the settings: what a library consists of, and where one is put back to ─────────────

BEFORE_MIGRATION = "backups"  # in the data folder
BACKUPS_KEPT = 3  # of those made before migrations


def library_of(settings: Settings, engine: Engine) -> Library:
    """Return what a backup saves."""
    blobs, url = local_originals(settings), settings.documents.originals_url
    values, secrets = without_secrets(settings.model_dump(mode="json"))
    installed = "unknown"
    with suppress(PackageNotFoundError):
        installed = version("groundnote")
    return Library(
        engine,
        (blobs,) if url is None else (open_blobs(url), blobs),
        open_blobs(settings.tables.url or settings.data_dir / "tables"),
        FolderBlobs(settings.data_dir / "uploads") if engine.dialect.name == "sqlite" else None,
        settings.data_dir,
        installed,
        values,
        tuple(secrets),
    )


def empty_library(settings: Settings) -> EmptyLibrary:
    """Return where a backup is restored to."""
    url = settings.documents.originals_url
    return EmptyLibrary(
        settings.data_dir,
        settings.database_url,
        lambda: _is_empty(settings.database_url),
        local_originals(settings) if url is None else open_blobs(url),
        open_blobs(settings.tables.url or settings.data_dir / "tables"),
        FolderBlobs(settings.data_dir / "uploads"),
    )


def _is_empty(database_url: str) -> bool:
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return not Path(url.database or "").exists()
    engine = open_engine(database_url)
    try:
        with engine.connect() as connection:
            return not inspect(connection).get_table_names()
    finally:
        engine.dispose()


def without_secrets(values: Mapping[str, Any], path: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the settings without secrets, and the names of the secrets."""
    shown: dict[str, Any] = {}
    secrets: list[str] = []
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if name in SECRET_TABLES or key.endswith(SECRET_ENDINGS) or value in (MASK, [MASK]):
            secrets += [name] if value else []
        elif isinstance(value, Mapping):
            shown[key], inner = without_secrets(value, name)
            secrets += inner
        elif isinstance(value, str) and "@" in value and "://" in value:
            parts = urlsplit(value)
            shown[key] = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
            secrets += [name] if shown[key] != value else []
        else:
            shown[key] = value
    return shown, secrets


MASK = "**********"  # as pydantic shows what is secret
SECRET_TABLES = ("auth.tokens", "llm.extra_body", "sources.passwords")
SECRET_ENDINGS = ("_secret", "_token", "password")
