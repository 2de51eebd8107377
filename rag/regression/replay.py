"""Replay scripted conversations: which model, over which library, in which processes."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rag.errors import RagError, SetupError, UserError
from rag.regression.libraries import (
    PACKAGE,
    Libraries,
    RecordedModel,
    Recorder,
    recording_of,
    without_model,
)
from rag.regression.player import OWNER, Player, Position, configure
from rag.regression.report import PlayedTurn, Replay
from rag.regression.script import Restart, documents_of
from rag.regression.script_file import ENDINGS, read_script
from rag.seams import Embedder
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.wiring.application import Application

MODELS = ("none", "recorded", "live")


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How conversations are replayed."""

    model: str = ""  # of MODELS; "": a recording if there is one, else what the settings say
    records: bool = False
    compacts: bool = True
    documents: Path | None = None  # instead of what a script names


@dataclass(slots=True)
class ReplayState:
    """What another process needs to go on with a conversation."""

    settings: Settings
    data: Path
    position: Position
    recording: Path | None
    embedder: Embedder | None  # that is not the one of the settings


@dataclass(slots=True)
class Replayer:
    """Replays one conversation after the other; those over one folder share its library."""

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
        """Play one file to its end, whatever fails on the way; an error of the file is told."""
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
            while position.at < len(script.turns):
                recording = recording_of(path) if isinstance(model, RecordedModel) else None
                own, given = self.libraries.settings(data), self.libraries.given
                played, position = _in_new_process(
                    ReplayState(own, data, position, recording, given)
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
        """The recording, if it is to be used; a recorder; None: what the settings say."""
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
    """Without the model of the settings where none is to be asked."""
    return settings if options.model in ("", "live") else without_model(settings)


def files_of(paths: tuple[Path, ...] | list[Path]) -> Iterator[Path]:
    """The scripts at some paths. Raises UserError for a folder without any: it tests nothing."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inside = (each for each in path.iterdir() if each.suffix in ENDINGS)
        found = sorted(each for each in inside if ".recorded." not in each.name)
        if not found:
            raise UserError(f"{path} holds no .json or .yaml file to replay.")
        yield from found


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
        model.turn = position.at + 1
    for turn in Player(application, position).play():
        yield turn
        if model is not None:
            model.turn = position.at + 1


# ── Another process ──────────────────────────────────────────────────────────────────────────


def _in_new_process(rest: ReplayState) -> tuple[list[PlayedTurn], Position]:
    """What follows a restart, played by a process that knows only what was stored."""
    paths = [str(PACKAGE.parent), *(each for each in sys.path if each)]
    ended = subprocess.run(
        [sys.executable, "-c", "from rag.regression.replay import resume; resume()"],
        input=pickle.dumps(rest),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise SetupError(f"The process after a restart failed: {said[-1] if said else 'no word'}.")
    told: tuple[list[PlayedTurn], Position] | str = pickle.loads(ended.stdout)
    if isinstance(told, str):
        raise UserError(told)
    return told


def resume() -> None:
    """Go on after a restart: this process is told where, and tells what came of it."""
    rest: ReplayState = pickle.loads(sys.stdin.buffer.read())
    answers, sys.stdout = os.fdopen(os.dup(1), "wb"), sys.stderr
    os.dup2(2, 1)  # whatever a library prints
    told: tuple[list[PlayedTurn], Position] | str
    try:
        told = _resumed(rest), rest.position
    except RagError as error:
        told = str(error)
    with answers:
        answers.write(pickle.dumps(told))


def _resumed(rest: ReplayState) -> list[PlayedTurn]:
    position, model = rest.position, RecordedModel(rest.recording) if rest.recording else None
    position.at += 1
    played = [PlayedTurn(position.at, "restart", "a new process goes on")]
    libraries = Libraries(rest.settings, rest.embedder)
    with libraries.opened(rest.data, model) as application:
        return [*played, *_until_restart(application, position, model)]
