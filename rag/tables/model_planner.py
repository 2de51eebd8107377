"""A language model fills the plan: it sees schemas and the question, never a figure to repeat."""

from collections.abc import Sequence
from dataclasses import replace

from rag.errors import UserError
from rag.records import ChatMessage, Role, Table
from rag.runtime.budget import json_object, reply_soon
from rag.seams import ChatModel
from rag.seams.models import TABLE_PLAN
from rag.tables.execution.engine import OWN_NAME
from rag.tables.execution.result import TableResult
from rag.tables.library import TableLibrary
from rag.tables.plan import Choice, Kind, Op, Part, checked, plan_from

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
say it: {{"table": "T1", "sql": "SELECT … FROM {OWN_NAME} …"}} (DuckDB, one SELECT, columns in
double quotes).
Where no table answers: {{"table": null}}."""


class ModelPlanner:
    """Asks a model for a plan, once more with its error where that cannot be run.

    Somebody waits for that: a model that answers with anything but an object is not asked again.
    """

    def __init__(self, model: ChatModel, library: TableLibrary) -> None:
        self._model = model
        self._library = library

    def result(self, question: str, choices: Sequence[Choice]) -> TableResult | None:
        """What the model's plan gives; None where it names no table or cannot be run."""
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
        given = json_object(reply)
        if given is None:
            raise UserError("That is no JSON object.")
        if given.get("table") is None:
            return None
        table = tables.get(str(given["table"]))
        if table is None:
            raise UserError(f"There is no table {given['table']!r}; there are {', '.join(tables)}.")
        if given.get("sql"):
            return self._library.run_sql(table, str(given["sql"]), question=question)
        if not isinstance(given.get("plan"), dict):
            raise UserError("The object holds neither a plan nor sql.")
        plan = replace(plan_from(given["plan"]), table=table.id)
        return self._library.run(table, checked(plan, table), question=question)


def _described(name: str, table: Table) -> str:
    lines = [f"{name}: {table.label}, {table.row_count} rows"]
    for column in table.columns[:MOST_COLUMNS]:
        shown = ", ".join(example[:40] for example in column.examples[:5])
        unit = f" in {column.unit}" if column.unit else ""
        lines.append(f'- "{column.name}" ({column.type}{unit}): {shown}')
    return "\n".join(lines)
