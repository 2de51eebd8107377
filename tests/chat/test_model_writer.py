import pytest

from rag.chat.draft import ModelWriter
from rag.chat.prompts import DECLINE
from rag.errors import ModelInterrupted
from rag.records import ChatMessage, Role, ToolCall, Usage
from rag.seams import ModelRequest, ToolSpec, WriteRequest
from tests.fakes import ScriptedModel

REQUEST = WriteRequest(
    question="How long?",
    sources=(),
    messages=(ChatMessage(Role.USER, "How long?"),),
    max_tokens=50,
    tools=(ToolSpec("search", "Search.", {}),),
)


class TestModelWriter:
    def test_passes_the_context_on_and_the_reply_back(self):
        call = ToolCall("1", "search", "{}")
        model = ScriptedModel(["Five days [1].", call, Usage(3, 4)], name="tiny")
        writer = ModelWriter(model, temperature=0.1)

        deltas = list(writer.write(REQUEST))

        assert "".join(delta.text for delta in deltas) == "Five days [1]."
        assert deltas[-2].tool_calls == (call,)
        assert deltas[-1].usage == Usage(3, 4)
        assert model.requests == [ModelRequest(REQUEST.messages, 50, 0.1, tools=REQUEST.tools)]
        assert writer.name == "tiny"

    def test_hangs_up_when_it_is_closed(self):
        model = ScriptedModel("Five days [1].")
        stream = ModelWriter(model).write(REQUEST)
        next(stream)

        stream.close()

        assert model.hung_up == 1

    def test_lets_the_models_error_through(self):
        stream = ModelWriter(ScriptedModel(["Five", ModelInterrupted("lost")])).write(REQUEST)

        assert next(stream).text == "Five"
        with pytest.raises(ModelInterrupted):
            next(stream)

    @pytest.mark.parametrize(
        ("text", "declined"),
        [
            pytest.param(f"{DECLINE} Nearest is the price [1].", True, id="as it was told to"),
            pytest.param("The sources don’t mention any warranty.", True, id="its own words"),
            pytest.param("I could not find anything about this.", True, id="could not find"),
            pytest.param("That is not stated in the documents.", True, id="not stated"),
            pytest.param("Die Dokumente beantworten diese Frage nicht.", True, id="German"),
            pytest.param("Refunds take five days [1].", False, id="an answer"),
            pytest.param("The source does not state a limit [2].", False, id="a cited statement"),
            pytest.param(
                "Five days [1]. The documents do not mention holidays.", False, id="answers first"
            ),
            pytest.param("The remote does not include batteries.", False, id="about a product"),
            pytest.param("", False, id="nothing"),
        ],
    )
    def test_knows_an_answer_that_declines(self, text, declined):
        assert ModelWriter(ScriptedModel("")).declined(text) is declined
