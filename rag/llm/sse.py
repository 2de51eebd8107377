"""Server-sent events in, JSON objects out, as the servers in use really send them."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rag.errors import UnreadableReply

DONE = "[DONE]"
MOST_STRAY_LINES = 10_000
_LINE_END = re.compile(r"\r\n|\n|\r(?=[^\n])")  # one that ends a piece may be half of an end
_ERROR = re.compile(r"errors?\b|detail$|status_msg$|errmsg$")  # the names under which one is told
_PING = re.compile(r'"?[:\s]*(?:ping|pong|keep-?alive|heartbeat)"?', re.IGNORECASE)
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
    reading = _ReplyLines()
    for line, is_whole in _lines(pieces):
        yield from reading.take(line)
        if reading.begun and not is_whole:
            return  # the connection was cut within this line
    yield from reading.rest()


class _ReplyLines:
    """The lines of a reply, as far as they were read."""

    def __init__(self) -> None:
        self.begun = ""  # data of an event that goes on in the next line
        self._stray: list[str] = []  # not of server-sent events: a whole JSON reply, or a page
        self._is_error = self._seen = False

    def take(self, line: str) -> Iterator[Mapping[str, Any]]:
        if not line or line.startswith("event:"):
            yield from self._end()
            self._is_error = line[6:].strip() == "error"
        elif line.startswith("data:"):
            self._add(line[5:].strip())
            if _is_whole(self.begun):
                yield from self._end()
        elif line == DONE:
            yield {"done": True}
        elif not line.startswith((":", "id:", "retry:")) and len(self._stray) < MOST_STRAY_LINES:
            self._stray.append(line)

    def _add(self, data: str) -> None:
        self._seen = self._seen or bool(data)
        self.begun = f"{self.begun}\n{data}".strip()
        if len(self.begun) > LONGEST_LINE:
            raise UnreadableReply(f"An event of the reply is over {LONGEST_LINE} characters long.")

    def _end(self) -> Iterator[Mapping[str, Any]]:
        data, self.begun = self.begun, ""
        if data and not _PING.fullmatch(data):
            yield from _objects_of(data, is_error=self._is_error)

    def rest(self) -> Iterator[Mapping[str, Any]]:
        """Once nothing more comes."""
        yield from self._end()
        text = "\n".join(self._stray).strip()
        lines = text.splitlines()
        if text and (not self._seen or text.startswith('{"error"')):
            is_one_each = len(lines) > 1 and all(re.fullmatch(r"\{.*\}", line) for line in lines)
            for each in lines if is_one_each else [text]:
                yield from _objects_of(each)


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[str, bool]]:
    """Lines, each with whether its end was seen."""
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
    """Whether an event's data ends here; the specification lets it go on in further lines."""
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
    """One, or a list of them, or nothing worth a word."""
    if event.strip('"').upper() == DONE:
        yield {"done": True}
        return
    try:
        data = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(_not_json(event)) from error
    for each in data if isinstance(data, list) else [data]:
        if isinstance(each, dict):
            yield _checked(each, is_error=is_error)
        elif each is not None:
            raise UnreadableReply(_not_json(event))


def _checked(values: dict[str, Any], *, is_error: bool) -> Mapping[str, Any]:
    complaint = _complaint_of(values) or (values if is_error else None)
    if complaint:
        raise ServerComplaint(
            complaint if isinstance(complaint, str) else json.dumps(complaint, ensure_ascii=False)
        )
    return values


def _complaint_of(values: Mapping[str, Any]) -> Any:
    """The error that an object holds, or is: where nothing is said, whatever is called so."""
    choices = values.get("choices")
    if choices and isinstance(choices, list) and isinstance(choices[0], dict):
        return values.get("error") or choices[0].get("error")
    if values.get("object") == "error" or values.get("type") == "error":
        return values.get("error") or values.get("message") or values
    beside = [value for value in values.values() if isinstance(value, dict)]
    beside = [each for each in beside if each.get("status_code") != 0]  # that is well
    named = (
        value for each in (values, *beside) for key, value in each.items() if _ERROR.match(key)
    )
    return next((value for value in named if value), None)


def _not_json(event: str) -> str:
    if "<html" in event.lower() or "<!doctype" in event.lower():
        return "a web page came instead of JSON (is there a proxy in between?)"
    return f"this is not JSON: {event[:60]!r}"
