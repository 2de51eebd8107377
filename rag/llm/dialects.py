"""The dialect of one server: what it refuses is left out of later requests, and remembered."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from rag.errors import (
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelUnavailable,
    UnreadableReply,
)
from rag.llm.replies import ArrivingReply
from rag.llm.reply_text import without_role_tokens
from rag.records import ChatMessage, Role
from rag.seams import ModelRequest, ToolSpec
from rag.seams.models import Patience

# Messages of OpenAI, vLLM, SGLang, llama.cpp, Ollama, OpenRouter, Mistral, Gemini, Anthropic, TGI,
# TensorRT, ExLlama, LM Studio, Cohere, Kimi, Qwen and xAI.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum|max) context (length|size)"
    r"|maximum model length|(exceed\w*|larger than|longer than|over) (the |its |this model's )?"
    r"(available |maximum |max |model'?s? )*(context|input token limit)"
    r"|context (length|size|window) (is |was )?exceeded|model is loaded with context length"
    r"|context the overflows|context overflow|prompt is too long|input is too long|n_keep"
    r"|greater than the context length"
    r"|(prompt|input|sequence)\b.{0,60}?(exceed\w*|(great|long)er than).{0,40}?(max|length|cache)"
    r"|reduce the length of the (messages|prompt|input)|ContextWindowExceeded|context length is"
    r"|(maximum prompt|range of input) length|model token limit|too many tokens(?! per)"
    r"|inputs?\W{0,3}must have less|too large for \S+ model\. max size"
    r"|tokens.{0,30}max_new_tokens.{0,20}must be|request too large for model",
    re.IGNORECASE,
)
_FITS = re.compile(
    r"(?:maximum|max\b|available|allowed|only|limit:?|n_ctx|must be|cannot exceed|less than"
    r"|max_seq_len|cache size|context length|range of input length[^\d]*1,)[^\d,.]{0,40}(\d{3,8})\b"
    r"|\b(\d{3,8})(?: tokens?)? (?:maximum|max\b|limit)",
    re.IGNORECASE,
)
LEAST_WINDOW = 512  # tokens: a smaller number in a refusal is no window
_KEY_LIKE = re.compile(r"\b(sk|pk|rk|key|hf|gsk)[-_][\w*.-]{6,}|\bBearer\s+\S+", re.IGNORECASE)
_TAGS = re.compile(r"<(style|script|head)\b.*?</\1\s*>|<[!/a-z][^<>]*>", re.IGNORECASE | re.DOTALL)
LEAST_KEY = 8  # characters: a shorter key is no secret, and is part of many words
KEY_ADVICE = "Set OPENAI_API_KEY, or the variable that llm.api_key_env names, to a valid key."


def message_in(error: Any) -> str:
    """Return the message in a server's refusal, or all of the refusal if it has none."""
    body = error.body
    if isinstance(body, dict):
        message = body.get("message") or body.get("detail") or body.get("error") or body
        behind = body.get("metadata")  # the message of the provider behind a router
        if isinstance(behind, dict) and behind.get("raw"):
            message = f"{message}: {behind['raw']}"
        body = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    return str(body or error.message)


def unread_call(error: Any) -> str:
    """Return a model's text that its server, such as Groq's, could not read as a tool call."""
    body = error.body if isinstance(error.body, dict) else {}
    written = body.get("failed_generation")
    return written if isinstance(written, str) else ""


def says_too_long(text: str) -> bool:
    """Return whether a server's error says that the messages do not fit."""
    return bool(_TOO_LONG.search(text))


def tokens_that_fit(text: str) -> int | None:
    """Return the window that a refusal of too long messages names, or None."""
    results = (int(match[1] or match[2]) for match in _FITS.finditer(text))
    return next((number for number in results if number >= LEAST_WINDOW), None)


