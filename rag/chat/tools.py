"""Tools for the model, generated from function signatures, and the checks before each call."""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args, get_type_hints

from rag.citations.markers import neutralise
from rag.errors import RagError, UserError
from rag.records import ContextPreferences, Filters, Hit, Source, Summary, ToolCall
from rag.seams import SessionHandle, ToolSpec

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
            tool = self._tool_of(call.name)
            return tool(**_arguments(tool, call.arguments))
        except (BadArguments, RagError) as error:
            return ToolResult(f"Error: {error}", f"refused: {error}"[:300])

    def _tool_of(self, name: str) -> Tool:
        if name not in self._tools:
            known = ", ".join(self._tools)
            raise BadArguments(f"there is no tool {_clipped(name)}. Use one of: {known}.")
        return self._tools[name]


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    parsed = {ALIASES.get(name, name): value for name, value in _parsed(text).items()}
    signature = inspect.signature(tool)
    unknown = [name for name in parsed if name not in signature.parameters]
    if unknown:
        known = ", ".join(signature.parameters)
        raise BadArguments(f"there is no argument {_clipped(unknown[0])}; it takes: {known}.")
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
            f"the arguments are no JSON: {_clipped(text)}. Call again with one JSON object."
        ) from error
    if not isinstance(parsed, dict):
        raise BadArguments(f"the arguments are {_clipped(text)}; expected a JSON object.")
    return parsed


