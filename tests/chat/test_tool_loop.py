"""Tools while answering: in rounds, with a bound, whatever the model writes."""

import json
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat.draft import ModelWriter
from rag.chat.tool_loop import RoundLimits, sent_tokens, tool_rounds
from rag.errors import ModelInterrupted
from rag.llm.windows import token_counter
from rag.memory.context import MESSAGE_TOKENS
from rag.records import ChatMessage, Role, ToolCall, ToolUsed, Usage
from rag.seams import ToolSpec, WriteRequest
from tests.fakes import ScriptedModel

REQUEST = WriteRequest(
    question="How heavy is it?",
    sources=(),
    messages=(ChatMessage(Role.SYSTEM, "Cite."), ChatMessage(Role.USER, "How heavy is it?")),
    max_tokens=100,
    tools=(ToolSpec("look", "Look.", {}),),
)


@dataclass(frozen=True)
class Result:
    content: str
    outcome: str


class Tools:
    """Tools that echo their calls."""

    def __init__(self, content="It weighs 200 g [1]."):
        self.calls = []
        self.content = content

    def run(self, call):
        self.calls.append(call)
        return Result(self.content, f"looked for {call.arguments}")


def look(arguments='{"query": "weight"}', call_id="c1"):
    return ToolCall(call_id, "look", arguments)


def run(model, tools, request=REQUEST, **limits):
    return list(tool_rounds(ModelWriter(model), request, tools, limits=RoundLimits(**limits)))


def text_of(pieces):
    text = ""
    for piece in pieces:
        if not isinstance(piece, ToolUsed):
            text = "" if piece.discard else text + piece.text
    return text


def test_an_answer_without_calls_passes_through():
    model = ScriptedModel("It weighs 200 g [1].")

    pieces = run(model, Tools())

    assert text_of(pieces) == "It weighs 200 g [1]."
    assert model.requests[0].tools == REQUEST.tools


class TestToolsThatWait:
    request = replace(REQUEST, tools=(), waiting_tools=REQUEST.tools)

    def test_are_not_told_of_where_the_sources_answer(self):
        model = ScriptedModel("It weighs 200 g [1].")

        assert text_of(run(model, Tools(), self.request)) == "It weighs 200 g [1]."
        assert [each.tools for each in model.requests] == [()]

    def test_are_told_of_once_the_model_says_that_they_do_not(self):
        declined = "The documents do not answer this question."
        model = ScriptedModel(declined, [look()], "It weighs 200 g [1].")

        assert text_of(run(model, Tools(), self.request)) == "It weighs 200 g [1]."
        assert [bool(each.tools) for each in model.requests] == [False, True, True]

    def test_leave_it_at_a_second_no(self):
        declined = "The documents do not answer this question."
        model = ScriptedModel(declined, declined)

        assert text_of(run(model, Tools(), self.request)) == declined

    def test_are_run_where_a_model_calls_them_unasked(self):
        model, tools = ScriptedModel([look()], "It weighs 200 g [1]."), Tools()

        assert text_of(run(model, tools, self.request)) == "It weighs 200 g [1]."
        assert tools.calls == [look()]


def test_a_call_is_made_and_its_result_read():
    model, tools = ScriptedModel([look()], "It weighs 200 g [1]."), Tools()

    pieces = run(model, tools)

    used = [piece for piece in pieces if isinstance(piece, ToolUsed)]
    assert used == [ToolUsed("look", '{"query": "weight"}', 'looked for {"query": "weight"}')]
    assert text_of(pieces) == "It weighs 200 g [1]."
    assistant, tool = model.requests[1].messages[-2:]
    assert assistant.tool_calls == (look(),)
    assert (tool.role, tool.tool_call_id, tool.content) == (Role.TOOL, "c1", tools.content)


def test_two_calls_at_once_are_both_answered():
    model = ScriptedModel([look(call_id="a"), look('{"query": "price"}', "b")], "Done.")

    pieces = run(model, Tools())

    assert [piece.name for piece in pieces if isinstance(piece, ToolUsed)] == ["look", "look"]
    assert [m.tool_call_id for m in model.requests[1].messages[-2:]] == ["a", "b"]


@pytest.mark.parametrize(
    "ids", [pytest.param(("", ""), id="missing"), pytest.param(("c", "c"), id="the-same")]
)
def test_calls_without_ids_of_their_own_get_them(ids):
    model = ScriptedModel([look(call_id=ids[0]), look(call_id=ids[1])], "Done.")

    run(model, Tools())

    assistant = model.requests[1].messages[2]
    given = [call.id for call in assistant.tool_calls]
    assert len(set(given)) == 2
    assert all(given)
    assert [m.tool_call_id for m in model.requests[1].messages[3:]] == given


def test_broken_arguments_are_not_sent_back_as_they_came():
    model, tools = ScriptedModel([look('{"query": "wei')], "Done."), Tools("Error: no JSON")

    run(model, tools)

    assert tools.calls[0].arguments == '{"query": "wei'
    assert json.loads(model.requests[1].messages[2].tool_calls[0].arguments) == {}


def test_a_loop_that_never_ends_is_ended():
    model = ScriptedModel(
        lambda request: (
            [look(f'{{"n": {len(model.requests)}}}')] if request.tools else "Enough [1]."
        )
    )
    tools = Tools()

    pieces = run(model, tools, max_rounds=3)

    assert len(tools.calls) == 3
    assert len(model.requests) == 4
    assert model.requests[-1].tools == ()
    assert [message.role for message in model.requests[-1].messages] == [Role.SYSTEM, Role.USER]
    assert model.requests[-1].messages[-1].content.count(tools.content) == 3
    assert "No further tool calls" in model.requests[-1].messages[-1].content
    assert text_of(pieces) == "Enough [1]."


