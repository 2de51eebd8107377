"""Query all tables of the library: find the table of a question, run plans and models' queries."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import log
from typing import Any

from rag.errors import TooLarge, UserError
from rag.records import ChatMessage, ColumnType, Readable, Role, Table
from rag.runtime.budget import json_object, paced, reply_soon
from rag.seams import ChatModel
from rag.seams.models import TABLE_PLAN
from rag.tables.engine import QUERY_NAME, Expression, ModelSql, QueryResult, Sql, run
from rag.tables.matcher import MOST_VALUES, Probe, TableWords, may_be_added, readings, unmatched
from rag.tables.plan import (
    LONGEST_QUESTION,
    Choice,
    Kind,
    Op,
    Part,
    TablePlan,
    checked,
    in_words,
    of_group,
    plan_from,
)
from rag.tables.result import MODEL_SQL, TableResult, of_one_row, result_columns, sql_columns
from rag.tables.store import TableStore
from rag.tables.vocabulary import (
    ADJECTIVES,
    IDLE,
    LONGEST_EXAMPLE,
    PRICED,
    is_priced,
    spelled_words,
    stems,
    words_of,
)

Likeness = Callable[[Sequence[str], tuple[str, ...]], Sequence[Sequence[float]]]
ALIKE = 6.0  # standard deviations; 78 % of synonyms are as near, 13 % of other words
MOST_MEANT = 8  # tables in which words are matched by meaning
MOST_REPLACED = 3
FEW_VALUES, MOST_NAMES = 12, 60
SHORTLIST = 12
MOST_WORDS = 256
MOST_LIBRARIES = 16


class TableLibrary:
    """Answers plans and questions over the stored tables."""

    def __init__(self, store: TableStore) -> None:
        self.store = store
        self._turn = threading.Lock()
        self._words: OrderedDict[str, TableWords] = OrderedDict()
        # By the tables' ids: owners who may read the same tables share an entry.
        self._cached_tables: OrderedDict[tuple[str, ...], tuple[list[Table], Counter[str]]] = (
            OrderedDict()
        )

    # ── Plans ────────────────────────────────────────────────────────────────────────────────

    def run(self, table: Table, plan: TablePlan, *, question: str = "") -> TableResult:
        """Return the result of a plan. Raises UserError or TooLarge."""
        checked(plan, table)
        sql = Sql(table)
        query = sql.query(plan)
        answer, used = self._ask(table, query, sql.rows(plan))
        result = _result(
            table,
            plan,
            question=question,
            words=in_words(plan),
            sql=query.sql(dialect="duckdb", pretty=True),
            columns=result_columns(plan, table, answer.names),
            answer=answer,
            used=tuple(int(row[0]) for row in used.rows),
        )
        return of_one_row(result, plan)

    def run_sql(self, table: Table, sql: str, *, question: str = "") -> TableResult:
        """Return the result of a SELECT that a model wrote over the table's own names.

        Raises:
            UserError: It is no allowed SELECT, or it fails; the message is written for the model.
            TooLarge: It takes too long.
        """
        written = ModelSql(table, sql)
        (answer,) = self._ask(table, written.query)
        return _result(
            table,
            TablePlan(table.id),
            question=question,
            words=MODEL_SQL,
            sql=written.text,
            columns=sql_columns(answer.names, answer.kinds),
            answer=answer,
            used=self._behind(table, written.rows()),
        )

    def is_sound_sql(self, table: Table, sql: str) -> bool:
        """Return whether a model's query aggregates only columns whose aggregate has a meaning."""
        columns = {column.name.casefold(): column for column in table.columns}
        added = ModelSql(table, sql).added()
        return all(
            may_be_added(column, Kind.SUM if is_sum else Kind.AVERAGE, table.row_count)
            for name, is_sum in added
            if (column := columns.get(name.casefold())) is not None
        )

    def rows_behind(
        self, result: TableResult, position: int, readable: Readable
    ) -> tuple[int, ...]:
        """Return the numbers of the rows behind one result row, while the table exists."""
        table = self.store.table(result.table_id, readable)
        if result.is_sql:
            return self._behind(table, ModelSql(table, result.sql).rows(result.rows[position]))
        plan = plan_from(result.plan)
        if not plan.group or plan.outer is not None:
            return result.used if plan.measures else result.used[position : position + 1]
        return self._behind(table, Sql(table).rows(of_group(plan, result.rows[position])))

    def _behind(self, table: Table, query: Expression | None) -> tuple[int, ...]:
        if query is None:
            return ()
        try:
            (answer,) = self._ask(table, query)
        except UserError:
            return ()
        return tuple(int(row[0]) for row in answer.rows)

    def _ask(self, table: Table, *queries: Expression) -> list[QueryResult]:
        written = [query.sql(dialect="duckdb") for query in queries]
        return run(self.store.files.path(table.id), *written)

    def rows(self, table: Table, offset: int, limit: int, words: str = "") -> QueryResult:
        """Return rows in the order of the file, numbers first; only those with all of the words."""
        return self._ask(table, Sql(table).stretch(offset, limit, words))[0]

    def place_of(self, table: Table, number: int) -> int:
        """Return how many rows are before this one in the file."""
        (answer,) = self._ask(table, Sql(table).before(number))
        return int(answer.rows[0][0])

    def numbered_rows(self, table: Table, numbers: Sequence[int]) -> QueryResult:
        """Return the rows with these numbers."""
        return self._ask(table, Sql(table).numbered(numbers))[0]

    # ── Questions ────────────────────────────────────────────────────────────────────────────

    def understand(
        self, question: str, readable: Readable, *, among: Sequence[Table] | None = None
    ) -> list[Choice]:
        """Return possible readings of the question, with their tables, best first."""
        if len(question) > LONGEST_QUESTION:
            return []
        tables = self._shortlist(question, readable) if among is None else among
        results = [
            self.checked(replace(choice, table=table))
            for table in paced(tables, weight=64)
            for choice in readings(question, self.words(table))
        ]
        choices = [choice for choice in results if choice is not None]
        return sorted(choices, key=lambda c: (len(c.unused), -c.used, not c.is_sure))

    def by_meaning(self, question: str, readable: Readable, likeness: Likeness) -> list[Choice]:
        """Return readings in which a word is replaced by a column or value of like meaning.

        No such reading is sure.
        """
        tables = self._library(readable)[0]
        if len(tables) > MOST_MEANT:
            tables = self._shortlist(question, readable)
        results = []
        for table in tables[:MOST_MEANT]:
            table_words = self.words(table)
            words, places = unmatched(question, table_words)
            names = _names(table_words)
            if not (names and 0 < len(places) <= MOST_REPLACED):
                continue
            rows = likeness([words[place] for place in places], names)
            nearest = [max(zip(row, names, strict=True)) for row in rows]
            if min(near for near, _ in nearest) < ALIKE:
                continue  # each reading leaves a word without a match unused
            for place, (_, name) in zip(places, nearest, strict=True):
                words[place] = name
            results += [
                Choice(table, reading.plan, used=reading.used)
                for reading in readings(" ".join(words), table_words)
                if not reading.unused
            ]
        return [choice for choice in map(self.checked, results) if choice is not None]

    def checked(self, choice: Choice) -> Choice | None:
        """Return the choice if its table can answer it, else None."""
        try:
            checked(choice.plan, choice.table)
        except UserError:
            return None
        return choice

    def likely(self, question: str, readable: Readable) -> list[Choice]:
        """Return the tables that share words with the question, with empty plans."""
        return [Choice(table, TablePlan(table.id)) for table in self._shortlist(question, readable)]

    def _shortlist(self, question: str, readable: Readable) -> list[Table]:
        """Return the tables that share the rarest words with the question."""
        tables, spread = self._library(readable)
        question_words = [word for word in words_of(question) if word not in IDLE]
        words = {form for word in question_words for form in (word, *stems(word))}
        words |= {
            hint for w in question_words if w in ADJECTIVES for hint in ADJECTIVES[w].measures
        }
        words |= {other for w in question_words if is_priced(w) for other in PRICED}
        words |= {word.rstrip("s") for word in words} | {f"{word}s" for word in words}
        total = len(tables)
        scored = []
        for table in tables:
            shared = words & set(table.words.split())
            score = sum(log(1 + total / spread[word]) for word in shared)
            scored.append((score, table))
        scored.sort(key=lambda pair: -pair[0])
        return [table for score, table in scored[:SHORTLIST] if score > 0]

    def _library(self, readable: Readable) -> tuple[list[Table], Counter[str]]:
        ids = self.store.ids(readable)
        with self._turn:
            library = self._cached_tables.get(ids)
        if library is None:
            tables = self.store.tables(readable)
            spread = Counter(word for table in tables for word in set(table.words.split()))
            library = tables, spread
            with self._turn:
                self._cached_tables[ids] = library
                while len(self._cached_tables) > MOST_LIBRARIES:
                    self._cached_tables.popitem(last=False)
        return library

    def words(self, table: Table) -> TableWords:
        """Return a table's names and values; cached for the tables used last."""
        with self._turn:
            words = self._words.get(table.id)
            if words is not None:
                self._words.move_to_end(table.id)
                return words
        made = TableWords(table, self._values(table), self._probe(table))
        with self._turn:
            self._words[table.id] = made
            while len(self._words) > MOST_WORDS:
                self._words.popitem(last=False)
        return made

    def _values(self, table: Table) -> dict[str, Sequence[str]]:
        results: dict[str, Sequence[str]] = {}
        columns = []
        for column in table.columns:
            if column.type is not ColumnType.TEXT and not column.has_text:
                continue
            is_whole = all(len(example) < LONGEST_EXAMPLE for example in column.examples)
            if is_whole and column.distinct <= len(column.examples):
                results[column.name] = column.examples
            elif column.distinct <= MOST_VALUES:
                columns.append(column.name)
        sql = Sql(table)
        written = [sql.values(name, MOST_VALUES).sql(dialect="duckdb") for name in columns]
        path = self.store.files.path(table.id) if columns else ""
        with suppress(TooLarge):  # such a table is matched by its columns only
            answers = run(path, *written, rows=MOST_VALUES)
            for name, answered in zip(columns, answers, strict=True):
                results[name] = [str(row[0]) for row in answered.rows if row[0] is not None]
        return results

    def _probe(self, table: Table) -> Probe | None:
        """Return a search for words in columns with too many values to hold in memory."""
        long = [
            column.name
            for column in table.columns
            if column.type is ColumnType.TEXT and column.distinct > MOST_VALUES
        ]

        def probe(grams: Sequence[str]) -> list[tuple[str, str]]:
            queries = [Sql(table).values(name, 50, grams) for name in long]
            answered = zip(long, self._ask(table, *queries), strict=True)
            return [(name, str(row[0])) for name, answer in answered for row in answer.rows]

        return probe if long else None


