"""Judges of open statements: what they are shown, and that a broken one changes nothing."""

import json
from collections.abc import Sequence

import pytest

from rag.answers.judging import ModelJudge
from rag.citations.check import check
from rag.errors import ModelUnavailable
from rag.records import Verdict
from rag.seams.judging import OpenStatement, Opinion
from tests.citations.test_check import SOURCES
from tests.fakes import ScriptedModel

OPEN_TEXT = "A bike has no place in the hallway [5]. The Tarn 2 costs EUR 149 [4]."


class Scripted:
    """A judge that says what it is told to."""

    name = "scripted"

    def __init__(self, *opinions: Opinion | None) -> None:
        self.opinions = opinions
        self.asked: list[OpenStatement] = []

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[Opinion | None]:
        self.asked += statements
        return self.opinions


def test_only_what_words_leave_open_is_judged_and_shown_as_the_judges() -> None:
    judge = Scripted(Opinion(Verdict.SUPPORTED, "It says so."))

    bike, price = check(OPEN_TEXT, SOURCES, judge).citations

    assert [each.text for each in judge.asked] == ["A bike has no place in the hallway"]
    assert "Bicycles must never be left" in judge.asked[0].evidence[0]
    assert (bike.verdict, bike.judged_by) == (Verdict.SUPPORTED, "scripted")
    assert (price.verdict, price.judged_by) == (Verdict.SUPPORTED, "")


def test_no_opinion_leaves_it_open() -> None:
    assert check(OPEN_TEXT, SOURCES, Scripted(None)) == check(OPEN_TEXT, SOURCES)


def reply(verdict: str) -> str:
    return json.dumps({"verdicts": [{"id": 1, "verdict": verdict, "reason": "It does."}]})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(reply("supported"), Verdict.SUPPORTED, id="supported"),
        pytest.param(reply("contradicted"), Verdict.CONTRADICTED, id="contradicted"),
        pytest.param(reply("unrelated"), Verdict.OFF_SUBJECT, id="unrelated"),
        pytest.param(f"```json\n{reply('supported')}\n```", Verdict.SUPPORTED, id="in-a-fence"),
        pytest.param(reply("unclear"), Verdict.OPEN, id="unclear"),
        pytest.param("I think it is fine.", Verdict.OPEN, id="no-json"),
        pytest.param('{"verdicts": [1, {"id": "x"}]}', Verdict.OPEN, id="another-form"),
        pytest.param(ModelUnavailable("gone"), Verdict.OPEN, id="unavailable"),
    ],
)
def test_a_model_is_asked_once_and_read_strictly(said: object, expected: Verdict) -> None:
    model = ScriptedModel(said)

    found = check(OPEN_TEXT, SOURCES, ModelJudge(model)).citations[0]

    assert found.verdict is expected
    assert len(model.requests) == 1
