"""Judges of open statements: what they are shown, and that a broken one changes nothing."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.citations.verdicts import check
from rag.errors import ModelError, ModelUnavailable, SetupError
from rag.llm.judges import InferenceJudge, ModelJudge
from rag.records import Verdict
from rag.seams.models import JudgeVerdict, OpenStatement
from tests.citations.test_check import SOURCES
from tests.fakes import ScriptedModel

OPEN_TEXT = "A bike has no place in the hallway [5]. The Tarn 2 costs EUR 149 [4]."


class Scripted:
    """A judge that says what it is told to."""

    name = "scripted"

    def __init__(self, *opinions: JudgeVerdict | None) -> None:
        self.opinions = opinions
        self.asked: list[OpenStatement] = []

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        self.asked += statements
        return self.opinions


def test_only_what_words_leave_open_is_judged_and_shown_as_the_judges() -> None:
    judge = Scripted(JudgeVerdict(Verdict.SUPPORTED, "It says so."))

    bike, price = check(OPEN_TEXT, SOURCES, judge).citations

    assert [each.text for each in judge.asked] == ["A bike has no place in the hallway"]
    assert "Bicycles must never be left" in judge.asked[0].evidence[0]
    assert (bike.verdict, bike.judged_by) == (Verdict.SUPPORTED, "scripted")
    assert (price.verdict, price.judged_by) == (Verdict.SUPPORTED, "")


def test_a_warning_that_the_judge_shares_keeps_what_the_source_says_instead() -> None:
    wrong = "The Tarn 2 costs EUR 199 [4]."

    shared = check(wrong, SOURCES, Scripted(JudgeVerdict(Verdict.CONTRADICTED, "Another price.")))
    assert shared == check(wrong, SOURCES)
    (other,) = check(wrong, SOURCES, Scripted(JudgeVerdict(Verdict.SUPPORTED))).citations
    assert (other.verdict, other.judged_by) == (Verdict.SUPPORTED, "scripted")


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
        pytest.param(reply("Supported."), Verdict.SUPPORTED, id="large"),
        pytest.param(reply("partly"), Verdict.OPEN, id="partly"),
        pytest.param('[{"id": "1", "verdict": "SUPPORTED"}]', Verdict.SUPPORTED, id="bare-list"),
        pytest.param('{"verdict": "supported"}', Verdict.SUPPORTED, id="without-an-id"),
        pytest.param(f"It is 1. {reply('supported')} Done.", Verdict.SUPPORTED, id="in-prose"),
    ],
)
def test_a_reply_is_read_leniently(said: str, expected: Verdict) -> None:
    found = check(OPEN_TEXT, SOURCES, ModelJudge(ScriptedModel(said))).citations[0]

    assert found.verdict is expected


@pytest.mark.parametrize(
    "said",
    [ModelUnavailable("gone"), "I think it is fine.", '{"verdicts": [1, {"id": "x"}]}'],
    ids=["unavailable", "no-json", "another-form"],
)
def test_no_verdict_at_all_is_a_failure(said: object) -> None:
    with pytest.raises(ModelError):
        check(OPEN_TEXT, SOURCES, ModelJudge(ScriptedModel(said)))


def statements(count: int) -> list[OpenStatement]:
    return [OpenStatement(f"Statement {n}", ("Evidence.",)) for n in range(count)]


def told(ids: Iterable[int]) -> str:
    every = ({"id": n, "verdict": "supported", "reason": "Yes."} for n in ids)
    return json.dumps({"verdicts": list(every)})


def test_many_statements_are_asked_in_several_calls() -> None:
    model = ScriptedModel(told(range(1, 9)), told(range(1, 9)), told([1]))

    opinions = ModelJudge(model).judge(statements(17))

    assert len(model.requests) == 3
    assert all(opinions)


def test_a_reply_that_is_cut_off_loses_only_what_is_missing_and_that_is_asked_again() -> None:
    whole = told(range(1, 5))
    model = ScriptedModel(whole[: whole.index('"id": 3') + 12], told([1, 2]))

    opinions = ModelJudge(model).judge(statements(4))

    assert all(opinions)
    assert "Statement 2: Statement 3" in model.requests[1].messages[1].content


def test_what_stays_missing_stays_open() -> None:
    model = ScriptedModel(told([1]), ModelUnavailable("gone"))

    assert [bool(each) for each in ModelJudge(model).judge(statements(2))] == [True, False]


@pytest.mark.parametrize(
    ("labels", "scores", "expected"),
    [
        ({"0": "contradiction", "1": "entailment", "2": "neutral"}, [0.1, 0.8, 0.1], "supported"),
        ({"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}, [0, 0, 0.9], "contradicted"),
        ({"0": "entailment", "1": "not_entailment"}, [0.2, 0.8], None),
        ({"0": "LABEL_0"}, 3.0, "supported"),
        ({"0": "LABEL_0"}, -4.0, "off_subject"),
    ],
    ids=["any-order", "large", "two", "one-high", "one-low"],
)
def test_a_cross_encoder_is_read_by_its_labels(
    tmp_path: Path, labels: dict[str, str], scores: object, expected: str | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"id2label": labels}))
    judge = InferenceJudge(tmp_path)
    judge.__dict__["_encoder"] = SimpleNamespace(predict=lambda pairs, apply_softmax: [scores])

    (opinion,) = judge.judge(statements(1))

    assert (opinion and opinion.verdict.value) == expected


@pytest.mark.parametrize(
    "config",
    [
        None,
        "{",
        '{"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}',
        '{"id2label": {"0": "yes", "1": "no"}}',
    ],
    ids=["missing", "broken", "unnamed", "other-words"],
)
def test_a_folder_that_is_no_judge_is_told_of(tmp_path: Path, config: str | None) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)

    with pytest.raises(SetupError, match=r"checks\.nli_model"):
        InferenceJudge(tmp_path).judge(statements(1))
