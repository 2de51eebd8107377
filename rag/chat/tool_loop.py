"""Let a model call tools while it answers, a bounded number of times and within its budget."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from rag.chat.tools import OF_TABLES, OF_THE_PAST, Actions, SessionTools, Toolbox, tool_specs
from rag.errors import ModelInterrupted
from rag.llm.replies import call_id
from rag.llm.text_tool_calls import calls_in
from rag.llm.windows import TokenBudget
from rag.memory.context import MESSAGE_TOKENS, message_tokens
from rag.records import ChatMessage, Role, ToolCall, ToolUsed, Usage
from rag.seams import (
    ModelDelta,
    OwnedSession,
    SessionHandle,
    TokenCounter,
    ToolSpec,
    Writer,
    WriteRequest,
)

SHOWN_ARGUMENTS = 500  # characters, in the event for people
NO_MORE_CALLS = "\n\n(No further tool calls are possible. Answer now with what you have.)"
FOUND = "\n\nFound since:\n"
AGAIN = "Error: you made this very call before; its result stands above. Answer with it."
NO_ROOM = "Error: there is no room for this result. Answer with what you have."
TOO_MANY = "Error: too many calls at once; at most {} are made. Call again if you still need it."
CUT = "\n… (cut: no more fits)"
RESULT_SHARE = 0.25  # of the budget: for so much of a result the oldest turns are left out
SEAM_TOKENS = 4  # by which texts may count more together than each for itself


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Bounds of one answer's tool calls."""

    max_rounds: int = 3
    max_calls: int = 8  # in one round
    input_tokens: int = 12_000  # of all messages of one call of the model
    count: TokenCounter = len


@dataclass(slots=True)
class Reply:
    """What one round said and asked for."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def tool_rounds(
    writer: Writer, request: WriteRequest, tools: Toolbox, *, limits: RoundLimits = RoundLimits()
) -> Iterator[ModelDelta | ToolUsed]:
    """The answer in pieces, and each tool call that was made for it.

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
    """The messages of one answer's rounds, growing by calls and their results."""

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
        """One call of the writer; `reply` is filled in meanwhile."""
        before = self._usage
        request = replace(
            self._request,
            messages=tuple(self._messages),
            tools=self._offered if with_tools else (),
        )
        for delta in self._writer.write(request):
            reply.calls += delta.tool_calls
            if delta.usage is not None:
                self._usage = _added(before, delta.usage)
                yield ModelDelta(usage=self._usage)
            if delta.discard:
                reply.text = ""
            reply.text += delta.text
            if delta.text or delta.discard or delta.cut:
                yield replace(delta, tool_calls=(), usage=None)

    def offer_more(self) -> bool:
        """Have the tools that wait told of from now on, if there are any."""
        waited, self._offered = self._offered, self._request.every_tool
        return waited != self._offered

    def ask_for_the_answer(self) -> Iterator[ModelDelta]:
        """The last call; a model that still writes calls has no answer to give."""
        reply = Reply()
        yield from self.ask(reply, with_tools=False)
        names = [spec.name for spec in self._request.every_tool]
        if reply.calls or not reply.text.strip() or calls_in(reply.text, names):
            raise ModelInterrupted(
                f"{self._writer.name} kept calling tools and wrote no answer. Ask again."
            )

    def knows_all(self, reply: Reply) -> bool:
        """Whether each of these very calls was made before."""
        return all((call.name, call.arguments) in self._made for call in reply.calls)

    def has_room_for(self, reply: Reply) -> bool:
        """Whether these calls fit with the shortest of results; old turns are left out for it."""
        reply.calls = tuple(_identified(reply.calls, len(self._messages)))
        needed = self._cost(_asking(reply)) + self._least(reply.calls)
        self._make_room(needed)
        return needed <= self._left()

    def answer_calls(self, reply: Reply) -> Iterator[ToolUsed]:
        """Make the calls and put their results where the model reads them."""
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
            yield ToolUsed(call.name, call.arguments[:SHOWN_ARGUMENTS], result.outcome)

    def _put(self, call: ToolCall, content: str, waiting: Sequence[ToolCall]) -> None:
        """As much of a result as fits; calls that still wait get their share of the room."""
        empty = ChatMessage(Role.TOOL, "", tool_call_id=call.id)
        reserved = self._cost(empty) + self._least(waiting)
        wanted = min(self._limits.count(content), int(self._limits.input_tokens * RESULT_SHARE))
        self._make_room(reserved + wanted)
        room = (self._left() - reserved) // (len(waiting) + 1)
        self._messages.append(replace(empty, content=_cut(content, room, self._limits.count)))

    def lay_results_beside_the_question(self) -> None:
        """Models call on as long as they see calls; some servers refuse calls without tools."""
        asked = max(
            index for index, message in enumerate(self._messages) if message.role is Role.USER
        )
        results = [
            message.content for message in self._messages[asked:] if message.role is Role.TOOL
        ]
        found = FOUND + "\n\n".join(results) if results else ""
        question = self._messages[asked]
        self._messages[asked:] = [replace(question, content=question.content + found)]
        if self._left() >= 0:
            question = self._messages[asked]
            content = question.content + NO_MORE_CALLS
            self._messages[asked] = replace(question, content=content)

    # ── Room ─────────────────────────────────────────────────────────────────────────────────

    def _left(self) -> int:
        """Tokens that are free, the last words of ours apart."""
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
            oldest = _oldest_pair(self._messages)
            if oldest is None:
                break
            del self._messages[oldest : oldest + 2]


