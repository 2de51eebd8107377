"""Let a model call tools while it answers, a bounded number of times and within its budget."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, ClassVar, cast, get_args, get_type_hints

from rag.citations.markers import neutralise
from rag.errors import ModelInterrupted, RagError, UserError
from rag.llm.replies import call_id
from rag.llm.reply_text import calls_in
from rag.llm.windows import TokenBudget
from rag.memory.context import MESSAGE_TOKENS, message_tokens
from rag.records import (
    ChatMessage,
    ContextPreferences,
    Filters,
    Hit,
    Role,
    Source,
    Summary,
    ToolCall,
    ToolUsed,
    Usage,
)
from rag.seams import (
    ModelDelta,
    OwnedSession,
    SessionHandle,
    TokenCounter,
    ToolSpec,
    Writer,
    WriteRequest,
)

MAX_ARGUMENT_CHARACTERS = 20_000
MAX_TEXT_CHARACTERS = 1_000  # of one argument
LONGEST_QUOTE = 120  # of what came, in an error

# Names that models use besides for the same.
ALIASES: Mapping[str, str] = {
    "start_message_index": "start", "start_idx": "start",
    "end_message_index": "end", "end_idx": "end",
}  # fmt: skip
JSON_TYPES: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call: `content` for the model, `outcome` in one line for people."""

    content: str
    outcome: str


class BadArguments(Exception):
    """Raised for a call that cannot be made; the message tells the model what to do instead."""


Tool = Callable[..., ToolResult]


# ── Descriptions ─────────────────────────────────────────────────────────────────────────────


def tool_spec(function: Tool) -> ToolSpec:
    """Return a tool's description for the model, as short as possible: each turn pays for it."""
    parameters = inspect.signature(function).parameters.items()
    types = get_type_hints(function)
    required = [
        name
        for name, parameter in parameters
        if parameter.default is parameter.empty and name != "self"
    ]
    properties = {name: {"type": JSON_TYPES[types[name]]} for name in required}
    return ToolSpec(
        name=function.__name__,
        description=" ".join((inspect.getdoc(function) or "").split()),
        parameters={"type": "object", "properties": properties, "required": required},
    )


# ── Calls ────────────────────────────────────────────────────────────────────────────────────


class Toolbox:
    """Tools by name. A failed call does not raise: its result tells the model of the error."""

    names: ClassVar[tuple[str, ...]] = ()

    def run(self, call: ToolCall) -> ToolResult:
        """Check the arguments of a call and make it."""
        try:
            if call.name not in self.names:
                names = ", ".join(self.names)
                raise BadArguments(f"there is no tool {_clipped(call.name)}. Use one of: {names}.")
            tool: Tool = getattr(self, call.name)
            return tool(**_arguments(tool, call.arguments))
        except (BadArguments, RagError) as error:
            return ToolResult(f"Error: {error}", f"refused: {error}"[:300])


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    parsed = {ALIASES.get(name, name): value for name, value in _parse_arguments(text).items()}
    signature = inspect.signature(tool)
    unknown = [name for name in parsed if name not in signature.parameters]
    if unknown:
        names = ", ".join(signature.parameters)
        raise BadArguments(f"there is no argument {_clipped(unknown[0])}; it takes: {names}.")
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
    """Return `int` for `int | None`."""
    others = [kind for kind in get_args(type_) if kind is not type(None)]
    return cast(type, others[0] if others else type_)


def _parse_arguments(text: str) -> dict[str, Any]:
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
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise BadArguments(f"{name!r} is empty. Say what you look for.")
    if len(value) > MAX_TEXT_CHARACTERS:
        raise BadArguments(
            f"{name!r} has {len(value):,} characters; at most {MAX_TEXT_CHARACTERS:,} are taken."
        )
    return value.strip()


def _clipped(text: str) -> str:
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")


