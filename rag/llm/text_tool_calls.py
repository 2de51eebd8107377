"""Tool calls that a model wrote as text, and answers that it wrote as JSON.

Models are trained on many forms, so a call is known by what all have in common: the name of a tool
that was offered, and behind it its arguments, as JSON, as elements, or as a call in Python.
"""

import ast
import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import regex

from rag.records import ToolCall

FENCES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "tool", "python", "xml"})
UNREADABLE = "unreadable_call"  # no tool has this name: the model is told which there are

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs",
)  # fmt: skip
_INSIDE = ("tool_calls", "tool_call", "function_call", "function")
WrittenCalls = list[tuple[str, str]]


# ── What begins with a mark ──────────────────────────────────────────────────────────────────


def end_of(mark: str, body: str) -> "regex.Match[str] | None":
    """Where a call that a mark began ends: at its other half, or with the turn."""
    name = regex.search(
        r"(?:[\w]+:)?([\w▁]+)", regex.sub(r"｜DSML｜|open\|>|:[0-9a-f]{4,20}(?=>)", "", mark)
    )
    ends = r"<\|(?:call|end|return|im_end|eot_id|eom_id|end_of_text)\|>|</s>"
    if name is not None and not mark.startswith(("<|channel", "<|start|")):
        other = regex.sub("(?i)begin|start", "end", name[1])
        other = "END_ACTION" if name[1] == "START_ACTION" else other.replace("prefix", "suffix")
        kind = r"(?:[|｜]?\w+[:|｜])?[|｜]?"
        ends += rf"|(?:[<\[]{kind}/?{kind}|<\|close\|>){other}(?::\w+)?[|｜]?(?:[>\]]|<\|sep\|>)"
    return regex.search(ends, body)


def calls_of(mark: str, body: str, names: Collection[str]) -> list[ToolCall]:
    """The calls behind a mark. What cannot be read becomes a call that is refused with a reason.

    Where no tool was offered there is none.
    """
    if not names:
        return []
    match = regex.search(r"^<\|channel\|>(?P<name>[\w.-]+)", mark)
    if match is not None:
        return [ToolCall("", match["name"], body.strip())]
    calls = calls_in(mark + body, names) or _as_tool_calls(_from_json(body))
    return calls or [ToolCall("", UNREADABLE, "{}")]


def _as_tool_calls(written: Iterable[tuple[str, str]]) -> list[ToolCall]:
    return [ToolCall("", name, arguments) for name, arguments in written]


# ── What is known by its form alone ──────────────────────────────────────────────────────────


def calls_in(text: str, names: Collection[str]) -> list[ToolCall]:
    """The calls that a whole text consists of, whichever way they are written."""
    text = _plain_marks(text)
    results = [call for call in _from_json(text) if call[0] in names]
    named = regex.split(f"({_any_of(names)})", "" if results else text)
    for name, behind in zip(named[1::2], named[2::2], strict=True):
        values = _values_behind(behind)
        if values is not None:
            results.append((name, json.dumps(values, ensure_ascii=False, default=str)))
    return _as_tool_calls(results)


def _any_of(names: Collection[str]) -> str:
    return r"\b(?:" + ("|".join(map(regex.escape, sorted(names))) or "(?!)") + r")\b"


def _plain_marks(text: str) -> str:
    """Elements without what models hang on their names; quotation marks for their tokens."""
    text = regex.sub(r"<\|(?:open|(?P<closes>close))\|>([^<]*)<\|sep\|>", _element, text)
    text = regex.sub(r"(</?\w+):[0-9a-f]{4,20}(?=>)", r"\1", text)
    text = regex.sub(r"(</?)(?:\w{1,20}:|[|｜]\w{1,20}[|｜]|[a-z]+_(?=arg_))(?=\w)", r"\1", text)
    return regex.sub(r'<\|\\?"\|>|<escape>', '"', text)


def _element(mark: "regex.Match[str]") -> str:
    return f"<{'/' if mark['closes'] else ''}{mark[2]}>"


_PAIRS = regex.compile(
    r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
    r"|<(?:param(?:eter)?|argument)(?:=| (?:name|key)=[\"'])(?P<key>[\w.-]+)[\"']?[^<>]*>"
    r"\s*(?P<value>.*?)\s*</(?:param(?:eter)?|argument)>"
    r"|<(?P<key>\w+)>\s*(?P<value>[^<]*?)\s*</\g<key>>",
    regex.DOTALL,
)
_AT_ONCE = regex.compile(r"[^{}()]{0,80}\(?(?=\{)")


def _values_behind(text: str) -> dict[str, Any] | None:
    """The arguments behind the name of a tool; None where it was only spoken of."""
    pairs = {match["key"]: _value(match["value"]) for match in _PAIRS.finditer(text)}
    if pairs and not pairs.keys() <= {*_ARGUMENTS}:
        return pairs
    if text.removeprefix(".call").startswith("("):
        return _of_python(text.removeprefix(".call"))
    begins = _AT_ONCE.match(text)
    if begins is not None:
        value = _decode(text[begins.end() :])[1]
        return value if isinstance(value, dict) else None
    return {} if regex.match(r"[\"'>\s]*</", text) else None


