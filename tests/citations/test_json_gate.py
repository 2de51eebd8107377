"""JSON through the gate: it stays JSON, and no text in it has a number that nobody gave (C2)."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.chat.card import unchecked as answer_given
from rag.chat.draft import Draft
from rag.citations.gate import JsonGate, harmless, markers_in_json
from rag.citations.markers import cited_numbers
from rag.errors import UnreadableReply
from rag.seams import AnswerOptions

KNOWN = 2
SIGNS = st.sampled_from([*"[]()【】†1247 ,.;:-–^#\\\"'`$\n*ag°ä😀", "[1]", "[47]", "[1, 47]"])
TEXTS = st.lists(SIGNS, max_size=12).map("".join)
SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | TEXTS


def objects(values):
    return st.dictionaries(st.text('abcß "\\n', max_size=5), values, max_size=3)


VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | objects(inner), max_leaves=8
)


def gated(text, *cuts, **options):
    gate = JsonGate(lambda number: number <= KNOWN, **options)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    return "".join(map(gate.feed, pieces)) + gate.finish(), gate.cited


def texts_in(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for each in value for text in texts_in(each)]
    return [value] if isinstance(value, str) else []


def without_texts(value):
    if isinstance(value, dict):
        return {key: without_texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    return "" if isinstance(value, str) else value


@settings(deadline=None)
@given(objects(VALUES), st.booleans())
def test_all_but_the_texts_stays(value, is_ascii):
    text = json.dumps(value, ensure_ascii=is_ascii)
    told, _ = gated(text)

    assert without_texts(json.loads(told)) == without_texts(value)


@settings(deadline=None)
@example({"": "^4[47]^"})
@given(objects(VALUES))
def test_no_text_has_an_unknown_number(value):
    told, cited = gated(json.dumps(value))

    assert {*cited} <= {1, 2}
    for text in texts_in(json.loads(told)):
        assert {*cited_numbers(text)} <= {1, 2}


@settings(deadline=None)
@given(objects(VALUES), st.integers(0, 60), st.integers(0, 60))
def test_every_split_gives_the_same(value, first, second):
    text = json.dumps(value, indent=1)

    assert gated(text, first, second) == gated(text)


@settings(deadline=None)
@example({"": "```[47]"})
@given(objects(VALUES))
def test_what_people_read_has_no_unknown_number_either(value):
    told, _ = gated(json.dumps(value))
    wishes = AnswerOptions(passed_on={"response_format": {"type": "json_object"}})
    answer = answer_given(Draft(None, text=told, wishes=wishes), lambda number: number <= KNOWN)

    assert answer.given == told
    assert {*cited_numbers(answer.text)} <= {1, 2}


@settings(deadline=None)
@given(objects(VALUES))
def test_places_are_those_of_the_markers(value):
    told, _ = gated(json.dumps(value))

    for number, start, end in markers_in_json(told):
        assert told[start:end] == f"[{number}]"


@settings(deadline=None)
@given(objects(VALUES))
def test_results_of_tools_cite_nothing(value):
    text = harmless(json.dumps(value))

    assert len(json.loads(text)) <= len(value)
    assert not any(map(cited_numbers, texts_in(json.loads(text))))


def test_a_fence_around_it_goes():
    assert gated('```json\n{"a": "b"}\n``` and [47] more')[0] == '{"a": "b"}'


def test_what_does_not_begin_as_json_passes_as_a_text():
    assert gated("It weighs 120 g [1][47].") == ("It weighs 120 g [1].", (1,))


@pytest.mark.parametrize("text", ["{It is [47]}", '{"a": [47] [47] it}', "{'a': 'b [47]'}"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(UnreadableReply):
        gated(text)


def test_a_text_whose_numbers_are_known_may_stay_to_the_letter():
    text = '{"code": "x = [1, 2]", "said": "so [47]"}'

    assert gated(text, only_unknown=True)[0] == '{"code": "x = [1, 2]", "said": "so"}'