MAX_HITS = 20
MAX_SLICE = 200  # messages
SNIPPET_CHARACTERS = 240
OF_TABLES = "query_table"
OF_THE_PAST = ("search_session_history", "request_context_slice", "summarize_message_range")
TOOLS = ("search_documents", OF_TABLES, *OF_THE_PAST)


@dataclass(frozen=True, slots=True)
class Actions:
    """The parts of the application that the tools call."""

    search: Callable[[SessionHandle, str, int, Filters], Sequence[Hit]]
    prefer: Callable[[SessionHandle, ContextPreferences], None]
    summarize: Callable[[SessionHandle, int, int], Summary]
    find: Callable[[SessionHandle, str, int], Sequence[tuple[int, str, str]]]  # in the past
    query_tables: Callable[[SessionHandle, str], str]


class SessionTools(Toolbox):
    """The tools: models are shown their signatures, and every index is checked.

    Sources whose numbers are `shown` to the model already are not sent to it again.
    """

    names = TOOLS

    def __init__(self, session: SessionHandle, actions: Actions, shown: Iterable[int] = ()) -> None:
        self._session = session
        self._actions = actions
        self._clipped = set(shown)

    def search_documents(self, query: str, limit: int = 4, filters: str = "") -> ToolResult:
        """Search again in other words, where the sources do not answer.

        `filters`: "author: A; after: 2025-03-31"; also title, folder, type, tag, before.
        """
        chosen = _read_filters(filters)
        hits = self._actions.search(self._session, query, _limited(limit), chosen)
        sources = self._session.register(hits)
        only = ", ".join(f"{name} {value!r}" for name, value in chosen.items())
        where = f" of {only}" if only else ""
        if not sources:
            return ToolResult(f"Nothing in the documents{where} fits.", f"found nothing{where}")
        new = [source for source in sources if source.number not in self._clipped]
        old = [source.marker for source in sources if source.number in self._clipped]
        self._clipped |= {source.number for source in new}
        texts = [_numbered_source(source) for source in new]
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
            others = self._actions.find(self._session, query, limit)
            for index, role, text in others:
                short = text if len(text) <= SNIPPET_CHARACTERS else text[:SNIPPET_CHARACTERS] + "…"
                matches.setdefault(index, (role, short, "meaning"))
            matches = dict(islice(matches.items(), limit))
        self._session.note_matches(list(matches))
        results = [
            {"index": index, "role": role, "snippet": snippet, "match": kind}
            for index, (role, snippet, kind) in matches.items()
        ]
        total = max(messages.total, len(results))
        answer = {"total": total, "results": results}
        return ToolResult(json.dumps(answer, ensure_ascii=False), f"found {total} messages")

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
    """Return the tools that can help: with tables, or if the model does not see all turns."""
    helps = {OF_TABLES: has_tables, **dict.fromkeys(OF_THE_PAST, leaves_out)}
    return tuple(spec for spec in _SPECS if helps.get(spec.name, True))


_SPECS = tuple(tool_spec(getattr(SessionTools, name)) for name in TOOLS)


def _limited(limit: int) -> int:
    if not 1 <= limit <= MAX_HITS:
        raise BadArguments(f"'limit' is {limit}; expected a number from 1 to {MAX_HITS}.")
    return limit


def _read_filters(text: str) -> Filters:
    """Read `name: value` pairs between semicolons."""
    pairs = [part.partition(":") for part in text.split(";") if part.strip()]
    stated = {name.strip().lower(): value.strip(" \"'") for name, _, value in pairs}
    unknown = [name for name in stated if name not in Filters.__slots__]
    if unknown:
        names = ", ".join(Filters.__slots__)
        raise BadArguments(f"there is no filter {unknown[0][:80]!r}. Use of: {names}.")
    return Filters(**stated)


def _numbered_source(source: Source) -> str:
    """Return a source under its number, without neighbourhood or markers in its text."""
    place = neutralise(f"{source.document_title}, {source.locator}".rstrip(", "))
    return f"{source.marker} {place}\n{neutralise(source.text)}"


