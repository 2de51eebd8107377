"""Scripted conversations as tests of pytest: it collects `*.conversation.json`, `.yaml` and `.yml`.

Loaded by every pytest of an environment that has Groundnote, so nothing else of it is imported
before such a file is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rag.regression.report import Replay

ENDINGS = (".conversation.json", ".conversation.yaml", ".conversation.yml")
MODELS = ("none", "recorded", "live")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Who answers, and where settings are."""
    group = parser.getgroup("groundnote")
    group.addoption(
        "--groundnote-model",
        choices=MODELS,
        default="",
        help="Who answers in scripted conversations; without, a recording where there is one, "
        "else what the settings name.",
    )
    parser.addini("groundnote_settings", "A settings.json for scripted conversations.")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A file of the right name is one test."""
    if file_path.name.endswith(ENDINGS):
        return ConversationFile.from_parent(parent, path=file_path)
    return None


class ConversationFile(pytest.File):
    """One scripted conversation."""

    def collect(self) -> Iterator[pytest.Item]:
        yield ScriptItem.from_parent(self, name=self.path.name.partition(".")[0])


class Unmet(Exception):
    """What did not hold, for people."""


class ScriptItem(pytest.Item):
    """Passes if everything that the conversation expects holds."""

    def runtest(self) -> None:
        replay = _replayer(self.config).replay(self.path)
        if not replay.passed:
            raise Unmet(_failure_text(replay))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Unmet):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def _failure_text(replay: Replay) -> str:
    from rag.regression.report import difference

    lines = [replay.title, *([replay.error] if replay.error else [])]
    for turn in replay.turns:
        lines += [f"turn {turn.number}, {difference(turn, failure)}" for failure in turn.failures]
    return "\n\n".join(lines)


REPLAYER = pytest.StashKey[Any]()


def _replayer(config: pytest.Config) -> Any:
    """One for all conversations of a run: they share libraries and the embedding model."""
    if REPLAYER not in config.stash:
        from rag.regression.replay import Libraries, Replayer, ReplayOptions, settings_for
        from rag.settings import load_settings

        named = config.getini("groundnote_settings")
        options = ReplayOptions(config.getoption("groundnote_model"))
        settings = settings_for(load_settings(config.rootpath / named if named else None), options)
        replayer = Replayer(settings, Libraries(settings), options)
        config.stash[REPLAYER] = replayer
        config.add_cleanup(lambda: replayer.__exit__())
    return config.stash[REPLAYER]
