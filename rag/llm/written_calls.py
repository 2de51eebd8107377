"""Tool calls that a model wrote as text, in the forms that models are trained on."""

import ast
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import regex

from rag.records import ToolCall

FENCES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "tool", "python", "xml"})
UNREADABLE = "unreadable_call"  # no tool has this name: the model is told which there are

_ENDS = (
    (r"<\|channel\|>", r"<\|(?:call|end|return)\|>"),
    (r"<function=", r"</function>"),
    (r"<invoke", r"</invoke>"),
    (r"<function_calls>", r"</function_calls>"),
    (r"<tool_calls>", r"</tool_calls>"),
    (r"<\|tool_calls_section_begin", r"<\|tool_calls_section_end\|>"),
    (r"<｜tool▁calls▁begin", r"<｜tool▁calls▁end｜>"),
    (r"<\|START_ACTION", r"<\|END_ACTION\|>"),
    (r"<start_function_call>", r"<end_function_call>"),
    (r"<tool_call>|<\|tool_call>", r"</?tool_call\|?>"),
    (r"<function_?call>", r"</function_?call>"),
    (r"\[TOOL_CALLS?\]|<\|python_tag", r"\[/TOOL_CALLS?\]|<\|(?:eom_id|eot_id|im_end)\|>|</s>"),
    (r".", r"<\|(?:tool_call_end|tool_calls_end|im_end|eot_id|end|end_of_text)\|>|</s>"),
)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = (
    "arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs",
)  # fmt: skip
_MARKUP = (
    # GLM: the name, then keys and values in turn
    r"^\s*(?P<name>[\w.-]+)\s*(?P<pairs>(?:<arg_key>.*?</arg_key>\s*<arg_value>.*?</arg_value>\s*)+)",
    # Qwen Coder and others: a parameter is an element
    r"<(?:function=|invoke name=\")(?P<name>[\w.-]+)\"?>(?P<pairs>.*?)(?:</(?:function|invoke)>|$)",
)
_PAIRS = regex.compile(
    r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>"
    r"|<parameter(?:=| name=\")([\w.-]+)\"?>\s*(.*?)\s*</parameter>",
    regex.DOTALL,
)


# ── What begins with a mark ──────────────────────────────────────────────────────────────────


def end_of(mark: str, body: str) -> "regex.Match[str] | None":
    """Where a call that a mark began ends."""
    ends = next(end for begins, end in _ENDS if regex.match(begins, mark, regex.IGNORECASE))
    return regex.search(ends, body)


def calls_of(mark: str, body: str, names: Collection[str]) -> list[ToolCall]:
    """The calls behind a mark. What cannot be read becomes a call that is refused with a reason.

    Where no tool was offered there is none.
    """
    if not names:
        return []
    named = regex.match(r"<\|channel\|>(?P<name>[\w.-]+)", mark)
    if named is not None:
        return [_call(named["name"], body)]
    text = f"{mark}{body}" if mark.startswith(("<function=", "<invoke")) else body
    found = calls_in(text, names) or _any_call(text)
    return found or [ToolCall("", UNREADABLE, "{}")]


def _any_call(text: str) -> list[ToolCall]:
    """A call of a tool that does not exist: the model is told so."""
    found = _from_json(text, None) or _from_markup(text)
    return [ToolCall("", name, arguments) for name, arguments in found]


def _call(name: str, arguments: str) -> ToolCall:
    return ToolCall("", name, arguments.strip())


# ── What is known by its form alone ──────────────────────────────────────────────────────────


def calls_in(text: str, names: Collection[str]) -> list[ToolCall]:
    """The calls that a whole text consists of, whichever way they are written."""
    found = _from_markup(text) or _from_marked_names(text, names) or _from_json(text, names)
    found = found or _from_python(text, names)
    return [ToolCall("", name, arguments) for name, arguments in found if name in names]


Found = list[tuple[str, str]]
_BETWEEN = r"(?::\d+)?(?:\[CALL_ID\]\w+|\[[A-Z_]+\]|<[^<>]{1,60}>|```json|\s)*(?=\{)"


def _from_markup(text: str) -> Found:
    found: Found = []
    for pattern in _MARKUP:
        for element in regex.finditer(pattern, text, regex.DOTALL):
            pairs = _PAIRS.findall(element["pairs"])
            values = {
                (key or other): _value(first or second) for key, first, other, second in pairs
            }
            body = element["pairs"].strip()
            if pairs or not body:
                found.append((element["name"], json.dumps(values, ensure_ascii=False)))
            elif body.startswith("{"):
                found.append((element["name"], body))
    return found


def _value(text: str) -> Any:
    """Numbers and truth values as such; any other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _from_marked_names(text: str, names: Collection[str]) -> Found:
    """A name directly before its JSON, with marks between them: Mistral's, DeepSeek's, Kimi's."""
    found: Found = []
    for name in names:
        for begins in regex.finditer(rf"\b{regex.escape(name)}{_BETWEEN}", text):
            value = _decoded(text[begins.end() :])
            if isinstance(value, dict):
                found.append((name, json.dumps(value, ensure_ascii=False)))
    return found


