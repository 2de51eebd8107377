"""What the application sends of a long talk: its budget used, half of its claims."""

import pytest

from rag.chat.context import ContextBuilder, ContextSources, MemoryRules
from rag.chat.draft import ModelWriter
from rag.chat.tool_loop import RoundLimits, ToolOffer, ToolResult, tool_rounds
from rag.memory.conversation import ConversationMemory
from rag.records import ImportedMessage, Role, ToolCall
from rag.seams import WriteRequest
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.fakes import ScriptedModel

TURNS = 60
TOWNS = (
    "Aarau",
    "Bern",
    "Chur",
    "Davos",
    "Elgg",
    "Flims",
    "Gais",
    "Horw",
    "Ilanz",
    "Jona",
    "Olten",
)


def fact(number):
    hour, town = 5 + number % 9, TOWNS[number % 10]
    return f"The depot of {town} behind the old station opens gate {number} at {hour} o'clock"


def talked(store, memory):
    """A session in which each answer gives a number of its own, and talks on."""
    session = store.create("ada")
    for number in range(1, TURNS + 1):
        question = f"When does gate {number} in {TOWNS[number % 10]} open?"
        more = f"Drivers wait in lane {number % 7} until then, and the porter notes each plate. "
        answer = f"{fact(number)} [{number}]. {more * 3}Ask again before a holiday."
        session.append(
            [ImportedMessage("user", question), ImportedMessage("assistant", answer)], []
        )
        memory.compact(session, force=False)
    return session


def prepared_for(engine, window, tools=None):
    """The session, and what is sent for its next question."""
    memory = ContextBuilder(
        ConversationMemory(count_tokens),
        rules=MemoryRules(tools=tools),
        window=lambda: window,
        count=count_tokens,
    )
    session = talked(SqlConversationStore(engine), memory)
    turn = session.begin("Give me an overview of the gates.")
    return session, memory.prepare(session, turn, ContextSources())


@pytest.fixture
def sent(engine, request):
    """The summary's report, what is sent of the talk, and its statistics."""
    session, prepared = prepared_for(engine, request.param)
    text = "\n".join(message.content for message in prepared.messages)
    return session.summaries()[-1].report, text, prepared.stats


@pytest.mark.parametrize("sent", [4096, 8192], indirect=True)
def test_nine_tenths_of_the_budget_are_used(sent):
    _, _, stats = sent

    assert 0.9 * stats["budget"] <= stats["tokens"] <= stats["budget"]


class LongFinds:
    """Tools that find more than fits."""

    def run(self, call):
        return ToolResult("The depot of Wil has no gate. " * 400, "found")


@pytest.mark.parametrize("window", [4096, 8192])
def test_nine_tenths_are_used_beside_tools_and_results_take_the_place_of_old_turns(engine, window):
    offer = ToolOffer(lambda: True, lambda session: False, lambda question: False, count_tokens)
    _, prepared = prepared_for(engine, window, offer)
    budget = prepared.stats["budget"]

    assert prepared.tools
    assert 0.9 * budget <= prepared.stats["tokens"] <= budget

    call = ToolCall("c1", "search_session_history", '{"query": "Wil"}')
    model = ScriptedModel([call], "There is none.")
    request = WriteRequest("", (), prepared.messages, max_tokens=100, tools=prepared.tools)
    limits = RoundLimits(input_tokens=budget, count=count_tokens)
    list(tool_rounds(ModelWriter(model), request, LongFinds(), limits=limits))

    result = model.requests[1].messages[-1]
    assert result.role is Role.TOOL
    assert count_tokens(result.content) >= 0.1 * budget


@pytest.mark.parametrize("sent", [8192], indirect=True)
def test_half_of_the_numbers_stand_with_their_statement(sent):
    report, text, _ = sent

    assert report.citations_kept == report.citations_required >= 40
    assert len(report.stated_citations) >= report.citations_required / 2
    assert all(f"{fact(number)} [{number}]" in text for number in report.stated_citations)
    assert sum(f"{fact(number)} [{number}]" in text for number in range(1, TURNS + 1)) >= TURNS / 2


@pytest.mark.parametrize("sent", [4096], indirect=True)
def test_in_a_small_window_all_numbers_are_listed(sent):
    report, text, _ = sent

    assert report.citations_kept == report.citations_required
    assert all(f"[{number}]" in text for number in range(1, TURNS + 1))
