"""Which tools a model is told of at once: each description is paid for in each turn."""

import pytest

from rag.chat.tool_loop import OF_TABLES, OF_THE_PAST, ToolOffer
from rag.tables.vocabulary import may_ask_rows

SEARCH, PAST = "search_documents", OF_THE_PAST


@pytest.mark.parametrize(
    ("question", "is_sure", "names"),
    [
        pytest.param("How heavy is the Aero 5?", True, OF_THE_PAST, id="the sources answer"),
        pytest.param("How heavy is the Aero 5?", False, [SEARCH, *PAST], id="perhaps not"),
        pytest.param(
            "How many routers are there?",
            False,
            [SEARCH, OF_TABLES, *PAST],
            id="nor of rows",
        ),
        pytest.param("What is the average price?", True, [OF_TABLES, *PAST], id="figures of rows"),
        pytest.param("What did we decide about it?", True, OF_THE_PAST, id="the conversation"),
    ],
)
def test_at_once_are_those_that_a_question_needs(question, is_sure, names):
    offer = ToolOffer(lambda: True, lambda session: True, may_ask_rows, len)

    told = offer.specs(None, question, leaves_out=True, is_sure=is_sure).at_once

    assert [spec.name for spec in told] == list(names)


def test_without_turns_that_are_left_out_none_of_the_past_is_told():
    offer = ToolOffer(lambda: True, lambda session: True, may_ask_rows, len)

    tools = offer.specs(None, "What did we say?", leaves_out=False, is_sure=True)

    assert not {spec.name for spec in (*tools.at_once, *tools.waiting)} & set(OF_THE_PAST)