LONGEST_ARGUMENTS = 500  # characters, in the event for people
NO_MORE_CALLS = "\n\n(No further tool calls are possible. Answer now with what you have.)"
RESULTS_HEADING = "\n\nFound since:\n"
AGAIN = "Error: you made this very call before; its result stands above. Answer with it."
NO_ROOM = "Error: there is no room for this result. Answer with what you have."
TOO_MANY = "Error: too many calls at once; at most {} are made. Call again if you still need it."
CUT = "\n… (cut: no more fits)"
RESULT_SHARE = 0.25  # of the budget: for so much of a result the oldest turns are left out
SEAM_TOKENS = 4  # by which texts may count more together than each for itself


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Limits on the tool calls of one answer."""

    max_rounds: int = 3
    max_calls: int = 8  # in one round
    input_tokens: int = 12_000  # of all messages of one call of the model
    count: TokenCounter = len


@dataclass(slots=True)
class Reply:
    """The text and the calls of one round."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def tool_rounds(
    writer: Writer, request: WriteRequest, tools: Toolbox, *, limits: RoundLimits = RoundLimits()
) -> Iterator[ModelDelta | ToolUsed]:
    """Yield the answer in pieces, and each tool call that was made for it.

    What a model says before its calls is no part of the answer. Where tools wait, it is told of
    them once it has said that its sources do not answer. Once it has called tools
    `max_rounds` times, or its calls fit no more, it is asked a last time, without tools, and with
    what was found beside the question, as if it had never called.
    """
    conversation = Conversation(writer, request, tools, limits)
    rounds = 0
    while rounds < limits.max_rounds:
        reply = Reply()
        yield from conversation.ask(reply, with_tools=True)
        is_told_of_more = writer.declined(reply.text) and conversation.offer_more()
        if not reply.calls and not is_told_of_more:
            return
        if reply.text:
            yield ModelDelta(discard=True)
        if not reply.calls:
            continue
        rounds += 1
        if conversation.knows_all(reply) or not conversation.has_room_for(reply):
            break
        yield from conversation.answer_calls(reply)
    conversation.lay_results_beside_the_question()
    yield from conversation.ask_for_the_answer()


