"""Tools while an answer is written: those of its session, within its budget."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from rag.chat.session_tools import OF_TABLES, OF_THE_PAST, Actions, SessionTools, tool_specs
from rag.chat.tool_loop import RoundLimits, tool_rounds
from rag.llm.windows import TokenBudget
from rag.records import ToolUsed
from rag.seams import ModelDelta, SessionHandle, TokenCounter, ToolSpec, Writer, WriteRequest

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
class ToolOffer:
    """Which tools a model is told of: their description is paid for in each turn."""

    takes_tools: Callable[[], bool]  # False once the server has refused them
    has_tables: Callable[[SessionHandle], bool]
    asks_rows: Callable[[str], bool]
    count: TokenCounter

    def most_tokens(self) -> int:
        """What describing all of them takes now; 0 where there are none."""
        return self.tokens(tool_specs()) if self.takes_tools() else 0

    def specs(
        self, session: SessionHandle, question: str, *, leaves_out: bool, is_sure: bool
    ) -> tuple[tuple[ToolSpec, ...], tuple[ToolSpec, ...]]:
        """Those that a question needs at once, and those that wait for what the sources answer."""
        found = tool_specs(has_tables=self.has_tables(session), leaves_out=leaves_out)
        told = self.at_once(found, question, is_sure=is_sure)
        return told, tuple(spec for spec in found if spec not in told)

    def at_once(
        self, specs: Sequence[ToolSpec], question: str, *, is_sure: bool
    ) -> tuple[ToolSpec, ...]:
        """The past's; to search again, if nothing was found that answers; to compute, if asked."""
        helps = {OF_TABLES: self.asks_rows(question), **dict.fromkeys(OF_THE_PAST, True)}
        return tuple(spec for spec in specs if helps.get(spec.name, not is_sure))

    def tokens(self, specs: Sequence[ToolSpec]) -> int:
        return sum(self.count(json.dumps(asdict(spec))) + SPEC_TOKENS for spec in specs)


def offered(
    offer: ToolOffer | None,
    session: SessionHandle,
    question: str,
    *,
    leaves_out: bool,
    is_sure: bool,
) -> tuple[tuple[ToolSpec, ...], tuple[ToolSpec, ...], int]:
    """Tools that are told at once, those that wait, and what describing the first takes."""
    if offer is None:
        return (), (), 0
    told, waiting = offer.specs(session, question, leaves_out=leaves_out, is_sure=is_sure)
    return told, waiting, offer.tokens(told)
