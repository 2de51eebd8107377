"""Sources of one session in the database: the register of C1.

Who asks is handled as in `rag.sessions.transcript`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from rag.citations.markers import cited_numbers
from rag.citations.register import assign_numbers, brought_source
from rag.db import chunks, documents, earlier_chunks, sessions, sources, table_results, tables
from rag.errors import Conflict, UserError
from rag.records import NOTHING, ImportedMessage, Readable, Role, Session, Source
from rag.sessions.rows import OWNED, SessionKey, fetch_rows, source_columns, source_from

HIGHEST_IMPORTED = 9_999
PLACEHOLDER = "This source was not brought along when the conversation was imported."


_READ = (
    select(
        sources,
        func.coalesce(chunks.c.id, tables.c.id, earlier_chunks.c.id).label("chunk_now"),
        documents.c.collection_id.label("collection_now"),
    )
    .select_from(sources)
    .outerjoin(chunks, chunks.c.id == sources.c.chunk_id)
    .outerjoin(
        table_results,
        (table_results.c.session_id == sources.c.session_id)
        & (table_results.c.number == sources.c.number),
    )
    .outerjoin(tables, tables.c.id == table_results.c.table_id)
    .outerjoin(earlier_chunks, earlier_chunks.c.id == sources.c.chunk_id)
    .outerjoin(documents, documents.c.id == sources.c.document_id)
    .where(sources.c.session_id == bindparam("its_id"), OWNED)
    .order_by(sources.c.number)
)
# Put together once: every turn reads by them.
_READ_NUMBERS = _READ.where(sources.c.number.in_(bindparam("numbers", expanding=True)))
_READ_CHUNKS = _READ.where(sources.c.chunk_id.in_(bindparam("chunk_ids", expanding=True)))
_RESULT = select(table_results.c.content).where(
    table_results.c.session_id == bindparam("its_id"),
    table_results.c.number == bindparam("number"),
    OWNED,
)


def register(
    connection: Connection, key: SessionKey, session: Session, shown: Sequence[Source]
) -> None:
    """Give new sources the next free numbers, in order; the caller holds the session's row lock."""
    wanted = [source.chunk_id for source in shown]
    registered = {
        source.chunk_id: source.number for source in of_chunks(connection, key, NOTHING, wanted)
    }
    elsewhere = _numbers_in_family(connection, session, wanted) if session.family else {}
    numbers = assign_numbers(elsewhere | registered, wanted, taken=session.source_count)
    first = {source.chunk_id: source for source in reversed(shown)}
    fresh = [
        replace(first[id_], number=number)
        for id_, number in numbers.items()
        if id_ not in registered
    ]
    _add(connection, session, fresh)


def _add(connection: Connection, session: Session, fresh: Sequence[Source]) -> None:
    """Insert sources with the numbers that they have."""
    if not fresh:
        return
    connection.execute(
        insert(sources),
        [source_columns(source) | {"session_id": session.id} for source in fresh],
    )
    reserve(connection, session, max(source.number for source in fresh))


def reserve(connection: Connection, session: Session, highest: int) -> None:
    """Take the numbers up to this one, whether they have a source or not."""
    is_lower = sessions.c.source_count < highest
    is_it = sessions.c.id == session.id
    if session.family:
        is_it |= sessions.c.family == session.family
    connection.execute(update(sessions).where(is_it, is_lower).values(source_count=highest))


def _numbers_in_family(
    connection: Connection, session: Session, chunk_ids: Sequence[str] | None = None
) -> dict[str, int]:
    """The numbers that chunks have in any branch."""
    query = (
        select(sources.c.chunk_id, sources.c.number)
        .join(sessions, sessions.c.id == sources.c.session_id)
        .where(sessions.c.family == session.family, sessions.c.owner == session.owner)
    )
    if chunk_ids is not None:
        query = query.where(sources.c.chunk_id.in_(chunk_ids))
    return {row.chunk_id: row.number for row in connection.execute(query)}


