"""A migrated database, made once and copied: every test would migrate its own otherwise."""

import tempfile
from functools import cache
from pathlib import Path

from rag import db
from rag.db import migrate, open_engine


@cache
def template(_edition):
    """A migrated SQLite file without rows; the argument names the migrations that made it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        engine = open_engine(f"sqlite:///{path}")
        migrate(engine)
        engine.dispose()
        return path.read_bytes()


def migrated(path):
    """An engine over a copy of the migrated file."""
    prepare(path)
    return open_engine(f"sqlite:///{path}")


def prepare(path):
    """Lay a migrated database there, unless one is there already."""
    path = Path(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(template(db.newest_revision()))
