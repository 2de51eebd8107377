"""What a summary was required to keep, and how its exact text keeps it."""

from rag.records import SummaryReport
from rag.summaries.lines import Composed
from rag.summaries.pool import Pool


def report_of(  # noqa: PLR0913 - what only the caller knows, all keyword-only
    pool: Pool,
    composed: Composed,
    *,
    removed: int,
    tokens_before: int,
    attempts: int,
    seconds: float,
    model: str,
    problems: tuple[str, ...],
) -> SummaryReport:
    """The report of the summary that was composed of what is in the pool."""
    kept = [number for number in pool.numbers if number in composed.cited]
    by_model = sum(map(pool.is_models, kept))
    return SummaryReport(
        citations_required=len(pool.numbers),
        citations_kept=len(kept),
        names_required=len(pool.names),
        names_kept=len(composed.named),
        kept_by_model=by_model,
        repaired=len(kept) - by_model,
        removed=removed,
        archived_citations=composed.archived_numbers,
        archived_names=composed.archived_names,
        rung=composed.rung,
        tokens_before=tokens_before,
        tokens_after=composed.tokens,
        attempts=attempts,
        seconds=seconds,
        model=model,
        problems=problems,
    )
