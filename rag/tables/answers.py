"""Answer questions over tables from their rows; the assistant tries this before a model writes.

A follow-up is a change of the last plan only if every word that carries meaning is part of it;
otherwise it is a new question.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from rag.errors import NotFound, UserError
from rag.language.words import language_of
from rag.records import (
    ColumnType,
    Message,
    MessageStatus,
    Offer,
    Readable,
    Resolution,
    Role,
    Source,
    SourceState,
    Table,
)
from rag.seams import (
    TABLES,
    ComputedFigure,
    DirectAnswer,
    SessionHandle,
    SessionTranscript,
    SourceRegister,
)
from rag.tables.library import Likeness, TableLibrary
from rag.tables.matcher import (
    FIRST,
    KINDS,
    Matched,
    TableWords,
    cover,
    may_be_added,
    names_others,
    pieces_of,
)
from rag.tables.plan import (
    LONGEST_QUESTION,
    Choice,
    Kind,
    Measure,
    Op,
    Order,
    TablePlan,
    capitalised,
    offer_words,
    plan_from,
    refuse_long,
)
from rag.tables.result import TableResult, describe_result, result_from
from rag.tables.vocabulary import (
    CHANGES,
    IDLE,
    changes_in,
    drawing_in,
    goes_down,
    is_idle,
    may_ask_rows,
    normalised,
    without_cues,
    words_of,
)

_OPENING = frozenset(
    word
    for name in ("opening", "pointing", "as_well", "instead")
    for phrase in CHANGES[name]
    for word in phrase
)


def changed(question: str, table: TableWords, last: TablePlan) -> TablePlan | None:
    """Return the last plan with the question's changes; None where a word means anything else."""
    words = words_of(question)
    drawn, drawing_places = drawing_in(words)
    pieces = [alternatives[0] for alternatives in cover(list(pieces_of(words, table, set())))]
    matched = Matched(words, sorted(pieces, key=lambda piece: piece.start), table)
    if _stands_alone(matched):
        return None
    plan = _with_measure(matched, _with_groups(matched, _with_conditions(matched, last)))
    plan = _with_end(matched, plan)
    if drawn:
        plan = replace(plan, chart=drawn)
    taken = drawing_places | {
        position for piece in matched.used for position in range(piece.start, piece.end)
    }
    left = [
        word
        for index, word in enumerate(words)
        if not (index in taken or is_idle(word) or word in _OPENING)
    ]
    return None if left or plan == last else plan


def _stands_alone(matched: Matched) -> bool:
    """Return whether the words name an operation and its object, without referring back."""
    words = matched.words
    begins_back = any(start == 0 for start, _end, _name in changes_in(words, "fragment"))
    if begins_back or changes_in(words, "back", "rows"):
        return False
    is_operation = bool(matched.of("count", *KINDS) or matched.superlatives())
    return is_operation and bool(matched.of("rows") or matched.free())


def _with_conditions(matched: Matched, plan: TablePlan) -> TablePlan:
    """Replace the conditions on a column by the new ones on it.

    Those stay that are on other parts of its dates, or if the new ones only exclude, as "without
    Berlin" does.
    """
    filters = matched.filters()
    staying = []
    for earlier in plan.filters:
        fresh = [filter_ for filter_ in filters if filter_.column == earlier.column]
        only_exclude = all(filter_.op is Op.NOT for filter_ in fresh)
        other_parts = all(
            filter_.part and earlier.part and filter_.part != earlier.part for filter_ in fresh
        )
        if only_exclude or other_parts:
            staying.append(earlier)
    return replace(plan, filters=(*staying, *filters))


def _with_groups(matched: Matched, plan: TablePlan) -> TablePlan:
    keys = matched.groups()
    if not keys:
        return plan
    new = tuple(key for key in keys if key not in plan.group)
    if plan.limit and plan.group:  # the top ten, split into groups
        return replace(plan, group=(*plan.group, *new))
    by = plan.order[0].by if plan.order else ""
    measure = Measure(Kind.SUM, by) if by in matched.table.by_name else Measure(Kind.COUNT)
    return replace(
        plan,
        group=new or plan.group,
        measures=plan.measures or (measure,),
        columns=(),
        order=(),
        limit=None,
    )


def _with_measure(matched: Matched, plan: TablePlan) -> TablePlan:
    pieces = matched.of(*KINDS)
    figures = matched.free(figures=True)
    if not plan.measures or not (pieces or figures):
        return plan
    old = plan.measures[0]
    kind = KINDS[pieces[0].kind] if pieces else old.kind
    column = figures[0].name if figures else old.column
    if column not in matched.table.by_name:
        return plan
    kind = Kind.SUM if kind is Kind.COUNT else kind
    matched.use(*pieces[:1], *figures[:1])
    return replace(plan, measures=(Measure(kind, column),))


