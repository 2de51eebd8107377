"""A pytest plugin that collects scripted conversations: `*.conversation.json`, `.yaml` and `.yml`.

Every pytest in an environment with Groundnote loads it, so the rest of the package is imported only
when such a file is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ENDINGS = (".conversation.json", ".conversation.yaml", ".conversation.yml")
MODELS = ("none", "recorded", "live")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the model and the settings."""
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
    """Collect a file with a matching name as one test."""
    if file_path.name.endswith(ENDINGS):
        return ConversationFile.from_parent(parent, path=file_path)
    return None


class ConversationFile(pytest.File):
    """One scripted conversation."""

    def collect(self) -> Iterator[pytest.Item]:
        yield ScriptItem.from_parent(self, name=self.path.name.partition(".")[0])


class Unmet(Exception):
    """Raised with the expectations that did not hold."""


class ScriptItem(pytest.Item):
    """A test that passes if all expectations of the conversation hold."""

    def runtest(self) -> None:
        from rag.regression.report import difference

        replay = _replayer(self.config).replay(self.path)
        if replay.passed:
            return
        lines = [replay.title, *([replay.error] if replay.error else [])]
        for turn in replay.turns:
            failures = (difference(turn, failure) for failure in turn.failures)
            lines += [f"turn {turn.number}, {failure}" for failure in failures]
        raise Unmet("\n\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Unmet):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


REPLAYER = pytest.StashKey[Any]()


def _replayer(config: pytest.Config) -> Any:
    """Return the run's replayer: conversations share libraries and the embedding model."""
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
