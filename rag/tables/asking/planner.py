"""Questions to plans without a model: what the words of a question ask of one table.

Each way to ask (top so many, a count, a figure, one end of an order, the row beside another, two
values against each other, a look-up) is tried in turn; the first that fits makes the plan.
"""

from rag.records import ColumnType
from rag.tables.asking.changes.regroup import add_chart
from rag.tables.asking.ends import ask_beside, ask_end, ask_picked, ask_top
from rag.tables.asking.figures import ask_count, ask_difference, ask_figure, ask_share
from rag.tables.asking.index import Found, TableIndex
from rag.tables.asking.naming import read_question
from rag.tables.asking.question import Question
from rag.tables.asking.words import IDLE, OPERATORS, SUPERLATIVES
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
            _let_pass(question)
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


def _let_pass(question: Question) -> None:
    """One verb, or one noun for the rows, that the table does not know is said and let pass."""
    words, taken = question.words, question.used | _held(question)
    open_ones = [at for at in range(len(words)) if at not in taken]
    open_ones = [at for at in open_ones if words[at] not in IDLE]
    is_known = bool(question.values or question.conditions or question.columns)
    if len(open_ones) != 1 or not is_known or words[open_ones[0]] not in question.unused():
        return
    (at,) = open_ones
    if not words[at].isalpha() or words[at] in OPERATORS or not _passes(question, at):
        return
    question.use(at, at + 1)
    question.doubt(f"did not use “{words[at]}”")


def _held(question: Question) -> set[int]:
    return {at for each in question.values for at in range(each.start, each.end)}


def _passes(question: Question, at: int) -> bool:
    """Whether it stands where a verb or a noun for the rows does, and no time hangs on it."""
    words, held = question.words, _held(question)
    before = words[at - 1] if at else ""
    if before in ("how", "wie"):  # "… and how heavy is it": another question
        return False
    places = (i for i in range(at + 1, len(words)) if words[i] not in ARTICLES)
    behind = next(places, len(words))
    if before in WHICH and behind in question.used:  # "which books cost more than 45"
        return True
    if behind < len(words) and words[behind] not in IDLE and behind not in held:
        return False
    dated = {c.name for c in question.index.table.columns if c.type is ColumnType.DATE}
    timed = {s for s, _e, each in question.conditions if each.part or each.column in dated}
    if timed & {behind, behind + 1}:  # "left in 2023" of a column of days
        return False
    is_asked = any(word in ("do", "does", "did") for word in words[:at])
    is_verb = is_asked or (at - 1 in question.used and before not in OPERATORS)
    is_noun = before in SUPERLATIVES or before in ("of", "von")
    return is_verb or (is_noun and behind + 1 in held)


ARTICLES = words("the a an der die das den dem")
WHICH = words("which what welche welcher welches welchen list")
COUNTED = words("many viele wieviele number anzahl count")
PART = 0.4
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
