"""What an answer for a program, JSON or calls of its tools, says to people: as Markdown."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from rag.citations.markers import cited_numbers, neutralise
from rag.records import ToolCall


def in_words(text: str) -> str:
    """A JSON object as a list of its entries; any other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text, strict=False)
        if isinstance(value, dict):
            return "\n".join(_lines(value)) or _as_code(text)
    return text


def data_as_code(text: str) -> str:
    """Data in JSON as code if an array in it would be read as citations, and no text in it cites.

    A list alone, `[1, 2]` or `[[1]]`, is how models cite, and no data.
    """
    if text.lstrip()[:1] not in ("{", "[") or '"' not in text:
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        is_data = isinstance(value, dict) or any(isinstance(each, dict) for each in value)
        is_cited = any(cited_numbers(string) for string in _strings(value))
        if is_data and not is_cited and cited_numbers(text):
            return _as_code(text.strip())
    return text


def _strings(value: Any) -> Iterator[str]:
    """All texts of some data, in any depth that was read."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            waiting += each.values() if isinstance(each, dict) else each


def json_in_words(text: str) -> str:
    """As `in_words`; JSON that broke off as code, where nothing is a citation."""
    told = in_words(text)
    return told if told != text else _as_code(text)


def calls_in_words(text: str, calls: Iterable[ToolCall]) -> str:
    """What was said before calls, and the calls."""
    told = [f"`{call.name}` is called:\n\n{json_in_words(call.arguments)}" for call in calls]
    return "\n\n".join([text, *told] if text.strip() else told)


def harmless(text: str) -> str:
    """A result of a program's tool, in which no number is a citation; JSON stays JSON."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict | list):
            return json.dumps(_neutral(value), ensure_ascii=False)
    return neutralise(text)


def _neutral(value: Any) -> Any:
    if isinstance(value, dict):
        return {neutralise(key): _neutral(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_neutral(each) for each in value]
    return neutralise(value) if isinstance(value, str) else value


def _lines(value: Any, depth: int = 0) -> Iterator[str]:
    """An entry for each name or place; what is more than a word stands below its name."""
    entries = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    for name, each in entries:
        lead = "  " * depth + "- " + ("" if name is None else f"{_one_line(name)}: ")
        if isinstance(each, dict | list) and each:
            yield lead.rstrip()
            yield from _lines(each, depth + 1)
        else:
            yield lead + _indented(_scalar(each), depth)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as programs in JavaScript write it
    return "" if value in ({}, []) else json.dumps(value)


def _one_line(name: str) -> str:
    return " ".join(neutralise(name).split())


def _indented(text: str, depth: int) -> str:
    return ("\n" + "  " * (depth + 1)).join(text.splitlines())


def _as_code(text: str) -> str:
    return f"```json\n{text.replace('```', '` ` `')}\n```"
