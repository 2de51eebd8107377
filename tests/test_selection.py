"""`make check` takes the tests that a change asks for."""

import pytest

from tests.selection import ALWAYS, files, selected


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("rag/jobs/queue.py", "tests/jobs"),
        ("rag/jobs/queue.py", "tests/connectors/test_full_disk.py"),  # it imports it
        ("rag/tables/plan.py", "tests/connectors/test_full_disk.py"),  # by what builds on it
        ("rag/records/answers.py", "tests/render/test_export.py"),  # as `rag.records` gives it
        ("tests/openai_server.py", "tests/llm/test_habits.py"),
        ("tests/llm/test_streams.py", "tests/llm/test_streams.py"),
        ("templates/base.html", "tests/web"),
        ("docs/operate.md", "tests/test_documentation.py"),
        ("pyproject.toml", "tests/test_lock_files.py"),
        ("rag/jobs/gone.py", "tests/jobs"),
    ],
)
def test_a_change_asks_for_its_tests(changed, tests):
    chosen = selected({changed})

    assert any(tests == each or tests.startswith(f"{each}/") for each in chosen)


@pytest.mark.parametrize("room", ["jobs", "search", "language", "connectors", "regression"])
def test_a_change_in_one_room_leaves_most_others_alone(room):
    (first, *_) = sorted(each for each in files(f"rag/{room}") if "__" not in each)

    assert len([each for each in selected({first}) if each not in ALWAYS]) < 40


def test_every_room_has_tests():
    """Of its own, or of those that import it; former paths have none but that of all paths."""
    first = {path.split("/")[1]: path for path in files("rag") if path.count("/") > 1}
    rooms = first.keys() - {"sources", "evaluation"}

    assert [room for room in rooms if not set(selected({first[room]})) - set(ALWAYS)] == []
