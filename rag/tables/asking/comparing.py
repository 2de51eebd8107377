"""Words that compare, and one column compared with another."""

import re
from collections.abc import Sequence

from rag.records import ColumnType
from rag.tables.asking.index import Found
from rag.tables.asking.question import FIGURES, Question
from rag.tables.asking.words import COMPARATIVES, COMPARED, IDLE
from rag.tables.plan import Filter, Op
from rag.text.languages import words

SIGNS = {">=": Op.AT_LEAST, "<=": Op.AT_MOST, ">": Op.MORE, "<": Op.LESS}
BELONGS = words("the a an its their his her of year age der die das den dem ihr sein")
Span = tuple[int, int, Op]  # words that compare


def condition(question: Question, start: int, end: int, *found: Filter) -> None:
    """Conditions that words say, which are used then."""
    question.conditions += [(start, end, each) for each in found]
    question.use(start, end)


def phrases_of(question: Question) -> list[Span]:
    """Where the question compares, in its order; of what overlaps, what begins first."""
    taken = set(range(*question.top))
    taken |= {at for each in question.values for at in range(each.start, each.end)}
    found: list[Span] = []
    for pattern, sign in COMPARED:
        for match in re.finditer(rf"(?<!\S)(?:{pattern.pattern})(?!\S)", question.masked):
            span = question.at(match.start()), question.at(match.end() - 1) + 1
            if not taken & set(range(*span)):
                taken |= set(range(*span))
                found.append((*span, SIGNS[sign]))
    return sorted(found)


def compare_columns(question: Question, phrases: list[Span]) -> None:
    """ "Cost greater than the price", "awarded more than they requested", "more X than Y"."""
    spread = [
        (at, end, Op.MORE if COMPARATIVES[word] else Op.LESS)
        for at, word in enumerate(question.words)
        for end in range(at + 3, min(at + 7, len(question.words)))
        if word in COMPARATIVES and question.words[end - 1] in ("than", "als")
    ]
    for start, end, op in (*phrases, *spread):
        at = end
        while at < len(question.words) and (
            question.words[at] in IDLE and not named_at(question, at)
        ):
            at += 1
        right = named_at(question, at)
        within_it = [each for each in question.columns if start < each.start < end]
        lefts = within_it or [each for each in question.columns if each.end <= start]
        left = next((each for each in reversed(lefts) if _alike(question, each, right)), None)
        if right is None or left is None or right.column == left.column:
            continue
        question.columns = [each for each in question.columns if each not in (left, right)]
        question.use(left.start, left.end)
        condition(question, start, right.end, Filter(left.column, op, (), other=right.column))
        phrases[:] = [each for each in phrases if not start <= each[0] < right.end]


def named_at(question: Question, at: int) -> Found | None:
    """The column whose name begins at a word."""
    return next((each for each in question.columns if each.start == at), None)


def _alike(question: Question, left: Found, right: Found | None) -> bool:
    """Whether two columns can be compared."""
    if right is None:
        return False
    kinds = {question.column(each.column).type for each in (left, right)}
    return kinds <= FIGURES or kinds == {ColumnType.DATE}


def said_before(phrases: Sequence[Span], words: Sequence[str], at: int) -> tuple[int, Op]:
    """The words that compare right before one, where they begin, and their sign."""
    for start, end, op in phrases:
        if end <= at and all(word in BELONGS for word in words[end:at]):
            return start, op
    return at, Op.IS
