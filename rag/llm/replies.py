"""Reads a streamed chat completion: events in, text, tool calls and usage out."""

import codecs
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rag.errors import ModelInterrupted, UnreadableReply
from rag.llm.reply_text import ReplyParser, arguments_in
from rag.records import ToolCall, Usage
from rag.seams import ModelDelta, models


@dataclass(slots=True)
class _Call:
    """A tool call that is still incomplete."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    beside: dict[str, Any] = field(default_factory=dict)

    def is_whole(self) -> bool:
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return bool(self.name)


@dataclass(slots=True)
class ToolCalls:
    """Joins tool calls that arrive in pieces, however the server numbers them.

    OpenAI sends an index with each piece and the id with the first. Others send no index, the same
    index or id for every call, the id with every piece, or complete calls.
    """

    begun: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)

    def add(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        if not isinstance(function, Mapping):
            return
        name, id_of_piece = _text(function.get("name")), _text(piece.get("id"))
        index = _index(piece.get("index"))
        call = self._call_of(index, id_of_piece, name)
        if call is None:
            call = _Call()
            self.begun.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_of_piece
        if name != call.name and not call.arguments:
            call.name += name  # sent in pieces by some servers, with each piece by others
        arguments = function.get("arguments")
        is_json = isinstance(arguments, Mapping | list)
        call.arguments += json.dumps(arguments) if is_json else _text(arguments)
        call.beside |= {key: piece[key] for key in piece.keys() - _OF_A_CALL}

    def _call_of(self, index: int | None, call_id: str, name: str) -> _Call | None:
        if index is not None:
            call = self._by_index.get(index)
        elif call_id:
            call = next((call for call in reversed(self.begun) if call.id == call_id), None)
        else:
            call = self.begun[-1] if self.begun and not name else None
        if call is None or not name:
            return call
        # A piece with a name may begin a new call, though its index is in use.
        has_other_id = bool(call_id and call.id and call_id != call.id)
        return None if has_other_id or call.is_whole() else call

    def finished(self) -> tuple[ToolCall, ...]:
        """Return all calls that have a name, in order, each with an id of its own.

        A server's last event may repeat calls.
        """
        calls: list[_Call] = []
        for call in self.begun:
            if call.name and not (call.id and call in calls):
                calls.append(call)
        used: set[str] = set()
        results = []
        for number, call in enumerate(calls, start=1):
            own_id = call.id if call.id and call.id not in used else call_id(number)
            used.add(own_id)
            name = _NAME.search(call.name)
            arguments = arguments_in(call.arguments) or "{}"
            results.append(ToolCall(own_id, name[1] if name else call.name, arguments, call.beside))
        return tuple(results)


@dataclass(slots=True)
class ArrivingReply:
    """One reply while it arrives."""

    spoken: ReplyParser = field(default_factory=ReplyParser)
    calls: ToolCalls = field(default_factory=ToolCalls)
    usage: Usage | None = None
    finish_reason: str | None = None
    ended: bool = False
    thought: bool = False  # reasoning came in a separate field or part
    thoughts: dict[str, Any] = field(default_factory=dict)  # reasoning that a server may want back
    has_text: bool = False
    refusal: str = ""
    _streams: bool = False  # then a `message` repeats the deltas
    _sent: str = ""  # all the text so far
    _half: str = ""  # first half of a surrogate pair that the server split

    def read(self, events: Iterable[Mapping[str, Any]]) -> Iterator[ModelDelta]:
        """Yield text as it comes, then the tool calls, then the usage.

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
        if event.get("choices") == [] and self.usage:  # the last chunk of servers that report usage
            self.finish_reason = self.finish_reason or "stop"
        choice = _choice_of(event)
        if choice is None:
            return []
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason.lower()
        delta = choice.get("delta")
        delta = {"content": delta} if isinstance(delta, str) else delta
        self._streams = self._streams or isinstance(delta, dict)
        message = delta if self._streams else choice.get("message")
        if message is None and isinstance(choice.get("text"), str):  # as in the older completions
            message = {"content": choice["text"]}
        return self._read_message(message) if isinstance(message, dict) else []

    def _read_message(self, message: Mapping[str, Any]) -> list[ModelDelta]:
        if "tool_calls" in message or "function_call" in message:
            for piece in _call_pieces(message):
                self.calls.add(piece)
        content = message.get("content")
        if "extra_content" in message and _is_thought(message):
            self.thought, content = True, None
        if self.finish_reason and content == self._sent:
            content = None  # some servers repeat the whole text at the end
        self._sent += _text(content)
        self.thought = self.thought or _thinks(message, content)
        for key, empty in _RETURNED_FIELDS.items():
            if isinstance(message.get(key), type(empty)):
                self.thoughts[key] = self.thoughts.get(key, empty) + message[key]
        parts = content if isinstance(content, list) else ()
        for refusing in (message, *(part for part in parts if isinstance(part, dict))):
            self.refusal += _text(refusing.get("refusal"))
        deltas = self.spoken.feed(self._whole_characters(_text(content)))
        self.has_text = self.has_text or bool(deltas)
        return deltas

    def _whole_characters(self, text: str) -> str:
        """Join surrogate pairs, whose halves some servers send one after the other."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        if text.isascii():
            return text
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    @property
    def thinks(self) -> bool:
        """Whether reasoning of the model was seen."""
        return self.thought or self.spoken.thought

    def _last_deltas(self) -> Iterator[ModelDelta]:
        rest = self.spoken.finish()
        self.has_text = self.has_text or bool(rest)
        yield from rest
        calls = self._whole_calls() if self.calls.begun or self.spoken.calls else ()
        self._check_end(calls)
        if self.finish_reason in _TOO_SHORT and not calls:
            yield ModelDelta(cut=True)
        if calls:
            yield ModelDelta(tool_calls=calls)
        if self.usage:
            yield ModelDelta(usage=self.usage)

    def _whole_calls(self) -> tuple[ToolCall, ...]:
        """Return the protocol's calls; calls written as text only if there are none."""
        written = enumerate(self.spoken.calls, start=1)
        calls = self.calls.finished() or [replace(c, id=call_id(number)) for number, c in written]
        return tuple(replace(call, beside_message=self.thoughts) for call in calls)

    def _check_end(self, calls: tuple[ToolCall, ...]) -> None:
        if self.finish_reason is None and not self.ended:
            raise ModelInterrupted("the connection closed before the reply was finished")
        if _BROKEN.search(self.finish_reason or ""):
            raise ModelInterrupted(f"the server broke off (finish_reason {self.finish_reason!r})")
        if self.has_text or calls:
            return
        if self.refusal:
            raise ModelInterrupted(f"it refused to answer: {self.refusal}")
        if self.finish_reason in _TOO_SHORT:
            used = "thinking" if self.thinks else "nothing that can be read"
            raise ModelInterrupted(
                f"it used all its room for {used}; raise llm.max_tokens, or lower llm.reasoning"
            )


