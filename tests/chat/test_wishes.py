"""What the one who asks wants of an answer's end."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.chat.card import CardWriter
from rag.chat.draft import ModelWriter, cut_at_stop
from rag.records import ToolCall
from rag.seams import AnswerOptions, ModelDelta
from rag.tokens import count_tokens
from tests.chat.test_card import asked, source
from tests.fakes import HashEmbedder, ScriptedModel

TEXT = "It weighs 120 g [1]. END of it, END."


def joined(deltas):
    return "".join(delta.text for delta in deltas)


@given(st.lists(st.integers(0, len(TEXT)), max_size=10))
def test_a_stop_text_ends_the_answer_however_it_arrives(cuts):
    at = [0, *sorted(cuts), len(TEXT)]
    deltas = [ModelDelta(text=TEXT[a:b]) for a, b in pairwise(at)]

    assert (
        joined(cut_at_stop(deltas, AnswerOptions(stop=("END", "never")))) == "It weighs 120 g [1]. "
    )
    assert joined(cut_at_stop(deltas, AnswerOptions(stop=("ENDE",)))) == TEXT
    assert joined(cut_at_stop(deltas, AnswerOptions())) == TEXT


def test_what_is_discarded_stops_nothing_and_calls_pass():
    call = ModelDelta(tool_calls=(ToolCall("1", "search", "{}"),))
    deltas = [ModelDelta(text="EN"), ModelDelta(discard=True), ModelDelta(text="D. So."), call]

    kept = list(cut_at_stop(deltas, AnswerOptions(stop=("END",))))

    assert joined(kept) == "D. So."
    assert kept[-1].tool_calls


def test_a_model_whose_server_knows_no_stop_texts_is_stopped_by_us():
    request = asked("How heavy?", source(1, "It weighs 120 g."))
    object.__setattr__(request, "wishes", AnswerOptions(stop=("END",)))

    assert joined(ModelWriter(ScriptedModel(TEXT)).write(request)) == "It weighs 120 g [1]. "


@pytest.mark.parametrize("most", [1, 7, 20])
def test_a_card_is_no_longer_than_wanted_and_says_that_it_was_cut(most):
    request = asked("How long do refunds take?", source(1, "Refunds take five days. " * 20))
    object.__setattr__(request, "wishes", AnswerOptions(max_tokens=most))

    deltas = list(CardWriter(HashEmbedder().embed).write(request))

    assert 0 < count_tokens(joined(deltas)) <= most
    assert deltas[-1].cut
    assert not any(delta.card for delta in deltas)
