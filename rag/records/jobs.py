"""Background work."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rag.records.collections import DEFAULT_COLLECTION


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of background work."""

    id: str
    kind: str  # "ingest" or "compact"
    subject: str  # the document's name, or the session's id
    state: JobState
    created_at: datetime
    updated_at: datetime
    done: int = 0  # chunks embedded so far
    total: int = 0  # chunks to embed; 0 while that is not known
    error: str | None = None
    seconds: float | None = None
    owner: str = ""  # who uploaded it; empty: nobody in particular
    collection_id: str = DEFAULT_COLLECTION
    attempts: int = 0  # that ended because something was away
    due_at: datetime | None = None  # when it is tried again
    has_arrived: bool = False  # the text of an upload is among the documents, or was
