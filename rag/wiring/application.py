"""The application as the edges see it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from time import monotonic
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from rag.assistant import Assistant
from rag.background import Background
from rag.database import reading
from rag.documents.collections import Collections
from rag.documents.guard import GuardedLoader
from rag.documents.store import SqlDocumentStore
from rag.errors import RagError
from rag.ingestion import Ingestion
from rag.metrics import Metrics
from rag.records import EVERYTHING
from rag.retrieval.search import HybridRetriever
from rag.retrieval.vectors import ChromaIndex
from rag.seams import Embedder
from rag.sessions.store import SqlConversationStore
from rag.settings import Settings
from rag.storage import Differences, check_room, repair
from rag.tables.answers import TableAnswers
from rag.tables.store import TableStore

TIDY_SECONDS = 3600  # between two looks for sessions that are past their time
LOST_SECONDS = 15  # between two looks for answers whose process died


@dataclass(frozen=True, slots=True)
class Application:
    """Everything the edges need, built once."""

    settings: Settings
    engine: Engine
    store: SqlConversationStore
    documents: SqlDocumentStore
    collections: Collections
    tables: TableStore
    asked: TableAnswers
    retriever: HybridRetriever
    assistant: Assistant
    ingestion: Ingestion
    jobs: Background
    metrics: Metrics
    index: ChromaIndex
    loader: GuardedLoader
    embedder: Embedder
    stopping: Event = field(default_factory=Event)
    warm: Event = field(default_factory=Event)

    def start(self) -> None:
        """Take up what a killed process left, and begin to work in the background."""
        self.store.interrupt_lost(is_alone=self._is_alone())
        self.forget_old_sessions()
        self.jobs.start()
        Thread(target=self._tidy_up, name="tidy", daemon=True).start()

    def _tidy_up(self) -> None:
        """Every process looks for what others left, so that no answer stays pending."""
        forgotten_at = monotonic()
        while not self.stopping.wait(min(LOST_SECONDS, TIDY_SECONDS)):
            with suppress(SQLAlchemyError):  # the database is away: the next look is soon
                self.store.interrupt_lost()
                if monotonic() - forgotten_at > TIDY_SECONDS:
                    self.forget_old_sessions()
                    forgotten_at = monotonic()

    def _is_alone(self) -> bool:
        """Whether no other process can be answering: an embedded index has one at a time."""
        is_local = self.engine.dialect.name == "sqlite"
        return is_local and self.settings.retrieval.chroma_url is None

    def warm_up(self) -> None:
        """Load model and index before the first question needs them, and make the index whole."""
        self.index.nearest(self.embedder.embed(["warm"])[0], EVERYTHING, limit=1)
        self.warm.set()
        self.repair()

    def repair(self) -> Differences:
        """Make vectors and words follow the database again; returns what there was to do."""
        with self.ingestion.alone():
            return repair(
                self.engine, self.documents, self.index, embed_missing=self.ingestion.synchronise
            )

    def stop(self) -> None:
        """Let go of the index, the reading process and the database."""
        self.stopping.set()
        self.jobs.stop()
        self.loader.close()
        self.index.close()
        self.engine.dispose()

    def forget_old_sessions(self) -> int:
        """Delete sessions unused for longer than `sessions.ttl_hours`; returns how many."""
        hours = self.settings.sessions.ttl_hours
        if hours is None:
            return 0
        return self.store.delete_unused_since(datetime.now(UTC) - timedelta(hours=hours))

    def ready(self) -> dict[str, bool]:
        """What answers need, and whether it is there."""
        return {
            "database": _works(self._ask_database),
            "model": self.warm.is_set(),
            "index": self.warm.is_set() and _works(self._ask_index),
            "storage": _works(lambda: check_room(self.settings.data_dir)),
        }

    def _ask_database(self) -> None:
        with reading(self.engine) as connection:
            connection.execute(text("SELECT 1"))

    def _ask_index(self) -> None:
        self.index.check()


def _works(check: Callable[[], Any]) -> bool:
    try:
        check()
    except (RagError, OSError, SQLAlchemyError):
        return False
    return True