@pytest.mark.parametrize("last", [[look()], '{"name": "look", "parameters": {}}', ""])
def test_a_model_that_calls_to_the_end_has_no_answer(last):
    model = ScriptedModel(lambda request: [look()] if request.tools else last)

    with pytest.raises(ModelInterrupted, match="kept calling"):
        run(model, Tools(), max_rounds=2)


def test_a_call_that_was_made_before_is_not_made_again():
    model, tools = ScriptedModel([look()], [look()], "It weighs 200 g [1]."), Tools()

    pieces = run(model, tools)

    assert len(tools.calls) == 1
    assert text_of(pieces) == "It weighs 200 g [1]."


def test_many_calls_at_once_are_cut_but_every_one_is_answered():
    calls = [look(f'{{"n": {n}}}', call_id=f"c{n}") for n in range(5)]
    model, tools = ScriptedModel(calls, "Done."), Tools()

    run(model, tools, max_calls=2)

    assert len(tools.calls) == 2
    results = model.requests[1].messages[3:]
    assert len(results) == 5
    assert all("at most 2" in message.content for message in results[2:])


def test_text_before_a_call_is_no_part_of_the_answer():
    model = ScriptedModel(["Let me look.", look()], "It weighs 200 g [1].")

    pieces = run(model, Tools())

    assert text_of(pieces) == "It weighs 200 g [1]."
    assert model.requests[1].messages[2].content == "Let me look."


def test_usage_is_the_sum_of_all_rounds():
    model = ScriptedModel([look(), Usage(10, 2)], ["Done.", Usage(20, 3)])

    pieces = run(model, Tools())

    usages = [p.usage for p in pieces if not isinstance(p, ToolUsed) and p.usage]
    assert usages == [Usage(10, 2), Usage(30, 5)]


def words(text):
    return len(text.split())


def total(messages):
    return sum(sent_tokens(message, words) for message in messages) + MESSAGE_TOKENS


@pytest.mark.parametrize(
    ("budget", "begins", "cut"),
    [
        pytest.param(2000, "x0 x1", False, id="fits"),
        pytest.param(300, "x0 x1", True, id="cut"),
        pytest.param(66, "Error: there is no room", False, id="no-room"),
    ],
)
def test_results_are_cut_to_what_fits(budget, begins, cut):
    model = ScriptedModel([look()], "Done.")
    result = " ".join(f"x{n}" for n in range(600))

    run(model, Tools(result), input_tokens=budget, count=words)

    content = model.requests[1].messages[-1].content
    assert content.startswith(begins)
    assert content.endswith("(cut: no more fits)") == cut
    assert total(model.requests[1].messages) <= budget
    if cut:
        assert total(model.requests[1].messages) > budget - 30


def test_calls_that_do_not_fit_are_not_made():
    model, tools = ScriptedModel([look()], "Done."), Tools()

    pieces = run(model, tools, input_tokens=40, count=words)

    assert tools.calls == []
    assert model.requests[1].tools == ()
    assert total(model.requests[1].messages) <= 40
    assert text_of(pieces) == "Done."


def test_results_of_one_round_share_the_room():
    model = ScriptedModel([look("1", call_id="a"), look("2", call_id="b")], "Done.")

    run(model, Tools("word " * 600), input_tokens=400, count=words)

    first, second = (words(message.content) for message in model.requests[1].messages[-2:])
    assert abs(first - second) <= 20
    assert first > 80


def test_the_oldest_turns_make_room_for_a_result():
    turns = [
        message
        for n in range(4)
        for message in (
            ChatMessage(Role.USER, f"question {n}"),
            ChatMessage(Role.ASSISTANT, f"answer {n} " * 50),
        )
    ]
    system, question = REQUEST.messages
    request = replace(REQUEST, messages=(system, *turns, question))
    model = ScriptedModel([look()], "Done.")
    limits = RoundLimits(input_tokens=500, count=words)

    list(tool_rounds(ModelWriter(model), request, Tools("found " * 100), limits=limits))

    sent = model.requests[1].messages
    assert sent[0] == system
    assert turns[0] not in sent
    assert turns[-2] in sent
    assert sent[-1].content == "found " * 100
    assert total(sent) <= 500


@given(
    results=st.lists(st.text("ab \n【é漢", max_size=400), min_size=1, max_size=4),
    budget=st.integers(30, 900),
)
@settings(max_examples=60, deadline=None)
def test_no_message_list_exceeds_the_budget(results, budget):
    count = token_counter("any")
    left = list(results)
    model = ScriptedModel(
        lambda request: [look(call_id=f"c{n}") for n in range(2)] if request.tools else "Done."
    )

    class Many(Tools):
        def run(self, call):
            return Result(left.pop() if left else "", "found")

    pieces = tool_rounds(
        ModelWriter(model), REQUEST, Many(), limits=RoundLimits(input_tokens=budget, count=count)
    )
    list(pieces)

    for request in model.requests:
        taken = sum(sent_tokens(message, count) for message in request.messages)
        assert taken + MESSAGE_TOKENS <= budget


def test_an_interrupted_reply_is_passed_on():
    model = ScriptedModel([look()], ["It wei", ModelInterrupted("gone")])

    with pytest.raises(ModelInterrupted):
        run(model, Tools())


def test_closing_the_answer_hangs_up():
    model = ScriptedModel("one two three four")
    pieces = tool_rounds(ModelWriter(model), REQUEST, Tools())

    next(pieces)
    pieces.close()

    assert model.hung_up == 1