def _with_end(matched: Matched, plan: TablePlan) -> TablePlan:
    """Change the direction of the order, and the limit."""
    ends = matched.superlatives()
    for piece in matched.of("number"):
        number, unit = piece.detail
        is_count = not unit and float(number).is_integer() and 0 < number <= 1_000
        if is_count and piece not in matched.used and plan.order:
            matched.use(piece)
            plan = replace(plan, limit=int(number))
    if not ends or not plan.order:
        return plan
    by = plan.order[0].by
    column = matched.table.by_name.get(plan.measures[0].column if by == FIRST else by)
    if column is None or column.type is ColumnType.TEXT:
        return plan
    measured = matched.measured(ends[0])
    if measured and column not in measured:
        return plan
    matched.use(ends[0])
    falls = goes_down(ends[0].detail, column)
    return replace(plan, order=(Order(by, falls), *plan.order[1:]))


EARLIER_TURNS = 10  # turns that a follow-up may refer to
OFFERED = 3  # readings
LEFT_UNSAID = 1  # words of a question that an offer may leave unused
MOST_CELLS = 3  # rows cited as cells
_NO_SUMS = (Kind.COUNT, Kind.DISTINCT, Kind.MIN, Kind.MAX)
Planner = Callable[[str, Sequence[Choice]], TableResult | None]
SHOW = IDLE | {"again", "continue", "open", "use", "table", "it", "result"}


