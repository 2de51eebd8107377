"""What had to be assumed of a question, in sentences for people."""

from dataclasses import replace

from rag.tables.asking.which import quoted
from rag.tables.plan import Choice, Op, Understood, plan_from
from rag.tables.running.result import TableResult


def still_assumed(last: TableResult, understood: Understood) -> Understood:
    """What was assumed of the figures holds for a change that keeps them."""
    measures = plan_from(last.plan).measures
    if not measures or measures != understood.plan.measures:
        return understood
    kept = [note[2:-1] for note in last.notes if note.startswith("I ")]
    return replace(understood, doubts=tuple(dict.fromkeys((*kept, *understood.doubts))))


def notes_of(understood: Understood) -> tuple[str, ...]:
    """What had to be assumed, and what was left out: for people, in sentences."""
    notes = [f"I {each.removesuffix('.')}." for each in understood.doubts]
    if understood.unused:
        notes.append(f"Not used: {quoted(understood.unused)}.")
    return tuple(notes)


def of_columns(choice: Choice) -> tuple[str, ...]:
    """What is known of the columns whose values are compared, put in order or added up."""
    plan = choice.understood.plan
    compared = {each.column for each in plan.filters if each.op not in (Op.IS, Op.NOT)}
    compared |= {each.column for each in plan.measures} | {each.by for each in plan.order}
    used = [each for each in choice.table.columns if each.name in compared and each.note]
    return tuple(f"{each.name}: {each.note}." for each in used)
