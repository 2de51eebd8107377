"""What was found for one question, and what of it a writer is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rag.llm.windows import TokenBudget
from rag.memory.context import Context
from rag.records import ChatMessage, Readable, Resolution, Source, Summary
from rag.seams import ToolSpec

SURE = 0.3  # relevance from which a source answers as often as with any higher one
# How many times likelier, by their odds, the best source is to answer than one that …
BESIDE_THE_POINT = 10  # … is not worth sending
HARDLY_LIKELY = 6  # … is worth its chunk, but not what stands around that
LEAST_SOURCES = 3  # that a model is shown, whatever their relevance


@dataclass(frozen=True, slots=True)
class PreparedContext:
    """The context of one call of the writer, with what it was made of."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    shown: tuple[Source, ...]  # the sources in it, best first
    tools: tuple[ToolSpec, ...] = ()
    waiting_tools: tuple[ToolSpec, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sent_tokens(self) -> int:
        """Messages and tools, by our count."""
        return int(self.stats.get("tokens", 0)) + int(self.stats.get("tools", 0))

    @property
    def tokens(self) -> int:
        """All that this call needs of a window."""
        return self.sent_tokens + self.max_tokens


@dataclass(frozen=True, slots=True)
class ShownSources:
    """What the writer is shown of what was found."""

    sources: Sequence[Source] = ()
    whole: int | None = None  # so many with what stands around them, the others without
    resolved: str = ""  # what a follow-up stands for
    is_sure: bool = False  # the sources answer, as it seems: tools can wait


@dataclass(frozen=True, slots=True)
class QuestionSources:
    """Sources for one question, best first."""

    sources: tuple[Source, ...]
    relevance: Mapping[int, float]  # by number, 0 to 1
    resolution: Resolution
    readable: Readable  # where they were looked for

    @property
    def is_sure(self) -> bool:
        """Whether something was found that answers, as it seems."""
        return max(self.relevance.values(), default=0.0) >= SURE

    def to_the_point(self) -> ShownSources:
        """The first of them, and those that are not far less likely to answer than the best."""
        sources = tuple(
            source
            for place, source in enumerate(self.sources)
            if place < LEAST_SOURCES or self._is_near(source, BESIDE_THE_POINT)
        )
        likely = [n for n, source in enumerate(sources, 1) if self._is_near(source, HARDLY_LIKELY)]
        return replace(self.all(), sources=sources, whole=max(likely, default=1))

    def all(self) -> ShownSources:
        """All of them, with what stands around them."""
        resolved = self.resolution.query if self.resolution.is_followup else ""
        return ShownSources(self.sources, resolved=resolved, is_sure=self.is_sure)

    def _is_near(self, source: Source, times: float) -> bool:
        """Whether the odds of the best to answer are at most so many times those of this one."""
        best = max(self.relevance.values(), default=0.0)
        chance = self.relevance.get(source.number, best)
        return chance * (1 - best) * times >= best * (1 - chance)


def stats_of(context: Context, summaries: Sequence[Summary], budget: TokenBudget) -> dict[str, Any]:
    """What people and programs are told about a context."""
    reports = [summary.report for summary in summaries]
    return {
        "messages": len(context.messages),
        "tokens": context.tokens,
        "budget": context.budget_tokens,
        "window": budget.window,
        "tools": budget.tools,
        "pairs": context.pairs,
        "is_compressed": context.is_compressed,
        "original_messages": context.original_messages,
        "summarized_messages": context.summarized_messages,
        "recalled": list(context.recalled),
        "kept": {
            "citations": sum(report.citations_kept for report in reports),
            "ranged_citations": sum(report.ranged_citations for report in reports),
            "brought_back_citations": sum(report.citations_brought_back for report in reports),
            "lost_citations": sum(report.citations_lost for report in reports),
            "citations_required": sum(report.citations_required for report in reports),
            "stated_citations": sum(len(report.stated_citations) for report in reports),
            "listed_citations": sum(len(report.listed_citations) for report in reports),
            "recallable_citations": sum(len(report.recallable_citations) for report in reports),
            "names": sum(report.names_kept for report in reports),
            "brought_back_names": sum(report.names_brought_back for report in reports),
            "lost_names": sum(report.names_lost for report in reports),
            "names_required": sum(report.names_required for report in reports),
            "stated_names": sum(len(report.stated_names) for report in reports),
            "listed_names": sum(len(report.listed_names) for report in reports),
            "recallable_names": sum(len(report.recallable_names) for report in reports),
        },
    }
