"""Results of replays and measures as tables for people and JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from rag.evaluation.measures import Graded, summary_of
from rag.evaluation.replay import Replay


def as_json(replays: Sequence[Replay]) -> dict[str, Any]:
    """All checks of all conversations."""
    return {
        "passed": sum(replay.passed for replay in replays),
        "failed": sum(not replay.passed for replay in replays),
        "conversations": [
            {
                "title": replay.title,
                "passed": replay.passed,
                "checks": [asdict(check) for check in replay.checks],
            }
            for replay in replays
        ],
    }


def show(replay: Replay, console: Console) -> None:
    """One line a conversation, and one for each expectation that did not hold."""
    sign = "[green]passed[/green]" if replay.passed else "[red]failed[/red]"
    console.print(
        f"{sign}  {escape(replay.title)}  [dim]{len(replay.checks)} checks[/dim]", soft_wrap=True
    )
    for check in replay.failures:
        got = " ".join(check.got.split())[:200]
        console.print(
            f"        turn {check.turn}: {escape(check.expectation)}; got: {escape(got)}",
            soft_wrap=True,
        )


def show_measures(graded: Sequence[Graded], console: Console) -> None:
    """A line for each question that went wrong, then the means."""
    for each in graded:
        wrong = each.is_answerable and (each.declined or not each.cites_first)
        if wrong or (not each.is_answerable and not each.declined):
            cited = ", ".join(each.documents) or "nothing"
            did = "declined" if each.declined else f"cited {cited}"
            question = each.question
            console.print(
                f"{escape(question.id)}: {escape(question.question)} [dim]{escape(did)}; expected "
                f"{escape(question.document or 'to decline')}[/dim]",
                soft_wrap=True,
            )
    for name, value in summary_of(graded).items():
        shown = "-" if value is None else f"{value:g}"
        console.print(f"{name.replace('_', ' '):<22} {shown:>8}", highlight=False)