def _names(words: TableWords) -> tuple[str, ...]:
    """Return the names of the columns, and the values of columns with few."""
    few = [
        value for values in words.values.values() if len(values) <= FEW_VALUES for value in values
    ]
    columns = [spelled_words(column.name) for column in words.table.columns]
    return tuple(dict.fromkeys(filter(None, [*columns, *few])))[:MOST_NAMES]


def _result(table: Table, plan: TablePlan, *, answer: QueryResult, **details: Any) -> TableResult:
    return TableResult(
        table_id=table.id,
        table_name=table.name,
        document_id=table.document_id,
        document_name=table.document_name,
        document_title=table.document_title,
        plan=plan.as_dict(),
        rows=tuple(answer.rows),
        has_more=answer.has_more,
        chart=plan.chart,
        **details,
    )


MOST_TABLES = 4
MOST_COLUMNS = 60
REPLY_TOKENS = 700
RULES = f"""You turn a question over tables into one plan. Answer with one JSON object only.
{{"table": "T1", "plan": {{"filters": [{{"column": "…", "op": "…", "values": ["…"], "part": ""}}],
"group": [{{"column": "…", "part": ""}}], "measures": [{{"kind": "…", "column": "…"}}],
"order": [{{"by": "measure 1", "descending": true}}], "limit": 10, "columns": ["…"]}}}}
op: {", ".join(Op)}. kind: {", ".join(Kind)}. part of a date: {", ".join(filter(None, Part))}.
"#" as a column counts rows. Order by a column's name, "#" or "measure 1". Leave out what is not
needed. Further fields of a filter: "other": another column of the same row instead of values;
as "column": "measure 1" with a bound keeps groups by their figure. Further fields of a plan:
"each": keys as in group, for each of which the limit holds; "among": a whole plan, only what it
gives counts; "outer": a kind, one figure of the groups' figures; "step": {{"of": [filters of a
row], "rows": 1}}, the row behind it (-1: before); "chart": bar, line or share. Where a plan cannot
say it: {{"table": "T1", "sql": "SELECT … FROM {QUERY_NAME} …"}} (DuckDB, one SELECT, columns in
double quotes).
Where no table answers: {{"table": null}}."""


