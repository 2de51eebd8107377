"""Tools for the model, generated from function signatures, and the checks before each call."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args, get_type_hints

from rag.errors import RagError
from rag.records import ToolCall
from rag.seams import ToolSpec

MAX_ARGUMENT_CHARACTERS = 20_000
MAX_TEXT_CHARACTERS = 1_000  # of one argument
SHOWN_CHARACTERS = 120  # of what came, in an error

# Names that models use besides for the same.
ALIASES: Mapping[str, str] = {
    "start_message_index": "start", "start_idx": "start",
    "end_message_index": "end", "end_idx": "end",
}  # fmt: skip
JSON_TYPES: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gave: `content` for the model, `outcome` in one line for people."""

    content: str
    outcome: str


class BadArguments(Exception):
    """A call that cannot be made; the message tells the model what to do instead."""


Tool = Callable[..., ToolResult]


# ── Descriptions ─────────────────────────────────────────────────────────────────────────────


def tool_spec(function: Tool) -> ToolSpec:
    """A tool as the model is told of it; each turn pays for that, so what can be left out is."""
    parameters = inspect.signature(function).parameters.items()
    types = get_type_hints(function)
    required = [name for name, each in parameters if each.default is each.empty and name != "self"]
    properties = {name: {"type": JSON_TYPES[types[name]]} for name in required}
    return ToolSpec(
        name=function.__name__,
        description=" ".join((inspect.getdoc(function) or "").split()),
        parameters={"type": "object", "properties": properties, "required": required},
    )


# ── Calls ────────────────────────────────────────────────────────────────────────────────────


class Toolbox:
    """Tools by name. A call never raises on the model's account: the error is the result."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.__name__: tool for tool in tools}

    def run(self, call: ToolCall) -> ToolResult:
        """Check a call's arguments and make it."""
        try:
            tool = self._named(call.name)
            return tool(**_arguments(tool, call.arguments))
        except (BadArguments, RagError) as error:
            return ToolResult(f"Error: {error}", f"refused: {error}"[:300])

    def _named(self, name: str) -> Tool:
        if name not in self._tools:
            known = ", ".join(self._tools)
            raise BadArguments(f"there is no tool {_shown(name)}. Use one of: {known}.")
        return self._tools[name]


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    """The arguments as the tool takes them."""
    parsed = {ALIASES.get(name, name): value for name, value in _parsed(text).items()}
    signature = inspect.signature(tool)
    unknown = [name for name in parsed if name not in signature.parameters]
    if unknown:
        known = ", ".join(signature.parameters)
        raise BadArguments(f"there is no argument {_shown(unknown[0])}; it takes: {known}.")
    for name, parameter in signature.parameters.items():
        if parameter.default is parameter.empty and name not in parsed:
            raise BadArguments(f"the argument {name!r} is missing. Call again with it.")
    types = get_type_hints(tool)
    return {
        name: _checked(name, value, _without_none(types[name]))
        for name, value in parsed.items()
        if value is not None or type(None) not in get_args(types[name])
    }


def _without_none(type_: Any) -> type:
    """Of `int | None` the `int`."""
    others = [each for each in get_args(type_) if each is not type(None)]
    return cast(type, others[0] if others else type_)


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        raise BadArguments(
            f"the arguments have {len(text):,} characters; at most {MAX_ARGUMENT_CHARACTERS:,} "
            "are taken. Call again with less."
        )
    try:
        parsed = json.loads(text.strip() or "{}")
    except (ValueError, RecursionError) as error:
        raise BadArguments(
            f"the arguments are no JSON: {_shown(text)}. Call again with one JSON object."
        ) from error
    if not isinstance(parsed, dict):
        raise BadArguments(f"the arguments are {_shown(text)}; expected a JSON object.")
    return parsed


def _checked(name: str, value: Any, wanted: type) -> Any:
    if wanted is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, wanted) and not (wanted is not bool and isinstance(value, bool))
    if not fits:
        raise BadArguments(
            f"{name!r} came as {_shown(json.dumps(value))}; expected a JSON {JSON_TYPES[wanted]}."
        )
    if isinstance(value, str):
        return _checked_text(name, value)
    return value


def _checked_text(name: str, value: str) -> str:
    if not value.strip():
        raise BadArguments(f"{name!r} is empty. Say what you look for.")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise BadArguments(
            f"{name!r} has {len(value):,} characters; at most {MAX_TEXT_CHARACTERS:,} are taken."
        )
    return value.strip()


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