def _checked(name: str, value: Any, wanted: type) -> Any:
    if wanted is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, wanted) and not (wanted is not bool and isinstance(value, bool))
    if not fits:
        raise BadArguments(
            f"{name!r} came as {_clipped(json.dumps(value))}; expected a JSON {JSON_TYPES[wanted]}."
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


def _clipped(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")


MAX_HITS = 20
MAX_SLICE = 200  # messages
SNIPPET_CHARACTERS = 240
OF_TABLES = "query_table"
OF_THE_PAST = ("search_session_history", "request_context_slice", "summarize_message_range")
TOOLS = ("search_documents", OF_TABLES, *OF_THE_PAST)


@dataclass(frozen=True, slots=True)
class Actions:
    """What the tools do with the rest of the application."""

    search: Callable[[SessionHandle, str, int, Filters], Sequence[Hit]]
    prefer: Callable[[SessionHandle, ContextPreferences], None]
    summarize: Callable[[SessionHandle, int, int], Summary]
    find: Callable[[SessionHandle, str, int], Sequence[tuple[int, str, str]]]  # in the past
    query_tables: Callable[[SessionHandle, str], str]


class SessionTools:
    """The functions whose signatures the model is shown; every index is checked.

    Sources whose numbers are `shown` to the model already are not sent to it again.
    """

    def __init__(self, session: SessionHandle, actions: Actions, shown: Iterable[int] = ()) -> None:
        self._session = session
        self._actions = actions
        self._clipped = set(shown)

    def toolbox(self) -> Toolbox:
        """All of them."""
        return Toolbox([getattr(self, name) for name in TOOLS])

    def search_documents(self, query: str, limit: int = 4, filters: str = "") -> ToolResult:
        """Search again in other words, where the sources do not answer.

        `filters`: "author: A; after: 2025-03-31"; also title, folder, type, tag, before.
        """
        chosen = _filters(filters)
        hits = self._actions.search(self._session, query, _limited(limit), chosen)
        sources = self._session.register(hits)
        only = ", ".join(f"{name} {value!r}" for name, value in chosen.items())
        where = f" of {only}" if only else ""
        if not sources:
            return ToolResult(f"Nothing in the documents{where} fits.", f"found nothing{where}")
        new = [source for source in sources if source.number not in self._clipped]
        old = [source.marker for source in sources if source.number in self._clipped]
        self._clipped |= {source.number for source in new}
        texts = [_numbered(source) for source in new]
        texts += [f"{', '.join(old)}: given above."] if old else []
        marks = ", ".join(source.marker for source in sources)
        texts = [f"Only documents{where} were searched.", *texts] if only else texts
        return ToolResult("\n\n".join(texts), f"found {marks}{where}")

    def query_table(self, question: str) -> ToolResult:
        """Count, add up, average or rank rows of tables, as in "sum of Revenue by Region"."""
        try:
            text = self._actions.query_tables(self._session, question)
        except UserError as error:
            raise BadArguments(str(error)) from error
        return ToolResult(text, f"computed “{question[:80]}”")

    def search_session_history(self, query: str, limit: int = 10) -> ToolResult:
        """Search messages of this conversation that you do not see."""
        limit = _limited(limit)
        messages = self._session.search(query, limit=limit)
        matches = {match.index: (match.role, match.snippet, "text") for match in messages.found}
        if len(matches) < limit:
            matches |= self._related(query, set(matches), limit - len(matches))
        self._session.note_matches(list(matches))
        results = [_result(index, *match) for index, match in matches.items()]
        total = max(messages.total, len(results))
        answer = {"total": total, "results": results}
        return ToolResult(json.dumps(answer, ensure_ascii=False), f"found {total} messages")

    def _related(self, query: str, known: set[int], room: int) -> dict[int, tuple[str, str, str]]:
        found = self._actions.find(self._session, query, room + len(known))
        others = [
            (index, (role, _beginning(text), "meaning"))
            for index, role, text in found
            if index not in known
        ]
        return dict(others[:room])

    def request_context_slice(
        self,
        start: int,
        end: int,
        include_search_results: bool = False,
        max_context_messages: int | None = None,
    ) -> ToolResult:
        """Show messages `start` to before `end` (from 0) with the next question.

        May take `include_search_results` (true: those found last, too), `max_context_messages`.
        """
        self._check_range(start, end)
        if max_context_messages is not None and max_context_messages < 0:
            raise BadArguments(
                f"'max_context_messages' is {max_context_messages}; expected 0 or more, or null."
            )
        self._actions.prefer(
            self._session,
            ContextPreferences(start, end, include_search_results, max_context_messages),
        )
        text = f"Messages {start} to {end - 1} will be shown with the next question, once."
        return ToolResult(text, f"messages {start} to {end - 1} for the next question")

    def summarize_message_range(self, start: int, end: int) -> ToolResult:
        """Summarise messages `start` to before `end` (from 0)."""
        self._check_range(start, end)
        for summary in self._session.requested_summaries():
            if (summary.start, summary.end) == (start, end):
                return ToolResult(summary.text, f"messages {start} to {end - 1}, as before")
        summary = self._actions.summarize(self._session, start, end)
        return ToolResult(summary.text, f"summarised messages {start} to {end - 1}")

    def _check_range(self, start: int, end: int) -> None:
        count = self._session.read().message_count
        if not 0 <= start < end <= count:
            raise BadArguments(
                f"messages {start} to {end} are no range of this conversation: 'start' must be at "
                f"least 0 and below 'end', and 'end' at most {count}, its number of messages."
            )
        if end - start > MAX_SLICE:
            raise BadArguments(
                f"{end - start} messages are too many at once; at most {MAX_SLICE}. Ask for less."
            )


def tool_specs(*, has_tables: bool = True, leaves_out: bool = True) -> tuple[ToolSpec, ...]:
    """The tools that can help: where there are tables, and where the model sees not all turns."""
    helps = {OF_TABLES: has_tables, **dict.fromkeys(OF_THE_PAST, leaves_out)}
    return tuple(spec for spec in _SPECS if helps.get(spec.name, True))


_SPECS = tuple(tool_spec(getattr(SessionTools, name)) for name in TOOLS)


def _limited(limit: int) -> int:
    if not 1 <= limit <= MAX_HITS:
        raise BadArguments(f"'limit' is {limit}; expected a number from 1 to {MAX_HITS}.")
    return limit


def _filters(text: str) -> Filters:
    """`name: value` between semicolons."""
    pairs = [part.partition(":") for part in text.split(";") if part.strip()]
    stated = {name.strip().lower(): value.strip(" \"'") for name, _, value in pairs}
    unknown = [name for name in stated if name not in Filters.__slots__]
    if unknown:
        names = ", ".join(Filters.__slots__)
        raise BadArguments(f"there is no filter {unknown[0][:80]!r}. Use of: {names}.")
    return Filters(**stated)


def _numbered(source: Source) -> str:
    """A source under its number, without its neighbourhood; its own text has no markers."""
    place = neutralise(f"{source.document_title}, {source.locator}".rstrip(", "))
    return f"{source.marker} {place}\n{neutralise(source.text)}"


def _result(index: int, role: str, snippet: str, match: str) -> dict[str, str | int]:
    return {"index": index, "role": role, "snippet": snippet, "match": match}


def _beginning(text: str) -> str:
    return text if len(text) <= SNIPPET_CHARACTERS else text[:SNIPPET_CHARACTERS] + "…"