def sent_tokens(message: ChatMessage, count: TokenCounter) -> int:
    """What one message costs with all that is sent of it."""
    tokens = message_tokens(message, count)
    if message.tool_calls:
        tokens += count(json.dumps([asdict(call) for call in message.tool_calls]))
    return tokens + (count(message.tool_call_id) if message.tool_call_id else 0)


def _oldest_pair(messages: Sequence[ChatMessage]) -> int | None:
    """Where the oldest turn begins; None for the newest turn and the question, which stay."""
    asked = [place for place, message in enumerate(messages) if message.role is Role.USER]
    return asked[0] if len(asked) > 2 else None


def _asking(reply: Reply) -> ChatMessage:
    calls = (replace(call, arguments=_readable(call.arguments)) for call in reply.calls)
    return ChatMessage(Role.ASSISTANT, reply.text, tool_calls=tuple(calls))


def _added(before: Usage | None, usage: Usage) -> Usage:
    if before is None:
        return usage
    return Usage(
        before.prompt_tokens + usage.prompt_tokens,
        before.completion_tokens + usage.completion_tokens,
    )


def _identified(calls: Sequence[ToolCall], round_number: int) -> list[ToolCall]:
    """Every call with an id of its own, as the protocol wants it."""
    seen: set[str] = set()
    results = []
    for place, call in enumerate(calls):
        if not call.id or call.id in seen:
            call = replace(call, id=call_id(100 * round_number + place))
        seen.add(call.id)
        results.append(call)
    return results


def _readable(arguments: str) -> str:
    """Servers refuse a conversation whose arguments are no JSON; the error tells what was wrong."""
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments


def _cut(content: str, room: int, count: TokenCounter) -> str:
    """The longest beginning that fits, and that it is one; it is searched for by halves."""
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
    """Lets the writer call the tools of the session it writes in."""

    actions: Actions
    count: TokenCounter
    budget: Callable[[SessionHandle], TokenBudget]

    def write(
        self, writer: Writer, request: WriteRequest, session: SessionHandle
    ) -> Iterator[ModelDelta | ToolUsed]:
        """The answer in pieces, and each tool call that was made for it.

        Where the request offers no tool, there is none to be called.
        """
        if not request.every_tool:
            yield from writer.write(request)
            return
        limits = RoundLimits(input_tokens=self.budget(session).input_tokens, count=self.count)
        shown = [source.number for source in request.sources]
        toolbox = SessionTools(session, self.actions, shown).toolbox()
        yield from tool_rounds(writer, request, toolbox, limits=limits)


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What one question is offered."""

    at_once: tuple[ToolSpec, ...] = ()
    waiting: tuple[ToolSpec, ...] = ()
    tokens: int = 0  # of describing the first


NO_TOOLS = OfferedTools()


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """Which tools a model is told of: their description is paid for in each turn."""

    takes_tools: Callable[[], bool]  # False once the server has refused them
    has_tables: Callable[[OwnedSession], bool]
    asks_rows: Callable[[str], bool]
    count: TokenCounter

    def most_tokens(self) -> int:
        """What describing all of them takes now; 0 where there are none."""
        return self.tokens(tool_specs()) if self.takes_tools() else 0

    def specs(
        self, session: OwnedSession, question: str, *, leaves_out: bool, is_sure: bool
    ) -> OfferedTools:
        """Those that a question needs at once, and those that wait for what the sources answer."""
        specs = tool_specs(has_tables=self.has_tables(session), leaves_out=leaves_out)
        needed = self.at_once(specs, question, is_sure=is_sure)
        waiting = tuple(spec for spec in specs if spec not in needed)
        return OfferedTools(needed, waiting, self.tokens(needed))

    def at_once(
        self, specs: Sequence[ToolSpec], question: str, *, is_sure: bool
    ) -> tuple[ToolSpec, ...]:
        """The past's; to search again, if nothing was found that answers; to compute, if asked."""
        helps = {OF_TABLES: self.asks_rows(question), **dict.fromkeys(OF_THE_PAST, True)}
        return tuple(spec for spec in specs if helps.get(spec.name, not is_sure))

    def tokens(self, specs: Sequence[ToolSpec]) -> int:
        return sum(self.count(json.dumps(asdict(spec))) + SPEC_TOKENS for spec in specs)
