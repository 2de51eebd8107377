"""Tools while an answer is written: those of its session, within its budget."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from rag.answers.tool_loop import RoundLimits, tool_rounds
from rag.llm.windows import Budget
from rag.records import ToolUsed
from rag.seams import ModelDelta, SessionHandle, TokenCounter, ToolSpec, Writer, WriteRequest
from rag.sessions.session_tools import Actions, SessionTools, tool_specs

SPEC_TOKENS = 8  # what the protocol wraps each description in


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """Lets the writer call the tools of the session it writes in."""

    actions: Actions
    count: TokenCounter
    budget: Callable[[SessionHandle], Budget]

    def write(
        self, writer: Writer, request: WriteRequest, session: SessionHandle
    ) -> Iterator[ModelDelta | ToolUsed]:
        """The answer in pieces, and each tool call that was made for it.

        Where the request offers no tool, there is none to be called.
        """
        if not request.tools:
            yield from writer.write(request)
            return
        limits = RoundLimits(input_tokens=self.budget(session).input_tokens, count=self.count)
        shown = [source.number for source in request.sources]
        toolbox = SessionTools(session, self.actions, shown).toolbox()
        yield from tool_rounds(writer, request, toolbox, limits=limits)


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The tools that are worth their description; see `rag.memory.Offer`."""

    takes_tools: Callable[[], bool]  # False once the server has refused them
    has_tables: Callable[[SessionHandle], bool]
    count: TokenCounter

    def most_tokens(self) -> int:
        return self.tokens(tool_specs()) if self.takes_tools() else 0

    def specs(self, session: SessionHandle, *, leaves_out: bool) -> tuple[ToolSpec, ...]:
        return tool_specs(has_tables=self.has_tables(session), leaves_out=leaves_out)

    def tokens(self, specs: Sequence[ToolSpec]) -> int:
        return sum(self.count(json.dumps(asdict(spec))) + SPEC_TOKENS for spec in specs)
