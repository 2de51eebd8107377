"""Questions to plans without a model: what the words of a question ask of one table.

Each way to ask (top so many, a count, a figure, one end of an order, the row beside another, two
values against each other, a look-up) is tried in turn; the first that fits makes the plan.
"""

from rag.tables.asking.changes.regroup import add_chart
from rag.tables.asking.ends import ask_beside, ask_end, ask_picked, ask_top
from rag.tables.asking.figures import ask_count, ask_difference, ask_figure, ask_share
from rag.tables.asking.index import Found, TableIndex
from rag.tables.asking.naming import read_question
from rag.tables.asking.question import Question
from rag.tables.plan import TablePlan, Understood, named_columns
from rag.text.languages import words


def understand(text: str, index: TableIndex) -> Understood | None:
    """The best reading of a question over one table; None where it asks nothing of it."""
    question = read_question(text, index)
    for reader in (
        ask_top, ask_share, ask_difference, ask_count, ask_figure, ask_beside,
        ask_end, ask_picked,
    ):  # fmt: skip
        used, doubts, conditions = set(question.used), [*question.doubts], [*question.conditions]
        plan = reader(question)
        if plan is not None:
            plan = add_chart(plan, question, " ".join(question.words))
            _leave_out(question, plan)
            unused = question.unused()
            score = _score(question, plan, unused)
            return Understood(plan, score, unused, tuple(question.doubts))
        question.used, question.doubts, question.conditions = used, doubts, conditions
    return None


def _leave_out(question: Question, plan: TablePlan) -> None:
    """A column that is named and that the plan does not speak of is not used."""
    said = {*named_columns(plan), question.index.subject}
    for found in question.columns:
        is_counted = any(
            word in COUNTED for word in question.words[max(0, found.start - 3) : found.start]
        )
        if found.score >= 1 and found.column not in said and not is_counted:
            question.used -= set(range(found.start, found.end))
    if question.words[0] in AUXILIARIES and plan.limit != 1:
        question.doubt("gave the rows or figures: whether that means yes is left to you")


PART = 0.4
COUNTED = words("many viele wieviele number anzahl count")
AUXILIARIES = words("is are was were do does did has have had can could")


def _score(question: Question, plan: TablePlan, unused: tuple[str, ...]) -> float:
    """How much of the question the table knows: to choose among tables."""
    values = sum(_weight(found, question) for found in question.values)
    columns = sum(min(found.score, 1.2) for found in question.columns)
    compared = 1.5 * sum(bool(each.other) for _s, _e, each in question.conditions)
    return values + columns + compared + 0.7 * len(question.conditions) - 0.5 * len(unused)


def _weight(found: Found, question: Question) -> float:
    """A value named whole says more than a word of one, or one with a slip.

    It says most where it stands sign by sign, and where the rows are about it.
    """
    if found.is_near:
        return 0.4
    if not found.is_whole:
        return PART * found.length
    is_subject = found.column == question.index.subject
    return 0.6 + 0.4 * found.length + 0.1 * found.is_written + 0.1 * is_subject
