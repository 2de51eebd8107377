"""Sources of documents: what keeps collections in step with them."""

from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rag.connectors.kinds import FOLDER, folder_of
from rag.connectors.registry import SourceRegistry
from rag.connectors.table import SourceTable
from rag.llm.connection import SecretBox
from rag.records import DocumentSource, SyncState
from rag.wiring.components import load_limits

BOUNDS_CHARS = 12  # enough to tell two settings of bounds apart

if TYPE_CHECKING:
    from rag.connectors.sync_jobs import Syncs
    from rag.wiring.application import Application


def book_of(application: "Application") -> SourceRegistry:
    """What people ask of sources."""
    return SourceRegistry(
        SourceTable(application.engine),
        application.documents,
        application.settings.sources,
        lambda source: application.jobs.submit_sync(source),
        SecretBox(application.settings.data_dir),
    )


def syncs_of(application: "Application") -> "Syncs":
    """What does the syncs."""
    from rag.connectors.plan import Limits
    from rag.connectors.sync_jobs import Syncs
    from rag.connectors.sync_run import Parts

    settings = application.settings.sources

    bounds = load_limits(application.settings)
    told = sha256(repr(bounds).encode()).hexdigest()[:BOUNDS_CHARS]

    def parts() -> Parts:
        return Parts(
            application.sources.table,
            application.documents,
            application.ingestion,
            Limits(settings.most_removed_share, settings.most_removed),
            bounds.max_bytes,
            told,
            timedelta(days=settings.grace_days),
        )

    folder = application.settings.data_dir / "sources"
    box = SecretBox(application.settings.data_dir)
    return Syncs(parts, application.collections, settings, folder, box)


def watch_of(application: "Application") -> None:
    """Have folders looked at when something changes there, until all stops."""
    from rag.connectors.watch import watch

    book = application.sources

    def watched() -> dict[str, Path]:
        if book.table.waits_for_yes():
            return {}
        return {
            source.id: folder_of(source.address)
            for source in book.table.sources()
            if source.watch and source.kind == FOLDER and _is_under_way(source)
        }

    watch(watched, book.sync, application.stopping)


def _is_under_way(source: DocumentSource) -> bool:
    """Its first look, which tells what it found, comes before those that watching asks for."""
    is_new = source.state is SyncState.IDLE and source.last_synced_at is None
    return not is_new and source.state is not SyncState.REMOVING