@dataclass(frozen=True, slots=True)
class Server:
    """The server and model that an error is about."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """The URL without user, password and query, fit to be shown."""
        parts = urlsplit(self.base_url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path}".rstrip("/")

    def quote(self, text: str, *, limit: int = 200) -> str:
        """Return the server's text, short, on one line, and without what looks like a key."""
        if self.api_key and len(self.api_key) >= LEAST_KEY:
            text = text.replace(self.api_key, "…")
        text = " ".join(_KEY_LIKE.sub("…", _TAGS.sub(" ", text)).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def unreachable(self) -> ModelError:
        return ModelUnavailable(
            f"No model server answers at {self.address}. "
            "Start it, or set llm.base_url to the address of one that runs."
        )

    def silent(self, patience: Patience, *, wrote: bool) -> ModelError:
        """Return the error for a server that sends nothing; `wrote`: after the reply began."""
        what = f"The model server at {self.address} sent nothing for {patience.seconds:g} seconds"
        if wrote:
            return ModelInterrupted(f"{what} in the middle of its reply. Ask again.")
        return ModelUnavailable(f"{what}. {patience.advice}")

    def broken_off(self, reason: str) -> ModelError:
        return ModelInterrupted(
            f"The reply of {self.model} broke off: {self.quote(reason)}. Ask again."
        )

    def unreadable(self, reason: str) -> ModelError:
        return UnreadableReply(
            f"{self.address} answered, but not in the OpenAI protocol: {self.quote(reason)}. "
            "Check llm.base_url; it often ends in /v1."
        )

    def refused(self, status: int | None, text: str, *, code: str = "") -> ModelError:
        """Return the error for an error reply; status None: an error within a begun reply."""
        if says_too_long(f"{text} {code}"):
            return ContextTooLong(
                f"{self.model} says that the messages are too long for it: {self.quote(text)}"
            )
        reply = f"(HTTP {status}: {self.quote(text)})" if status else f"(error: {self.quote(text)})"
        what, advice = _REFUSED.get(status or 0, ("refused the request", ""))
        if status is not None and status >= 500:
            what, advice = "failed", "Ask again; if it stays so, look into its log."
        what = what.format(model=self.model)
        return ModelUnavailable(f"{self.address} {what} {reply}. {advice}".strip())


_REFUSED = {  # meaning of a status, and advice
    401: (_KEY := "refuses the key, or what is asked with it", KEY_ADVICE),
    403: (_KEY, KEY_ADVICE),
    402: ("wants to be paid first", "Add credit there, or lower llm.max_tokens."),
    404: (
        "knows no model {model!r} or no chat completions",
        "Check llm.model and llm.base_url.",
    ),
    429: ("allows no more requests for now", "Wait a little and ask again."),
}


THINKING_ROOM = 1_000  # tokens
_NOT_OF_THE_CLIENT = ("chat_template_kwargs", "reasoning")
_CONCEDED = frozenset({400, 404, 422, 500, 501})  # statuses with which servers refuse an option
_OPTIONAL = frozenset(
    {
        "stream_options", "temperature", "stop", "tools", "parallel_tool_calls",
        "chat_template_kwargs", "reasoning_effort", "reasoning",
    }
)  # fmt: skip

_SYSTEM = "system"  # a role that some chat templates lack
_THOUGHTS = ("reasoning_content", "reasoning_details")  # fields of a message that calls tools
Effort = Literal["off", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The operator's options for every request."""

    reasoning: Effort | None = None  # None: the server's default
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    written_calls: bool = True  # calls that a model writes as text are calls


@dataclass(slots=True)
class ServerDialect:
    """What one server refuses, and how its model reasons; learned from its replies."""

    server: Server
    asking: RequestOptions = RequestOptions()
    refused: frozenset[str] = frozenset()
    max_tokens_limit: int | None = None
    thinks: bool = False
    thinks_unopened: bool = False

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """Return the request as arguments of the client, without what the server refuses."""
        tokens = request.max_tokens
        if self.thinks and not request.thinks:
            tokens += THINKING_ROOM  # it reasons all the same
        tokens_key = "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"
        wanted: dict[str, Any] = {
            "stream": True,
            "stream_options": {"include_usage": True} if "stream" not in self.refused else None,
            "temperature": request.temperature,
            tokens_key: min(tokens, self.max_tokens_limit or tokens),
            "stop": list(request.stop) or None,
            "tools": [_tool(tool) for tool in request.tools] or None,
            **self._reasoning(request),
            **request.passed_on,
        }
        refused = self.refused - request.insisted
        with_tools = "tools" not in self.refused or bool(request.passed_on)
        messages = [self._message(message, with_tools=with_tools) for message in request.messages]
        messages = in_turn(messages, with_system=_SYSTEM not in self.refused)
        body: dict[str, Any] = {"model": self.server.model, "messages": messages}
        body |= {k: v for k, v in wanted.items() if v is not None and k not in refused}
        extra = {key: body.pop(key) for key in _NOT_OF_THE_CLIENT if key in body}
        return body | {"extra_body": {**extra, **self.asking.extra_body}}

    def notice(self, reply: ArrivingReply) -> None:
        """Learn from a complete reply how this model marks its reasoning."""
        self.thinks = self.thinks or reply.thinks
        self.thinks_unopened = self.thinks_unopened or reply.spoken.thought_unopened

    def _reasoning(self, request: ModelRequest) -> dict[str, Any]:
        """Return the options for the effort of reasoning; {} if none was asked for."""
        effort = self.asking.reasoning
        if not request.thinks and (effort is not None or self.thinks):
            effort = "off"
        if effort is None:
            return {}
        host = urlsplit(self.server.base_url).hostname or ""
        if host.endswith("openrouter.ai"):
            return {"reasoning": {"enabled": False} if effort == "off" else {"effort": effort}}
        options: dict[str, Any] = {"reasoning_effort": "none" if effort == "off" else effort}
        if not host.endswith("openai.com"):
            options["chat_template_kwargs"] = {"enable_thinking": effort != "off"}
        return options

    def _message(self, message: ChatMessage, *, with_tools: bool) -> dict[str, Any]:
        """Return the message in the protocol's form; tool results as text if tools are refused."""
        text = message.content.encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8
        content = without_role_tokens(text)
        if message.role is Role.TOOL and not with_tools:
            return {"role": "user", "content": f"Result of a search:\n{content}"}
        sent: dict[str, Any] = {"role": str(message.role), "content": content}
        if message.tool_calls and with_tools:
            thoughts = message.tool_calls[0].beside_message
            sent |= {key: thoughts[key] for key in thoughts if key not in self.refused}
            sent["tool_calls"] = [
                {
                    **call.beside,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.tool_calls
            ]
        if message.tool_call_id is not None:
            sent["tool_call_id"] = message.tool_call_id
        return sent

    def concede(
        self, error: Any, body: Mapping[str, Any], insisted: frozenset[str] = frozenset()
    ) -> bool:
        """Learn from a refusal; return whether it named an option that can be left out."""
        text = error_text(error)
        status = getattr(error, "status_code", None)
        if status not in _CONCEDED or says_too_long(text) or unread_call(error):
            return False
        limit = most_tokens(text)
        sent_limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        if limit and limit < min(self.max_tokens_limit or sys.maxsize, sent_limit):
            self.max_tokens_limit = limit
            return True
        sent = _sent_options(body)
        for key, wording in _REFUSALS:
            if key in sent and wording.search(text):
                self.refused |= {key} - insisted
                return key not in insisted
        return False

    def without_options(
        self, error: Any, body: Mapping[str, Any], insisted: frozenset[str] = frozenset()
    ) -> "ServerDialect | None":
        """Return a dialect with the fewest options, for a refusal that names no known one."""
        options = _sent_options(body) & _OPTIONAL - self.refused - insisted
        status = getattr(error, "status_code", None)
        if status not in (400, 422) or says_too_long(error_text(error)) or not options:
            return None
        return replace(self, refused=self.refused | options)


def _sent_options(body: Mapping[str, Any]) -> set[str]:
    """Return the names of the options and message fields in the body, and "system"."""
    messages = body.get("messages", ())
    keys = {key for message in messages for key in (*message, message["role"])}
    return {*body, *body.get("extra_body", ())} | keys & {_SYSTEM, *_THOUGHTS}


# Messages of OpenAI, Groq, DeepSeek and Qwen.
_MOST_TOKENS = re.compile(
    r"at most (\d+) (?:completion|output) tokens"
    r"|max_(?:completion_|output_|new_)?tokens.{0,60}?(?:less than or equal to|at most|<=|\[\d+,"
    r"|\d+ >|maximum is)"
    r"\s*`?(\d+)",
    re.IGNORECASE,
)
_AFFORDED = re.compile(r"can only afford (\d+)", re.IGNORECASE)
LEAST_AFFORDED = 100  # tokens; an answer needs more


def most_tokens(text: str) -> int | None:
    """Return the limit of a reply's tokens that a refusal names, or None."""
    match = _MOST_TOKENS.search(text)
    return int(match[1] or match[2]) if match else None


def afforded_tokens(error: Any) -> int | None:
    """Return the tokens that the account can still pay for, if a refusal names them."""
    match = _AFFORDED.search(error_text(error)) if getattr(error, "status_code", 0) == 402 else None
    return int(match[1]) if match and int(match[1]) >= LEAST_AFFORDED else None


# In this order: "include_usage needs stream_options", "use max_completion_tokens, not max_tokens".
_REFUSALS = (
    ("stream_options", re.compile(r"stream_options|include_usage")),
    ("stream", re.compile(r"(?<!non-)\bstream(?:ing)?\b", re.IGNORECASE)),
    *((key, re.compile(rf"{key}|content and thinking")) for key in _THOUGHTS),
    ("max_tokens", re.compile(r"max_tokens")),
    ("max_completion_tokens", re.compile(r"max_completion_tokens")),
    ("temperature", re.compile(r"temperature")),
    ("stop", re.compile(r"['\"`]stop['\"`]|: stop\b")),
    ("chat_template_kwargs", re.compile(r"chat_template_kwargs|enable_thinking")),
    ("reasoning_effort", re.compile(r"reasoning_effort|reasoning.effort|\bthink")),
    ("reasoning", re.compile(r"\breasoning\b")),
    (
        _SYSTEM,
        re.compile(
            r"(?:system|developer)[ _](?:role|message|prompt|instruction)|roles? must alternate"
            r"|only user and assistant|\brole\b.{0,40}\bsystem\b",
            re.IGNORECASE,
        ),
    ),
    ("parallel_tool_calls", re.compile(r"parallel_tool_calls|parallel tool")),
    ("tools", re.compile(r"\btools?\b|\btool[_ ](use|choice|call)|function call", re.IGNORECASE)),
)


def error_text(error: Any) -> str:
    """Return all text of the error, in which a word may name what is refused."""
    response = getattr(error, "response", None)
    text = str(error.message) if response is None else response.text
    code = getattr(error, "code", None)
    return f"{text} {code}" if code else text


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def in_turn(messages: list[dict[str, Any]], *, with_system: bool) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role, as chat templates need it.

    Without a system role, the rules are part of the user's first message.
    """
    results: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == _SYSTEM and not with_system:
            message = message | {"role": "user"}
        plain = message.keys() == {"role", "content"}
        if results and plain and results[-1] | {"content": ""} == message | {"content": ""}:
            content = f"{results[-1]['content']}\n\n{message['content']}"
            results[-1] = message | {"content": content}
        else:
            results.append(message)
    return results
