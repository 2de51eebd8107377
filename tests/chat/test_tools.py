"""Every call is checked, and what is wrong with it goes back to the model as a result."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat.tool_loop import Actions, SessionTools, Toolbox, ToolResult, tool_spec, tool_specs
from rag.citations.markers import cited_numbers
from rag.errors import ModelUnavailable
from rag.memory.conversation import ConversationMemory
from rag.records import ContextPreferences, ImportedMessage, Summary, SummaryReport, ToolCall
from rag.sessions.store import SqlConversationStore
from rag.tokens import count_tokens
from tests.fakes import HashEmbedder
from tests.made import made_chunk, made_hit


def weigh(product: str, decimals: int = 1, exact: bool = False, factor: float = 1.0) -> ToolResult:
    """Weigh a product.

    In grams.
    """
    return ToolResult(f"{product} {decimals} {exact} {factor}", "weighed")


def call(name="weigh", **arguments):
    return ToolCall("c1", name, json.dumps(arguments))


def raw(arguments):
    return ToolCall("c1", "weigh", arguments)


class Scales(Toolbox):
    names = ("weigh",)
    weigh = staticmethod(weigh)


def test_a_tool_is_described_by_its_signature_and_docstring():
    spec = tool_spec(weigh)

    assert spec.name == "weigh"
    assert spec.description == "Weigh a product. In grams."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "product": {"type": "string"},
        },
        "required": ["product"],
    }


def test_a_call_is_made_with_its_arguments():
    result = Scales().run(call(product=" Aero 5 ", decimals=2.0, exact=True, factor=2.5))

    assert result == ToolResult("Aero 5 2 True 2.5", "weighed")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        pytest.param(raw('{"product": "Aero'), "no JSON", id="broken-json"),
        pytest.param(raw("[" * 5000), "no JSON", id="deep-json"),
        pytest.param(raw('["Aero 5"]'), "expected a JSON object", id="a-list"),
        pytest.param(raw("null"), "expected a JSON object", id="null"),
        pytest.param(raw("{}"), "'product' is missing", id="missing"),
        pytest.param(raw(""), "'product' is missing", id="no-arguments"),
        pytest.param(raw('{"product": "x' + "x" * 30_000 + '"}'), "at most 20,000", id="huge"),
        pytest.param(call(product="x" * 2_000), "at most 1,000", id="long-text"),
        pytest.param(call(product="  "), "empty", id="blank-text"),
        pytest.param(call(product=5), "JSON string", id="number-for-text"),
        pytest.param(call(product=None), "JSON string", id="null-for-text"),
        pytest.param(call(product="a", decimals="2"), "JSON integer", id="text-for-number"),
        pytest.param(call(product="a", decimals=True), "JSON integer", id="bool-for-number"),
        pytest.param(call(product="a", decimals=1.5), "JSON integer", id="fraction-for-integer"),
        pytest.param(call(product="a", exact=1), "JSON boolean", id="number-for-bool"),
        pytest.param(call(product="a", colour="red"), "no argument 'colour'", id="extra"),
        pytest.param(call("fly", product="a"), "Use one of: weigh", id="unknown-tool"),
        pytest.param(ToolCall("", "", "{}"), "there is no tool ''", id="nameless"),
    ],
)
def test_a_wrong_call_gives_an_error_that_the_model_can_act_on(wrong, told):
    result = Scales().run(wrong)

    assert result.content.startswith("Error: ")
    assert told in result.content
    assert len(result.content) < 600
    assert result.outcome.startswith("refused: ")


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=80, deadline=None)
def test_no_call_of_a_model_raises(name, arguments):
    assert Scales().run(ToolCall("c", name, arguments)).content.startswith("Error")


def test_a_failure_of_ours_goes_to_the_model_as_well():
    class Looking(Toolbox):
        names = ("look",)

        def look(self) -> ToolResult:
            """Look."""
            raise ModelUnavailable("The embedding server is down.")

    result = Looking().run(call("look"))

    assert result.content == "Error: The embedding server is down."


# ── The tools of a session ───────────────────────────────────────────────────────────────────


def hit(chunk_id, text):
    return made_hit(made_chunk(chunk_id, text, document_title="Aero [9]"))


class Application:
    """What the tools reach outside of conversations."""

    def __init__(self):
        self.hits = []
        self.asked = []
        self.preferred = []
        self.summarized = []

    def search(self, session, query, limit, filters):
        self.asked.append((query, limit))
        self.filters = dict(filters.items())
        return self.hits[:limit]

    def prefer(self, session, preferences):
        self.preferred.append((session.id, preferences))

    def summarize(self, session, start, end):
        report = SummaryReport(1, 1, 0, 0)
        summary = Summary(start, end, f"Summary of {start} to {end} [1].", (1,), (), report, 9)
        self.summarized.append((start, end))
        session.add_requested_summary(summary, epoch=session.epoch())
        return summary


@pytest.fixture
def outside():
    return Application()


@pytest.fixture
def session(engine):
    session = SqlConversationStore(engine).create("ada")
    said = [
        ("How heavy is the Aero 5?", "It weighs 200 g [1]."),
        ("Which database do we use?", "PostgreSQL was chosen [2]."),
        ("And the colours?", "Red and blue [3]."),
    ]
    session.append(
        [
            message
            for question, answer in said
            for message in (ImportedMessage("user", question), ImportedMessage("assistant", answer))
        ],
        [],
    )
    return session


@pytest.fixture
def toolbox(session, outside):
    return SessionTools(
        session,
        Actions(
            search=outside.search,
            prefer=outside.prefer,
            summarize=outside.summarize,
            find=ConversationMemory(count_tokens, HashEmbedder()).search,
            query_tables=lambda session, question: "7 rows [1]",
        ),
        shown=[1],
    )


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"has_tables": False, "leaves_out": False}, []),
        ({"has_tables": True, "leaves_out": False}, ["query_table"]),
        (
            {"has_tables": False, "leaves_out": True},
            ["search_session_history", "request_context_slice", "summarize_message_range"],
        ),
    ],
)
def test_the_model_is_told_of_the_tools_that_can_help(given, names):
    specs = tool_specs(**given)

    assert [spec.name for spec in specs] == ["search_documents", *names]
    assert all(spec.description for spec in specs)


def test_a_search_is_filtered_and_says_so(toolbox, outside):
    outside.hits = [hit("c1", "The Aero 5 weighs 200 g.")]

    found = toolbox.run(call("search_documents", query="weight", filters="Author: A; folder: x/y"))
    wrong = toolbox.run(call("search_documents", query="weight", filters="writer: A"))

    assert outside.filters == {"author": "A", "folder": "x/y"}
    assert found.content.startswith("Only documents of author 'A', folder 'x/y' were searched.")
    assert wrong.content.startswith("Error: there is no filter 'writer'. Use of: title, author")


def test_a_source_that_the_model_has_is_not_sent_again(toolbox, session, outside):
    outside.hits = [hit("c1", "The Aero 5 weighs 200 g."), hit("c2", "It is red.")]

    first = toolbox.run(call("search_documents", query="weight", limit=1)).content
    second = toolbox.run(call("search_documents", query="colour", limit=2)).content

    assert "200 g" in first
    assert "200 g" not in second
    assert "It is red." in second
    assert second.endswith("[4]: given above.")


def test_documents_come_with_numbers_of_the_session(toolbox, session, outside):
    outside.hits = [hit("c1", "The Aero 5 weighs 200 g [7]."), hit("c2", "It is red.")]

    result = toolbox.run(call("search_documents", query="weight", limit=2))

    assert outside.asked == [("weight", 2)]
    assert cited_numbers(result.content) == [4, 5]  # the transcript took 1 to 3
    assert "200 g (7)" in result.content
    assert [source.chunk_id for source in session.sources([4, 5])] == ["c1", "c2"]
    assert result.outcome == "found [4], [5]"


def test_finding_nothing_is_said(toolbox):
    result = toolbox.run(call("search_documents", query="zeppelin"))

    assert result.content == "Nothing in the documents fits."


def test_history_is_searched_by_substring(toolbox):
    result = toolbox.run(call("search_session_history", query="ostgreSQL was"))

    answer = json.loads(result.content)
    assert answer["total"] == 1
    assert answer["results"][0]["index"] == 3
    assert answer["results"][0]["role"] == "assistant"
    assert "PostgreSQL was chosen" in answer["results"][0]["snippet"]
    assert answer["results"][0]["match"] == "text"


def test_history_is_searched_by_meaning_where_no_text_matches(toolbox):
    result = toolbox.run(call("search_session_history", query="the database we talked about"))

    answer = json.loads(result.content)
    assert {found["index"] for found in answer["results"][:2]} == {2, 3}
    assert {found["match"] for found in answer["results"]} == {"meaning"}


def test_a_slice_is_asked_for_the_next_context(toolbox, session, outside):
    result = toolbox.run(call("request_context_slice", start=2, end=4))

    assert outside.preferred == [(session.id, ContextPreferences(2, 4))]
    assert "Messages 2 to 3" in result.content


def test_a_range_is_summarised_once(toolbox, outside):
    first = toolbox.run(call("summarize_message_range", start=0, end=4))
    again = toolbox.run(call("summarize_message_range", start=0, end=4))

    assert first.content == again.content == "Summary of 0 to 4 [1]."
    assert outside.summarized == [(0, 4)]


@pytest.mark.parametrize("tool", ["request_context_slice", "summarize_message_range"])
@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(-1, 2, id="negative"),
        pytest.param(2, 2, id="empty"),
        pytest.param(4, 2, id="backwards"),
        pytest.param(0, 7, id="beyond-the-end"),
    ],
)
def test_indices_are_checked(toolbox, outside, tool, start, end):
    result = toolbox.run(call(tool, start=start, end=end))

    assert result.content.startswith("Error: ")
    assert "at most 6" in result.content
    assert outside.preferred == outside.summarized == []


def test_too_many_messages_at_once_are_refused(toolbox, session, outside):
    session.append([ImportedMessage("user", "again")] * 300, [])

    result = toolbox.run(call("request_context_slice", start=0, end=201))

    assert "at most 200" in result.content
    assert outside.preferred == []


@pytest.mark.parametrize("limit", [0, -3, 21])
@pytest.mark.parametrize("tool", ["search_documents", "search_session_history"])
def test_limits_are_checked(toolbox, tool, limit):
    result = toolbox.run(call(tool, query="weight", limit=limit))

    assert "from 1 to 20" in result.content
