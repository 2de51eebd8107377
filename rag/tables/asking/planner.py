"""Questions to plans without a model: what the words of a question ask of one table.

Each way to ask (top so many, a count, a figure, one end of an order, the row beside another, two
values against each other, a look-up) is tried in turn; the first that fits makes the plan.
"""

from rag.tables.asking.ends import ask_beside, ask_either, ask_end, ask_picked, ask_top
from rag.tables.asking.figures import ask_change, ask_count, ask_difference, ask_figure, ask_share
from rag.tables.asking.index import Found, TableIndex
from rag.tables.asking.naming import read_question
from rag.tables.asking.question import Question
from rag.tables.plan import (
    TablePlan,
    Understood,
)


def understand(text: str, index: TableIndex) -> Understood | None:
    """The best reading of a question over one table; None where it asks nothing of it."""
    question = read_question(text, index)
    plan: TablePlan | None = None
    for reader in (
        ask_top,
        ask_change,
        ask_share,
        ask_difference,
        ask_count,
        ask_figure,
        ask_beside,
        ask_either,
        ask_end,
        ask_picked,
    ):
        plan = reader(question)
        if plan is not None:
            break
    if plan is None:
        return None
    question.doubts += _beyond(question, plan)
    unused = question.unused()
    return Understood(plan, _score(question, plan, unused), unused, tuple(question.doubts))


WHOLE = 1.2  # the least that a value scores which stands in a question whole
PART = 0.4
BEYOND = {"same", "between", "consecutive", "consecutively", "both", "neither", "besides"}
AUXILIARIES = {
    "is",
    "are",
    "was",
    "were",
    "do",
    "does",
    "did",
    "has",
    "have",
    "had",
    "can",
    "could",
}


def _beyond(question: Question, plan: TablePlan) -> list[str]:
    """What the question may ask and no plan can say."""
    doubts = [
        f"did not use “{word}”"
        for at, word in enumerate(question.words)
        if word in BEYOND and at not in question.used
    ]
    if question.words[0] in AUXILIARIES and plan.limit != 1:
        doubts.append("gave the rows or figures: whether that means yes is left to you")
    return doubts


def _score(question: Question, plan: TablePlan, unused: tuple[str, ...]) -> float:
    """How much of the question the table knows: to choose among tables."""
    values = sum(_weight(found) for found in question.values)
    columns = sum(min(found.score, 1.2) for found in question.columns)
    return values + columns + 0.7 * len(question.conditions) - 0.5 * len(unused)


def _weight(found: Found) -> float:
    """A value named whole says more than a word of one, or one with a slip."""
    if found.is_near:
        return 0.4
    return 0.6 + 0.4 * found.length if found.score >= WHOLE else PART * found.length