class TableAnswers:
    """Computes answers from tables; see `rag.seams.DirectAnswers`."""

    def __init__(
        self,
        library: TableLibrary,
        planner: Planner | None = None,
        likeness: Likeness | None = None,
    ) -> None:
        """`likeness` measures how near words are to names, in standard deviations of the model."""
        self.library = library
        self._planner, self._likeness = planner, likeness

    def answer(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> DirectAnswer | None:
        """Return the figures, or offers and cells to show with passages.

        None if no table is asked.
        """
        readable = session.readable()
        if len(question) > LONGEST_QUESTION or not self.library.store.ids(readable):
            return None
        if resolution.source_numbers:
            return self._of_source(session, question, resolution.source_numbers)
        answer_of = partial(self._answer_of, session, talk=resolution.talk)
        if resolution.earlier:  # there was an earlier question
            choice = self._taken(session, question, readable)
            choice = choice or self._follow_up(question, self.last_result(session), readable)
            if choice is not None:
                return answer_of(self._result(choice, question), is_followup=True)
        choices = self.library.understand(question, readable)
        if not (choices or any(map(may_ask_rows, {question, resolution.query}))):
            return None
        planned = self._planned(resolution.query, choices, readable)
        if planned is not None:
            return answer_of(planned)
        sure = self.claimed(choices)
        if sure is not None and not sure.is_cell:
            return answer_of(self._result(sure, question))
        return self._beside(session, question, resolution.talk, choices)

    def readings(
        self, session: SessionHandle, question: str, resolution: Resolution
    ) -> tuple[Offer, ...]:
        """Return offers for the readings that use every word of the question."""
        readable = session.readable()
        if not (may_ask_rows(question) and self.library.store.ids(readable)):
            return ()
        choices = self.library.understand(question, readable)
        whole = [choice for choice in choices if not choice.unused]
        return self._offers(self.offered(question, whole), question, resolution.talk)

    def ask(
        self, question: str, readable: Readable, last: TableResult | None = None
    ) -> TableResult:
        """Return only the result; the question may follow up the last one.

        Raises UserError where no table answers or the question is too long.
        """
        refuse_long(question)
        choice = self._follow_up(question, last, readable)
        if choice is None:
            choices = self.library.understand(question, readable)
            planned = self._planned(question, choices, readable, is_asked=True)
            if planned is not None:
                return planned
            choice = self.claimed(choices) or self._only(choices)
        return self._result(choice, question)

    def describe(self, session: SessionHandle, question: str) -> str:
        """Return the result in Markdown for a model, with the number to cite. Raises UserError."""
        result = self.ask(question, session.readable(), self.last_result(session))
        return describe_result(result, self.keep(session, result).marker)

    def keep(self, session: SourceRegister, result: TableResult) -> Source:
        """Register the result as a source of the session, under a permanent number."""
        (source,) = session.register_sources([result.as_source()])
        session.keep_result(source.number, result.table_id, result.as_dict())
        return replace(source, state=SourceState.CURRENT)  # just computed

    def last_result(self, session: SessionHandle) -> TableResult | None:
        """Return the newest result of a table; None if the last answer was not from a table."""
        messages = session.recent(2 * EARLIER_TURNS)
        answers = [m.answer for m in reversed(messages) if m.answer and _is_finished(m)]
        if not answers or answers[0].result is None:
            return None
        for question, reply in reversed(list(pairwise(messages))):
            is_answered = question.role == Role.USER and reply.status is MessageStatus.COMPLETE
            if is_answered and reply.answer is not None and reply.answer.result is not None:
                stored = session.result(reply.answer.result)
                if stored is not None:
                    return result_from(stored)
        return None

    # ── What is asked ────────────────────────────────────────────────────────────────────────

    def _of_source(
        self, session: SourceRegister, question: str, numbers: Sequence[int]
    ) -> DirectAnswer | None:
        """Answer "show [3]" or "[3] by region": show the named result again, or a change of it."""
        stored = session.result(numbers[0]) if len(numbers) == 1 else None
        if stored is None:
            return None
        result = result_from(stored)
        rest = question.replace(f"[{numbers[0]}]", " ")
        if all(word in SHOW for word in normalised(rest).split()):
            return self._answer_of(session, result)
        choice = self._follow_up(rest, result, session.readable())
        return None if choice is None else self._answer_of(session, self._result(choice, rest))

    def _taken(self, session: SessionTranscript, reply: str, readable: Readable) -> Choice | None:
        """Return the choice of an offer whose label is the reply."""
        for message in reversed(session.recent(4)):
            if not _is_finished(message) or message.answer is None:
                continue
            for offer in message.answer.offers:
                if normalised(offer.label) != normalised(reply):
                    continue
                plan = plan_from(offer.plan)
                try:
                    table = self.library.store.table(plan.table, readable)
                except NotFound:
                    return None
                return Choice(table, plan, is_sure=True)
            return None
        return None

    def _follow_up(
        self, question: str, last: TableResult | None, readable: Readable
    ) -> Choice | None:
        if last is None or last.is_sql:
            return None
        table = self.table_of(last, readable)
        if table is None:
            return None
        before = replace(plan_from(last.plan), table=table.id)
        plan = changed(question, self.library.words(table), before)
        return None if plan is None else self.library.checked(Choice(table, plan, is_sure=True))

    def table_of(self, result: TableResult, readable: Readable) -> Table | None:
        """Return the table of a result, or the one that replaced it when its document changed."""
        try:
            return self.library.store.table(result.table_id, readable)
        except NotFound:
            tables = self.library.store.tables(readable, document_id=result.document_id)
            return next((table for table in tables if table.name == result.table_name), None)

    def _planned(
        self,
        question: str,
        choices: Sequence[Choice],
        readable: Readable,
        *,
        is_asked: bool = False,
    ) -> TableResult | None:
        """Return the result of a model's plan, if there is a model and rows are asked for.

        The model reads the question first; its sums are checked like those from words.
        """
        if self._planner is None or not (is_asked or may_ask_rows(question)):
            return None
        result = self._planner(question, choices or self.library.likely(question, readable))
        table = self.table_of(result, readable) if result is not None else None
        if result is None or table is None:
            return result
        if result.is_sql:
            return result if self.library.is_sound_sql(table, result.sql) else None
        return result if is_sound(plan_from(result.plan), table) else None

    def claimed(self, choices: Sequence[Choice]) -> Choice | None:
        """Return the one reading to answer with: any equally good one must give the same result."""
        sure = [choice for choice in choices if choice.is_sure]
        if not sure or any(not c.unused for c in choices if c not in sure and not c.is_cell):
            return None
        if _counts_rows(sure[0]) and any(
            _counts_rows(other) and other.table.document_id == sure[0].table.document_id
            for other in choices
            if other.table.id != sure[0].table.id and len(other.unused) <= LEFT_UNSAID
        ):
            return None  # ambiguous: which of the document's tables has the rows?
        cells = []
        for choice in sure:
            rows = self.library.run(choice.table, choice.plan).rows
            cells.append([list(map(_plain, row)) for row in rows])
        return sure[0] if all(cell == cells[0] for cell in cells) else None

    def _only(self, choices: Sequence[Choice]) -> Choice:
        """Return the only complete reading, for callers that want a result. Raises UserError."""
        whole = [choice for choice in choices if not choice.unused]
        if len(whole) == 1:
            return whole[0]
        if whole:
            ways_to_read = ", ".join(f"“{label_of(choice, whole)}”" for choice in whole[:OFFERED])
            raise UserError(f"This can be read in several ways: {ways_to_read}. Ask one of them.")
        raise UserError("No table answers this. Name a column or a value that a table has.")

    # ── What is said ─────────────────────────────────────────────────────────────────────────

    def _beside(
        self, session: SourceRegister, question: str, talk: str, choices: Sequence[Choice]
    ) -> DirectAnswer | None:
        """Return cells that are surely asked for, as sources; else offers to choose from."""
        cells = [choice for choice in choices if choice.is_cell and choice.is_sure]
        sources = []
        for choice in cells[:MOST_CELLS]:
            result = self._result(choice, question)
            if 0 < len(result.rows) <= MOST_CELLS:
                sources.append(self.keep(session, result))
        offered = self.offered(question, choices)
        is_whole = bool(offered) and not offered[0].unused
        if not (sources or is_whole or self._likeness is None) and may_ask_rows(question):
            substitutes = self.library.by_meaning(question, session.readable(), self._likeness)
            offered = [*self.offered(question, substitutes), *offered]
        if not (sources or offered):
            return None
        offers = self._offers(offered, question, talk)[:OFFERED]
        return DirectAnswer("", tuple(sources), made_by=TABLES, offers=offers)

    def _offers(self, choices: Sequence[Choice], question: str, talk: str) -> tuple[Offer, ...]:
        """Return readings as offers, labelled in the language of the question."""
        code = language_of(question, talk).code
        labels = {label_of(choice, choices, code): choice.plan.as_dict() for choice in choices}
        return tuple(Offer(label, plan) for label, plan in labels.items())

    def offered(self, question: str, choices: Sequence[Choice]) -> list[Choice]:
        """Return at most three readings to choose from."""
        results = [c for c in choices if not c.is_cell and len(c.unused) <= LEFT_UNSAID]
        return results[:OFFERED] if may_ask_rows(question) else []

    def _result(self, choice: Choice, question: str) -> TableResult:
        """Return the result, with the notes on columns that are compared, ordered or added up."""
        result = self.library.run(choice.table, choice.plan, question=question)
        compared = choice.plan.compared
        used = [c for c in choice.table.columns if c.name in compared and c.note]
        return replace(result, notes=tuple(f"{column.name}: {column.note}." for column in used))

    def _answer_of(
        self,
        session: SourceRegister,
        result: TableResult,
        *,
        is_followup: bool = False,
        talk: str = "",
    ) -> DirectAnswer:
        source = self.keep(session, result)
        note = f"\n\n*{' '.join(result.notes)}*" if result.notes else ""
        words = f"{capitalised(result.words)} ({result.table_name})"
        claim: ComputedFigure | None = None
        table = self.table_of(result, session.readable())
        if table is not None and len(result.rows) == 1:
            question = words if is_followup else result.question
            free = {column.name for column in result.columns}
            claim = ComputedFigure(
                describe_result(result, "", talk).split("\n", 1)[0].rstrip(" :."),
                result.cells(result.rows[0])[-1],
                question,
                without_cues(question),
                source,
                lambda text: names_others(text, question, self.library.words(table), free),
            )
        return DirectAnswer(
            text=describe_result(result, source.marker, talk) + note,
            sources=(source,),
            made_by=TABLES,
            resolution=Resolution(words, is_followup, "table plan"),
            result=source.number,
            claim=claim,
            talk=talk,
        )


def _counts_rows(choice: Choice) -> bool:
    return choice.plan.measures == (Measure(Kind.COUNT),) and not choice.plan.filters


def is_sound(plan: TablePlan, table: Table) -> bool:
    """Return whether the plan adds up only figures of one unit, not ids or years."""
    columns = {column.name: column for column in table.columns}
    added = [m for m in plan.measures if m.kind not in _NO_SUMS and m.column in columns]
    return all(may_be_added(columns[m.column], m.kind, table.row_count) for m in added)


def label_of(choice: Choice, among: Sequence[Choice], code: str = "en") -> str:
    """Describe a plan for a button, with the table's name where several are offered."""
    words = offer_words(choice.plan, choice.table.label, code)
    is_named = len({other.table.id for other in among}) == 1 or choice.table.label in words
    return words if is_named else f"{words} ({choice.table.label})"


def _is_finished(message: Message) -> bool:
    return message.role == Role.ASSISTANT and message.status is MessageStatus.COMPLETE


def _plain(cell: object) -> object:
    """Return a cell for comparison: 129 in one file equals 129.00 in another."""
    try:
        return float(str(cell))
    except ValueError:
        return str(cell)
