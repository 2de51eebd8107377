"""Tool calls that a model wrote as text, and answers that it wrote as JSON.

Models are trained on many forms, so a call is known by what all have in common: the name of a tool
that was offered, and behind it its arguments, as JSON, as elements, or as a call in Python.
"""

import ast
import json
from collections.abc import Collection, Mapping
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
_ANSWERS = (
    "answer", "final_answer", "final", "response", "content", "text", "output", "reply", "message",
    "result", "summary",
)  # fmt: skip
Found = list[tuple[str, str]]


# ── What begins with a mark ──────────────────────────────────────────────────────────────────


def end_of(mark: str, body: str) -> "regex.Match[str] | None":
    """Where a call that a mark began ends: at its other half, or with the turn."""
    name = regex.search(r"(?:[\w]+:)?([\w▁]+)", mark.replace("｜DSML｜", ""))
    ends = r"<\|(?:call|end|return|im_end|eot_id|eom_id|end_of_text)\|>|</s>"
    if name is not None and not mark.startswith(("<|channel", "<|start|")):
        other = regex.sub("(?i)begin|start", "end", name[1])
        other = "END_ACTION" if name[1] == "START_ACTION" else other.replace("prefix", "suffix")
        kind = r"(?:[|｜]?\w+[:|｜])?[|｜]?"
        ends += rf"|[<\[]{kind}/?{kind}{other}[|｜]?[>\]]"
    return regex.search(ends, body)


def calls_of(mark: str, body: str, names: Collection[str]) -> list[ToolCall]:
    """The calls behind a mark. What cannot be read becomes a call that is refused with a reason.

    Where no tool was offered there is none.
    """
    if not names:
        return []
    named = regex.search(r"^<\|channel\|>(?P<name>[\w.-]+)", mark)
    if named is not None:
        return [ToolCall("", named["name"], body.strip())]
    text = mark + body
    found = calls_in(text, names) or _calls(_from_json(body) or _from_markup(text))
    return found or [ToolCall("", UNREADABLE, "{}")]


def _calls(found: Found) -> list[ToolCall]:
    return [ToolCall("", name, arguments) for name, arguments in found]


# ── What is known by its form alone ──────────────────────────────────────────────────────────


def calls_in(text: str, names: Collection[str]) -> list[ToolCall]:
    """The calls that a whole text consists of, whichever way they are written."""
    text = _plain_marks(text)
    for read in (_from_markup, _from_json):
        found = [call for call in read(text) if call[0] in names]
        if found:
            return _calls(found)
    named = "|".join(map(regex.escape, sorted(names))) or r"(?!)"
    return _calls(
        _from_python(text, named) or _before_json(text, named) or _from_words(text, named)
    )


def _plain_marks(text: str) -> str:
    """Elements without a namespace; quotation marks where a model has a token for them."""
    text = regex.sub(r"(</?)(?:\w{1,20}:|[|｜]\w{1,20}[|｜])(?=\w)", r"\1", text)
    return regex.sub(r'<\|\\?"\|>', '"', text)


_PAIRS = regex.compile(
    r"<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
    r"|<param(?:eter)?(?:=| name=[\"'])(?P<key>[\w.-]+)[\"']?[^<>]*>"
    r"\s*(?P<value>.*?)\s*</param(?:eter)?>"
    r"|<(?P<key>\w+)>\s*(?P<value>[^<]*?)\s*</\g<key>>",
    regex.DOTALL,
)
_MARKUP = (
    # GLM: the name, then keys and values in turn
    r"(?:^|>)\s*(?P<name>[\w.-]+)\s*(?P<body>(?:<arg_key>.*?</arg_key>\s*<arg_value>.*?</arg_value>\s*)+)",
    # Qwen Coder and others: a parameter is an element
    r"<(?:function=|(?:function|invoke|tool)\w*\s+name=[\"'])(?P<name>[\w.-]+)[\"']?>(?P<body>.*?)"
    r"(?:</(?:function|invoke|tool)\w*>|$)",
    # all of it is elements
    r"<(?:tool_)?name>\s*(?P<name>[\w.-]+)\s*</(?:tool_)?name>\s*(?P<body>.*)",
    r"<(?P<name>\w+_\w+)>(?P<body>\s*<(\w+)>.*?</\3>\s*)</(?P=name)>",
)


def _from_markup(text: str) -> Found:
    found: Found = []
    for pattern in _MARKUP:
        for element in regex.finditer(pattern, text, regex.DOTALL):
            body = element["body"].strip()
            inner = regex.search(r"\{.*\}", body, regex.DOTALL)
            pairs = [(each["key"], each["value"]) for each in _PAIRS.finditer(body)]
            if inner is not None and not any(key not in _ARGUMENTS for key, _ in pairs):
                found.append((element["name"], inner[0]))
            elif pairs or not body:
                values = {key: _value(value) for key, value in pairs}
                found.append((element["name"], json.dumps(values, ensure_ascii=False)))
        if found:
            break
    return found


