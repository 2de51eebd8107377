"""What is told of a context beside its messages."""

from collections.abc import Sequence
from typing import Any

from rag.llm.windows import TokenBudget
from rag.memory.context import Context
from rag.records import Summary


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
