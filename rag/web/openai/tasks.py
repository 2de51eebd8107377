"""What clients ask by themselves beside a conversation: titles, tags, what could be asked next.

No person asked that: nothing is searched for it, nothing stored, and nothing in it has a number.

Open WebUI sends one user message from a template (`backend/open_webui/config.py`,
`DEFAULT_…_PROMPT_TEMPLATE`): a title, tags, follow-ups, queries and completions begin with
"### Task:" and quote the chat in `<chat_history>`; choosing tools has a system message that begins
with "Available Tools:". Its own pipelines name the task in `metadata.task`. LibreChat sends one
message as well (`@librechat/agents`, `src/utils/title.ts`; before that `api/…/titleConvo.js`).
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from flask import Response

from rag.citations.json_gate import JsonGate
from rag.errors import RagError
from rag.llm.openai_compatible import complete
from rag.records import ChatMessage, Role, ToolCall, Usage
from rag.render.gate import sanitise
from rag.seams import ModelRequest
from rag.seams.patience import CLIENTS_TASK
from rag.web.api.sse import data_line, event_stream
from rag.web.current import application
from rag.web.openai.asked import ClientRequest
from rag.web.openai.requests import ChatBody
from rag.web.openai.told import DONE, calls_told, head, used

TASK, QUOTED = "### Task:", "<chat_history>"  # of Open WebUI; its questions have no such quotation
TOOLS_TO_CHOOSE = "Available Tools:"
OF_LIBRECHAT = (
    "Provide a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language",
    "Please generate a concise title (max 40 characters) for a conversation that starts with",
)
NOTHING: tuple[str, tuple[ToolCall, ...], Usage] = ("", (), Usage(0, 0))
TITLE_CHARACTERS = 60
_FIELD = re.compile(r'\{\s*"(\w+)"\s*:\s*(\[?)')  # of the example that a template gives
_SAID = re.compile(r"^(?:USER|User): (.+)$", re.MULTILINE)


def is_task(body: ChatBody, asked: ClientRequest) -> bool:
    """Whether a client asks by itself."""
    if body.metadata is not None and (body.metadata.model_extra or {}).get("task"):
        return True
    text = asked.question.lstrip()
    if asked.past or asked.rounds:
        return False
    is_of_web_ui = text.startswith(TASK) and QUOTED in text
    chooses = any(each.startswith(TOOLS_TO_CHOOSE) for each in asked.instructions)
    return is_of_web_ui or chooses or text.startswith(OF_LIBRECHAT)


def done(body: ChatBody, asked: ClientRequest) -> Response:
    """What the model makes of it, or what stands for nothing where there is none."""
    text, calls, usage = _by_model(body, asked)
    if not (text or calls):
        text = empty_answer("\n".join([*asked.instructions, asked.question]))
    told = _whole(text, calls, usage)
    if body.stream:
        counts = bool(body.stream_options and body.stream_options.include_usage)
        return event_stream(_frames(told, counts=counts))
    return Response(json.dumps(told), mimetype="application/json")


def empty_answer(prompt: str) -> str:
    """The form that a task wants, without anything in it; a title is how the person began."""
    said = _SAID.search(prompt)
    title = " ".join(said[1].split())[:TITLE_CHARACTERS] if said else ""
    wanted = _FIELD.search(prompt)
    if wanted is None:
        return title
    name = wanted[1]
    empty: object = [] if wanted[2] else (title if name == "title" else "")
    return json.dumps({name: empty}, ensure_ascii=False)


def _by_model(body: ChatBody, asked: ClientRequest) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """What it says without any source; nothing where there is no model, or where it fails."""
    settings = application().settings.llm
    model = application().model if settings.is_configured else None
    if model is None:
        return NOTHING
    wishes = body.wishes(has_model=True)
    said = [(Role.SYSTEM, text) for text in asked.instructions]
    said += [(Role(each.role), each.content) for each in asked.past]
    said.append((Role.USER, asked.question))
    request = ModelRequest(
        tuple(ChatMessage(role, text) for role, text in said),
        max_tokens=min(settings.max_tokens, wishes.max_tokens or settings.max_tokens),
        temperature=wishes.temperature,
        stop=wishes.stop,
        passed_on=wishes.passed_on,
        patience=CLIENTS_TASK,
        thinks=False,
        keeps_json=True,
    )
    try:
        reply = complete(model, request)
        text = _without_numbers(reply.text)
    except RagError:  # nobody waits for it
        return NOTHING
    return text, reply.tool_calls, reply.usage or NOTHING[2]


def _without_numbers(text: str) -> str:
    """The answer; JSON that is none, or breaks off, is no answer."""
    gate = JsonGate(lambda _number: False)
    passed = gate.feed(text) + gate.finish()
    if passed.startswith("{"):
        try:
            json.loads(passed)
        except ValueError:
            return ""
        return passed
    return sanitise(passed)


def _whole(text: str, calls: tuple[ToolCall, ...], usage: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["tool_calls"] = calls_told(calls)
    end = "tool_calls" if calls else "stop"
    return {
        **_head("chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": end}],
        "usage": used(usage.prompt_tokens, usage.completion_tokens),
    }


def _frames(told: dict[str, Any], *, counts: bool) -> Iterator[str]:
    """At once: it is short."""
    (choice,) = told["choices"]
    delta = choice["message"]
    for place, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = place
    for part, end in ((delta, None), ({}, choice["finish_reason"])):
        piece: dict[str, Any] = {"index": 0, "delta": part, "finish_reason": end}
        yield data_line({**_head("chat.completion.chunk"), "choices": [piece]})
    if counts:
        began = _head("chat.completion.chunk")
        yield data_line({**began, "choices": [], "usage": told["usage"]})
    yield DONE


def _head(kind: str) -> dict[str, Any]:
    now = int(time.time())
    return head(kind, f"task-{now}", now)
