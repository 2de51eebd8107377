"""Read a streamed chat completion: server-sent events in, text, tool calls and usage out."""

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag.errors import ModelInterrupted, UnreadableReply
from rag.llm.thoughts import SpokenText
from rag.records import ToolCall, Usage
from rag.seams import ModelDelta

DONE = "[DONE]"
LONGEST_LINE = 8_000_000  # characters; a server that never ends its line must not fill the memory


class ServerComplaint(Exception):
    """An error object inside a reply that began with HTTP status 200."""


def read_events(pieces: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a reply, and `{"done": true}` for its end mark.

    A server that ignores `stream` and sends the whole completion at once gives one object.

    Raises:
        UnreadableReply: what came is not JSON.
        ServerComplaint: the reply holds an error instead of an answer.
    """
    stray: list[str] = []  # lines that are not server-sent events: a whole JSON reply, or a page
    seen = False
    for line, is_whole in _lines(pieces):
        event = _event_of(line, stray)
        if event is None:
            continue
        try:
            yield _object_of(event)
        except UnreadableReply:
            if is_whole:
                raise
            return  # the connection was cut within this line
        seen = True

    rest = "\n".join(stray).strip()
    if rest and (not seen or rest.startswith('{"error"')):
        yield _object_of(rest)


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Lines, each with whether its end was seen."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    for piece in pieces:
        *whole, pending = (pending + decoder.decode(piece)).split("\n")
        for line in whole:
            yield line.rstrip("\r"), True
        if len(pending) > LONGEST_LINE:
            raise UnreadableReply(f"A line of the reply is over {LONGEST_LINE} characters long.")
    if pending:
        yield pending, False


def _event_of(line: str, stray: list[str]) -> str | None:
    if line.startswith("data:"):
        return line[5:].strip() or None
    if line and not line.startswith((":", "event:", "id:", "retry:")) and len(stray) < 10_000:
        stray.append(line)
    return None


def _object_of(event: str) -> Mapping[str, Any]:
    if event == DONE:
        return {"done": True}
    try:
        found = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(_not_json(event)) from error
    if not isinstance(found, dict):
        raise UnreadableReply(_not_json(event))
    if found.get("error"):
        raise ServerComplaint(json.dumps(found["error"], ensure_ascii=False))
    return found


def _not_json(event: str) -> str:
    if "<html" in event.lower() or "<!doctype" in event.lower():
        return "a web page came instead of JSON (is there a proxy in between?)"
    return f"this is not JSON: {event[:60]!r}"


@dataclass(slots=True)
class _Call:
    """A tool call in the making."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return bool(self.name)


@dataclass(slots=True)
class ToolCalls:
    """Puts tool calls together that arrive in pieces, however the server numbers them.

    OpenAI sends an index with each piece and the id with the first. Others send no index, the same
    index or id for every call, the id with every piece, or whole calls at once.
    """

    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)

    def add(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        if not isinstance(function, Mapping):
            return
        name = _text(function.get("name"))
        call = self._call_for(piece.get("index"), _text(piece.get("id")), name)
        call.id = call.id or _text(piece.get("id"))
        call.name = call.name or name
        call.arguments += _json_text(function.get("arguments"))

    def _call_for(self, index: object, call_id: str, name: str) -> _Call:
        known = self._known(index, call_id, name)
        call = known or _Call()
        if known is None:
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _known(self, index: object, call_id: str, name: str) -> _Call | None:
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif call_id:
            call = next((call for call in reversed(self._calls) if call.id == call_id), None)
        else:
            call = self._calls[-1] if self._calls and not name else None
        if call is not None and name and self._is_another(call, call_id):
            return None
        return call

    def _is_another(self, call: _Call, call_id: str) -> bool:
        """Whether a piece that brings a name begins a new call, though its number is taken."""
        if call_id and call.id and call_id != call.id:
            return True
        return call.is_whole()

    def finished(self) -> tuple[ToolCall, ...]:
        """All calls that have a name, in order, each with an id of its own."""
        used: set[str] = set()
        found = []
        for number, call in enumerate((call for call in self._calls if call.name), start=1):
            call_id = call.id if call.id and call.id not in used else f"call_{number}"
            used.add(call_id)
            found.append(ToolCall(id=call_id, name=call.name, arguments=call.arguments or "{}"))
        return tuple(found)


@dataclass(slots=True)
class Reply:
    """One reply while it arrives."""

    spoken: SpokenText = field(default_factory=SpokenText)
    calls: ToolCalls = field(default_factory=ToolCalls)
    usage: Usage | None = None
    finish_reason: str | None = None
    ended: bool = False
    thought: bool = False  # in a field of its own
    said: bool = False

    def read(self, events: Iterable[Mapping[str, Any]]) -> Iterator[ModelDelta]:
        """Text as it comes, then the tool calls, then the usage.

        Raises:
            ModelInterrupted: the events ended before the reply did.
        """
        for event in events:
            yield from self._take(event)
            if self.ended:
                break
        yield from self._last_deltas()

    def _take(self, event: Mapping[str, Any]) -> list[ModelDelta]:
        self.ended = bool(event.get("done"))
        self.usage = _usage(event.get("usage")) or self.usage
        choices = event.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return []
        choice = choices[0]
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        message = choice.get("delta") or choice.get("message")
        return self._read_message(message) if isinstance(message, dict) else []

    def _read_message(self, message: Mapping[str, Any]) -> list[ModelDelta]:
        for piece in message.get("tool_calls") or ():
            if isinstance(piece, dict):
                self.calls.add(piece)
        self.thought = self.thought or any(message.get(key) for key in _THOUGHTS)
        found = self.spoken.feed(_text(message.get("content")))
        self.said = self.said or bool(found)
        return found

    @property
    def thinks(self) -> bool:
        """Whether the model was seen thinking."""
        return self.thought or self.spoken.thought

    def _last_deltas(self) -> Iterator[ModelDelta]:
        rest = self.spoken.finish()
        self.said = self.said or bool(rest)
        yield from rest
        calls = self._whole_calls()
        self._check_end(calls)
        if self.finish_reason in _TOO_SHORT and not calls:
            yield ModelDelta(cut=True)
        if calls:
            yield ModelDelta(tool_calls=calls)
        if self.usage:
            yield ModelDelta(usage=self.usage)

    def _whole_calls(self) -> tuple[ToolCall, ...]:
        """The protocol's own calls; those written as text only where there are none."""
        written = enumerate(self.spoken.calls, start=1)
        return self.calls.finished() or tuple(
            replace(call, id=f"call_{number}") for number, call in written
        )

    def _check_end(self, calls: tuple[ToolCall, ...]) -> None:
        if self.finish_reason is None and not self.ended:
            raise ModelInterrupted("the connection closed before the reply was finished")
        if self.finish_reason in ("content_filter", "error"):
            raise ModelInterrupted(f"the server broke off (finish_reason {self.finish_reason!r})")
        if self.finish_reason in _TOO_SHORT and not self.said and not calls:
            used = "thinking" if self.thinks else "nothing that can be read"
            raise ModelInterrupted(
                f"it used all its room for {used}; raise llm.max_tokens, or lower llm.reasoning"
            )


_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
_TOO_SHORT = ("length", "max_tokens")


def _text(value: object) -> str:
    """A text of the reply; some servers send content as a list of parts, thoughts among them."""
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict)]
        return "".join(
            _text(part.get("text"))
            for part in parts
            if part.get("type", "text") in ("text", "output_text")
        )
    if not isinstance(value, str):
        return ""
    return value.encode("utf-8", "replace").decode() if not value.isascii() else value


def _json_text(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return _text(value)


def _usage(value: object) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens")
    if not isinstance(prompt, int) or prompt <= 0:
        return None
    return Usage(prompt, completion if isinstance(completion, int) else 0)
