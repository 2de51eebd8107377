"""Each kind of expectation fails when it should, and holds when it should."""

import pytest

from rag.chat.assistant import Assistant
from rag.memory.history import History, ParagraphSelection
from rag.regression.player import (
    Player,
    holds,
    is_same_value,
    no_other_numbers,
    numbers_in,
    stands_beside,
)
from tests.regression.scripts import BROUGHT, HOW_LONG, written

PRICE = {"ask": "Which product has the highest price_eur?"}
MORE = {"ask": "How heavy is the Nimbus 7 Pro?"}


def failed(replayer, place, *turns):
    """The expectations of the last turn that did not hold."""
    replay = replayer.replay(written(place, list(turns)))
    assert replay.error == "", replay.error
    assert all(not turn.failures for turn in replay.turns[:-1]), replay.failures
    return [check.expectation for check in replay.turns[-1].failures]


OF_ANSWERS = [
    pytest.param([], HOW_LONG, {"cites": ["refunds.md"]}, {"cites": ["plan.txt"]}, id="cites"),
    pytest.param(
        [],
        HOW_LONG,
        {"cites": [{"document": "refunds.md", "place": "Time"}]},
        {"cites": [{"document": "refunds.md", "place": "page 7"}]},
        id="cites a place",
    ),
    pytest.param([], HOW_LONG, {"says": ["FIVE  working days"]}, {"says": ["six"]}, id="says"),
    pytest.param([], HOW_LONG, {"says_not": ["six"]}, {"says_not": ["five"]}, id="says not"),
    pytest.param(
        [HOW_LONG],
        {"ask": "And from abroad?"},
        {"resolves_to": "refunds abroad"},
        {"resolves_to": "warranty abroad"},
        id="resolves to",
    ),
    pytest.param([], HOW_LONG, {"follow_up": False}, {"follow_up": True}, id="follow-up"),
    pytest.param([], HOW_LONG, {"declines": False}, {"declines": True}, id="declines"),
    pytest.param(
        [], HOW_LONG, {"verdicts": ["supported"]}, {"verdicts": ["computed"]}, id="verdicts"
    ),
    pytest.param([], PRICE, {"computes": "240.0"}, {"computes": "190"}, id="computes"),
    pytest.param(
        [HOW_LONG, MORE],
        HOW_LONG,
        {"same_number_as": {"turn": 1, "source": "refunds.md"}},
        None,
        id="same number",
    ),
    pytest.param(
        [], HOW_LONG, {"within_tokens": 5000}, {"within_tokens": 10}, id="tokens of the context"
    ),
]


@pytest.mark.parametrize(("before", "turn", "right", "wrong"), OF_ANSWERS)
def test_an_expectation_of_an_answer(replayer, place, before, turn, right, wrong):
    assert failed(replayer, place, *before, turn | right) == []
    if wrong is not None:
        assert len(failed(replayer, place, *before, turn | wrong)) == 1