class ModelPlanner:
    """Asks a model for a plan, and once more with the error if it cannot be run.

    A user waits meanwhile, so a model that does not reply with an object is not asked again.
    """

    def __init__(self, model: ChatModel, library: TableLibrary) -> None:
        self._model = model
        self._library = library

    def result(self, question: str, choices: Sequence[Choice]) -> TableResult | None:
        """Return the result of the model's plan; None if it names no table or cannot be run."""
        tables = {
            f"T{index}": choice.table for index, choice in enumerate(choices[:MOST_TABLES], start=1)
        }
        described = "\n\n".join(_described(name, table) for name, table in tables.items())
        messages = [
            ChatMessage(Role.SYSTEM, RULES),
            ChatMessage(Role.USER, f"{described}\n\nQuestion: {question}"),
        ]
        for _attempt in range(2):
            reply = reply_soon(self._model, messages, max_tokens=REPLY_TOKENS, patience=TABLE_PLAN)
            if "{" not in reply:
                return None
            try:
                return self._run(question, reply, tables)
            except UserError as error:
                messages += [
                    ChatMessage(Role.ASSISTANT, reply),
                    ChatMessage(Role.USER, f"That cannot be run: {error} Answer with JSON again."),
                ]
        return None

    def _run(self, question: str, reply: str, tables: dict[str, Table]) -> TableResult | None:
        request = json_object(reply)
        if request is None:
            raise UserError("That is no JSON object.")
        if request.get("table") is None:
            return None
        table = tables.get(str(request["table"]))
        if table is None:
            raise UserError(
                f"There is no table {request['table']!r}; there are {', '.join(tables)}."
            )
        if request.get("sql"):
            return self._library.run_sql(table, str(request["sql"]), question=question)
        if not isinstance(request.get("plan"), dict):
            raise UserError("The object holds neither a plan nor sql.")
        plan = replace(plan_from(request["plan"]), table=table.id)
        return self._library.run(table, checked(plan, table), question=question)


def _described(name: str, table: Table) -> str:
    lines = [f"{name}: {table.label}, {table.row_count} rows"]
    for column in table.columns[:MOST_COLUMNS]:
        samples = ", ".join(example[:40] for example in column.examples[:5])
        unit = f" in {column.unit}" if column.unit else ""
        lines.append(f'- "{column.name}" ({column.type}{unit}): {samples}')
    return "\n".join(lines)
