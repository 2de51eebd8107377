"""The report of a run as one page that needs nothing else: failures first, light and dark."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rag.regression.report import Check, PlayedTurn, Replay, difference
from rag.wiring.package_files import package_folder

WIDTH, HEIGHT, LEFT, FOOT = 900, 150, 48, 22  # of the plot


def as_page(replays: Sequence[Replay]) -> str:
    """A table of the conversations, and each with its turns; those that failed come first."""
    files = FileSystemLoader(package_folder("templates"))
    templates = Environment(loader=files, autoescape=True, undefined=StrictUndefined)
    return templates.get_template("report.html").render(
        replays=sorted(replays, key=lambda replay: replay.passed), failure=_failure, tokens=_plot
    )


def _failure(turn: PlayedTurn, check: Check) -> str:
    """Of what is folded below nothing is repeated."""
    return difference(replace(turn, answer="", resolved="", cited=()), check).partition("\n")[2]


def _plot(turns: Sequence[PlayedTurn]) -> dict[str, Any]:
    """Tokens that a model would be sent after each turn, as a line; summaries are marked."""
    most = max((turn.tokens for turn in turns), default=0)
    if len(turns) < 2 or not most:
        return {}
    step = (WIDTH - LEFT - 8) / (len(turns) - 1)
    points = [
        (f"{LEFT + index * step:.1f}", f"{(HEIGHT - FOOT) * (1 - turn.tokens / most) + 6:.1f}")
        for index, turn in enumerate(turns)
    ]
    return {
        "width": WIDTH, "height": HEIGHT, "left": LEFT, "foot": HEIGHT - FOOT, "most": most,
        "last": turns[-1].number, "line": " ".join(",".join(point) for point in points),
        "marks": [
            (*point, turn.number)
            for turn, point in zip(turns, points, strict=True)
            if turn.action == "compress"
        ],
    }  # fmt: skip
