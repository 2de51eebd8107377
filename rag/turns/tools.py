"""Tools while an answer is written: those of its session, within its budget."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from rag.answers.tool_loop import RoundLimits, tool_rounds
from rag.llm.windows import Budget
from rag.records import ToolUsed
from rag.seams import ModelDelta, SessionHandle, TokenCounter, Writer, WriteRequest
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

        Where the server refused tools, or the window has no room for them, none is offered.
        """
        budget = self.budget(session)
        if not budget.tools:
            yield from writer.write(request)
            return
        limits = RoundLimits(input_tokens=budget.input_tokens, count=self.count)
        toolbox = SessionTools(session, self.actions).toolbox()
        yield from tool_rounds(writer, request, toolbox, limits=limits)


def described_tokens(count: TokenCounter) -> int:
    """What describing the tools takes in every call of the model."""
    return sum(count(json.dumps(asdict(spec))) + SPEC_TOKENS for spec in tool_specs())
