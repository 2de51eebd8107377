"""Libraries to replay conversations over: ingested once, and kept by what they are made of."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rag.documents.files import collect
from rag.errors import SetupError, UserError
from rag.records import ToolCall, Usage
from rag.regression.script import Strict
from rag.regression.script_file import ScriptFile, read_source, validated
from rag.runtime.progress import Stage
from rag.seams import ChatModel, Embedder, ModelDelta, ModelRequest
from rag.settings import Settings
from rag.wiring.building import build
from rag.wiring.components import open_embedder

if TYPE_CHECKING:
    from rag.wiring.application import Application


# ── A model's replies, kept beside a conversation and given again without it ──────────────────────

PIECE = 24  # characters that are given at once: whatever waits for whole markers is tried


class RecordedCall(Strict):
    """One wish of a model to call a tool."""

    id: str
    name: str
    arguments: str


class RecordedReply(Strict):
    """One reply of a model."""

    text: str = ""
    tool_calls: tuple[RecordedCall, ...] = ()
    usage: tuple[int, int] | None = None  # prompt, completion
    cut: bool = False


class Recording(Strict):
    """All replies of one conversation, by turn."""

    version: int = Field(1, ge=1, le=1)
    model: str = "recorded"
    turns: dict[str, tuple[RecordedReply, ...]]


def recording_of(script: Path) -> Path:
    """Where the replies of a conversation are kept."""
    return script.with_name(f"{script.name.split('.')[0]}.recorded.json")


class RecordedModel:
    """Gives the replies of a recording; `turn` says which turn it is."""

    takes_tools = False

    def __init__(self, path: Path) -> None:
        self._source: ScriptFile = read_source(path)
        self._recording = validated(Recording, self._source)
        self.turn = 0
        self._given: dict[int, int] = {}

    @property
    def name(self) -> str:
        return self._recording.model

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """The next reply of this turn. Raises UserError where none was recorded."""
        replies = self._recording.turns.get(str(self.turn), ())
        at = self._given.get(self.turn, 0)
        if at >= len(replies):
            raise UserError(
                f"{self._source.path} has {len(replies)} replies for turn {self.turn}; one more "
                "was asked for. Record the conversation again (--record)."
            )
        self._given[self.turn] = at + 1
        reply = replies[at]
        for start in range(0, len(reply.text), PIECE):
            yield ModelDelta(text=reply.text[start : start + PIECE])
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)
        usage = Usage(*reply.usage) if reply.usage else None
        if calls or usage or reply.cut:
            yield ModelDelta(tool_calls=calls, usage=usage, cut=reply.cut)


class Recorder:
    """Passes a model's replies on, and keeps them."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.turn = 0
        self._turns: dict[str, list[dict[str, Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)  # what only some models know

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """As the model does."""
        reply: dict[str, Any] = {"text": ""}
        for delta in self._model.stream(request):
            if delta.discard:
                reply["text"] = ""
            reply["text"] += delta.text
            if delta.tool_calls:
                reply["tool_calls"] = [
                    {key: asdict(call)[key] for key in ("id", "name", "arguments")}
                    for call in delta.tool_calls
                ]
            if delta.usage:
                reply["usage"] = [delta.usage.prompt_tokens, delta.usage.completion_tokens]
            if delta.cut:
                reply["cut"] = True
            yield delta
        self._turns.setdefault(str(self.turn), []).append(reply)

    def save(self, path: Path) -> None:
        """Write the replies so far beside the conversation."""
        kept = {"version": 1, "model": self._model.name, "turns": self._turns}
        path.write_text(json.dumps(kept, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


# ── Libraries to replay conversations over: ingested once, and kept by what they are made of ──────

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