def _from_json(text: str, names: Collection[str] | None) -> Found:
    start = regex.search(r"[\[{]", text)
    found: Found = []
    rest = text[start.start() :] if start else ""
    while rest:
        length, value = _decode(rest)
        if not length:
            break
        found += _calls_in_value(value, names)
        rest = rest[length:].lstrip(" \t\r\n,;")
        rest = rest if rest.startswith(("{", "[")) else ""
    return found


def _calls_in_value(value: Any, names: Collection[str] | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _calls_in_value(each, names)
    elif isinstance(value, Mapping):
        inner = next((value[key] for key in ("tool_calls", "function") if key in value), None)
        if isinstance(inner, list | Mapping):
            yield from _calls_in_value(inner, names)
            return
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
        name = name.removeprefix("functions.")
        if name and (names is None or name in names):
            yield name, _arguments_of(value)


def _arguments_of(value: Mapping[str, Any]) -> str:
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if given is None:
        given = {key: each for key, each in value.items() if key not in (*_NAMES, "type", "id")}
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _decode(text: str) -> tuple[int, Any]:
    """The JSON value that a text begins with and its length; forgotten brackets are forgiven."""
    try:
        value, length = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        for forgotten in ("}", "}}", "]", "}]", '"}', '"}}'):
            try:
                return len(text), json.loads(text.rstrip() + forgotten, strict=False)
            except (ValueError, RecursionError):
                continue
        return 0, None
    return length, value


def _decoded(text: str) -> Any:
    return _decode(text)[1]


def _from_python(text: str, names: Collection[str]) -> Found:
    """`name(key="value")`, alone, in a list, in `print(…)` or with `.call`."""
    begins = regex.search(_python_start(names), text)
    if begins is None:
        return []
    source = text[begins.start("name") :].strip().removesuffix("]")
    for end in range(len(source), 0, -1):
        if source[end - 1] != ")":
            continue
        try:
            tree = ast.parse(f"[{source[:end]}]", mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return [call for call in map(_python_call, ast.walk(tree)) if call and call[0] in names]
    return []


def _python_call(node: ast.AST) -> tuple[str, str] | None:
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "call":
        function = function.value
    if not isinstance(function, ast.Name | ast.Attribute):
        return None
    name = function.id if isinstance(function, ast.Name) else function.attr
    try:
        values = {each.arg: ast.literal_eval(each.value) for each in node.keywords if each.arg}
        if node.args:
            values["query"] = ast.literal_eval(node.args[0])
    except (ValueError, TypeError):
        return name, "{}"
    return name, json.dumps(values, ensure_ascii=False, default=str)


def _python_start(names: Collection[str]) -> str:
    any_name = "|".join(map(regex.escape, sorted(names))) or r"(?!)"
    return rf"(?:\[|print\()?\s*(?P<name>(?:[a-z_]{{1,20}}\.)?(?:{any_name})(?:\.call)?)\("


_ANY = regex.compile(r"\{\s*\"name\":\s*\"\w+\",\s*\"(?:arguments|parameters)\":\s*\{")

# ── At the beginning of a line, while it arrives ─────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LineCall:
    """What stands at the beginning of a line: calls, or something that may yet become some."""

    waits: bool = False
    length: int = 0
    calls: tuple[ToolCall, ...] = ()


class LineCalls:
    """Sees calls without any mark around them: JSON, Python, "Action:" with its input."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        any_name = "|".join(map(regex.escape, sorted(names))) or r"(?!)"
        self._begins = regex.compile(
            r"(?P<json>\{\s*\"|\[\s*\{\s*\"|functools\s*\[)"
            rf"|(?P<python>{_python_start(names)})"
            rf"|(?P<action>Action:\s*(?P<tool>{any_name})\s*Action Input:\s*)"
        )

    def read(self, text: str, *, final: bool) -> LineCall | None:
        """None for what is no call."""
        found = self._begins.match(text, partial=not final)
        if found is None:
            return None
        if found.partial:
            return LineCall(waits=True)
        if found["action"]:
            return self._action(text, found, final=final)
        return self._whole(text, is_json=bool(found["json"]), final=final)

    def _whole(self, text: str, *, is_json: bool, final: bool) -> LineCall | None:
        """To the end of the paragraph in Python, of the value in JSON."""
        length = self._json_length(text) if is_json else text.find(")\n") + 1
        if length <= 0:
            if not final:
                return LineCall(waits=True)
            length = len(text)
        calls = calls_in(text[:length], self._names)
        if is_json and not calls and _ANY.match(text):
            calls = _any_call(text[:length])
        return LineCall(length=length, calls=tuple(calls)) if calls else None

    def _json_length(self, text: str) -> int:
        start = max(0, min((text.find(c) for c in "{[" if c in text), default=0))
        try:
            return start + json.JSONDecoder(strict=False).raw_decode(text[start:])[1]
        except (ValueError, RecursionError):
            return 0

    def _action(self, text: str, found: "regex.Match[str]", *, final: bool) -> LineCall | None:
        rest = text[found.end() :]
        length = self._json_length(rest) if rest.startswith("{") else rest.find("\n")
        if length <= 0:
            if not final:
                return LineCall(waits=True)
            length = len(rest)
        given = rest[:length].strip()
        arguments = given if given.startswith("{") else json.dumps({"query": given.strip("\"'")})
        return LineCall(length=found.end() + length, calls=(_call(found["tool"], arguments),))
