"""Libraries to replay conversations over: ingested once, and kept by what they are made of."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rag.documents.files import collect
from rag.errors import SetupError, UserError
from rag.regression.recordings import RecordedModel
from rag.runtime.progress import Stage
from rag.seams import ChatModel, Embedder
from rag.settings import Settings
from rag.wiring.building import build
from rag.wiring.components import open_embedder

if TYPE_CHECKING:
    from rag.wiring.application import Application

PACKAGE = Path(__file__).parents[1]
KEPT = 8  # libraries; the one that was used longest ago goes first
READS = ("documents", "ingestion", "retrieval", "tables", "text", "database", "migrations")
CODE = (".py", ".toml", ".txt", ".json", ".sql")


class Libraries:
    """Makes applications over folders of documents; one embedding model serves all of them."""

    def __init__(self, settings: Settings, embedder: Embedder | None = None) -> None:
        self._settings = settings
        self._kept = settings.data_dir / "evaluation"
        self.given = embedder
        self._embedder = embedder or open_embedder(settings)

    @contextmanager
    def copied(self, folder: Path) -> Iterator[Path]:
        """A data folder of its own with these documents, which is deleted at the end.

        Raises:
            UserError: there are no documents.
            SetupError: one cannot be read.
        """
        kept = self._ingested(folder)
        with tempfile.TemporaryDirectory(prefix="groundnote-") as place:
            own = Path(place) / "data"
            shutil.copytree(kept, own)
            yield own

    @contextmanager
    def opened(self, data: Path, model: ChatModel | None = None) -> Iterator["Application"]:
        """An application over a data folder; `model` instead of the one of the settings."""
        settings = self.settings(data)
        if isinstance(model, RecordedModel):
            settings = without_model(settings)
        application = build(settings, embedder=self._embedder)
        if model is not None:
            vars(application)["model"] = model
        try:
            yield application
        finally:
            application.stop()

    def settings(self, data: Path) -> Settings:
        """Ours, for a data folder that nobody else uses."""
        own = self._settings
        return own.model_copy(
            update={
                "data_dir": data,
                "sessions": own.sessions.model_copy(update={"database_url": None}),
                "retrieval": own.retrieval.model_copy(update={"chroma_url": None}),
                "jobs": own.jobs.model_copy(update={"url": None}),
            }
        )

    def _ingested(self, folder: Path) -> Path:
        """Where these documents are ingested, once for all runs."""
        kept = self._kept / self._name(folder)
        if not kept.is_dir():
            self._kept.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=self._kept, prefix=".making-"))
            try:
                self._ingest(folder, made)
                with suppress(OSError):  # another process was quicker
                    made.rename(kept)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        os.utime(kept)
        self._forget_old(kept)
        return kept

    def _ingest(self, folder: Path, data: Path) -> None:
        files = collect([folder])
        if not files:
            raise UserError(f"{folder} holds no documents to answer from.")
        with self.opened(data) as application:
            for progress in application.ingestion.ingest(files):
                if progress.stage is Stage.FAILED:
                    raise SetupError(f"{progress.name} of {folder}: {progress.reason}")

    def _name(self, folder: Path) -> str:
        """Of the documents, the settings that read them, and the code that does."""
        digest = hashlib.sha256()
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        for section in (self._settings.documents, self._settings.embedding, self._settings.tables):
            digest.update(section.model_dump_json().encode())
        digest.update(_code())
        return digest.hexdigest()[:24]

    def _forget_old(self, used: Path) -> None:
        made = [path for path in self._kept.iterdir() if not path.name.startswith(".")]
        for old in sorted(made, key=lambda each: -each.stat().st_mtime)[KEPT:]:
            if old != used:
                shutil.rmtree(old, ignore_errors=True)


def without_model(settings: Settings) -> Settings:
    """Settings that name no language model: none is asked, and no server."""
    llm = settings.llm.model_copy(update={"model": None, "base_url": None})
    return settings.model_copy(update={"llm": llm})


def _code() -> bytes:
    """Another version of us may read documents in another way."""
    digest = hashlib.sha256()
    for folder in READS:
        for path in sorted((PACKAGE / folder).rglob("*")):
            if path.suffix in CODE:
                digest.update(path.read_bytes())
    return digest.digest()
