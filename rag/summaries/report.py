"""What a summary was required to keep, and what became of it."""

from rag.records import Quotation, SummaryReport
from rag.summaries.compose import Composed
from rag.summaries.required import Choice, Required


def report_of(
    required: Required,
    composed: Composed,
    choice: Choice,
    *,
    tokens_before: int,
    seconds: float,
    model: str,
) -> SummaryReport:
    """The report of a summary that was composed of what is required."""
    return SummaryReport(
        citations_required=len(required.numbers),
        citations_kept=len(composed.stated) + len(composed.listed),
        names_required=len(required.names),
        names_kept=len(composed.stated_names) + len(composed.listed_names),
        stated_citations=composed.stated,
        listed_citations=composed.listed,
        archived_citations=composed.archived,
        stated_names=composed.stated_names,
        listed_names=composed.listed_names,
        archived_names=composed.archived_names,
        statements=len(composed.quoted),
        chosen=sum(line.place in required.chosen for line in composed.quoted),
        tokens_before=tokens_before,
        tokens_after=composed.tokens,
        attempts=choice.calls,
        seconds=seconds,
        model=model if choice.lines else "extractive",
        problems=choice.problems,
    )


def quotations_of(composed: Composed) -> tuple[Quotation, ...]:
    """Where each quoted line stands in the text, and the message that it is a span of."""
    found: list[Quotation] = []
    text = f"\n{composed.text}\n"
    at = 0
    for line in composed.quoted:
        at = text.index(f"\n{line.text}\n", at)
        found.append(Quotation(at, at + len(line.text), line.message))
        at += len(line.text)
    return tuple(found)