STATED = {"words": "3.2 m wide", "turn": 1, "source": "plan.txt"}
OF_SUMMARIES = [
    pytest.param({"states": [STATED]}, {"states": [STATED | {"words": "9 m"}]}, id="states"),
    pytest.param(
        {"states": [STATED]}, {"states": [STATED | {"source": "log.txt", "words": "hall 8"}]},
        id="states beside its number",
    ),
    pytest.param({"keeps_names_of": [1]}, None, id="keeps names"),
    pytest.param({"keeps_sources_of": [1]}, None, id="keeps sources"),
    pytest.param({"within_tokens": 900}, {"within_tokens": 5}, id="tokens of the summary"),
    pytest.param(
        {"recalls": [{"ask": "How wide is the gate?", "turn": 1, "words": "3.2 m wide"}]},
        None,
        id="recalls",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong"), OF_SUMMARIES)
def test_an_expectation_of_a_summary(replayer, place, right, wrong):
    before = [BROUGHT, HOW_LONG]

    assert failed(replayer, place, *before, {"compress": True} | right) == []
    if wrong is not None:
        assert len(failed(replayer, place, *before, {"compress": True} | wrong)) == 1


@pytest.mark.parametrize(
    ("expected", "summary"),
    [
        ({"keeps_sources_of": [1]}, "The gate is 3.2 m wide [1]. Nimbus 7."),
        ({"keeps_names_of": [1]}, "The gate is 3.2 m wide [1] and 4.1 m high [2]. Nimbus 7 Pro."),
        ({"states": [STATED]}, "The gate is 3.2 m wide.\nOther sources: [1][2]"),
    ],
    ids=["a number", "a name", "the number beside the words"],
)
def test_what_a_summary_lacks_is_told(replayer, place, monkeypatch, expected, summary):
    monkeypatch.setattr(Player, "summary", lambda self: summary)

    assert len(failed(replayer, place, BROUGHT, HOW_LONG, {"compress": True} | expected)) == 1


def test_what_is_not_brought_back_is_told(replayer, place, monkeypatch):
    recalls = [{"ask": "How wide is the gate?", "turn": 1, "words": "3.2 m wide"}]
    turn = {"compress": True, "recalls": recalls}
    assert failed(replayer, place, BROUGHT, HOW_LONG, turn) == []

    whole, found = Assistant.preview, History.recalled
    monkeypatch.setattr(Assistant, "preview", lambda *given: whole(*given)[-1:])  # no summary
    anyway = {"beside": ""}
    monkeypatch.setattr(
        History, "recalled", lambda *given, **rules: found(*given, **rules | anyway)
    )
    assert failed(replayer, place, BROUGHT, HOW_LONG, turn) == []

    def nothing(past, question, **rules):
        return ParagraphSelection(past, 0, past.phrases)

    monkeypatch.setattr(History, "recalled", nothing)

    assert len(failed(replayer, place, BROUGHT, HOW_LONG, turn)) == 1


def test_another_number_than_before_is_told(replayer, place):
    changed = {"name": "refunds.md", "text": "# Refunds\n\n## Time\n\nRefunds take six days."}
    same = {"same_number_as": {"turn": 1, "source": "refunds.md"}}

    told = failed(replayer, place, HOW_LONG, {"add": changed}, HOW_LONG | same)

    assert told == ["cites refunds.md under the number of turn 1"]


def test_a_number_that_was_not_given_is_told():
    assert no_other_numbers("Five days [1]. Nine [4].", 3)[1:] == (False, "4")
    assert no_other_numbers("Five days [1]. Nine [3].", 3)[1:] == (True, "")


def test_a_compaction_of_nothing_fails(replayer, place):
    expected = "all turns but the newest are summarised"

    assert failed(replayer, place, HOW_LONG, {"compress": True}) == [expected]


def test_a_turn_that_cited_nothing_cannot_be_kept(replayer, place):
    asked = [{"ask": "How many documents are there?"}, HOW_LONG]
    path = written(place, [*asked, {"compress": True, "keeps_sources_of": [1]}])

    assert "turn 1 cited nothing" in replayer.replay(path).error


def test_a_turn_that_failed_is_no_error_of_the_file(replayer, place):
    asked = {"ask": "How many documents are there?", "says": ["a thousand"]}
    path = written(place, [asked, HOW_LONG, {"compress": True, "keeps_sources_of": [1]}])

    replay = replayer.replay(path)

    assert replay.error == ""
    assert replay.failures[0].turn == 1


def test_words_that_a_turn_did_not_say_cannot_be_recalled(replayer, place):
    recalls = [{"ask": "How wide is the gate?", "turn": 1, "words": "5 m"}]
    path = written(place, [BROUGHT, HOW_LONG, {"compress": True, "recalls": recalls}])

    assert "turn 1 does not say '5 m'" in replayer.replay(path).error


class TestWordsInATextAre:
    @pytest.mark.parametrize(
        ("words", "found"),
        [("12 g", True), ("2 g", False), ("12 G", True), ("12", True), ("1", False), ("3.5", True),
         ("3", False), ("5", False)],
    )  # fmt: skip
    def test_found_whole(self, words, found):
        assert holds("It **weighs 12 g** [1] and costs 3.5.", words) is found

    def test_beside_a_number_only_in_its_own_line(self):
        text = "The gate is wide [1].\nThe hall is high [2]."

        assert stands_beside(text, "wide", {1})
        assert not stands_beside(text, "wide", {2})

    def test_beside_the_number_of_the_line_before_a_table(self):
        text = "Highest 1: [4]\n\n| product | price |\n| --- | --- |\n| Max | 240 |\n\nOther [5]."

        assert stands_beside(text, "240", {4})
        assert not stands_beside(text, "240", {5})

    def test_numbers_of_long_ranges_too(self):
        assert numbers_in("Numbers given: [3]–[40], [44], [50, 52].") == {*range(3, 41), 44, 50, 52}

    @pytest.mark.parametrize(
        ("shown", "wanted", "same"),
        [
            ("1,216", "1216", True),
            ("243.20", "243.2", True),
            ("24", "2", False),
            ("A b", "b", True),
        ],
    )
    def test_values_however_they_are_written(self, shown, wanted, same):
        assert is_same_value(shown, wanted) is same
