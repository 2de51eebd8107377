"""Replay scripted conversations: choose the model, the library and the processes."""

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rag.documents.files import collect
from rag.errors import RagError, SetupError, UserError
from rag.records import ToolCall, Usage
from rag.regression.player import OWNER, Player, Position, configure
from rag.regression.report import PlayedTurn, Replay
from rag.regression.script import (
    ENDINGS,
    Restart,
    ScriptFile,
    Strict,
    documents_of,
    read_script,
    read_source,
    validated,
)
from rag.runtime.progress import Stage
from rag.seams import ChatModel, Embedder, ModelDelta, ModelRequest
from rag.settings import Settings
from rag.wiring.application import build
from rag.wiring.components import open_embedder

if TYPE_CHECKING:
    from rag.wiring.application import Application

# ── Recorded replies of a model ──────────────────────────────────────────────────────────────────

PIECE = 24  # characters yielded at once: short, so that markers are split


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
    """Return the path of a conversation's recorded replies."""
    return script.with_name(f"{script.name.split('.')[0]}.recorded.json")


class RecordedModel:
    """A model that returns recorded replies; `turn` is the turn being played."""

    takes_tools = False

    def __init__(self, path: Path) -> None:
        self._source: ScriptFile = read_source(path)
        self._recording = validated(Recording, self._source)
        self.turn = 0
        self._reply_counts: dict[int, int] = {}

    @property
    def name(self) -> str:
        return self._recording.model

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """Yield the next reply of this turn. Raises UserError if none was recorded."""
        replies = self._recording.turns.get(str(self.turn), ())
        position = self._reply_counts.get(self.turn, 0)
        if position >= len(replies):
            raise UserError(
                f"{self._source.path} has {len(replies)} replies for turn {self.turn}; one more "
                "was asked for. Record the conversation again (--record)."
            )
        self._reply_counts[self.turn] = position + 1
        reply = replies[position]
        for start in range(0, len(reply.text), PIECE):
            yield ModelDelta(text=reply.text[start : start + PIECE])
        calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.tool_calls)
        usage = Usage(*reply.usage) if reply.usage else None
        if calls or usage or reply.cut:
            yield ModelDelta(tool_calls=calls, usage=usage, cut=reply.cut)


