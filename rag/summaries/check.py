"""Check a summary before it is used: each line is a span of the raw turns, or a list of ours.

Whoever chose the lines, and however they were composed, nothing else gets past this.
"""

from collections.abc import Callable
from functools import cache

from rag.citations.markers import cited_numbers
from rag.summaries.compose import Composed
from rag.summaries.required import Line, Required, on_one_line


def standing(raw: Callable[[int], str]) -> Callable[[Line], bool]:
    """Tells of a line whether it stands in its message, led in there or by the question before.

    `raw` gives the canonical text of a message.
    """

    @cache
    def said(message: int) -> str:
        return on_one_line(raw(message)) if message >= 0 else ""

    def stands(line: Line) -> bool:
        at, lead_in = line.message, line.lead_in
        return line.text in said(at) and (lead_in in said(at) or lead_in in said(at - 1))

    return stands


def is_sound(composed: Composed, required: Required, stands: Callable[[Line], bool]) -> bool:
    """Whether the text holds founded quotations and our own lists, and no other line or number."""
    quoted = {line.text for line in composed.quoted} | {line.lead_in for line in composed.quoted}
    lists = [line for line in composed.text.split("\n") if line not in quoted]
    numbers = {number for line in composed.quoted for number in line.numbers}
    numbers.update(number for line in lists for number in cited_numbers(line))
    return (
        all(map(stands, composed.quoted))
        and composed.lists.issuperset(lists)
        and numbers <= required.numbers.keys()
    )
