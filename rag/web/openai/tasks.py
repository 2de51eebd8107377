"""What clients ask by themselves beside a conversation: titles, tags, what could be asked next.

No person asked that: nothing is searched for it, nothing stored, and nothing in it has a number.

It is known by its structure: `metadata.task`; or a request that holds no answer of ours, in whose
last message a conversation is quoted, with what both sides said. Whatever else a client asks by
itself (a title asked after the talk, an emoji) looks like a question, and is one, but with the
model `groundnote-plain`.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from flask import Response

from rag.citations.gate import JsonGate
from rag.errors import RagError, UserError
from rag.llm.openai_compatible import complete
from rag.records import ChatMessage, Role, ToolCall, Usage
from rag.render.gate import sanitise
from rag.seams import ModelRequest
from rag.seams.models import CLIENTS_TASK
from rag.web.api.sse import data_line, event_stream
from rag.web.openai.completion import DONE, call_items, head, knows, used
from rag.web.openai.requests import MODEL_PLAIN, AskingBody, ChatBody, ClientRequest
from rag.web.request_context import application

TOOLS_TO_CHOOSE = "Available Tools:"  # Open WebUI has some chosen so
NOBODY = f"model: no language model is set here, and without one {MODEL_PLAIN!r} says nothing."
NOTHING: tuple[str, tuple[ToolCall, ...], Usage] = ("", (), Usage(0, 0))
TITLE_CHARACTERS = 60
TASK_TOKENS = 1_500  # of a reply, where neither the settings nor the client says so
_FIELD = re.compile(r'\{\s*"(\w+)"\s*:\s*(\[?)')  # of the example that a template gives
# Who speaks: a label with a colon, a heading, a tag.
_SPEAKER = r"^[^\w\n]{{0,8}}(?:{0}[^\w\n]{{0,4}}[:：]|(?<=# ){0}$|(?<=<){0}[\s>])"
_SAID = re.compile(
    _SPEAKER.format("(?:user|human)") + r"\W{0,8}([^\n]+)", re.MULTILINE | re.IGNORECASE
)
_ANSWERED = re.compile(_SPEAKER.format("(?:assistant|ai|bot)"), re.MULTILINE | re.IGNORECASE)
_ROLES = re.compile(r"""\brole["']?\s{0,3}[:=]\s{0,3}["']?(user|assistant)\b""")
_MERGED = re.compile(r'"""\s{1,9}"""')  # answers of several models, one behind the other


def is_task(body: AskingBody, request: ClientRequest, *, is_named: bool = False) -> bool:
    """Whether a client asks by itself. Raises UserError where nobody could answer."""
    if body.model == MODEL_PLAIN:
        if not application().settings.llm.is_configured:
            raise UserError(NOBODY)
        return True
    if body.metadata is not None and (body.metadata.model_extra or {}).get("task"):
        return True
    chooses = any(instruction.startswith(TOOLS_TO_CHOOSE) for instruction in request.instructions)
    if request.rounds or not (chooses or _quotes_a_talk(request.question)):
        return False
    named = is_named or (body.metadata is not None and body.metadata.session)
    return not (named or knows(body, request.history))


def _quotes_a_talk(text: str) -> bool:
    """Whether both sides of a conversation speak in a text."""
    if _SAID.search(text) and _ANSWERED.search(text):
        return True
    return set(_ROLES.findall(text)) == {"user", "assistant"} or bool(_MERGED.search(text))


def done(body: ChatBody, request: ClientRequest) -> Response:
    """Its answer as a chat completion, or as the stream of one."""
    reply = _whole(*reply_to(body, request))
    if body.stream:
        counts = bool(body.stream_options and body.stream_options.include_usage)
        return event_stream(_frames(reply, counts=counts))
    return Response(json.dumps(reply), mimetype="application/json")


def reply_to(body: AskingBody, request: ClientRequest) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """What the model makes of it, or what stands for nothing where there is none."""
    text, calls, usage = _by_model(body, request)
    if not (text or calls):
        text = empty_answer("\n".join([*request.instructions, request.question]))
    return text, calls, usage


def empty_answer(prompt: str) -> str:
    """The form that a task wants, without anything in it; a title is how the person began."""
    match = _SAID.search(prompt)
    title = " ".join(match[1].split())[:TITLE_CHARACTERS] if match else ""
    wanted = _FIELD.search(prompt)
    if wanted is None:
        return title
    name = wanted[1]
    empty: object = [] if wanted[2] else (title if name == "title" else "")
    return json.dumps({name: empty}, ensure_ascii=False)


def _by_model(
    body: AskingBody, client_request: ClientRequest
) -> tuple[str, tuple[ToolCall, ...], Usage]:
    """What it says without any source; nothing where there is no model, or where it fails."""
    settings = application().settings.llm
    model = application().model if settings.is_configured else None
    if model is None:
        return NOTHING
    wishes = body.wishes(has_model=True)
    instructions = [(Role.SYSTEM, text) for text in client_request.instructions]
    instructions += [(Role(message.role), message.content) for message in client_request.history]
    instructions.append((Role.USER, client_request.question))
    request = ModelRequest(
        tuple(ChatMessage(role, text) for role, text in instructions),
        max_tokens=min(filter(None, (settings.max_tokens, wishes.max_tokens)), default=TASK_TOKENS),
        temperature=wishes.temperature,
        stop=wishes.stop,
        passed_on=wishes.passed_on,
        patience=CLIENTS_TASK,
        thinks=False,
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
        message["tool_calls"] = call_items(calls)
    end = "tool_calls" if calls else "stop"
    return {
        **_task_head("chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": end}],
        "usage": used(usage.prompt_tokens, usage.completion_tokens),
    }


def _frames(values: dict[str, Any], *, counts: bool) -> Iterator[str]:
    """At once: it is short."""
    (choice,) = values["choices"]
    delta = choice["message"]
    for place, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = place
    for part, end in ((delta, None), ({}, choice["finish_reason"])):
        piece: dict[str, Any] = {"index": 0, "delta": part, "finish_reason": end}
        yield data_line({**_task_head("chat.completion.chunk"), "choices": [piece]})
    if counts:
        began = _task_head("chat.completion.chunk")
        yield data_line({**began, "choices": [], "usage": values["usage"]})
    yield DONE


def _task_head(kind: str) -> dict[str, Any]:
    now = int(time.time())
    return head(kind, f"task-{now}", now)
