"""Questions over rows, answered from the rows: the assistant asks this before a writer."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.errors import NotFound, UserError
from rag.records import (
    Message,
    MessageStatus,
    Offer,
    Resolution,
    Role,
    Source,
    SourceState,
    Table,
    Within,
)
from rag.seams import TABLES, DirectAnswer, SessionHandle
from rag.tables.asking.assumed import notes_of, of_columns, still_assumed
from rag.tables.asking.changes.edits import edited, standing
from rag.tables.asking.changes.regroup import DRAWN
from rag.tables.asking.question import words_of
from rag.tables.asking.which import (
    WORTH_ASKING,
    asking_which,
    counts_one,
    is_asking,
    keys_of,
    named_in,
    not_understood,
    offered,
    only_picks,
)
from rag.tables.asking.wording import may_group, says_rows
from rag.tables.asking.words import IDLE
from rag.tables.bounds import LONGEST_QUESTION, refuse_long
from rag.tables.library import TableLibrary
from rag.tables.plan import ROWS, Choice, Understood, plan_from
from rag.tables.running.result import TableResult, result_from, said
from rag.tables.wordforms import normalised

PAST = 10  # entries of the conversation that feed follow-ups
TOO_NEAR = 0.01  # two tables this close fit equally well
PLAIN = 0.6  # of the score: nothing in the question is left open, and one thing is known
ASSUMING = 1.5  # of the score: something had to be assumed, and is said
LISTING = 1.0  # of the score: what rows are called, and a condition
SURE = 2.0  # of the score: the question surely speaks of this table
Planner = Callable[[str, Sequence[Choice]], TableResult | None]
POINTS_BACK = re.compile(
    r"\bof (?:them|those|these)\b|\b(?:davon|deren)\b|^(?:\w+ ){0,3}(?:their|they|those|them)\b|"
    r"\b(?:does|is|has|of|for|about) it\b(?! takes?\b)|\bits\b"
)
FRAGMENT = re.compile(r"^(?:and|but|or|only|just|by|per|without|as|und|nur|nach|pro|ohne|als)\b")
NARROWS = re.compile(r"^(?:only|just|nur) (?:those|these|the ones|die|diejenigen)\b")
SHOW = IDLE | {"again", "continue", "open", "use", "table", "it", "result"}


def may_ask_rows(question: str) -> bool:
    """Whether its words leave open that it asks over rows."""
    return _is_for_rows(question) or may_group(question)


def _is_for_rows(question: str) -> bool:
    return says_rows(question) or bool(DRAWN.search(question))


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn that asked a table: what later ones may lean on."""

    query: str
    resolved: str
    result: TableResult
    summary: str
    time: str


