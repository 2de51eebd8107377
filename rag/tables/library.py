"""All tables of the library, asked: which one is meant, what a plan gives."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

from sqlglot import exp

from rag.errors import UserError
from rag.records import ColumnType, Table, TableColumn
from rag.tables.engine import Answered, Limits, parsed, run
from rag.tables.index import MOST_VALUES, Probe, TableIndex, stem
from rag.tables.plan import TablePlan, Understood, checked, in_words
from rag.tables.planner import understand
from rag.tables.profile import LONGEST_EXAMPLE, normalised
from rag.tables.read import TOTAL
from rag.tables.result import ResultColumn, TableResult, result_columns
from rag.tables.sql import DATA, Sql
from rag.tables.store import TableStore

SHORTLIST = 12
SQL_NAME = "rows"  # what a model calls the table that it asks
FIGURES = {"DOUBLE", "FLOAT", "BIGINT", "INTEGER", "HUGEINT", "DECIMAL", "NUMBER"}
KEPT_INDEXES = 256
NAMED = 0.6  # what a word of the table's own name is worth


@dataclass(frozen=True, slots=True)
class Choice:
    """A table with what a question asks of it."""

    table: Table
    understood: Understood


class TableLibrary:
    """Answers plans and questions over the stored tables."""

    def __init__(self, store: TableStore, limits: Limits | None = None) -> None:
        self.store = store
        self._limits = limits or Limits()
        self._turn = threading.Lock()
        self._indexes: OrderedDict[str, TableIndex] = OrderedDict()
        self._known: tuple[tuple[str, ...], list[Table], Counter[str]] | None = None

    # ── Plans ────────────────────────────────────────────────────────────────────────────────

    def run(self, plan: TablePlan, *, question: str = "") -> TableResult:
        """What the plan gives. Raises NotFound, UserError or TooLarge."""
        table = self.store.table(plan.table)
        checked(plan, table)
        sql = Sql(table)
        query = sql.query(plan)
        found = self._ask(table, query)
        used = self._ask(table, sql.rows(plan))
        return TableResult(
            table_id=table.id,
            table_name=table.name,
            document_id=table.document_id,
            document_name=table.document_name,
            document_title=table.document_title,
            plan=plan.as_dict(),
            words=in_words(plan),
            sql=query.sql(dialect="duckdb", pretty=True),
            columns=result_columns(plan, table, found.names),
            rows=tuple(found.rows),
            has_more=found.has_more,
            used=tuple(int(row[0]) for row in used.rows),
            question=question,
            chart=plan.chart,
        )

    def run_sql(self, table: Table, sql: str, *, question: str = "") -> TableResult:
        """What a SELECT gives that a model wrote over the table's own names.

        Raises:
            UserError: it is no such SELECT, or fails; the message is fit for the model.
            TooLarge: it takes too long.
        """
        query = parsed(sql, [SQL_NAME])
        named = exp.select(
            *(exp.column(f"c{at}").as_(c.name, quoted=True) for at, c in enumerate(table.columns))
        )
        own = named.from_(DATA).where(exp.not_(exp.column(TOTAL)))
        found = self._ask(table, query.with_(SQL_NAME, as_=own))
        kinds = [kind.split("(")[0] in FIGURES for kind in found.kinds]
        columns = [ResultColumn(n, k, decimals=2) for n, k in zip(found.names, kinds, strict=True)]
        return TableResult(
            table_id=table.id,
            table_name=table.name,
            document_id=table.document_id,
            document_name=table.document_name,
            document_title=table.document_title,
            plan=TablePlan(table.id).as_dict(),
            words="a query written by the model",
            sql=query.sql(dialect="duckdb", pretty=True),
            columns=tuple(columns),
            rows=tuple(found.rows),
            has_more=found.has_more,
            used=(),
            question=question,
        )

    def _ask(self, table: Table, query: exp.Expr) -> Answered:
        return run({DATA: self.store.files.path(table.id)}, query, self._limits)

    def rows(self, table: Table, offset: int, limit: int, words: str = "") -> Answered:
        """Rows as they stand in the file, their numbers first; those that hold the words."""
        names = [
            exp.column(f"t{at}" if column.has_text else f"c{at}").as_(f"x{at}")
            for at, column in enumerate(table.columns)
        ]
        query = exp.select("row", *names).from_(DATA).order_by("row").offset(offset).limit(limit)
        for word in words.casefold().split():
            holds = [
                exp.func(
                    "contains",
                    exp.Lower(this=exp.cast(name.this.copy(), "text")),
                    exp.Literal.string(word),
                )
                for name in names
            ]
            query = query.where(exp.or_(*holds))
        return self._ask(table, query)

    def numbered_rows(self, table: Table, numbers: Sequence[int]) -> Answered:
        """The rows with these numbers."""
        names = [
            exp.column(f"t{at}" if column.has_text else f"c{at}").as_(f"x{at}")
            for at, column in enumerate(table.columns)
        ]
        wanted = [exp.Literal.number(number) for number in numbers] or [exp.Literal.number(-1)]
        is_one = exp.In(this=exp.column("row"), expressions=wanted)
        return self._ask(table, exp.select("row", *names).from_(DATA).where(is_one).order_by("row"))

    # ── Questions ────────────────────────────────────────────────────────────────────────────

    def understand(self, question: str, *, among: Sequence[Table] | None = None) -> list[Choice]:
        """What the question may ask, of which tables; best first."""
        tables = self._shortlist(question) if among is None else among
        choices = []
        for table in tables:
            understood = understand(question, self.index(table))
            if understood is None:
                continue
            plan = replace(understood.plan, table=table.id)
            try:
                checked(plan, table)
            except UserError:
                continue
            score = understood.score + self._named(question, table)
            choices.append(Choice(table, replace(understood, plan=plan, score=score)))
        return sorted(choices, key=lambda choice: -choice.understood.score)

    def _named(self, question: str, table: Table) -> float:
        own = {stem(w) for w in normalised(f"{table.name} {table.document_title}").split()}
        return NAMED * len(own & {stem(word) for word in normalised(question).split()})

    def _shortlist(self, question: str) -> list[Table]:
        """Tables that share the rarest words with the question."""
        _ids, tables, spread = self._library()
        words = set(normalised(question).split())
        words |= {stem(word) for word in words} | {word.rstrip("s") for word in words}
        total = len(tables)
        scored = []
        for table in tables:
            held = words & set(table.words.split())
            score = sum(log(1 + total / spread[word]) for word in held)
            scored.append((score, table))
        scored.sort(key=lambda pair: -pair[0])
        return [table for score, table in scored[:SHORTLIST] if score > 0]

    def _library(self) -> tuple[tuple[str, ...], list[Table], Counter[str]]:
        ids = self.store.ids()
        known = self._known
        if known is None or known[0] != ids:
            tables = self.store.tables()
            spread = Counter(word for table in tables for word in set(table.words.split()))
            self._known = known = (ids, tables, spread)
        return known

    def index(self, table: Table) -> TableIndex:
        """Of names and values; kept for the tables that were asked last."""
        with self._turn:
            found = self._indexes.get(table.id)
            if found is not None:
                self._indexes.move_to_end(table.id)
                return found
        made = TableIndex(table, self._values(table), self._probe(table))
        with self._turn:
            self._indexes[table.id] = made
            while len(self._indexes) > KEPT_INDEXES:
                self._indexes.popitem(last=False)
        return made

    def _values(self, table: Table) -> dict[str, Sequence[str]]:
        found: dict[str, Sequence[str]] = {}
        for at, column in enumerate(table.columns):
            is_text = column.type is ColumnType.TEXT or column.has_text
            if is_text and _has_all(column):
                found[column.name] = column.examples
            elif is_text and column.distinct <= MOST_VALUES:
                name = exp.column(f"t{at}" if column.has_text else f"c{at}")
                query = exp.select(name).distinct().from_(DATA).limit(MOST_VALUES)
                query = query.where(exp.not_(exp.column(TOTAL)))
                limits = replace(self._limits, rows=MOST_VALUES)
                answered = run({DATA: self.store.files.path(table.id)}, query, limits)
                found[column.name] = [str(row[0]) for row in answered.rows if row[0] is not None]
        return found

    def _probe(self, table: Table) -> Probe | None:
        """Looks for words among the values of columns that have too many to be held."""
        long = [
            (at, column.name)
            for at, column in enumerate(table.columns)
            if column.type is ColumnType.TEXT and column.distinct > MOST_VALUES
        ]

        def probe(grams: Sequence[str]) -> list[tuple[str, str]]:
            found = []
            for at, name in long:
                value = exp.column(f"c{at}")
                wanted = [exp.Literal.string(gram) for gram in grams]
                is_one = exp.In(this=exp.Lower(this=value), expressions=wanted)
                query = exp.select(value.copy()).distinct().from_(DATA).where(is_one).limit(50)
                found += [(name, str(row[0])) for row in self._ask(table, query).rows]
            return found

        return probe if long else None


def _has_all(column: TableColumn) -> bool:
    """Whether the profile's examples are all values of a column."""
    is_whole = all(len(each) < LONGEST_EXAMPLE for each in column.examples)
    return is_whole and column.distinct <= len(column.examples)
