"""Tools while an answer is written: those of its session, within its budget."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rag.answer.tool_loop import RoundLimits, tool_rounds
from rag.conversation.context import message_tokens
from rag.conversation.session_tools import Actions, SessionTools
from rag.records import ChatMessage, ToolUsed
from rag.seams import ModelDelta, SessionHandle, TokenCounter, Writer, WriteRequest

FEWEST_CHARACTERS_PER_TOKEN = 2  # of the scripts that take the most tokens, roughly


@dataclass(frozen=True, slots=True)
class ToolRoom:
    """Lets the writer call the tools of the session it writes in."""

    actions: Actions
    count: TokenCounter
    input_tokens: Callable[[SessionHandle], int]

    def write(
        self, writer: Writer, request: WriteRequest, session: SessionHandle
    ) -> Iterator[ModelDelta | ToolUsed]:
        """The answer in pieces, and each tool call that was made for it."""
        budget = self.input_tokens(session)

        def room(messages: Sequence[ChatMessage]) -> int:
            taken = sum(message_tokens(message, self.count) for message in messages)
            return max(0, (budget - taken) * FEWEST_CHARACTERS_PER_TOKEN)

        toolbox = SessionTools(session, self.actions).toolbox()
        yield from tool_rounds(writer, request, toolbox, limits=RoundLimits(room=room))