class TableAnswers:
    """Computes answers; see `rag.seams.DirectAnswers`."""

    def __init__(self, library: TableLibrary, planner: Planner | None = None) -> None:
        self.library = library
        self._planner = planner

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """The figures; a plain no where the table cannot say; None where no table is asked."""
        within = session.within()
        if len(question) > LONGEST_QUESTION or not self.library.store.ids(within):
            return None
        if resolution.source_numbers:
            return self._of_source(session, question, resolution.source_numbers)
        entries = self.past(session)
        if not entries and POINTS_BACK.search(normalised(question)):
            question = resolution.query
        choice = self._reply(session, question, within) or self._of_the_talk(
            question, entries, within
        )
        if isinstance(choice, TableResult):
            return self._told(session, choice)
        if isinstance(choice, DirectAnswer):
            return choice
        return None if choice is None else self._computed(session, question, choice, bool(entries))

    def ask(self, question: str, within: Within, past: Sequence[Entry] = ()) -> TableResult:
        """The result alone. Raises UserError where no table can say, or the question is vast."""
        refuse_long(question)
        choice = self._of_the_talk(question, past, within, is_asked=True)
        if isinstance(choice, DirectAnswer):
            raise UserError(choice.text)
        if isinstance(choice, TableResult):
            return choice
        if choice is None:
            raise UserError("No table answers this. Name a column or a value that a table has.")
        result = self.library.run(choice.table, choice.understood.plan, question=question)
        return replace(result, notes=notes_of(choice.understood))

    def told(self, session: SessionHandle, question: str) -> str:
        """The result for a model that asks, with the number to cite. Raises UserError."""
        result = self.ask(question, session.within(), self.past(session))
        return said(result, self.keep(session, result).marker)

    def keep(self, session: SessionHandle, result: TableResult) -> Source:
        """The result as a source with a number for life."""
        (source,) = session.register_sources([result.as_source()])
        session.keep_result(source.number, result.table_id, result.as_dict())
        return replace(source, state=SourceState.CURRENT)  # it was just computed

    def past(self, session: SessionHandle) -> list[Entry]:
        """The newest turns that a table answered, oldest first; none if the last one was not."""
        messages = session.recent(2 * PAST)
        last = next((each for each in reversed(messages) if each.answer and _is_told(each)), None)
        if last is None or last.answer is None or last.answer.result is None:
            return []
        entries = []
        for question, answer in pairwise(messages):
            result = _result_of(session, question, answer)
            if result is not None:
                resolved = answer.resolved_query or question.content
                line = answer.content.split("\n", 1)[0]
                when = answer.created_at.isoformat()
                entries.append(Entry(question.content, resolved, result, line, when))
        return entries

    def _of_source(
        self, session: SessionHandle, question: str, numbers: Sequence[int]
    ) -> DirectAnswer | None:
        """ "Show [3]", "[3] by region": a result that is named is shown again, or changed."""
        stored = session.result(numbers[0]) if len(numbers) == 1 else None
        if stored is None:
            return None
        result = result_from(stored)
        rest = question.replace(f"[{numbers[0]}]", " ")
        if all(word in SHOW for word in normalised(rest).split()):
            return self._told(session, result)
        entry = Entry(rest, rest, result, "", "")
        choice = self._follow_up(rest, [entry], session.within())
        return choice if choice is None else self._computed(session, question, choice, True)

    # ── What is asked ────────────────────────────────────────────────────────────────────────

    def _reply(self, session: SessionHandle, reply: str, within: Within) -> Choice | None:
        """An offer that is taken; what was asked before, of the table that is named now."""
        told = list(pairwise(session.recent(4)))  # this turn's messages are stored already
        asked, answer = next((pair for pair in reversed(told) if _is_told(pair[1])), (None, None))
        if asked is None or answer is None or answer.answer is None:
            return None
        for offer in answer.answer.offers:
            if normalised(offer.label) == normalised(reply):
                return self._taken(offer, within)
        if not is_asking(answer.content):
            return None
        return named_in(reply, self.library.understand(asked.content, within))

    def _taken(self, offer: Offer, within: Within) -> Choice | None:
        plan = plan_from(offer.plan)
        try:
            table = self.library.store.table(plan.table, within)
        except NotFound:
            return None
        return Choice(table, Understood(plan, SURE))

    def _of_the_talk(
        self, question: str, past: Sequence[Entry], within: Within, *, is_asked: bool = False
    ) -> Choice | DirectAnswer | TableResult | None:
        """What it changes of the table before; what it asks by itself, where it does not say."""
        followed = self._follow_up(question, past, within)
        if followed and not self.library.names_other(question, followed.table, within):
            return followed
        fresh = self._fresh(question, within, is_asked=is_asked)
        if followed is None and fresh is None and past and NARROWS.search(normalised(question)):
            return self._not_known(question, past[-1].result, within)
        return fresh if followed is None or isinstance(fresh, Choice | TableResult) else followed

    def _not_known(self, question: str, last: TableResult, within: Within) -> DirectAnswer | None:
        """ "Only those on Sunday", of rows that were shown: the words that their table lacks."""
        table = self.table_of(last, within)
        if table is None:
            return None
        knows = self.library.index(table).knows
        words = [each for each in words_of(question) if each not in IDLE and not knows(each)]
        return _declined(not_understood(table, words)) if words else None

    def _follow_up(self, question: str, past: Sequence[Entry], within: Within) -> Choice | None:
        if not past:
            return None
        last = past[-1].result
        table = self.table_of(last, within)
        if table is None:
            return None
        same = [e for e in past if e.result.table_id == last.table_id and not e.result.is_sql]
        plans = [replace(plan_from(e.result.plan), table=table.id) for e in same]
        plans = standing([e.query for e in same], plans)
        understood = edited(question, self.library.index(table), plans)
        return None if understood is None else Choice(table, still_assumed(last, understood))

    def table_of(self, result: TableResult, within: Within) -> Table | None:
        """The table of a result, or the one that took its place when its document changed."""
        try:
            return self.library.store.table(result.table_id, within)
        except NotFound:
            tables = self.library.store.tables(within, document_id=result.document_id)
            return next((each for each in tables if each.name == result.table_name), None)

    def _fresh(
        self, question: str, within: Within, *, is_asked: bool = False
    ) -> Choice | DirectAnswer | TableResult | None:
        said = normalised(question)
        if POINTS_BACK.search(said) or (FRAGMENT.search(said) and not is_asked):
            return None  # at something that was shown, and nothing of it is known
        choices = self.library.understand(question, within)
        best = choices[0] if is_asked and choices else next(filter(_is_closed, choices), None)
        best = best or next(iter(choices), None)
        choices = [each for each in choices if each is not best]
        choices = [best, *choices] if best is not None else choices
        planned = self._planned(question, choices, within, is_asked=is_asked)
        if planned is not None or best is None:
            return planned
        return self._said_of(question, choices, is_asked=is_asked)

    def _planned(
        self, question: str, choices: Sequence[Choice], within: Within, *, is_asked: bool
    ) -> TableResult | None:
        """A model's plan, where there is a model and the words alone are not enough."""
        if self._planner is None or not (is_asked or may_ask_rows(question)):
            return None
        if not choices:
            return self._planner(question, self.library.likely(question, within))
        understood = choices[0].understood
        is_open = bool(understood.unused or understood.doubts)
        is_open = is_open and (is_asked or not only_picks(understood.plan))
        if not is_open or (understood.score < WORTH_ASKING and not is_asked):
            return None
        return self._planner(question, choices)

    def _said_of(
        self, question: str, choices: Sequence[Choice], *, is_asked: bool
    ) -> Choice | DirectAnswer | None:
        """The best reading if it uses every word; else it is offered, or asked back."""
        best = choices[0]
        if best.understood.unused and not is_asked:
            return offered(choices)
        if not is_asked and best.understood.is_partly and self._is_empty(best):
            return offered([best])
        if not is_asked and not self._is_for_us(best):
            return offered(choices) if best.understood.doubts else None
        rivals = [choice for choice in choices[1:] if self._as_good(question, choice, best)]
        rivals = self._saying_otherwise(best, rivals)
        if not rivals:
            return best
        is_sure = is_asked or best.understood.score >= ASSUMING
        return asking_which([best, *rivals]) if is_sure else None

    def _as_good(self, question: str, choice: Choice, best: Choice) -> bool:
        """Whether it fits as well: as sure, or with a plan of the same words, named no less."""
        if choice.table.id == best.table.id or choice.understood.unused != best.understood.unused:
            return False
        near = best.understood.score - choice.understood.score <= TOO_NEAR
        both = (choice, best)
        named = [self.library.named(question, e.table, e.understood.plan) for e in both]
        return near or (named[0] >= named[1] and self._said(choice) == self._said(best))

    def _saying_otherwise(self, best: Choice, rivals: Sequence[Choice]) -> list[Choice]:
        """Those that give another result: what says the same needs no asking."""
        if not rivals:
            return []
        told = self._cells(best)
        return [each for each in rivals if self._cells(each) != told]

    def _cells(self, choice: Choice) -> list[list[object]]:
        rows = self.library.run(choice.table, choice.understood.plan).rows
        return [list(map(_plain, row)) for row in rows]

    def _said(self, choice: Choice) -> object:
        """What a plan with figures says whatever columns, but that of its rows, are called."""
        plan, subject = choice.understood.plan, self.library.index(choice.table).subject
        conditions = sorted(
            repr((each.op, each.values, each.part, each.column == subject)) for each in plan.filters
        )
        keys = [(normalised(key.column), key.part) for key in plan.group]
        figures = [(e.kind, normalised(e.column)) for e in plan.measures if e.column != ROWS]
        return (conditions, keys, figures, plan.limit) if figures else choice.table.id

    def _is_for_us(self, choice: Choice) -> bool:
        """Whether the question asks over rows of this table, and not something of a text."""
        understood, plan = choice.understood, choice.understood.plan
        if only_picks(plan) and self._is_cell(choice):
            return True
        if counts_one(choice) or (only_picks(plan) and not self._lists(choice)):
            return False
        return understood.score >= (ASSUMING if understood.doubts else PLAIN)

    def _is_cell(self, choice: Choice) -> bool:
        """One cell, or the same in all rows, of what is named in full."""
        plan, understood = choice.understood.plan, choice.understood
        is_sure = understood.score >= (ASSUMING if understood.doubts else LISTING)
        if (
            understood.is_partly
            or not is_sure
            or len(plan.columns) != 1
            or any(len(e.values) > 1 for e in plan.filters)
        ):
            return False
        return len({str(row) for row in self.library.run(choice.table, plan).rows}) == 1

    def _is_empty(self, choice: Choice) -> bool:
        """Whether no row is behind it: nothing is listed, or counted."""
        result = self.library.run(choice.table, choice.understood.plan)
        return not result.rows or not result.used

    def _lists(self, choice: Choice) -> bool:
        """ "Which boats need no licence?": the rows of a condition, nothing left open."""
        plan, understood = choice.understood.plan, choice.understood
        subject, keys = self.library.index(choice.table).subject, keys_of(choice.table)
        is_open = understood.unused or understood.doubts or understood.score < LISTING
        is_of_rows = plan.columns in ((subject,), ()) and bool(plan.filters)
        return is_of_rows and not is_open and not any(e.column in keys for e in plan.filters)

    def _told(self, session: SessionHandle, result: TableResult) -> DirectAnswer:
        """A result of a model's plan; its figures are the table's."""
        source = self.keep(session, result)
        text = said(result, source.marker)
        return DirectAnswer(text, (source,), made_by=TABLES, result=source.number)

    # ── What is said ─────────────────────────────────────────────────────────────────────────

    def _computed(
        self, session: SessionHandle, question: str, choice: Choice, is_followup: bool
    ) -> DirectAnswer:
        plan = choice.understood.plan
        notes = (*notes_of(choice.understood), *of_columns(choice))
        result = replace(self.library.run(choice.table, plan, question=question), notes=notes)
        source = self.keep(session, result)
        note = f"\n\n*{' '.join(notes)}*" if notes else ""
        words = f"{result.words[:1].upper()}{result.words[1:]} ({result.table_name})"
        return DirectAnswer(
            text=said(result, source.marker) + note,
            sources=(source,),
            made_by=TABLES,
            resolution=Resolution(words, is_followup, "table plan"),
            result=source.number,
        )


def _is_closed(choice: Choice) -> bool:
    """Not one cell with words of the question left open."""
    return not (choice.understood.unused and only_picks(choice.understood.plan))


def _is_told(message: Message) -> bool:
    return message.role == Role.ASSISTANT and message.status is MessageStatus.COMPLETE


def _result_of(session: SessionHandle, question: Message, answer: Message) -> TableResult | None:
    if question.role != Role.USER or answer.answer is None or answer.answer.result is None:
        return None
    if answer.status is not MessageStatus.COMPLETE:
        return None
    stored = session.result(answer.answer.result)
    return None if stored is None else result_from(stored)


def _plain(cell: object) -> object:
    """A cell as it is compared: 129 in one file is 129.00 in another."""
    try:
        return float(str(cell))
    except ValueError:
        return str(cell)


def _declined(text: str) -> DirectAnswer:
    return DirectAnswer(text, made_by=TABLES, declined=True)
