"""Statements of turns that a search found, cited or not, to be put back before a question."""

from collections.abc import Sequence

from rag.citations.gate import canonical
from rag.records import Message
from rag.seams import TokenCounter
from rag.summaries.recall import JOINED_TOKENS, MOST_RECALLED, RECALLED, RecallIndex
from rag.summaries.required import Line, stated_lines

SURE_TURNS = 2  # the best, whose statements are shown where words decide nothing


def recalled_of(
    turns: Sequence[tuple[Message, Message]],
    question: str,
    known: str,
    *,
    room: int,
    count: TokenCounter,
) -> list[Line]:
    """Of these turns, best first, the statements that bear on the question; the newest first.

    What stands in `known` already is left out; together they fit into `room` tokens.
    """
    index, of_the_best = RecallIndex(), list[Line]()
    for place, (asked, answer) in enumerate(turns):
        lines = stated_lines(answer.index, canonical(answer.content), asked.content, count)
        index.add(lines, asked.content)
        of_the_best += lines if place < SURE_TURNS else []
    last = max((answer.index + 1 for _, answer in turns), default=0)
    wanted = [*index.best(question, before=last, limit=MOST_RECALLED), *of_the_best]
    left = room - count(f"{RECALLED}\n") - JOINED_TOKENS
    kept: dict[str, Line] = {}
    for line in wanted:
        cost = line.tokens + line.lead_in_tokens
        if line.words not in kept and line.text not in known and cost <= left:
            kept[line.words] = line
            left -= cost
    return sorted(kept.values(), key=lambda line: line.place, reverse=True)


def recalled_lines_text(lines: Sequence[Line]) -> str:
    """The statements as they stand before a question."""
    said = [part for line in lines for part in (line.lead_in, line.text) if part]
    return "\n".join([RECALLED, *said])
