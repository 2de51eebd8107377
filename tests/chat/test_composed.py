"""What code puts together leaves as what a model writes does (C2), without the gate."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat import draft as drafts
from rag.chat.draft import Draft, composed, cut_at_stop, through_gate
from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers
from rag.records import Cited, Message, MessageStatus, Role, Text
from rag.seams import AnswerOptions, ModelDelta
from tests.render.readers import harms

PIECES = [
    "word ", "Weighs 120 g", " [1]", " [2].", " [7]", "[1]", "【1】", "(Source 2)", "\n\n", "> ",
    "| a |", "`[1]`", "![](http://evil)", "<img src=x>", "[1](http://evil)", "[a](/documents/d1)",
    "citeturn0search3", ":contentReference[oaicite:9]{index=9}", "\n1. ",
    "$x[1]$", "[7, 1]", "Sources:\n[1] A", "\r", "**", " ",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)


class Session:
    def sources(self, numbers):
        return []


def registered():
    numbers = drafts.RegisteredNumbers(Session())
    numbers._registered = {1, 2}
    return numbers


def left(passed, pieces):
    pending = Message(1, 0, Role.ASSISTANT, "", MessageStatus.PENDING, datetime.now(UTC))
    draft = Draft(pending)
    events = list(passed([ModelDelta(text=piece) for piece in pieces], registered(), draft))
    text = "".join(event.text for event in events if isinstance(event, Text))
    return text, [event.number for event in events if isinstance(event, Cited)], draft


@settings(deadline=None, max_examples=50)  # each goes through several readers of Markdown
@given(st.lists(texts, max_size=4))
def test_no_number_that_was_not_given_leaves_and_nothing_live(pieces):
    _, cited, draft = left(composed, pieces)

    assert set(cited_numbers(draft.text)) <= {1, 2}
    assert set(cited_numbers(canonical(draft.text))) <= {1, 2}  # imported again
    assert set(cited) <= {1, 2}
    assert harms(draft.text) == {}


@pytest.mark.parametrize(
    "pieces",
    [
        ["Refunds > Days [1]", "\n\n> Within *five* days (in full) [1].\n> | a | b [2] |"],
        ["They take five days [1], and `code[3]` stays [2].", "\n\nMore passages:\n\n- A: b [2]"],
        ["2 documents mention Aero: [Aero](/documents/d1)."],
        ["See [9] and 【2】", "![](http://evil)"],
    ],
)
def test_the_same_leaves_as_through_the_gate(pieces):
    text, cited, draft = left(composed, pieces)
    through, numbers, other = left(through_gate, pieces)

    assert (draft.text, cited) == (other.text, numbers)
    assert text == through


def test_the_gate_is_entered_only_where_it_has_something_to_do(monkeypatch):
    monkeypatch.setattr(drafts, "through_gate", lambda *_: pytest.fail("the gate was entered"))

    assert left(composed, ["Five days [1].", "\n\n> Quoted [2]."])[1] == [1, 2]


CODE = [" [1]", " [2].", "[1][2]", "Weighs 120 g", "\n\n> ", "\n```\n", "`", "x", "\n- "]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(CODE), max_size=8).map("".join),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from([(), ("]",), ("[2",), ("] [",), (" [1] [",), ("120", "x")]),
)
def test_the_numbers_that_are_announced_are_those_of_the_text_however_it_is_cut(text, cuts, stop):
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)})
    pieces = [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    stopped = cut_at_stop((ModelDelta(text=piece) for piece in pieces), AnswerOptions(stop=stop))

    _, cited, draft = left(composed, [delta.text for delta in stopped])

    assert cited == cited_numbers(draft.text)
