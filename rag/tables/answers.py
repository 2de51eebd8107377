"""Questions over rows, answered from the rows: the assistant asks this before a writer."""

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
from rag.tables.asking.changes import edited, standing
from rag.tables.asking.which import (
    WORTH_ASKING,
    asking_which,
    counts_one,
    differing,
    is_asking,
    keys_of,
    named_in,
    not_understood,
    offered,
    only_picks,
)
from rag.tables.asking.words import IDLE, may_ask_rows, said_in, words_of
from rag.tables.bounds import LONGEST_QUESTION, refuse_long
from rag.tables.library import TableLibrary
from rag.tables.plan import Choice, Op, Understood, plan_from
from rag.tables.running.result import TableResult, result_from
from rag.tables.running.sentences import said
from rag.tables.wordforms import normalised

PAST = 10  # entries of the conversation that feed follow-ups
AS_GOOD = 0.1  # of the score: two readings this close fit equally well
KNOWN = 0.6  # of the score: one thing of the table is named
LISTING = 1.0  # of the score: what rows are called, and a condition
MOST_LISTED = 20  # rows of cells that are asked for
SURE = 2.0  # of the score: an offer that was taken
Planner = Callable[[str, Sequence[Choice]], TableResult | None]
SHOW = IDLE | {"again", "continue", "open", "use", "table", "it", "result"}


