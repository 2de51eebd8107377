"""Let a model call tools while it answers, a bounded number of times."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rag.records import ChatMessage, Role, ToolCall, ToolUsed, Usage
from rag.seams import ModelDelta, ToolSpec, Writer, WriteRequest

SHOWN_ARGUMENTS = 500  # characters, in the event for people
NO_MORE_CALLS = "\n\n(No further tool calls are possible. Answer now with what you have.)"
NO_ROOM = "Error: there is no room for this result. Answer with what you have."
TOO_MANY = "Error: too many calls at once; at most {} are made. Call again if you still need it."


class ToolResult(Protocol):
    """What a call gave."""

    @property
    def content(self) -> str: ...
    @property
    def outcome(self) -> str: ...


class Tools(Protocol):
    """Tools by name (see `rag.conversation.tools.Toolbox`)."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    def run(self, call: ToolCall) -> ToolResult:
        """The result; an error that is the model's own is a result, too."""


def _plenty(_messages: Sequence[ChatMessage]) -> int:
    return 12_000


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Bounds of one answer's tool calls."""

    max_rounds: int = 4
    max_calls: int = 8  # in one round
    room: Callable[[Sequence[ChatMessage]], int] = _plenty  # characters that still fit the context


@dataclass(slots=True)
class Reply:
    """What one round said and asked for."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def tool_rounds(
    writer: Writer, request: WriteRequest, tools: Tools, *, limits: RoundLimits = RoundLimits()
) -> Iterator[ModelDelta | ToolUsed]:
    """The answer in pieces, and each tool call that was made for it.

    Once the model has called tools `max_rounds` times it is asked a last time, without tools.
    """
    conversation = Conversation(writer, request, tools, limits)
    for _round in range(limits.max_rounds):
        reply = Reply()
        yield from conversation.ask(reply, with_tools=True)
        if not reply.calls:
            return
        yield from conversation.answer_calls(reply)
    conversation.say_that_no_more_calls_are_possible()
    yield from conversation.ask(Reply(), with_tools=False)


class Conversation:
    """The messages of one answer's rounds, growing by calls and their results."""

    def __init__(
        self, writer: Writer, request: WriteRequest, tools: Tools, limits: RoundLimits
    ) -> None:
        self._writer = writer
        self._request = request
        self._tools = tools
        self._limits = limits
        self._messages = list(request.messages)
        self._usage: Usage | None = None
        self._has_text = False

    def ask(self, reply: Reply, *, with_tools: bool) -> Iterator[ModelDelta]:
        """One call of the writer; `reply` is filled in meanwhile."""
        before = self._usage
        request = replace(
            self._request,
            messages=tuple(self._messages),
            tools=self._tools.specs if with_tools else (),
        )
        for delta in self._writer.write(request):
            reply.calls += delta.tool_calls
            if delta.usage is not None:
                self._usage = _added(before, delta.usage)
                yield ModelDelta(usage=self._usage)
            if delta.text:
                yield ModelDelta(text=self._spaced(reply, delta.text))

    def _spaced(self, reply: Reply, text: str) -> str:
        """What is said after a tool call begins a new paragraph."""
        gap = "\n\n" if self._has_text and not reply.text else ""
        reply.text += text
        self._has_text = True
        return gap + text

    def answer_calls(self, reply: Reply) -> Iterator[ToolUsed]:
        """Make the calls and put their results where the model reads them."""
        calls = _identified(reply.calls, len(self._messages))
        sent = tuple(replace(call, arguments=_readable(call.arguments)) for call in calls)
        self._messages.append(ChatMessage(Role.ASSISTANT, reply.text, tool_calls=sent))
        for place, call in enumerate(calls):
            if place >= self._limits.max_calls:
                self._put(call, TOO_MANY.format(self._limits.max_calls))
                continue
            result = self._tools.run(call)
            self._put(call, result.content)
            yield ToolUsed(call.name, call.arguments[:SHOWN_ARGUMENTS], result.outcome)

    def _put(self, call: ToolCall, content: str) -> None:
        room = self._limits.room(self._messages)
        fitted = _cut(content, room)
        self._messages.append(ChatMessage(Role.TOOL, fitted, tool_call_id=call.id))

    def say_that_no_more_calls_are_possible(self) -> None:
        last = self._messages[-1]
        self._messages[-1] = replace(last, content=last.content + NO_MORE_CALLS)


def _added(before: Usage | None, usage: Usage) -> Usage:
    if before is None:
        return usage
    return Usage(
        before.prompt_tokens + usage.prompt_tokens,
        before.completion_tokens + usage.completion_tokens,
    )


def _identified(calls: Sequence[ToolCall], round_number: int) -> list[ToolCall]:
    """Every call with an id of its own, as the protocol wants it."""
    seen: set[str] = set()
    found = []
    for place, call in enumerate(calls):
        if not call.id or call.id in seen:
            call = replace(call, id=f"call_{round_number}_{place}")
        seen.add(call.id)
        found.append(call)
    return found


def _readable(arguments: str) -> str:
    """Servers refuse a conversation whose arguments are no JSON; the error tells what was wrong."""
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments


def _cut(content: str, room: int) -> str:
    if len(content) <= room:
        return content
    if room < len(NO_ROOM) * 2:
        return NO_ROOM
    return content[: room - 40].rstrip() + "\n… (cut: no more fits)"