def _choice_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first choice; others were not requested."""
    choices = event.get("choices")
    if choices is None and "message" in event:  # as in Ollama's own protocol
        reason = event.get("done_reason") or ("stop" if event.get("done") else None)
        return {"delta": event["message"], "finish_reason": reason}
    listed = choices if isinstance(choices, list) else [choices]
    first = (choice for choice in listed if isinstance(choice, dict) and not choice.get("index"))
    return next(first, None)


# A tool's name without additions of some models: "functions.look:0", "look<|channel|>json".
_NAME = re.compile(r"^(?:functions[.:]|default_api[.:])?([\w.-]+)")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
_RETURNED_FIELDS: Mapping[str, Any] = {"reasoning_content": "", "reasoning_details": []}
_OF_A_CALL = {"index", "id", "type", "function"}
_TOO_SHORT = ("length", "max_tokens", "model_length", "max_output_tokens", "max_length")
_BROKEN = re.compile(
    "filter|error|abort|cancel|insufficient|malformed|prohibited|recitation|safety|sensitive"
)


def call_id(number: int) -> str:
    """Return an id that every server accepts; Mistral's need nine letters and digits."""
    return f"call{number:05d}"


def _call_pieces(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the pieces of tool calls, also of one without a list, or of the older form."""
    pieces = message.get("tool_calls")
    for piece in [pieces] if isinstance(pieces, dict) else pieces or ():
        if isinstance(piece, dict):
            yield piece if "function" in piece or "name" not in piece else {"function": piece}
    older = message.get("function_call")
    if isinstance(older, dict):
        yield {"index": 0, "function": older}


def _thinks(message: Mapping[str, Any], content: object) -> bool:
    parts = content if isinstance(content, list) else ()
    kinds = {part.get("type") for part in parts if isinstance(part, dict)}
    return any(message.get(key) for key in _THOUGHTS) or not kinds.isdisjoint(
        ("thinking", "reasoning")
    )


def _is_thought(message: Mapping[str, Any]) -> bool:
    """Return whether Google's mark beside a text says that it is reasoning."""
    beside = message.get("extra_content")
    google = beside.get("google") if isinstance(beside, Mapping) else None
    return isinstance(google, Mapping) and google.get("thought") is True


def _text(value: object) -> str:
    """Return the text of a content, which some servers send as parts, with reasoning among them."""
    if isinstance(value, list):
        return "".join(_text(part) for part in value)
    if isinstance(value, dict):
        is_text = value.get("type", "text") in ("text", "output_text") and not value.get("thought")
        return _text(value.get("text", value.get("value"))) if is_text else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) else None