@dataclass(frozen=True, slots=True)
class TableTurn:
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
        if not entries and points_back(question):
            question = resolution.query
        choice = self._reply(session, question, within) or self._of_the_talk(
            question, entries, within
        )
        if isinstance(choice, TableResult):
            return self._told(session, choice)
        if isinstance(choice, DirectAnswer):
            return self._each_told(session, question, choice, within)
        return None if choice is None else self._computed(session, question, choice, bool(entries))

    def ask(self, question: str, within: Within, past: Sequence[TableTurn] = ()) -> TableResult:
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

    def past(self, session: SessionHandle) -> list[TableTurn]:
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
                entries.append(TableTurn(question.content, resolved, result, line, when))
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
        entry = TableTurn(rest, rest, result, "", "")
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

    def _each_told(
        self, session: SessionHandle, question: str, asked: DirectAnswer, within: Within
    ) -> DirectAnswer:
        """Of one cell that tables say otherwise, each is told with its source; all stay buttons."""
        choices = [self._taken(offer, within) for offer in asked.offers]
        found = [
            (each.table, self.library.run(each.table, each.understood.plan, question=question))
            for each in choices
            if asked.text and each and only_picks(each.understood.plan)
        ]
        tables = {table.id for table, _result in found}  # columns of one are several readings
        if len(tables) < max(2, len(choices)) or not all(
            result.is_figure for _table, result in found
        ):
            return asked
        told = [(table, result, self.keep(session, result)) for table, result in found]
        lines = [f"- {t.label}: {said(result, source.marker)}" for t, result, source in told]
        text = "\n".join([differing(question), "", *lines])
        sources = tuple(source for _table, _result, source in told)
        return replace(asked, text=text, sources=sources, declined=False)

    def _taken(self, offer: Offer, within: Within) -> Choice | None:
        plan = plan_from(offer.plan)
        try:
            table = self.library.store.table(plan.table, within)
        except NotFound:
            return None
        return Choice(table, Understood(plan, SURE))

    def _of_the_talk(
        self, question: str, past: Sequence[TableTurn], within: Within, *, is_asked: bool = False
    ) -> Choice | DirectAnswer | TableResult | None:
        """What it changes of the table before; what it asks by itself, where it does not say."""
        followed = self._follow_up(question, past, within)
        if followed is not None and not followed.understood.unused:
            return followed
        fresh = self._fresh(question, within, is_asked=is_asked)
        if fresh is None and followed is not None:
            return offered([followed])
        if fresh is None and past and points_at_rows(question):
            return self._asked_back(question, past[-1].result, within)
        return fresh

    def _asked_back(self, question: str, last: TableResult, within: Within) -> DirectAnswer | None:
        """ "How many of those are tourists?": the words that the table of those lacks."""
        table = self.table_of(last, within)
        if table is None:
            return None
        knows = self.library.index(table).knows
        words = [each for each in words_of(question) if each not in IDLE and not knows(each)]
        pointing = {w for at, end, _ in said_in(words_of(question), "pointing", "opening")
            for w in words_of(question)[at:end]}  # fmt: skip
        words = [each for each in words if each not in pointing]
        return _declined(not_understood(table, last.words, words)) if words else None

    def _follow_up(self, question: str, past: Sequence[TableTurn], within: Within) -> Choice | None:
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
        if points_back(question) or (is_fragment(question) and not is_asked):
            return None  # at something that was shown, and nothing of it is known
        choices = self.library.understand(question, within)
        planned = self._planned(question, choices, within, is_asked=is_asked)
        if planned is not None or not choices:
            return planned
        return choices[0] if is_asked and len(choices) == 1 else self._said_of(choices, is_asked)

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

    def _said_of(self, choices: Sequence[Choice], is_asked: bool) -> Choice | DirectAnswer | None:
        """The one reading that uses every word; else some are offered."""
        best = choices[0]
        if not is_asked and (best.understood.unused or best.understood.is_partly):
            return offered(choices)
        if not is_asked and self._is_empty(best):
            return offered([best])
        if not is_asked and not self._is_for_us(best):
            return None
        rivals = [each for each in choices[1:] if self._is_as_good(each, best)]
        rivals = self._saying_otherwise(best, rivals)
        return asking_which([best, *rivals]) if rivals else best

    def _is_as_good(self, choice: Choice, best: Choice) -> bool:
        """Near in score; of cells that are looked up, any reading in full that names a row."""
        mine, other = choice.understood, best.understood
        if mine.unused or mine.is_partly:
            return False
        subject = self.library.index(choice.table).subject
        names_row = any(each.column == subject for each in mine.plan.filters)
        both_pick = only_picks(mine.plan) and only_picks(other.plan) and names_row
        is_elsewhere = choice.table.id != best.table.id
        return other.score - mine.score <= AS_GOOD or (both_pick and is_elsewhere)

    def _saying_otherwise(self, best: Choice, rivals: Sequence[Choice]) -> list[Choice]:
        """Those that give another result: what says the same needs no asking."""
        if not rivals:
            return []
        told = self._cells(best)
        return [each for each in rivals if self._cells(each) != told]

    def _cells(self, choice: Choice) -> list[list[object]]:
        rows = self.library.run(choice.table, choice.understood.plan).rows
        return [list(map(_plain, row)) for row in rows]

    def _is_empty(self, choice: Choice) -> bool:
        """Whether no row is behind values that stand together: they may be meant otherwise."""
        plan = choice.understood.plan
        is_joint = sum(each.op is Op.IS and not each.part for each in plan.filters) > 1
        return is_joint and not self.library.run(choice.table, plan).used

    def _is_for_us(self, choice: Choice) -> bool:
        """Whether the question asks over rows of this table, and not something of a text."""
        plan, score = choice.understood.plan, choice.understood.score
        if not only_picks(plan):
            return score >= KNOWN and not counts_one(choice)
        if score < LISTING:
            return False
        subject, keys = self.library.index(choice.table).subject, keys_of(choice.table)
        named = {each.column for each in plan.filters}
        if plan.columns in ((subject,), ()) and not named & keys:
            return True
        rows = {str(row) for row in self.library.run(choice.table, plan).rows}
        is_shown = len(plan.columns) > 1 and subject in plan.columns
        return len(rows) == 1 or (is_shown and 0 < len(rows) <= MOST_LISTED)

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


def points_back(question: str) -> bool:
    """Whether it points at what was shown: "those", "of them", "there"."""
    return bool(said_in(words_of(question), "back"))


def points_at_rows(question: str) -> bool:
    """Whether it surely means rows: no text is called "those"."""
    return bool(said_in(words_of(question), "rows"))


def is_fragment(question: str) -> bool:
    """Whether it begins as a part of a question does."""
    return any(start == 0 for start, _end, _name in said_in(words_of(question), "fragment"))


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
