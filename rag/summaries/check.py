"""Check a summary before it is used: each line is a span of the raw turns, or a list of ours.

Whoever chose the lines, and however they were composed, nothing else gets past this.
"""

from collections.abc import Callable, Mapping

from rag.citations.markers import cited_numbers
from rag.seams import TokenCounter
from rag.summaries.compose import Composed, Heading, Limits, compose
from rag.summaries.required import Line, Required, on_one_line

Raw = Callable[[int], str]  # the canonical text of a message


def checked(
    required: Required,
    limits: Limits,
    count: TokenCounter,
    raw: Raw,
    headings: Mapping[int, Heading] | None = None,
) -> Composed:
    """The best summary within the limits whose every line was found in the raw turns."""
    composed = compose(required, limits, count, headings)
    refused = unfounded(composed, raw)
    while refused:
        composed = compose(required, limits, count, headings, without=refused)
        more = unfounded(composed, raw)
        refused = [*refused, *more] if more else []
    assert is_sound(composed, required), "a line of a summary is neither a quotation nor a list"
    return composed


def unfounded(composed: Composed, raw: Raw) -> list[Line]:
    """The quotations that do not stand in their message, or the question before it."""
    texts: dict[int, str] = {}

    def stands(text: str, message: int) -> bool:
        if message not in texts:
            texts[message] = on_one_line(raw(message)) if message >= 0 else ""
        return text in texts[message]

    return [
        line
        for line in composed.quoted
        if not stands(line.text, line.message)
        or not (stands(line.lead_in, line.message) or stands(line.lead_in, line.message - 1))
    ]


def is_sound(composed: Composed, required: Required) -> bool:
    """Whether the text holds founded quotations and our own lists, and no other line or number."""
    quoted = {line.text for line in composed.quoted} | {line.lead_in for line in composed.quoted}
    lists = [line for line in composed.text.split("\n") if line not in quoted]
    numbers = {number for line in composed.quoted for number in line.numbers}
    numbers.update(number for line in lists for number in cited_numbers(line))
    return composed.made.issuperset(lists) and numbers <= required.numbers.keys()
