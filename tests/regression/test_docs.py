"""The example of the documentation holds, and fails where nothing is summarised."""

import re
from pathlib import Path

import pytest

from rag.chat.assistant import Assistant
from tests.regression.scripts import replaying

DOCS = Path(__file__).parents[2] / "docs" / "conversations.md"
HANDBOOK = (
    "# Refunds\n\n## How long refunds take\n\nRefunds are paid within five working days.\n\n"
    "## Refunds from abroad\n\nRefunds from abroad take nine working days.\n"
)


@pytest.fixture
def example(tmp_path):
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook" / "refunds.md").write_text(HANDBOOK)
    path = tmp_path / "refunds.conversation.yaml"
    text = DOCS.read_text(encoding="utf-8")
    path.write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1], encoding="utf-8")
    return path


def test_the_example_holds(example, tmp_path):
    with replaying(tmp_path) as replayer:
        replay = replayer.replay(example)

    assert (replay.error, replay.failures) == ("", ())


def test_the_example_fails_where_nothing_is_summarised(example, tmp_path, monkeypatch):
    monkeypatch.setattr(Assistant, "compact", lambda *given, **more: None)

    with replaying(tmp_path) as replayer:
        failed = {check.turn for check in replayer.replay(example).failures}

    assert failed == {4}