def _value(text: str) -> Any:
    """Numbers and truth values as such; any other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _before_json(text: str, named: str) -> Found:
    """A name with its JSON somewhere behind it, whatever marks are between them."""
    found: Found = []
    for begins in regex.finditer(rf"\b(?P<name>{named})\b[^{{}}()]{{0,80}}\(?(?=\{{)", text):
        value = _decode(text[begins.end() :])[1]
        if isinstance(value, dict):
            found.append((begins["name"], json.dumps(value, ensure_ascii=False)))
    return found


def _from_words(text: str, named: str) -> Found:
    """ "Action: search[refund]", "Action Input: refund"."""
    begins = regex.search(
        rf"\b(?P<name>{named})\W*?"
        r"(?:\[(?P<said>[^\]\n]+)\]|\n?[\w ]*[Ii]nput\W*:\s*(?P<said>[^\n]+))",
        text,
    )
    said = {"query": begins["said"].strip().strip("\"'")} if begins else {}
    return [(begins["name"], json.dumps(said, ensure_ascii=False))] if begins else []


def _from_json(text: str) -> Found:
    start = regex.search(r"\{|\[(?=\s*[\[{])", text)
    found: Found = []
    rest = text[start.start() :] if start else ""
    while rest.startswith(("{", "[")):
        length, value = _decode(rest)
        if not length:
            break
        found += calls_in_value(value)
        rest = rest[length:].lstrip(" \t\r\n,;")
    return found


def calls_in_value(value: Any) -> Found:
    """The calls that a JSON value is."""
    if isinstance(value, list):
        return [call for each in value for call in calls_in_value(each)]
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
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if given is None:
        given = {key: each for key, each in value.items() if key not in (*_NAMES, "type", "id")}
    if isinstance(given, str) and given.strip() and not given.strip().startswith("{"):
        given = {"query": given}
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _decode(text: str) -> tuple[int, Any]:
    """The JSON value that a text begins with and its length; usual mistakes are forgiven."""
    whole = whole_json(text)
    if whole is not None:
        return whole
    quoted = regex.sub(r"([{,]\s*)([A-Za-z_]\w*)\s*:", r'\1"\2":', text)
    for repaired in (text, quoted):
        for end in (m.end() for m in regex.finditer(r"[}\]]", repaired[:4000])):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
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


def answer_in(value: Any) -> str | None:
    """The text that a JSON object gives as the answer."""
    if not isinstance(value, Mapping):
        return None
    given = next((value[key] for key in _ANSWERS if key in value), None)
    if isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        return "\n\n".join(given)
    return given if isinstance(given, str) else answer_in(given)


def _from_python(text: str, named: str) -> Found:
    """`name(key="value")`, alone, in a list, in `print(…)` or with `.call`."""
    begins = regex.search(rf"(?P<name>(?:\b[a-z_]{{1,20}}\.)?\b(?:{named})(?:\.call)?)\(", text)
    if begins is None:
        return []
    source = text[begins.start("name") :].strip().removesuffix("]")
    for end in range(len(source), 0, -1):
        if source[end - 1] != ")":
            continue
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.parse(f"[{source[:end]}]", mode="eval")
            found = (_python_call(node) for node in ast.walk(tree))
            return [call for call in found if call and regex.fullmatch(named, call[0])]
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
            first = ast.literal_eval(node.args[0])
            values |= first if isinstance(first, dict) else {"query": first}
    except (ValueError, TypeError):
        return name, "{}"
    return name, json.dumps(values, ensure_ascii=False, default=str)


# ── At the beginning of a line, while it arrives ─────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class LineCall:
    """What stands at the beginning of a line: calls, or something that may yet become some."""

    waits: bool = False
    length: int = 0
    calls: tuple[ToolCall, ...] = ()


_ANY = regex.compile(r"\{\s*\"name\":\s*\"\w+\",\s*\"(?:arguments|parameters)\":\s*\{")
_LABEL = r"[^\w\s`]{0,4}(?:[A-Za-z]{1,14}[^\w\s`][^\w\n`]{0,3}){0,2}"  # "Action: ", ">>>", "print("


class LineCalls:
    """Sees calls without any mark around them: JSON, Python, "Action:" with its input."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        named = "|".join(map(regex.escape, sorted(names))) or r"(?!)"
        self._begins = regex.compile(
            r"(?P<json>\{\s*[\"']|\[\s*\{\s*[\"']|functools\s*\[)"
            rf"|{_LABEL}(?:(?i:call|await) )?(?P<name>{named})(?:\.call)?"
            r"(?:\(|\[|\s?[^\w\s,;.`]|(?P<alone>[ ]*\n))"
        )

    def read(self, text: str, *, final: bool) -> LineCall | None:
        """None for what is no call."""
        found = self._begins.match(text, partial=not final)
        if found is None:
            return None
        if found.partial:
            return LineCall(waits=True)
        length = _json_length(text) if found["json"] else self._paragraph(text, found)
        if not length:
            if not final:
                return LineCall(waits=True)
            length = len(text)
        calls = calls_in(text[:length], self._names)
        if found["json"] and not calls and _ANY.match(text):
            calls = _calls(_from_json(text[:length]))
        return LineCall(length=length, calls=tuple(calls)) if calls else None

    @staticmethod
    def _paragraph(text: str, found: "regex.Match[str]") -> int:
        """Where it ends: with its bracket at the end of a line, or before an empty line."""
        end = regex.search(r"\)\n|\n\n" if found[0].endswith("(") else r"\n\n", text)
        return end.start() + 1 if end else 0


def _json_length(text: str) -> int:
    start = max(0, min((text.find(c) for c in "{[" if c in text), default=0))
    whole = whole_json(text[start:])
    return start + whole[0] if whole else 0