def _usage(value: object) -> Usage | None:
    if not isinstance(value, Mapping):
        return None
    prompt = _count(value.get("prompt_tokens", value.get("input_tokens")))
    completion = _count(value.get("completion_tokens", value.get("output_tokens")))
    return Usage(prompt, completion) if prompt else None


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


UNSEEN_SHARE = 16  # characters of reasoning, blanks and arguments for each token of an answer


@dataclass(slots=True)
class BoundedReply:
    """Limits the length and silence of one reply."""

    max_tokens: int
    deadline: models.Deadline = field(default_factory=models.Deadline)
    _heard: float = field(default_factory=time.monotonic)  # time of the last character
    _characters: int = 0
    _answer_characters: int = 0

    def note(self, text: str) -> None:
        """Count this text as part of the answer."""
        self._answer_characters += len(text.strip())

    def checked(self, events: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the same events.

        Raises ModelInterrupted once no answer can be expected any more.
        """
        for event in events:
            yield event
            now, came = time.monotonic(), _characters_in(event.get("choices"))
            self._characters += came
            if came or event.get("usage") or event.get("done"):
                self._heard = now
            reason = self._reason(now)
            if reason and not event.get("done"):
                raise ModelInterrupted(reason)

    def _reason(self, now: float) -> str:
        if now - self._heard > models.SILENT_SECONDS:
            return f"no character came for {models.SILENT_SECONDS:g} seconds"
        if self.deadline.reason:
            return self.deadline.reason
        unseen = self._characters - self._answer_characters
        most = UNSEEN_SHARE * self.max_tokens
        if unseen > most:
            return f"{unseen:,} characters of it were no text of an answer; {most:,} are waited for"
        return ""


def _characters_in(any_: Any) -> int:
    """Count the characters of all texts but names and ids, at any depth."""
    if isinstance(any_, str):
        return len(any_)
    if isinstance(any_, Mapping):
        skipped = ("id", "type", "role", "object", "finish_reason", "name", "logprobs")
        return sum(_characters_in(value) for key, value in any_.items() if key not in skipped)
    return sum(map(_characters_in, any_)) if isinstance(any_, list) else 0


DONE = "[DONE]"
MOST_STRAY_LINES = 10_000
_LINE_END = re.compile(r"\r\n|\n|\r(?=[^\n])")  # a \r at the end of a piece may be half of \r\n
_ERROR = re.compile(r"errors?\b|detail$|status_msg$|errmsg$")  # names of fields with an error
_PING = re.compile(r'"?[:\s]*(?:ping|pong|keep-?alive|heartbeat)"?', re.IGNORECASE)
LONGEST_LINE = 8_000_000  # characters; an endless line must not fill the memory


class ServerComplaint(Exception):
    """An error object inside a reply that began with HTTP status 200."""


def read_events(pieces: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a reply, and `{"done": true}` for its end mark.

    A server that ignores `stream` and sends the whole completion at once gives one object.

    Raises:
        UnreadableReply: the data is not JSON.
        ServerComplaint: the reply holds an error instead of an answer.
    """
    reading = _ReplyLines()
    for line, is_whole in _lines(pieces):
        yield from reading.take(line)
        if reading.begun and not is_whole:
            return  # the connection was cut within this line
    yield from reading.rest()


class _ReplyLines:
    """The lines of a reply read so far."""

    def __init__(self) -> None:
        self.begun = ""  # data of an event that continues in the next line
        self._stray: list[str] = []  # lines outside events: a whole JSON reply, or a page
        self._is_error = self._has_data = False

    def take(self, line: str) -> Iterator[Mapping[str, Any]]:
        if not line or line.startswith("event:"):
            yield from self._end()
            self._is_error = line[6:].strip() == "error"
        elif line.startswith("data:"):
            data = line[5:].strip()
            self._has_data = self._has_data or bool(data)
            self.begun = f"{self.begun}\n{data}".strip()
            if len(self.begun) > LONGEST_LINE:
                raise UnreadableReply(
                    f"An event of the reply is over {LONGEST_LINE} characters long."
                )
            if _is_whole(self.begun):
                yield from self._end()
        elif line == DONE:
            yield {"done": True}
        elif not line.startswith((":", "id:", "retry:")) and len(self._stray) < MOST_STRAY_LINES:
            self._stray.append(line)

    def _end(self) -> Iterator[Mapping[str, Any]]:
        data, self.begun = self.begun, ""
        if data and not _PING.fullmatch(data):
            yield from _objects_of(data, is_error=self._is_error)

    def rest(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events that are left when the reply has ended."""
        yield from self._end()
        text = "\n".join(self._stray).strip()
        lines = text.splitlines()
        if text and (not self._has_data or text.startswith('{"error"')):
            is_one_each = len(lines) > 1 and all(re.fullmatch(r"\{.*\}", line) for line in lines)
            for event in lines if is_one_each else [text]:
                yield from _objects_of(event)


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Yield the lines, each with whether its end was seen."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    pending = ""
    for piece in pieces:
        *whole, pending = _LINE_END.split(pending + decoder.decode(piece))
        for line in whole:
            yield line.strip(), True
        if len(pending) > LONGEST_LINE:
            raise UnreadableReply(f"A line of the reply is over {LONGEST_LINE} characters long.")
    if pending:
        yield pending.strip(), pending.endswith("\r")


def _is_whole(data: str) -> bool:
    """Return whether an event's data is complete; it may continue in further lines."""
    if data == DONE or not data.startswith(("{", "[")):
        return True
    if not data.endswith(("}", "]")):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _objects_of(event: str, *, is_error: bool = False) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an event: one, a list of them, or none."""
    if event.strip('"').upper() == DONE:
        yield {"done": True}
        return
    try:
        data = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(_not_json(event)) from error
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            complaint = _complaint_of(item) or (item if is_error else None)
            if complaint:
                text = json.dumps(complaint, ensure_ascii=False)
                raise ServerComplaint(complaint if isinstance(complaint, str) else text)
            yield item
        elif item is not None:
            raise UnreadableReply(_not_json(event))


def _complaint_of(values: Mapping[str, Any]) -> Any:
    """Return the error in an object, or the object if it is one.

    Without choices, any field with the name of an error counts.
    """
    choices = values.get("choices")
    if choices and isinstance(choices, list) and isinstance(choices[0], dict):
        return values.get("error") or choices[0].get("error")
    if values.get("object") == "error" or values.get("type") == "error":
        return values.get("error") or values.get("message") or values
    beside = [value for value in values.values() if isinstance(value, dict)]
    beside = [object_ for object_ in beside if object_.get("status_code") != 0]  # 0 is no error
    named = (
        value
        for object_ in (values, *beside)
        for key, value in object_.items()
        if _ERROR.match(key)
    )
    return next((value for value in named if value), None)


def _not_json(event: str) -> str:
    if "<html" in event.lower() or "<!doctype" in event.lower():
        return "a web page came instead of JSON (is there a proxy in between?)"
    return f"this is not JSON: {event[:60]!r}"
