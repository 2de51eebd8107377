"""What is sent, rendered by chat templates with the checks of real ones: none refuses."""

import jinja2
import pytest

from rag.llm.dialects import RequestOptions, Server, ServerDialect, in_turn
from rag.llm.openai_compatible import OpenAIChatModel, complete
from rag.memory.context import ContextParts, Pair, assemble, put_back
from rag.records import ChatMessage, Message, MessageStatus, Role, Summary, SummaryReport, ToolCall
from rag.seams import ModelRequest
from tests.openai_server import OpenAIServer, failure, reply

ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
MISTRAL = """\
{%- if messages[0]["role"] == "system" %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set loop_messages = messages %}{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
{%- if message.role == "user" or (message.role == "assistant" and not message.tool_calls) %}
{%- if (message.role == "user") != (ns.index % 2 == 0) %}
{{- raise_exception("After the optional system message, roles must alternate user/assistant") }}
{%- endif %}{%- set ns.index = ns.index + 1 %}
{%- elif message.role not in ("assistant", "tool") %}
{{- raise_exception("Only user and assistant roles are supported, with the exception of an initial "
"optional system message!") }}{%- endif %}[{{ message.role }}]{{ message.content }}
{%- endfor %}"""
QWEN = """\
{%- for message in messages %}
{%- if message.role == "system" and not loop.first %}
{{- raise_exception("System message must be at the beginning.") }}{%- endif %}
{%- if message.role not in ("system", "user", "assistant", "tool") %}
{{- raise_exception("Unexpected message role.") }}{%- endif %}
<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>
{%- endfor %}
{%- if not messages | selectattr("role", "equalto", "user") | list %}
{{- raise_exception("No user query found in messages.") }}{%- endif %}"""
GEMMA = """\
{%- if messages[0]["role"] == "system" %}{{- raise_exception("System role not supported") }}
{%- endif %}
{%- for message in messages if message.role != "tool" and not message.tool_calls %}
{%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
{{- raise_exception(alternate) }}{%- endif %}
<start_of_turn>{{ message.role }}\n{{ message["content"] | trim }}<end_of_turn>
{%- endfor %}"""
LLAMA = """\
{%- if messages[0]["role"] == "system" %}{%- set messages = messages[1:] %}{%- endif %}
{%- for message in messages %}
{%- if message.tool_calls and message.tool_calls | length != 1 %}
{{- raise_exception("This model only supports single tool-calls at once!") }}{%- endif %}
<|start_header_id|>{{ message.role }}<|end_header_id|>{{ message.content }}<|eot_id|>
{%- endfor %}"""
CHATML = """\
{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>
{%- endfor %}"""
TEMPLATES = {
    "mistral": MISTRAL, "qwen": QWEN, "gemma": GEMMA, "llama": LLAMA, "chatml": CHATML
}  # fmt: skip


class Refused(Exception):
    pass


def refuse(message):
    raise Refused(message)


ENVIRONMENT = jinja2.Environment()
ENVIRONMENT.globals |= {"raise_exception": refuse, "alternate": ALTERNATE}
RECALLED = "Earlier: The lamp is red [1]."
COMPILED = {name: ENVIRONMENT.from_string(source) for name, source in TEMPLATES.items()}


def rendered(template, messages):
    return COMPILED[template].render(messages=messages)


def said(index, role, content):
    return Message(index, index // 2, role, content, MessageStatus.COMPLETE, 0.0)


def pair(turn):
    return Pair(
        said(2 * turn, Role.USER, f"Question {turn}?"),
        said(2 * turn + 1, Role.ASSISTANT, f"Answer {turn} [1]."),
    )


def context(turn):
    """The context of a turn, with a summary of what is long ago, and a paragraph put back."""
    first = max(0, turn // 10 - 1) * 10
    summaries = [
        Summary(0, 2 * first, "The lamp is red [1].", (1,), (), SummaryReport(1, 1, 0, 0), 8)
    ][: bool(first)]
    parts = ContextParts(
        "Cite.",
        "Sources: …\n\nQuestion: and now?",
        summaries=summaries,
        recent=[pair(each) for each in range(first, turn)],
        requested=[said(0, Role.USER, "Question 0?")] if turn % 7 == 0 else [],
        message_count=2 * turn,
    )
    made = assemble(parts, None, budget_tokens=2_000, count=len)
    return put_back(made, RECALLED, (0,), len) if first else made


def with_tools(messages):
    call = ToolCall("abcdefghi", "search", "{}")
    return [
        *messages,
        ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
        ChatMessage(Role.TOOL, "Nothing.", tool_call_id=call.id),
    ]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("tools", ["called", "refused", "none"])
def test_no_template_refuses_any_context_of_sixty_turns(template, tools):
    refused = {"tools"} if tools == "refused" else set()
    refused |= {"system"} if template == "gemma" else set()
    habits = ServerDialect(
        Server("http://127.0.0.1:1/v1", "m"), RequestOptions(), frozenset(refused)
    )
    for turn in range(60):
        made = context(turn)
        assert made.tokens <= made.budget_tokens
        messages = list(made.messages)
        if tools != "none":
            messages = with_tools(messages)
        sent = habits.body(ModelRequest(tuple(messages), max_tokens=9))["messages"]
        assert "and now?" in rendered(template, sent)
        assert (RECALLED in sent[-3 if tools != "none" else -1]["content"]) == (turn >= 20)
        assert "Cite." in sent[0]["content"]


def test_a_template_without_a_system_role_gets_the_rules_from_the_user_once_it_refused():
    with OpenAIServer(failure(400, "System role not supported"), reply("Yes."), reply("Yes.")) as s:
        model = OpenAIChatModel(s.url, "m")
        request = ModelRequest(
            (ChatMessage(Role.SYSTEM, "Cite."), ChatMessage(Role.USER, "Red?")), max_tokens=9
        )
        assert complete(model, request).text == "Yes."
        assert complete(model, request).text == "Yes."

    roles = [[m["role"] for m in each.body["messages"]] for each in s.requests]
    assert roles == [["system", "user"], ["user"], ["user"]]
    assert s.requests[1].body["messages"][0]["content"] == "Cite.\n\nRed?"


def test_messages_of_one_side_are_joined():
    messages = [{"role": role, "content": role} for role in ("user", "user", "assistant")]
    assert [m["content"] for m in in_turn(messages, with_system=True)] == [
        "user\n\nuser", "assistant"
    ]  # fmt: skip
