"""Backups by the settings: what a library consists of, and where one is put back to."""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy import Engine, inspect, make_url

from rag.db import open_engine
from rag.db.blobs import FolderBlobs, open_blobs
from rag.operations.backup import Library, back_up
from rag.operations.repository import BackupManifest, BackupRepository
from rag.operations.restore import EmptyLibrary
from rag.settings import Settings
from rag.wiring.components import local_originals

BEFORE_MIGRATION = "backups"  # of the data folder
BACKUPS_KEPT = 3  # of those made before migrations


def library_of(settings: Settings, engine: Engine) -> Library:
    """What a backup keeps."""
    here, url = local_originals(settings), settings.documents.originals_url
    values, secrets = without_secrets(settings.model_dump(mode="json"))
    return Library(
        engine,
        (here,) if url is None else (open_blobs(url), here),
        open_blobs(settings.tables.url or settings.data_dir / "tables"),
        FolderBlobs(settings.data_dir / "uploads") if engine.dialect.name == "sqlite" else None,
        settings.data_dir,
        _version(),
        values,
        tuple(secrets),
    )


def empty_library(settings: Settings) -> EmptyLibrary:
    """Where a backup is put back to."""
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


def back_up_before_migration(settings: Settings, engine: Engine) -> BackupManifest:
    """A way back, beside the library: its files under second names, its database as it is.

    Raises StorageFailed where the disk has no room for it.
    """
    repository = BackupRepository(FolderBlobs(settings.data_dir / BEFORE_MIGRATION))
    made = back_up(library_of(settings, engine), repository, links=True)
    repository.keep(BACKUPS_KEPT)
    return made


def without_secrets(values: Mapping[str, Any], path: str = "") -> tuple[dict[str, Any], list[str]]:
    """Settings that a backup may hold, and the names of those that it may not."""
    shown: dict[str, Any] = {}
    secrets: list[str] = []
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if name in SECRET_TABLES or key.endswith(SECRET_ENDINGS) or value == MASK:
            secrets += [name] if value else []
        elif isinstance(value, Mapping):
            shown[key], inner = without_secrets(value, name)
            secrets += inner
        elif isinstance(value, str) and "@" in value and "://" in value:
            shown[key] = _without_login(value)
            secrets += [name] if shown[key] != value else []
        else:
            shown[key] = value
    return shown, secrets


MASK = "**********"  # as pydantic shows what is secret
SECRET_TABLES = ("auth.tokens", "llm.extra_body", "sources.passwords")
SECRET_ENDINGS = ("_secret", "_token", "password")


def _without_login(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _version() -> str:
    try:
        return version("groundnote")
    except PackageNotFoundError:
        return "unknown"
