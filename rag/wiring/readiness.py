"""Checks of every part that answers need."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from rag.db import reading
from rag.errors import IndexAway, ModelUnavailable, SetupError, StorageFailed, needs_extra
from rag.operations import check_room, refuse_emptied, set_back

if TYPE_CHECKING:
    from rag.wiring.application import Application

READY_SECONDS = 4.0  # for all checks together
ReadinessProbe = Callable[[], Any]  # raises if the part does not work


def checks_of(application: "Application") -> dict[str, ReadinessProbe]:
    """Return the checks of an application, by their names."""
    checks: dict[str, ReadinessProbe] = {
        "database": lambda: _ask_database(application),
        "embedding_model": lambda: _ask_model(application),
        "index": lambda: _ask_index(application),
        "queue": application.jobs.ping,
        "storage": lambda: check_room(application.settings.data_dir),
        "tables": lambda: _look_at_files(application.without_rows),
        "originals": lambda: _look_at_files(application.without_original),
        "newest": lambda: _look_at_age(application),
    }
    judge = application.settings.checks.nli_model
    if judge is not None:
        checks["judge"] = lambda: check_judge(judge)
    return checks


def looked_at(checks: Mapping[str, ReadinessProbe]) -> dict[str, bool]:
    """Run all checks at once; one that takes too long has failed."""
    pool = ThreadPoolExecutor(len(checks))
    probes = {name: pool.submit(_works, check) for name, check in checks.items()}
    wait(probes.values(), timeout=READY_SECONDS)
    pool.shutdown(wait=False)
    return {name: probe.done() and probe.result() for name, probe in probes.items()}


def _works(check: ReadinessProbe) -> bool:
    try:
        check()
    except Exception:  # noqa: BLE001 - whatever it is, it does not work
        return False
    return True


def _ask_model(application: "Application") -> None:
    """Check that a local model is loaded, or that the embedding server answers."""
    if not application.warm.is_set():
        raise ModelUnavailable("The embedding model is not loaded yet.")
    if application.settings.embedding.base_url is not None:
        application.embedder.embed(["ready"])


def check_judge(folder: Path | None) -> str:
    """Return which verdicts the judge at `folder` gives; "" if None. Raises SetupError."""
    from rag.llm.judges import labels_of

    if folder is None:
        return ""
    labels = labels_of(folder)
    if find_spec("sentence_transformers") is None:
        raise SetupError(needs_extra(f"The judge {folder} (checks.nli_model)", "models"))
    return "one score" if labels is None else ", ".join(sorted(set(labels.values())))


def _ask_database(application: "Application") -> None:
    with reading(application.engine) as connection:
        connection.execute(text("SELECT 1 FROM documents LIMIT 1"))
    if application.fault:
        raise StorageFailed(application.fault)
    refuse_emptied(application.engine, application.settings.data_dir)


def _look_at_files(lacking: Callable[[], Collection[str]]) -> None:
    with suppress(SQLAlchemyError):  # the check of the database reports it
        if lost := len(lacking()):
            raise StorageFailed(f"{lost} files beside the database are gone, or others.")


def _look_at_age(application: "Application") -> None:
    with suppress(SQLAlchemyError):
        if older := set_back(application.engine, application.settings.data_dir):
            raise StorageFailed(older)


def _ask_index(application: "Application") -> None:
    if not application.tried.is_set():
        raise IndexAway("The index is not open yet.")
    application.index.check()
    with suppress(SQLAlchemyError):  # the check of the database reports it
        if application.index.count() < application.documents.embedded_count():
            raise IndexAway("The index is rebuilt.")
