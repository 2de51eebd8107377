"""Follow-ups as changes of the plan before: "What about Q4?", "by region", "the cheapest three".

A follow-up is short, or points back ("those", "that"), and says only what changes. What it does
not change stays. Words of it that the table does not know make it another question.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.tables.asking.changes.narrow import (
    ALL_OF,
    BESIDES,
    COMPARE,
    all_of,
    compared,
    narrowed,
    shifted,
    without_groups,
)
from rag.tables.asking.changes.regroup import (
    CHART,
    DOWN,
    INSTEAD,
    REVERSED,
    SORT,
    TABLE,
    UP,
    add_chart,
    reshaped,
)
from rag.tables.asking.choosing import asked_for, grouped_by, named_figures
from rag.tables.asking.index import TableIndex
from rag.tables.asking.naming import read_question
from rag.tables.asking.question import Question
from rag.tables.asking.wording import name_words
from rag.tables.asking.words import (
    AVERAGE,
    COUNT,
    GROUP,
    MEDIAN,
    OPERATORS,
    SHARE,
    SUM,
    SUPERLATIVES,
    TOP,
)
from rag.tables.plan import Kind, Measure, TablePlan, Understood
from rag.tables.wordforms import normalised

LEAD = r"(?:(?:ok|okay|now|and|so|but|then|please|can you|could you|also|und|jetzt|aber|bitte)\s+)*"
OPENING = re.compile(
    rf"^{LEAD}(?:what about|how about|what if|only|just|show me|show|give me|and|by|per|as|in|for|"
    r"with|without|exclud\w+|except|drop|remove|add|include|sort|order|rank|same|but|instead|the|"
    r"top|split|break|group|now|draw|plot|make it|use|filter|limit|restrict|all|reset|undo|back|"
    r"go back|start over|versus|vs|compare\w*|both|between|which|when|where|who|list|monthly|"
    r"quarterly|yearly|was ist mit|wie ist es|und|nur|ohne|nach|pro|als|sortiere|gruppiere|im|"
    r"vergleich\w*|die|das|statt|ruckgangig|zuruck)\b"
)
POINTING = re.compile(
    r"\b(?:those|these|that|them|it|this|the result|the same|instead|of which|davon|diese\w*|deren|"
    r"(?<!than )(?:their|they)|(?<!als )ihre?)\b|"
    r"^(?:how many|wie viele) (?:are|sind)\b"
)
CUE = re.compile(rf"^{LEAD}(?:what about|how about|only|just|nur|was ist mit)\b|^(?:and|but|und)\b")
CHANGES = re.compile(
    r"\b(?:sort(?:ed)?|sortiere?|ordered|order by|as an?|as|instead|without|"
    r"exclud\w+|except|compared?|versus|vs|too|as well|statt|stattdessen)\b"
)
ASKS = re.compile(
    r"\b(?:how|what|who|why|when|where|does|is|are|can|could|should|tell|explain|describe|"
    r"wie|was|wer|warum|wann|wo|kann)\b"
)
UNDO = re.compile(
    r"\b(?:undo|go back|the previous (?:one|result|table)|step back|zuruck|ruckgangig)\b"
)
WHICH = re.compile(rf"^{LEAD}(?:when|where|who|which|what|wann|wo|wer|welche\w*)\b")
ROWS_OF = re.compile(rf"^{LEAD}(?:list|show|zeig\w*|which|welche\w*)\b")
# Words in the middle of a change; a whole word each, so that no name passes for one.
MIDDLE = re.compile(
    r"\b(?:about|how|only|just|now|ok|okay|again|down|by|the|of|one|ones|figures|numbers|"
    r"max(?:imum|imal)?|min(?:imum|imal)?|next|last|previous|before|after|first|years?|quarters?|months?|rows|number|details|"
    r"entries|list|when|where|who|which|all|any|every|alle|back|to|over|nur|als|jahre?|monat|"
    r"quartal|jetzt|aber|bitte|fur|von vorn)\b"
)
LONGEST = 12  # words of a follow-up that does not point back
LONGEST_PART = 7  # words of one that only names a part
SAYING = (OPENING, POINTING, BESIDES, COMPARE, CHART, TABLE, SORT, DOWN, UP, REVERSED,
    INSTEAD, SHARE, MEDIAN, AVERAGE, SUM, COUNT, MIDDLE)  # fmt: skip


def edited(text: str, index: TableIndex, plans: Sequence[TablePlan]) -> Understood | None:
    """The newest plan as a follow-up changes it; `plans` are those before, newest last."""
    said = normalised(text)
    if not plans or not said:
        return None
    question = read_question(text, index, by_meaning=False)
    for found in question.columns:
        question.use(found.start, found.end)
    said = " ".join(question.words)
    if not _leans(said, question):
        return None
    undone = UNDO.search(said)
    if undone and set(_unused(question, said)) <= set(undone[0].split()) and not question.values:
        return Understood(plans[-2] if len(plans) > 1 else plans[0], 1.0)
    if _stands_alone(plans[-1], question, said) or _is_of_a_name(text, question):
        return None
    changed = _changed(plans, question, said)
    if _unused(question, said):
        return None
    stays = bool(ALL_OF.search(said) and OPENING.search(said)) or SHARE.search(said)
    if changed == plans[-1] and not (stays or SORT.search(said) or question.conditions):
        return None
    return Understood(changed, 1.0, (), tuple(question.doubts))


def _unused(question: Question, said: str) -> tuple[str, ...]:
    """Words that neither the table nor the way to ask for a change accounts for."""
    for pattern in SAYING:
        for found in pattern.finditer(said):
            question.use(said.count(" ", 0, found.start()), said.count(" ", 0, found.end() - 1) + 1)
    return question.unused()


def standing(queries: Sequence[str], plans: Sequence[TablePlan]) -> list[TablePlan]:
    """The plans that stand: what was undone does not."""
    kept: list[TablePlan] = []
    for query, plan in zip(queries, plans, strict=True):
        if UNDO.search(normalised(query)) and len(kept) > 1 and kept[-2] == plan:
            kept.pop()
        elif not kept or kept[-1] != plan:
            kept.append(plan)
    return kept


def _changed(plans: Sequence[TablePlan], question: Question, said: str) -> TablePlan:
    plan = plans[-1]
    together = compared(plans, question, said)
    if together is not None:
        return add_chart(together, question, said)
    pointed = _pointed_at(plan, question, said)
    if pointed is not None:
        return pointed
    before = plan
    for change in (without_groups, shifted, narrowed, all_of, reshaped, add_chart):
        plan = change(plan, question, said)
    if COUNT.search(said) and POINTING.search(said):  # "how many of them were cancelled?"
        plan = TablePlan(plan.table, plan.filters, measures=(Measure(Kind.COUNT),))
    is_of_those = POINTING.search(said) and not INSTEAD.search(said)
    return _among(before, plan) if is_of_those else plan


def _among(before: TablePlan, plan: TablePlan) -> TablePlan:
    """ "Of those" are the ones that were shown, where not all were."""
    is_other = (plan.order, plan.measures) != (before.order, before.measures)
    shown = replace(before, chart="")
    return replace(plan, among=shown) if before.limit and is_other else plan


def _is_of_a_name(text: str, question: Question) -> bool:
    """ "And the Pro Max?" asks for no maximum, unless the table knows such a value or column."""
    known = {
        question.words[at]
        for found in (*question.columns, *question.values)
        for at in range(found.start, found.end)
    }
    return bool(name_words(text) - known)


def _leans(said: str, question: Question) -> bool:
    if any(not _is_named(found, said, question) for found in POINTING.finditer(said)):
        return True
    count = len(said.split())
    is_part = bool(question.conditions or question.values) and not ASKS.search(said)
    is_fragment = count <= 3 or (is_part and count <= LONGEST_PART)
    return count <= LONGEST and bool(OPENING.search(said) or CHANGES.search(said) or is_fragment)


def _is_named(found: re.Match[str], said: str, question: Question) -> bool:
    """ "The result" points back, but not where a column is called so."""
    last = said.count(" ", 0, found.end())
    return " " in found[0] and any(e.start <= last < e.end for e in question.columns)


def _stands_alone(plan: TablePlan, question: Question, said: str) -> bool:
    """A question with a figure and a way to put it together is a new one."""
    subjects = [each for each in question.columns if each.column == question.index.subject]
    if ROWS_OF.match(said) and subjects and question.conditions and not POINTING.search(said):
        return True
    if POINTING.search(said) or CUE.match(said) or CHANGES.search(said):
        return False
    asks = any(each.search(said) for each in (COUNT, SUM, AVERAGE, MEDIAN, TOP))
    if COUNT.search(said):
        return not said.startswith("count")
    figures = named_figures(question)
    known = {each.column for each in plan.measures}
    is_end = TOP.search(said) or any(word in SUPERLATIVES for word in question.masked.split())
    if is_end and any(figure.name not in known for figure in figures) and plan.measures:
        return True
    if figures and TOP.search(said):
        return True
    if WHICH.match(said) and len(said.split()) > 4:
        keys = {key.column for key in plan.group}
        others = [found for found in question.columns if found.column not in keys]
        return bool(others or (question.columns and question.values))
    return bool(figures) and (
        (asks and bool(question.conditions or question.values or not plan.measures))
        or (bool(grouped_by(question)) and not GROUP.match(said))
    )


def _pointed_at(plan: TablePlan, question: Question, said: str) -> TablePlan | None:
    """ "When was that?", "which sensor?": another column of the row that was shown."""
    if not WHICH.match(said) or plan.group or plan.measures or not plan.order:
        return None
    if question.values or question.conditions or set(said.split()) & SUPERLATIVE_WORDS:
        return None
    target, is_named = asked_for(question)
    if not is_named:
        return None
    return replace(plan, columns=tuple(dict.fromkeys((target, *plan.columns))))


SUPERLATIVE_WORDS = OPERATORS - {"one", "first", "last"}
