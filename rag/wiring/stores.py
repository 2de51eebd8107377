"""What is stored, by its settings, for commands that need no more."""

import logging
import tempfile
from contextlib import suppress
from functools import partial

from sqlalchemy import Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rag.db import migrate, open_engine
from rag.db.audit import AuditTrail
from rag.db.integrity import UNREADABLE, damage_in_words, is_damage
from rag.errors import SetupError, StorageFailed
from rag.operations import refuse_emptied, refuse_foreign
from rag.operations.restore import refuse_unfinished
from rag.runtime.error_log import log_throttled
from rag.settings import Settings

log = logging.getLogger(__name__)
OURS = ("groundnote.db", "chroma")


def open_database(settings: Settings, *, backs_up: bool = True) -> Engine:
    """The migrated database; an older one is backed up first. Raises SetupError, StorageFailed."""
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
        place = make_url(settings.database_url).render_as_string()  # without the password
        raise SetupError(
            f"The database {place} cannot be opened ({getattr(error, 'orig', None) or error}). "
            "Check sessions.database_url, that its server runs, and that this user may write there."
        ) from error
    return engine


def _back_up(settings: Settings, engine: Engine, revision: str) -> None:
    from rag.wiring.backups import BEFORE_MIGRATION, back_up_before_migration

    try:
        made = back_up_before_migration(settings, engine)
    except StorageFailed as error:
        raise StorageFailed(
            f"The database (schema {revision}) is of an older version, and is backed up before it "
            f"is changed. {error} `groundnote migrate --without-backup` goes on without a way back."
        ) from error
    text = f"schema {revision}: backup {made.id} in {settings.data_dir / BEFORE_MIGRATION}"
    log_throttled(log, "The database was backed up before it is brought to this version", text)


def make_data_dir(settings: Settings) -> None:
    """The folder of everything we keep, for its owner only. Raises SetupError."""
    folder = settings.data_dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any((folder / name).exists() for name in OURS):  # also where an earlier version made it
            with suppress(PermissionError):  # somebody else's folder that we may write to
                folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SetupError(
            f"The data folder {folder} cannot be written ({error.strerror}). Change its rights, or "
            "name another one with GROUNDNOTE_DATA_DIR."
        ) from error
