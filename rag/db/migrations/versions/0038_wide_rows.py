"""Rows of chunks, messages and deeds are numbered with 64 bits; SQLite's always were."""

import logging

from alembic import op

revision = "0038"
down_revision = "0037"

log = logging.getLogger(__name__)


def upgrade() -> None:
    """PostgreSQL writes these tables anew, and locks them meanwhile."""
    if op.get_bind().dialect.name != "postgresql":
        return
    log.warning(
        "Rows get numbers of 64 bits: PostgreSQL writes the tables chunks, messages and audit "
        "anew, which takes as much room again and some seconds for a gigabyte"
    )
    for table in ("chunks", "messages", "audit"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN row TYPE bigint")
        op.execute(f"ALTER SEQUENCE {table}_row_seq AS bigint")
