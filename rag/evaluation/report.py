"""Results of replays and measures as tables for people and JSON for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

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
    console.print(f"{sign}  {escape(replay.title)}  [dim]{len(replay.checks)} checks[/dim]")
    for check in replay.failures:
        got = " ".join(check.got.split())[:200]
        console.print(
            f"        turn {check.turn}: {escape(check.expectation)}; got: {escape(got)}",
            soft_wrap=True,
        )
