"""The trimmer inside other frameworks (`make clients`), each through its own interface."""

from functools import cache
from pathlib import Path

import pytest

from tests.other_environments import told_by

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
NAMES = ("langchain", "llama index", "agents", "pydantic ai", "haystack", "autogen")


@cache
def made():
    return told_by("frameworks", HERE / "in_frameworks.py", sees_us=True)


@pytest.mark.parametrize("name", NAMES)
class TestFramework:
    def test_sends_what_fits(self, name):
        assert made()[name]["tokens"] <= 900 + 60  # its own wrapping of messages

    def test_states_again_what_is_asked_for(self, name):
        assert made()[name]["states"]

    def test_sends_the_summary_first_and_the_question_last(self, name):
        assert "Previous conversation summary:" in made()[name]["first"]
        assert made()[name]["last"].endswith("How heavy is the part 2?")

    def test_invents_no_number(self, name):
        assert set(made()[name]["numbers"]) <= set(range(1, 25))

    def test_loads_neither_a_server_nor_models(self, name):
        assert made()[name]["heavy"] == []
