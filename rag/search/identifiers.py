"""Which passages hold a code that a question names, and which codes are near to an unknown one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import OSA
from sqlalchemy import ColumnElement, Connection, Engine, and_, func, or_, select

from rag.db import chunks, inside, reading
from rag.db import identifiers as table
from rag.language.names import Identifier, asked_identifiers
from rag.records import MissingIdentifier, Readable

FEW, SHARE = 5, 0.01  # passages that a code may be in, at most, to be one: so many, or that share
ENDS = 2  # signs at either end, one of which near codes have in common
LONG = 9  # signs of a code in which two may differ; in a shorter one, one
MOST_NEAR, NEAR_SHOWN = 5_000, 3
MOST_PASSAGES = 200


@dataclass(frozen=True, slots=True)
class Identified:
    """Passages by the codes of a question: that hold one, that hold one near to it."""

    exact: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    missing: tuple[MissingIdentifier, ...] = field(default=())


NONE = Identified()


class IdentifierIndex:
    """Looks up codes in the table that is written with the chunks, within what may be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def look_up(self, question: str, readable: Readable) -> Identified:
        """What the codes of a question point at; nothing for one that is everywhere."""
        asked = asked_identifiers(question)
        if not asked or readable.ids == frozenset():
            return NONE
        with reading(self._engine) as connection:
            most = max(FEW, int(SHARE * _size(connection, readable)))
            holders = _holders(
                connection, {identifier.code for one in asked for identifier in one}, readable
            )
            exact: set[str] = set()
            near: set[str] = set()
            missing = []
            for choices in asked:
                known = [holders[choice.code] for choice in choices if choice.code in holders]
                if known:
                    exact.update(known[0] if len(known[0]) <= most else ())
                    continue
                like = _near(connection, choices, readable)
                found = _holders(connection, like, readable)
                near.update(chunk_id for ids in found.values() for chunk_id in ids)
                shown = tuple(like[code] for code in list(like)[:NEAR_SHOWN] if code in found)
                missing.append(MissingIdentifier(choices[0].written, shown))
        return Identified(frozenset(exact), frozenset(near - exact), tuple(missing))


def _size(connection: Connection, readable: Readable) -> int:
    found = select(func.count()).select_from(chunks).where(inside(chunks.c.collection_id, readable))
    return int(connection.execute(found).scalar_one())


def _holders(
    connection: Connection, codes: Iterable[str], readable: Readable
) -> dict[str, Sequence[str]]:
    """Passages by the codes that any holds; figures alone may be written with stops there."""
    wanted = set(codes)
    is_one: ColumnElement[bool] = table.c.code.in_(sorted(wanted))
    figures = sorted(filter(str.isdigit, wanted))
    if figures:
        is_parted = table.c.code.contains(".")
        is_one = or_(is_one, and_(is_parted, func.replace(table.c.code, ".", "").in_(figures)))
    query = (
        select(table.c.code, table.c.chunk_id)
        .join(chunks, chunks.c.id == table.c.chunk_id)
        .where(is_one, inside(chunks.c.collection_id, readable))
        .limit(MOST_PASSAGES * max(1, len(wanted)))
    )
    results: dict[str, list[str]] = {}
    for row in connection.execute(query):
        code = row.code if row.code in wanted else row.code.replace(".", "")
        results.setdefault(code, []).append(row.chunk_id)
    return dict(results)


def _near(
    connection: Connection, choices: Sequence[Identifier], readable: Readable
) -> Mapping[str, str]:
    """Codes that a slip or two make of one that was asked for, the nearest first, as written."""
    results: dict[str, tuple[int, str]] = {}
    for identifier in choices:
        slips = 2 if len(identifier.code) >= LONG else 1
        query = (
            select(table.c.code, func.min(table.c.written).label("written"))
            .join(chunks, chunks.c.id == table.c.chunk_id)
            .where(
                func.length(table.c.code).between(
                    len(identifier.code) - slips, len(identifier.code) + slips
                ),
                or_(
                    table.c.code.startswith(identifier.code[:ENDS], autoescape=True),
                    table.c.code.endswith(identifier.code[-ENDS:], autoescape=True),
                ),
                inside(chunks.c.collection_id, readable),
            )
            .group_by(table.c.code)
            .limit(MOST_NEAR)
        )
        for row in connection.execute(query):
            distance = OSA.distance(identifier.code, row.code, score_cutoff=slips)
            if distance <= slips:
                results.setdefault(row.code, (distance, row.written))
    least = min((distance for distance, _ in results.values()), default=0)
    best = {code: each for code, each in results.items() if each[0] == least}
    return {code: best[code][1] for code in sorted(best)}
