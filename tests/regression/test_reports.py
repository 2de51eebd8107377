"""What a run gave: for people, for programs, for build servers, and beside an earlier run."""

import json
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

from rag.errors import UserError
from rag.regression import report
from rag.regression.report import Check, CitedSource, PlayedTurn, Replay, as_page

FINE = PlayedTurn(
    1, "ask", "How long?", "Five days [1].", "",
    (CitedSource(1, "refunds.md", "§ Time", "supported"),),
    tokens=100, checks=(Check(1, "says 'five'", True, ""),),
)  # fmt: skip
SUMMED = PlayedTurn(2, "compress", "summarised", summary="Five days [1].", tokens=60)
WRONG = replace(FINE, number=3, checks=(Check(3, "says 'six'", False, "Five <b>days</b> [1]."),))
PASSED = Replay("Fine", "talks/fine.json", (FINE, SUMMED))
FAILED = Replay("Not <fine>", "talks/wrong.json", (FINE, SUMMED, WRONG))
BROKEN = Replay("broken.json", "talks/broken.json", error="broken.json, line 3: not JSON.")


def shown(show, *given):
    console = Console(file=StringIO(), width=200)
    show(*given, console)
    return console.file.getvalue()


def test_a_failure_shows_what_was_expected_what_came_and_from_where():
    text = shown(report.show, FAILED)

    assert "failed  Not <fine>" in text
    assert "turn 3, ask: How long?" in text
    assert "expected: says 'six'" in text
    assert "got:      Five <b>days</b> [1]." in text
    assert "[1]       refunds.md, § Time (supported)" in text


def test_of_a_long_answer_its_beginning_is_shown():
    check = Check(3, "says 'six'", False, "a" * report.LONGEST_ANSWER + "b")
    text = shown(report.show, replace(FAILED, turns=(replace(FINE, checks=(check,)),)))

    assert f"{'a' * report.LONGEST_ANSWER} …" in "".join(text.split("\n"))
    assert "ab" not in text


def test_junit_has_a_suite_for_each_and_a_failure_for_each_that_did_not_hold():
    root = ElementTree.fromstring(report.as_junit([PASSED, FAILED, BROKEN]))

    suites = [(s.get("name"), s.get("failures"), s.get("errors")) for s in root]
    assert suites == [("Fine", "0", "0"), ("Not <fine>", "1", "0"), ("broken.json", "0", "1")]
    assert root.find(".//failure").get("message") == "says 'six'"


def test_a_later_run_is_better_worse_or_the_same():
    better = replace(
        FAILED, turns=(FINE, SUMMED, replace(WRONG, checks=(Check(3, "says 'six'", True),)))
    )
    before, now = report.as_json([FAILED, PASSED]), report.as_json([better, PASSED])

    assert report.compared(before, now)["better"] == ["wrong, turn 3: says 'six'"]
    assert report.compared(now, before)["worse"] == ["wrong, turn 3: says 'six'"]
    assert not report.compared(now, now)["worse"]
    assert "1 better" in shown(report.show_comparison, report.compared(before, now))


def test_what_is_no_report_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[]")

    with pytest.raises(UserError, match="no report"):
        report.read_report(tmp_path / "a.json")


def test_the_cost_of_compaction_is_counted_in_answers_citations_and_tokens():
    without = replace(
        PASSED,
        turns=(
            replace(
                FINE,
                answer="Six [2].",
                cited=(*FINE.cited, CitedSource(2, "a", "", "open")),
                tokens=400,
            ),
            SUMMED,
        ),
    )

    cost = report.cost_of_compaction(PASSED, without)

    assert cost["answers_changed"] == [1]
    assert (cost["citations"], cost["citations_lost"], cost["tokens"]) == (2, 1, [100, 400])
    assert "75 % less" in shown(report.show_cost, PASSED, without)


class TestThePage:
    def test_needs_nothing_else_and_shows_failures_first(self):
        page = as_page([PASSED, FAILED, BROKEN])

        assert "http" not in page
        assert "<script" not in page
        assert page.index("Not &lt;fine&gt;") < page.index(">Fine<")
        assert "Five &lt;b&gt;days&lt;/b&gt; [1]." in page
        assert "line 3: not JSON" in page

    def test_plots_the_tokens_of_each_turn_and_marks_summaries(self):
        page = as_page([PASSED])

        assert "<polyline" in page
        assert "turn 2: summarised" in page


def test_json_holds_every_turn():
    told = json.loads(json.dumps(report.as_json([FAILED])))

    assert told["conversations"][0]["turns"][1]["summary"] == "Five days [1]."
    assert told["conversations"][0]["checks"][-1]["held"] is False