def read(
    connection: Connection,
    key: SessionKey,
    readable: Readable,
    numbers: Sequence[int] | None = None,
) -> list[Source]:
    """Sources by number, with what became of them."""
    if numbers is None:
        rows = fetch_rows(connection, key, _READ)
    else:
        possible = [number for number in numbers if number < 2**31]
        rows = fetch_rows(connection, key, _READ_NUMBERS, numbers=possible)
    return [source_from(row, readable) for row in rows]


def of_chunks(
    connection: Connection, key: SessionKey, readable: Readable, chunk_ids: Sequence[str]
) -> list[Source]:
    """The sources that these chunks are, by number; those that are registered."""
    rows = fetch_rows(connection, key, _READ_CHUNKS, chunk_ids=list(chunk_ids))
    return [source_from(row, readable) for row in rows]


def keep_result(
    connection: Connection, session_id: str, number: int, table_id: str, content: Mapping[str, Any]
) -> None:
    """Beside its source; the same plan over the same table is the same result."""
    is_it = (table_results.c.session_id == session_id) & (table_results.c.number == number)
    if connection.execute(select(table_results.c.number).where(is_it)).one_or_none() is None:
        connection.execute(
            insert(table_results).values(
                session_id=session_id, number=number, table_id=table_id, content=dict(content)
            )
        )


def result(connection: Connection, key: SessionKey, number: int) -> dict[str, Any] | None:
    """The table that a source is."""
    rows = fetch_rows(connection, key, _RESULT, number=number)
    return dict(rows[0].content) if rows else None


def bring(
    connection: Connection,
    key: SessionKey,
    session: Session,
    cited: Collection[int] | None,
    brought: Sequence[Source],
) -> None:
    """Register the sources of a transcript from elsewhere, and the numbers that it cites.

    A cited number without a source, or a skipped one, gets a placeholder: it stays taken, opens,
    and says what it is. Where nothing is told of what is cited, gaps stay.
    """
    count = session.source_count
    taken = {source.number: source for source in read(connection, key, NOTHING)} if count else {}
    in_family = _numbers_in_family(connection, session) if session.family else {}
    in_branches = {n: id_ for id_, n in in_family.items()}
    for source in brought:
        rival = taken.get(source.number)
        if rival is not None and rival.chunk_id != source.chunk_id:
            raise Conflict(
                f"[{source.number}] already stands for {rival.document_name} in this session. "
                "Import into a new session to keep its numbers."
            )
        if in_branches.get(source.number, source.chunk_id) != source.chunk_id:
            raise Conflict(
                f"[{source.number}] stands for another source in a branch of this conversation. "
                "Import into a new session to keep its numbers."
            )
    numbers = {source.chunk_id: source.number for source in taken.values()}
    for source in brought:
        if numbers.get(source.chunk_id, source.number) != source.number:
            raise Conflict(
                f"{source.document_name} already has the number [{numbers[source.chunk_id]}] in "
                f"this session, not [{source.number}]. Import into a new session."
            )
    by_number = {source.number: source for source in brought}
    wanted = {*by_number, *(cited or ())}
    highest = max(wanted, default=0)
    if highest > HIGHEST_IMPORTED:
        raise UserError(
            f"The transcript uses the number [{highest}]; at most [{HIGHEST_IMPORTED}] can be "
            "imported. Renumber its citations."
        )
    if cited is not None:
        wanted |= set(range(count + 1, highest + 1))
    wanted -= {n for n in in_branches if n not in by_number}  # there it is no placeholder
    fresh = [by_number.get(n) or _placeholder(n) for n in sorted(wanted - taken.keys())]
    _add(connection, session, fresh)


def cited_in(messages: Iterable[ImportedMessage]) -> set[int]:
    """Only answers cite: what a question has in brackets is its own."""
    answers = (message.content for message in messages if message.role == Role.ASSISTANT)
    return {number for answer in answers for number in cited_numbers(answer)}


def _placeholder(number: int) -> Source:
    name = "imported conversation"
    return brought_source(number, PLACEHOLDER, name, document_title=name.capitalize())