def _value(text: str) -> Any:
    """Numbers and truth values as such; any other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _of_python(text: str) -> dict[str, Any] | None:
    """What stands in the brackets that a text begins with."""
    for end in (match.end() for match in regex.finditer(r"\)", text[:4000])):
        with suppress(SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            call = ast.parse(f"f{text[:end]}", mode="eval").body
            assert isinstance(call, ast.Call)
            values = {
                keyword.arg: ast.literal_eval(keyword.value)
                for keyword in call.keywords
                if keyword.arg
            }
            first = ast.literal_eval(call.args[0]) if call.args else {}
            return values | (first if isinstance(first, dict) else {"query": first})
    inside = text[1:].partition(")")[0].strip()
    inside = inside if inside.startswith("{") else f"{{{inside}}}"
    value = _decode(inside)[1] if ":" in inside else None
    return value if isinstance(value, dict) else None


def _from_json(text: str) -> WrittenCalls:
    start = regex.search(r"\{|\[(?=\s*[\[{])", text)
    calls: WrittenCalls = []
    rest = text[start.start() :] if start else ""
    while rest.startswith(("{", "[")):
        length, value = _decode(rest)
        if not length:
            break
        calls += calls_in_value(value)
        rest = rest[length:].lstrip(" \t\r\n,;")
    return calls


def calls_in_value(value: Any) -> WrittenCalls:
    """The calls that a JSON value is."""
    if isinstance(value, list):
        return [call for item in value for call in calls_in_value(item)]
    if not isinstance(value, Mapping):
        return []
    inner = next((value[key] for key in _INSIDE if key in value), None)
    if isinstance(inner, list | Mapping):
        return calls_in_value(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    if not name and len(value) == 1 and isinstance(next(iter(value.values())), Mapping):
        name, arguments = next(iter(value.items()))
        return [(name, json.dumps(arguments, ensure_ascii=False))]
    return [(name.removeprefix("functions."), _arguments_of(value))] if name else []


def _arguments_of(value: Mapping[str, Any]) -> str:
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if arguments is None:
        arguments = {
            key: argument for key, argument in value.items() if key not in (*_NAMES, "type", "id")
        }
    if isinstance(arguments, str) and arguments.strip() and not arguments.strip().startswith("{"):
        arguments = {"query": arguments}
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def arguments_in(text: str) -> str:
    """The arguments of a call as one JSON object, where they can be read as one.

    A text in them that breaks off is not made up for.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str):
        return arguments_in(value)
    if isinstance(value, Mapping) or text.count('"') % 2:
        return text
    arguments: Any = None
    rest = text[text.find("{") :] if "{" in text else ""
    while rest.startswith("{"):  # an empty object may come before the one that is meant
        length, value = _decode(rest)
        arguments = value if isinstance(value, dict) and (value or arguments is None) else arguments
        rest = rest[length:].lstrip() if length else ""
    return text if arguments is None else json.dumps(arguments, ensure_ascii=False, default=str)


def _decode(text: str) -> tuple[int, Any]:
    """The JSON value that a text begins with and its length; usual mistakes are forgiven."""
    whole = whole_json(text)
    if whole is not None:
        return whole
    quoted = regex.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', text)
    single = text.replace("{{", "{").replace("}}", "}") if text.startswith("{{") else text
    straight = text.translate({ord("“"): '"', ord("”"): '"'})
    for repaired in (text, quoted, single, straight):
        for end in (m.end() for m in regex.finditer(r"[}\]]", repaired[:4000])):
            with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                return len(text), ast.literal_eval(repaired[:end])
    for forgotten in ("}", "}}", "]", "}]", '"}', '"}}'):
        with suppress(ValueError, RecursionError):
            return len(text), json.loads(text.rstrip() + forgotten, strict=False)
    return 0, None


def whole_json(text: str) -> tuple[int, Any] | None:
    """The length and value of the JSON that a text begins with, if all of it is there."""
    try:
        value, length = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return length, value


# ── At the beginning of a line, while it arrives ─────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LineCall:
    """What stands at the beginning of a line: calls, or something that may yet become some."""

    waits: bool = False
    length: int = 0
    calls: tuple[ToolCall, ...] = ()


_ANY = regex.compile(r"\{\s*\"name\":\s*\"\w+\",\s*\"(?:arguments|parameters)\":\s*\{")


class LineCalls:
    """Sees calls without any mark around them: JSON, and a list of calls in Python."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        named = "|".join(map(regex.escape, sorted(names))) or r"(?!)"
        self._begins = regex.compile(
            r"(?P<json>\{\s*[\"']|\[\s*\{\s*[\"']|functools\s*\[)"
            r"|(?:\[|>>>|<function=|(?:commentary )?(?:to=)?functions\.)?"
            rf"(?P<name>{named})(?:\(|(?:[ ]json|=)?\s?\{{|(?P<alone>[ ]*\n))"
        )

    def read(self, text: str, *, final: bool) -> LineCall | None:
        """None for what is no call."""
        match = self._begins.match(text, partial=not final)
        if match is None:
            return None
        if match.partial:
            return LineCall(waits=True)
        length = _json_length(text) if match["json"] else self._paragraph(text, match)
        if not length:
            if not final:
                return LineCall(waits=True)
            length = len(text)
        calls = calls_in(text[:length], self._names)
        if match["json"] and not calls and _ANY.match(text):
            calls = _as_tool_calls(_from_json(text[:length]))
        return LineCall(length=length, calls=tuple(calls)) if calls else None

    @staticmethod
    def _paragraph(text: str, opening: "regex.Match[str]") -> int:
        """Where it ends: with its bracket at the end of a line, or before an empty line."""
        end = regex.search(r"\)\n|\n\n" if opening[0].endswith("(") else r"\n\n", text)
        return end.start() + 1 if end else 0


def _json_length(text: str) -> int:
    start = max(0, min((text.find(c) for c in "{[" if c in text), default=0))
    whole = whole_json(text[start:])
    return start + whole[0] if whole else 0
