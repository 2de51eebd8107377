"""What is said where no table is computed: which is meant, words are unknown."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.language.languages import read_lists
from rag.language.words import STOP_WORDS, language_of
from rag.records import Offer, Table
from rag.seams import TABLES, DirectAnswer
from rag.tables.asking.words import IDLE, TABLE_WORDS
from rag.tables.plan import Choice, Kind, Op, TablePlan, Understood, filter_words, in_words

ASKED = "Several tables fit this question equally well"
READ = "This question can be read in several ways"
_TOLD = read_lists("rows")
DIFFER: dict[str, str] = {code: _TOLD[f"said_{code}"]["differ"] for code in ("en", "de")}
OFFERED = 6
READINGS = 3  # that are offered at once
WORTH_ASKING = 1.0  # of the score: what is known of a question that is not surely understood
LEFT_UNSAID = 1  # word of it: of 58 readings that left out more, one was what was meant
_IDLE = STOP_WORDS | IDLE | TABLE_WORDS


def asking_which(choices: Sequence[Choice]) -> DirectAnswer:
    """The tables, for a person to choose one."""
    tables = {each.table.id for each in choices}
    if len(tables) < len(choices):
        names = [in_question(each) for each in choices[:OFFERED]]
        text = f"{READ}: {' '.join(names)} Which one do you mean?"
    else:
        names = [_name_among(each.table, choices) for each in choices[:OFFERED]]
        text = f"{ASKED}: {', '.join(names)}. Which one do you mean?"
    plans = [each.understood.plan.as_dict() for each in choices[:OFFERED]]
    offers = tuple(map(Offer, names, plans))
    return DirectAnswer(text, made_by=TABLES, declined=True, offers=offers)


def _name_among(table: Table, choices: Sequence[Choice]) -> str:
    """By which it can be told from the others."""
    alike = [each for each in choices if each.table.label == table.label]
    return f"{table.label} in {table.document_name}" if len(alike) > 1 else table.label


def in_question(choice: Choice) -> str:
    """A plan as a question that a person may choose: "Name with the highest Price (…)?"."""
    said = _asked(choice.understood.plan)
    return f"{said[:1].upper()}{said[1:]} ({choice.table.label})?"


def _asked(plan: TablePlan) -> str:
    """What is sought before what limits it; as the plan is told where it is of several steps."""
    if plan.among or plan.step or plan.outer or plan.each or len(plan.order) > 1:
        return in_words(plan)
    said = _sought(plan)
    limits = " and ".join(filter_words(each, plan) for each in plan.filters)
    return f"{said} where {limits}" if limits else said


def _sought(plan: TablePlan) -> str:
    end = plan.order[0] if plan.order else None
    if end is None or plan.limit != 1 or plan.measures or end.by not in plan.columns:
        return in_words(replace(plan, filters=()))
    settled = {end.by, *(each.column for each in plan.filters)}
    others = [each for each in plan.columns if each not in settled]
    others = others or [each for each in plan.columns if each != end.by] or ["row"]
    return f"{', '.join(others)} with the {'highest' if end.descending else 'lowest'} {end.by}"


def offer_of(choice: Choice) -> Offer:
    """What is offered in place of an answer that nobody can be sure of."""
    return Offer(in_question(choice), choice.understood.plan.as_dict())


def differing(question: str) -> str:
    """What is said before the cells of tables that do not say the same."""
    return DIFFER.get(language_of(question).code, DIFFER["en"])


def is_asking(answer: str) -> bool:
    """Whether an answer asked which table is meant."""
    return answer.startswith((ASKED, READ, *DIFFER.values()))


def named_in(reply: str, choices: Sequence[Choice]) -> Choice | None:
    """The table that a reply names: by words that all are its own, and no other's alike."""
    said = _words(reply) - _IDLE
    if not said:
        return None
    first = {each.table.id: each for each in reversed(choices)}
    fitting = [each for each in first.values() if said <= _words_of(each)]
    short = min((len(_words(each.table.name)) for each in fitting), default=0)
    fitting = [each for each in fitting if len(_words(each.table.name)) == short]
    return fitting[0] if len(fitting) == 1 else None


def _words_of(choice: Choice) -> frozenset[str]:
    table = choice.table
    return _words(f"{table.label} {table.document_name} {table.document_title}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.casefold()))


def not_understood(table: Table, shown: str, words: Sequence[str]) -> str:
    """Words that are in the way, and what the table knows."""
    columns = ", ".join(column.name for column in table.columns[:20])
    return (
        f"This seems to be about what {table.label} gave before ({shown}), but I do not know what "
        f"{quoted(words)} means there. Its columns: {columns}."
    )


def quoted(words: Sequence[str]) -> str:
    """Words of a question."""
    return ", ".join(f"“{word}”" for word in words)


def _known(understood: Understood) -> float:
    """How much of the question the table knows, whatever else it says."""
    return understood.score + 0.5 * len(understood.unused)


def _is_worth_asking(understood: Understood) -> bool:
    """Whether a person would see the question in it; a part of a value leaves more unsaid."""
    unsaid = len(understood.unused) + understood.is_partly
    return unsaid <= LEFT_UNSAID and _known(understood) >= WORTH_ASKING


def offered(choices: Sequence[Choice]) -> DirectAnswer | None:
    """The likeliest readings of a question that says more than the table knows."""
    likely = [each for each in choices if _is_worth_asking(each.understood)]
    likely.sort(key=lambda each: -_known(each.understood))
    likely = [each for each in likely if not only_picks(each.understood.plan)]
    found = {in_question(each): offer_of(each) for each in likely[:READINGS]}
    return DirectAnswer("", made_by=TABLES, offers=tuple(found.values())) if found else None


def only_picks(plan: TablePlan) -> bool:
    """One cell, as texts give it too: not worth a model's call before the answer's own."""
    return not (plan.measures or plan.order or plan.step or _is_sought(plan))


def _is_sought(plan: TablePlan) -> bool:
    """Rows that a condition looks for which no text says: a bound, or two columns compared."""
    return any(each.other or each.op not in (Op.IS, Op.NOT) for each in plan.filters)


def counts_one(choice: Choice) -> bool:
    """ "How many ports has it?" of a list of properties: one row of that name is no answer."""
    plan, table = choice.understood.plan, choice.table
    keys = keys_of(table)
    is_count = [each.kind for each in plan.measures] == [Kind.COUNT] and not plan.group
    named = {each.column for each in plan.filters if each.op is Op.IS and not each.part}
    return is_count and bool(named & keys)


def keys_of(table: Table) -> set[str]:
    """Columns that name a row."""
    return {each.name for each in table.columns if each.distinct == table.row_count}
