"""Sources of one session in the database: the register of C1.

As in `rag.conversation.transcript`, the caller has made sure that the session is its owner's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from rag.citations.markers import cited_numbers
from rag.citations.register import as_source, assign_numbers, content_hash
from rag.conversation.rows import source_columns, source_from
from rag.database import chunks, documents, sessions, sources, storable
from rag.errors import Conflict, UserError
from rag.records import Hit, ImportedMessage, Source

HIGHEST_IMPORTED = 9_999
PLACEHOLDER = "This source was not brought along when the conversation was imported."


def numbers_of(connection: Connection, session_id: str, chunk_ids: Sequence[str]) -> dict[str, int]:
    """Numbers by chunk id; those that are registered."""
    rows = connection.execute(
        select(sources.c.chunk_id, sources.c.number).where(
            sources.c.session_id == session_id, sources.c.chunk_id.in_(chunk_ids)
        )
    )
    return {row.chunk_id: row.number for row in rows}


def register(connection: Connection, session_id: str, hits: Sequence[Hit]) -> None:
    """Give new chunks the next free numbers, in order; the caller holds the session's row lock."""
    wanted = [hit.chunk.id for hit in hits]
    known = numbers_of(connection, session_id, wanted)
    taken = source_count(connection, session_id)
    numbers = assign_numbers(known, wanted, taken=taken)
    first = {hit.chunk.id: hit for hit in reversed(hits)}
    fresh = [as_source(first[key], number) for key, number in numbers.items() if key not in known]
    add(connection, session_id, fresh)


def add(connection: Connection, session_id: str, fresh: Sequence[Source]) -> None:
    """Insert sources whose numbers follow the highest one without a gap."""
    if not fresh:
        return
    connection.execute(
        insert(sources),
        [_storable_columns(source) | {"session_id": session_id} for source in fresh],
    )
    connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(source_count=max(source.number for source in fresh))
    )


def _storable_columns(source: Source) -> dict[str, Any]:
    return {
        key: storable(value) if isinstance(value, str) else value
        for key, value in source_columns(source).items()
    }


def source_count(connection: Connection, session_id: str) -> int:
    """Numbers 1 to this are registered."""
    return int(
        connection.execute(
            select(sessions.c.source_count).where(sessions.c.id == session_id)
        ).scalar_one()
    )


def read(
    connection: Connection, session_id: str, numbers: Sequence[int] | None = None
) -> list[Source]:
    """Sources by number, with what became of them."""
    query = (
        select(sources, chunks.c.id.label("chunk_now"), documents.c.id.label("document_now"))
        .select_from(sources)
        .outerjoin(chunks, chunks.c.id == sources.c.chunk_id)
        .outerjoin(documents, documents.c.id == sources.c.document_id)
        .where(sources.c.session_id == session_id)
        .order_by(sources.c.number)
    )
    if numbers is not None:
        query = query.where(sources.c.number.in_([n for n in numbers if n < 2**31]))
    return [source_from(row) for row in connection.execute(query)]


def bring(
    connection: Connection,
    session_id: str,
    messages: Iterable[ImportedMessage],
    brought: Sequence[Source],
) -> None:
    """Register the sources of an imported transcript.

    A number that is cited without a source, or skipped, gets a placeholder: it stays taken, opens,
    and says what it is.
    """
    count = source_count(connection, session_id)
    taken = {source.number: source for source in read(connection, session_id)} if count else {}
    for source in brought:
        rival = taken.get(source.number)
        if rival is not None and rival.chunk_id != source.chunk_id:
            raise Conflict(
                f"[{source.number}] already stands for {rival.document_name} in this session. "
                "Import into a new session to keep its numbers."
            )
    numbers = numbers_of(connection, session_id, [source.chunk_id for source in brought])
    for source in brought:
        if numbers.get(source.chunk_id, source.number) != source.number:
            raise Conflict(
                f"{source.document_name} already has the number [{numbers[source.chunk_id]}] in "
                f"this session, not [{source.number}]. Import into a new session."
            )
    cited = {number for message in messages for number in cited_numbers(message.content)}
    by_number = {source.number: source for source in brought}
    highest = max(cited | by_number.keys(), default=0)
    if highest > HIGHEST_IMPORTED:
        raise UserError(
            f"The transcript uses the number [{highest}]; at most [{HIGHEST_IMPORTED}] can be "
            "imported. Renumber its citations."
        )
    fresh = [by_number.get(n) or _placeholder(n) for n in range(count + 1, highest + 1)]
    add(connection, session_id, fresh)


def _placeholder(number: int) -> Source:
    return Source(
        number=number,
        chunk_id=f"imported:{number}",
        document_id="",
        document_name="imported conversation",
        document_title="Imported conversation",
        locator="",
        heading_path=(),
        text=PLACEHOLDER,
        passage=PLACEHOLDER,
        content_hash=content_hash(PLACEHOLDER),
    )