class Recorder:
    """Passes a model's replies on and records them."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.turn = 0
        self._turns: dict[str, list[dict[str, Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)  # attributes that only some models have

    def stream(self, request: ModelRequest) -> Iterator[ModelDelta]:
        """Yield the model's reply and record it."""
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
        recording = {"version": 1, "model": self._model.name, "turns": self._turns}
        path.write_text(
            json.dumps(recording, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )


# ── Libraries to replay over, ingested once ──────────────────────────────────────────────────────

PACKAGE = Path(__file__).parents[1]
MOST_LIBRARIES = 8  # libraries; the least recently used is deleted first
READS = ("documents", "ingestion", "search", "tables", "language", "db")
CODE = (".py", ".toml", ".txt", ".json", ".sql")


class Libraries:
    """Opens applications over folders of documents, with one embedding model for all."""

    def __init__(self, settings: Settings, embedder: Embedder | None = None) -> None:
        self._settings = settings
        self._folder = settings.data_dir / "evaluation"
        self.embedder_override = embedder
        self._embedder = embedder or open_embedder(settings)

    @contextmanager
    def copied(self, folder: Path) -> Iterator[Path]:
        """Return a temporary data folder with these documents, deleted at the end.

        Raises:
            UserError: There are no documents.
            SetupError: A document cannot be read.
        """
        path = self._ingested(folder)
        with tempfile.TemporaryDirectory(prefix="groundnote-") as place:
            copy = Path(place) / "data"
            shutil.copytree(path, copy)
            yield copy

    @contextmanager
    def opened(self, data: Path, model: ChatModel | None = None) -> Iterator["Application"]:
        """Open an application over a data folder, with `model` instead of the settings' model."""
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
        """Return the settings with a private data folder."""
        settings = self._settings
        return settings.model_copy(
            update={
                "data_dir": data,
                "sessions": settings.sessions.model_copy(update={"database_url": None}),
                "retrieval": settings.retrieval.model_copy(
                    update={"vectors": "chroma", "chroma_url": None}
                ),
                "jobs": settings.jobs.model_copy(update={"url": None}),
            }
        )

    def _ingested(self, folder: Path) -> Path:
        """Return the folder in which these documents are ingested, once for all runs."""
        path = self._folder / self._name(folder)
        if not path.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=self._folder, prefix=".making-"))
            try:
                self._ingest(folder, made)
                with suppress(OSError):  # another process was quicker
                    made.rename(path)
            finally:
                shutil.rmtree(made, ignore_errors=True)
        os.utime(path)
        paths = [entry for entry in self._folder.iterdir() if not entry.name.startswith(".")]
        for old in sorted(paths, key=lambda entry: -entry.stat().st_mtime)[MOST_LIBRARIES:]:
            if old != path:
                shutil.rmtree(old, ignore_errors=True)
        return path

    def _ingest(self, folder: Path, data: Path) -> None:
        files = collect([folder])
        if not files:
            raise UserError(f"{folder} holds no documents to answer from.")
        with self.opened(data) as application:
            for progress in application.ingestion.ingest(files):
                if progress.stage is Stage.FAILED:
                    raise SetupError(f"{progress.name} of {folder}: {progress.reason}")

    def _name(self, folder: Path) -> str:
        """Hash the documents, the settings that affect reading, and the code that reads."""
        digest = hashlib.sha256()
        for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
            digest.update(f"{path.relative_to(folder)}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        for section in (self._settings.documents, self._settings.embedding, self._settings.tables):
            digest.update(section.model_dump_json().encode())
        digest.update(_digest_of_code())
        return digest.hexdigest()[:24]


def without_model(settings: Settings) -> Settings:
    """Return the settings without a language model or its server."""
    llm = settings.llm.model_copy(update={"model": None, "base_url": None})
    return settings.model_copy(update={"llm": llm})


def _digest_of_code() -> bytes:
    """Hash the code: another version may read documents differently."""
    digest = hashlib.sha256()
    for folder in READS:
        for path in sorted((PACKAGE / folder).rglob("*")):
            if path.suffix in CODE:
                digest.update(path.read_bytes())
    return digest.digest()


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Options of a replay."""

    model: str = ""  # none, recorded or live; "": a recording, else the settings' model
    records: bool = False
    compacts: bool = True
    documents: Path | None = None  # replaces the folder that a script names


@dataclass(slots=True)
class ReplayState:
    """The state with which another process continues a conversation."""

    settings: Settings
    data: Path
    position: Position
    recording: Path | None
    embedder: Embedder | None  # set if it is not the settings' embedder


@dataclass(slots=True)
class Replayer:
    """Replays conversations one after the other; those over one folder share its library."""

    settings: Settings
    libraries: Libraries
    options: ReplayOptions = ReplayOptions()
    _stack: ExitStack = field(default_factory=ExitStack)
    _shared: dict[Path, "Application"] = field(default_factory=dict)

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def replay(self, path: Path) -> Replay:
        """Play one file to its end, even if turns fail.

        An error in the file becomes its `error`.
        """
        began, title, turns = time.monotonic(), path.name, list[PlayedTurn]()
        try:
            script, source = read_script(path)
            title = script.title
            folder = self.options.documents or documents_of(script, path)
            position = Position(script, source, "", compacts=self.options.compacts)
            turns.extend(self._played(position, folder, path))
        except UserError as error:
            return Replay(title, str(path), tuple(turns), str(error))
        return Replay(title, str(path), tuple(turns), seconds=time.monotonic() - began)

    def _played(self, position: Position, folder: Path, path: Path) -> Iterator[PlayedTurn]:
        model = self._model(path)
        script = position.script
        restarts = any(isinstance(turn, Restart) for turn in script.turns)
        if model is None and not (script.changes_documents or restarts):
            yield from _begun(self._application(folder), position)
            return
        with self.libraries.copied(folder) as data:
            with self.libraries.opened(data, model) as application:
                yield from _begun(application, position, model)
            while position.turns_done < len(script.turns):
                recording = recording_of(path) if isinstance(model, RecordedModel) else None
                settings, embedder = self.libraries.settings(data), self.libraries.embedder_override
                played, position = _in_new_process(
                    ReplayState(settings, data, position, recording, embedder)
                )
                yield from played
        if isinstance(model, Recorder):
            model.save(recording_of(path))

    def _application(self, folder: Path) -> "Application":
        if folder not in self._shared:
            data = self._stack.enter_context(self.libraries.copied(folder))
            self._shared[folder] = self._stack.enter_context(self.libraries.opened(data))
        return self._shared[folder]

    def _model(self, path: Path) -> RecordedModel | Recorder | None:
        """Return the recording or a recorder; None for the settings' model."""
        recording = recording_of(path)
        if self.options.records:
            from rag.wiring.components import open_model

            model = open_model(self.settings)
            if model is None:
                raise UserError("There is no model to record. Set llm.model in settings.json.")
            return Recorder(model)
        if self.options.model == "recorded" and not recording.is_file():
            raise UserError(f"There is no recording {recording}. Make one with --record.")
        is_recorded = self.options.model in ("", "recorded") and recording.is_file()
        return RecordedModel(recording) if is_recorded else None


def settings_for(settings: Settings, options: ReplayOptions) -> Settings:
    """Return the settings, without their model where none is to be used."""
    return settings if options.model in ("", "live") else without_model(settings)


def files_of(paths: tuple[Path, ...] | list[Path]) -> Iterator[Path]:
    """Yield the scripts at the paths. Raises UserError for a folder without scripts."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = (entry for entry in path.iterdir() if entry.suffix in ENDINGS)
        scripts = sorted(entry for entry in inside if ".recorded." not in entry.name)
        if not scripts:
            raise UserError(f"{path} holds no .json or .yaml file to replay.")
        yield from scripts


def _begun(
    application: "Application", position: Position, model: RecordedModel | Recorder | None = None
) -> Iterator[PlayedTurn]:
    session = application.store.create(OWNER, title=position.script.title)
    configure(session, position.script.settings, compacts=position.compacts)
    position.session_id = session.id
    yield from _until_restart(application, position, model)


def _until_restart(
    application: "Application", position: Position, model: RecordedModel | Recorder | None
) -> Iterator[PlayedTurn]:
    if model is not None:
        model.turn = position.turns_done + 1
    for turn in Player(application, position).play():
        yield turn
        if model is not None:
            model.turn = position.turns_done + 1


# ── Another process ──────────────────────────────────────────────────────────────────────────


def _in_new_process(rest: ReplayState) -> tuple[list[PlayedTurn], Position]:
    """Play what follows a restart in a process that has only the stored data."""
    paths = [str(PACKAGE.parent), *(entry for entry in sys.path if entry)]
    ended = subprocess.run(
        [sys.executable, "-c", "from rag.regression.replay import resume; resume()"],
        input=pickle.dumps(rest),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    if ended.returncode:
        errors = ended.stderr.decode(errors="replace").strip().splitlines()
        raise SetupError(
            f"The process after a restart failed: {errors[-1] if errors else 'no word'}."
        )
    outcome: tuple[list[PlayedTurn], Position] | str = pickle.loads(ended.stdout)
    if isinstance(outcome, str):
        raise UserError(outcome)
    return outcome


def resume() -> None:
    """Continue after a restart, in the new process: read the state on stdin, write the outcome."""
    rest: ReplayState = pickle.loads(sys.stdin.buffer.read())
    answers, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    os.dup2(2, 1)  # output of libraries goes to stderr
    outcome: tuple[list[PlayedTurn], Position] | str
    position = rest.position
    position.turns_done += 1
    played = [PlayedTurn(position.turns_done, "restart", "a new process goes on")]
    try:
        model = RecordedModel(rest.recording) if rest.recording else None
        with Libraries(rest.settings, rest.embedder).opened(rest.data, model) as application:
            played += _until_restart(application, position, model)
        outcome = played, position
    except RagError as error:
        outcome = str(error)
    with answers:
        answers.write(pickle.dumps(outcome))
