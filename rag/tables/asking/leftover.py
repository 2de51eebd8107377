"""What a plan leaves open of its question, and how much of it its table knows."""

from rag.records import ColumnType
from rag.tables.asking.index import Found
from rag.tables.asking.question import Question
from rag.tables.asking.wording import name_words
from rag.tables.plan import ROWS, TablePlan, named_columns
from rag.tables.wordforms import normalised
from rag.text.languages import words

PEOPLE = words("people person persons anyone anybody somebody leute menschen personen")
PERSONAL = words("age sex gender dob birth birthday surname firstname married alter geschlecht")


def open_words(question: Question, plan: TablePlan) -> tuple[str, ...]:
    """Words of the question that change nothing of the plan, though they may mean something."""
    said = {*named_columns(plan), question.index.subject}
    for found in question.columns:
        if found.column in said:
            question.use(found.start, found.end)
    for found in question.values:
        if not found.is_whole and found.length == 1 and len(found.values) > 1:
            question.used.discard(found.start)  # a word of several longer values may mean none
    if any(word in PEOPLE for word in question.words) and _is_of_people(question, plan):
        question.used |= {at for at, word in enumerate(question.words) if word in PEOPLE}
    if question.words[0] in AUXILIARIES and plan.limit != 1:
        question.doubt("gave the rows or figures: whether that means yes is left to you")
    return question.unused()


def goes_on(question: Question, found: Found) -> bool:
    """ "Band *members*": the column's name is the beginning of what the rows are called."""
    is_text = question.column(found.column).type is ColumnType.TEXT
    return is_text and any(map(question.names_rows, question.words[found.end : found.end + 1]))


def names_open(text: str, question: Question) -> list[str]:
    """ "The Aero 5 Max" asks for no maximum: a word of asking in a name that is not known."""
    named = [*question.columns, *question.values]
    known = {question.words[at] for each in named for at in range(each.start, each.end)}
    return sorted(name_words(text) - known)


def _is_of_people(question: Question, plan: TablePlan) -> bool:
    """Whether its figures count people, or each row is one."""
    if any(each.column != ROWS for each in plan.measures) or plan.columns:
        return True
    columns = (column.name for column in question.index.table.columns)
    return any(word in PERSONAL for name in columns for word in normalised(name).split())


AUXILIARIES = words("is are was were do does did has have had can could")
PART = 0.4


def score(question: Question, unused: tuple[str, ...]) -> float:
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
