"""What is said where no table is computed: which is meant, words are unknown."""

import re
from collections.abc import Sequence

from rag.records import Table
from rag.tables.asking.words import IDLE
from rag.tables.plan import Choice
from rag.text.words import STOP_WORDS

ASKED = "Several tables fit this question equally well. Which one do you mean?"
OFFERED = 6
_IDLE = STOP_WORDS | IDLE | {"one", "table", "sheet", "file", "list", "tabelle", "datei", "blatt"}


def asking_which(choices: Sequence[Choice]) -> str:
    """The tables, for a person to name one."""
    names = "\n".join(
        f"- {choice.table.label}, {choice.table.row_count:,} rows ({choice.table.document_name})"
        for choice in choices[:OFFERED]
    )
    return f"{ASKED}\n\n{names}"


def is_asking(answer: str) -> bool:
    """Whether an answer asked which table is meant."""
    return answer.startswith(ASKED)


def named_in(reply: str, choices: Sequence[Choice]) -> Choice | None:
    """The table that a reply names: by words that all are its own, and no other's alike."""
    said = _words(reply) - _IDLE
    if not said:
        return None
    fitting = [each for each in choices if said <= _words_of(each)]
    short = min((len(_words(each.table.name)) for each in fitting), default=0)
    fitting = [each for each in fitting if len(_words(each.table.name)) == short]
    return fitting[0] if len(fitting) == 1 else None


def _words_of(choice: Choice) -> frozenset[str]:
    table = choice.table
    return _words(f"{table.label} {table.document_name} {table.document_title}")


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.casefold()))


def not_understood(table: Table, words: Sequence[str]) -> str:
    """Words that are in the way, and what the table knows."""
    columns = ", ".join(column.name for column in table.columns[:20])
    return (
        f"{table.label} seems to be asked, but I do not know what "
        f"{quoted(words)} means there, and it could change the result. "
        f"Its columns: {columns}."
    )


def quoted(words: Sequence[str]) -> str:
    """Words of a question."""
    return ", ".join(f"“{word}”" for word in words)