class Conversation:
    """The messages of one answer's rounds; each call and its result are added."""

    def __init__(
        self, writer: Writer, request: WriteRequest, tools: Toolbox, limits: RoundLimits
    ) -> None:
        self._writer = writer
        self._request = request
        self._tools = tools
        self._limits = limits
        self._messages = list(request.messages)
        self._offered = request.tools
        self._usage: Usage | None = None
        self._made: set[tuple[str, str]] = set()

    def ask(self, reply: Reply, *, with_tools: bool) -> Iterator[ModelDelta]:
        """Call the writer once; `reply` is filled in meanwhile."""
        before = self._usage
        request = replace(
            self._request,
            messages=tuple(self._messages),
            tools=self._offered if with_tools else (),
        )
        for delta in self._writer.write(request):
            reply.calls += delta.tool_calls
            if delta.usage is not None:
                self._usage = delta.usage
                if before is not None:
                    self._usage = Usage(
                        before.prompt_tokens + delta.usage.prompt_tokens,
                        before.completion_tokens + delta.usage.completion_tokens,
                    )
                yield ModelDelta(usage=self._usage)
            if delta.discard:
                reply.text = ""
            reply.text += delta.text
            if delta.text or delta.discard or delta.cut:
                yield replace(delta, tool_calls=(), usage=None)

    def offer_more(self) -> bool:
        """Offer the waiting tools from now on; return whether there are any."""
        waited, self._offered = self._offered, self._request.all_tools
        return waited != self._offered

    def ask_for_the_answer(self) -> Iterator[ModelDelta]:
        """Call the writer for the last time. Raises ModelInterrupted if there is no answer."""
        reply = Reply()
        yield from self.ask(reply, with_tools=False)
        names = [spec.name for spec in self._request.all_tools]
        if reply.calls or not reply.text.strip() or calls_in(reply.text, names):
            raise ModelInterrupted(
                f"{self._writer.name} kept calling tools and wrote no answer. Ask again."
            )

    def knows_all(self, reply: Reply) -> bool:
        """Whether each of these very calls was made before."""
        return all((call.name, call.arguments) in self._made for call in reply.calls)

    def has_room_for(self, reply: Reply) -> bool:
        """Whether these calls fit with the shortest results, after old turns are left out."""
        reply.calls = tuple(_identified(reply.calls, len(self._messages)))
        needed = self._cost(_asking(reply)) + self._least(reply.calls)
        self._make_room(needed)
        return needed <= self._left()

    def answer_calls(self, reply: Reply) -> Iterator[ToolUsed]:
        """Make the calls and add their results as messages."""
        self._messages.append(_asking(reply))
        for place, call in enumerate(reply.calls):
            waiting = reply.calls[place + 1 :]
            if place >= self._limits.max_calls:
                self._put(call, TOO_MANY.format(self._limits.max_calls), waiting)
                continue
            if (call.name, call.arguments) in self._made:
                self._put(call, AGAIN, waiting)
                continue
            self._made.add((call.name, call.arguments))
            result = self._tools.run(call)
            self._put(call, result.content, waiting)
            yield ToolUsed(call.name, call.arguments[:LONGEST_ARGUMENTS], result.outcome)

    def _put(self, call: ToolCall, content: str, waiting: Sequence[ToolCall]) -> None:
        """Add as much of a result as fits; calls that still wait keep their share of the room."""
        empty = ChatMessage(Role.TOOL, "", tool_call_id=call.id)
        reserved = self._cost(empty) + self._least(waiting)
        wanted = min(self._limits.count(content), int(self._limits.input_tokens * RESULT_SHARE))
        self._make_room(reserved + wanted)
        room = (self._left() - reserved) // (len(waiting) + 1)
        self._messages.append(replace(empty, content=_cut(content, room, self._limits.count)))

    def lay_results_beside_the_question(self) -> None:
        """Move results into the question: models go on calling as long as they see calls, and some
        servers refuse calls without tools.
        """
        messages = self._messages
        start = max(place for place, message in enumerate(messages) if message.role is Role.USER)
        results = [message.content for message in messages[start:] if message.role is Role.TOOL]
        content = messages[start].content
        if results:
            content += RESULTS_HEADING + "\n\n".join(results)
        messages[start:] = [replace(messages[start], content=content)]
        if self._left() >= 0:
            messages[start] = replace(messages[start], content=content + NO_MORE_CALLS)

    # ── Room ─────────────────────────────────────────────────────────────────────────────────

    def _left(self) -> int:
        """Return the tokens that are left, less our last words."""
        closing = self._limits.count(NO_MORE_CALLS) + SEAM_TOKENS + MESSAGE_TOKENS
        taken = sum(self._cost(message) for message in self._messages)
        return self._limits.input_tokens - taken - closing

    def _cost(self, message: ChatMessage) -> int:
        return sent_tokens(message, self._limits.count)

    def _least(self, calls: Sequence[ToolCall]) -> int:
        results = (ChatMessage(Role.TOOL, NO_ROOM, tool_call_id=call.id) for call in calls)
        return sum(map(self._cost, results))

    def _make_room(self, tokens: int) -> None:
        """Leave out the oldest turns: the model can look them up, but not a lost result."""
        while self._left() < tokens:
            messages = enumerate(self._messages)
            questions = [place for place, message in messages if message.role is Role.USER]
            if len(questions) <= 2:  # the newest turn stays
                break
            del self._messages[questions[0] : questions[0] + 2]


