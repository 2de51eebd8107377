"""How much a question over rows, or one plan, may hold: looked at before it is read."""

from collections.abc import Mapping
from typing import Any

from rag.errors import TooLarge

MOST = {
    "filters": 50,
    "values": 1_000,
    "group": 8,
    "measures": 20,
    "order": 10,
    "columns": 1_000,
    "each": 8,
    "of": 20,
}  # fmt: skip
MOST_IN_ALL = 3_000  # entries of a plan, whatever they are
MOST_KEYS = 50  # of one object
DEEPEST = 12  # objects and lists in each other: a plan among three others
LONGEST_TEXT = 2_000  # of one value or name
MOST_COLUMNS = 400  # of a grid whose rows are asked: in wider ones DuckDB finds none in its memory
LONGEST_QUESTION = 1_000  # characters: longer ones tell, and ask no table


def refuse_long(question: str) -> None:
    """Raises TooLarge with both numbers."""
    if len(question) > LONGEST_QUESTION:
        raise TooLarge(
            f"The question has {len(question):,} characters; a table is asked in at most "
            f"{LONGEST_QUESTION:,}. Send a plan, or ask for less at once."
        )


def refuse_vast(plan: Mapping[str, Any]) -> None:
    """Raises TooLarge that names what is too much, how much came and how much may."""
    seen, waiting = 0, [("plan", plan, 1)]
    while waiting:
        name, value, depth = waiting.pop()
        seen += 1
        _check(name, value)
        if depth > DEEPEST:
            raise TooLarge(f"The plan is nested deeper than {DEEPEST} levels, the limit.")
        if seen > MOST_IN_ALL:
            raise TooLarge(f"The plan has more than {MOST_IN_ALL:,} entries, the limit.")
        if isinstance(value, Mapping):
            waiting += [(str(key), each, depth + 1) for key, each in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [("", each, depth + 1) for each in value]


def _check(name: str, value: Any) -> None:
    if isinstance(value, list | tuple) and len(value) > MOST.get(name, MOST_IN_ALL):
        raise TooLarge(f"The plan has {len(value):,} {name or 'entries'}; at most {_most(name)}.")
    if isinstance(value, Mapping) and len(value) > MOST_KEYS:
        raise TooLarge(f"{name or 'An entry'} has {len(value):,} fields; at most {MOST_KEYS}.")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise TooLarge(
            f"A text of the plan has {len(value):,} characters; at most {LONGEST_TEXT:,} are taken."
        )


def _most(name: str) -> str:
    return f"{MOST.get(name, MOST_IN_ALL):,} are taken"