def sent_tokens(message: ChatMessage, count: TokenCounter) -> int:
    """Return the tokens of one message with all that is sent of it."""
    tokens = message_tokens(message, count)
    if message.tool_calls:
        tokens += count(json.dumps([asdict(call) for call in message.tool_calls]))
    return tokens + (count(message.tool_call_id) if message.tool_call_id else 0)


def _asking(reply: Reply) -> ChatMessage:
    """Return the reply as a message; arguments that are no JSON, which servers refuse, are none."""
    calls = []
    for call in reply.calls:
        try:
            json.loads(call.arguments)
        except (ValueError, RecursionError):
            call = replace(call, arguments="{}")
        calls.append(call)
    return ChatMessage(Role.ASSISTANT, reply.text, tool_calls=tuple(calls))


def _identified(calls: Sequence[ToolCall], round_number: int) -> list[ToolCall]:
    """Give every call an id of its own, as the protocol demands."""
    seen: set[str] = set()
    results = []
    for place, call in enumerate(calls):
        if not call.id or call.id in seen:
            call = replace(call, id=call_id(100 * round_number + place))
        seen.add(call.id)
        results.append(call)
    return results


def _cut(content: str, room: int, count: TokenCounter) -> str:
    """Return the longest beginning that fits, found by bisection, with a note that it is cut."""
    if count(content) <= room:
        return content
    left = room - count(CUT) - SEAM_TOKENS
    if left < count(NO_ROOM):
        return NO_ROOM
    fits, over = 0, len(content)
    while over - fits > 1:
        middle = (fits + over) // 2
        if count(content[:middle]) <= left:
            fits = middle
        else:
            over = middle
    return content[:fits].rstrip() + CUT


SPEC_TOKENS = 8  # what the protocol wraps each description in


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """Lets the writer call the tools of its session."""

    actions: Actions
    count: TokenCounter
    budget: Callable[[SessionHandle], TokenBudget]

    def write(
        self, writer: Writer, request: WriteRequest, session: SessionHandle
    ) -> Iterator[ModelDelta | ToolUsed]:
        """Yield the answer in pieces, and each tool call that was made for it.

        Where the request offers no tool, there is none to be called.
        """
        if not request.all_tools:
            yield from writer.write(request)
            return
        limits = RoundLimits(input_tokens=self.budget(session).input_tokens, count=self.count)
        shown = [source.number for source in request.sources]
        tools = SessionTools(session, self.actions, shown)
        yield from tool_rounds(writer, request, tools, limits=limits)


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools that one question is offered."""

    at_once: tuple[ToolSpec, ...] = ()
    waiting: tuple[ToolSpec, ...] = ()
    tokens: int = 0  # of describing the first


NO_TOOLS = OfferedTools()


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """Decides which tools a model is offered: each turn pays for their description."""

    takes_tools: Callable[[], bool]  # False once the server has refused them
    has_tables: Callable[[OwnedSession], bool]
    asks_rows: Callable[[str], bool]
    count: TokenCounter

    def most_tokens(self) -> int:
        """Return the tokens of all descriptions now; 0 if there are no tools."""
        return self.tokens(tool_specs()) if self.takes_tools() else 0

    def specs(
        self, session: OwnedSession, question: str, *, leaves_out: bool, is_sure: bool
    ) -> OfferedTools:
        """Return the tools offered at once, and those that wait for the sources to fail.

        At once are those of the past; search, if nothing answers; tables, if asked to compute.
        """
        specs = tool_specs(has_tables=self.has_tables(session), leaves_out=leaves_out)
        helps = {OF_TABLES: self.asks_rows(question), **dict.fromkeys(OF_THE_PAST, True)}
        needed = tuple(spec for spec in specs if helps.get(spec.name, not is_sure))
        waiting = tuple(spec for spec in specs if spec not in needed)
        return OfferedTools(needed, waiting, self.tokens(needed))

    def tokens(self, specs: Sequence[ToolSpec]) -> int:
        return sum(self.count(json.dumps(asdict(spec))) + SPEC_TOKENS for spec in specs)
