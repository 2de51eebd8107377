"""Database rows of sessions: messages, summaries, sources, and the word index of recall.

Statements check the session's owner as in `rag.sessions.transcript`.

A block of the word index is written once, when its messages cannot change any more; erasing a
message erases its block and all later ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import (
    Connection,
    Executable,
    TextClause,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    update,
)

from rag.citations.markers import cited_numbers
from rag.citations.register import assign_numbers, brought_source, source_state
from rag.db import (
    as_utc,
    chunks,
    documents,
    earlier_chunks,
    message_vectors,
    message_words,
    messages,
    sessions,
    sources,
    storable,
    summaries,
    table_results,
    tables,
)
from rag.errors import Conflict, NotFound, UserError
from rag.records import (
    NOTHING,
    Answer,
    ContextConfig,
    ContextPreferences,
    ImportedMessage,
    LineEdit,
    Message,
    MessageStatus,
    Quotation,
    Readable,
    Role,
    Session,
    Source,
    Summary,
    SummaryLine,
    SummaryReport,
)
from rag.seams import Overview

_ANSWER = TypeAdapter(Answer)
_REPORT = TypeAdapter(SummaryReport)  # earlier versions counted other things, too
_LINES = TypeAdapter(tuple[SummaryLine, ...])
_EDITS = TypeAdapter(tuple[LineEdit, ...])
_OF_A_SOURCE = tuple(field.name for field in fields(Source) if field.name != "state")
# What was said, and when: all of a message but `details`.
TEXT_COLUMNS = (
    messages.c.index,
    messages.c.turn,
    messages.c.role,
    messages.c.content,
    messages.c.status,
    messages.c.created_at,
    messages.c.revision,
)


def session_from(row: Any) -> Session:
    """Return a session from its row."""
    return Session(
        id=row.id,
        owner=row.owner,
        title=row.title,
        created_at=as_utc(row.created_at),
        last_used_at=as_utc(row.last_used_at),
        message_count=row.message_count,
        config=ContextConfig(**row.config | {"share": tuple(row.config.get("share", ()))}),
        collections=tuple(row.collections or ()),
        expires_at=None if row.expires_at is None else as_utc(row.expires_at),
        parent=row.parent,
        branch_index=row.branch_index,
        family=row.family,
        source_count=row.source_count,
        model=row.model,
        client_id=row.client_id,
    )


def details_of(message: Message) -> dict[str, Any]:
    """Return the `details` column of a message."""
    if message.role != Role.ASSISTANT:
        known_sources = message.known_sources
        return {} if known_sources is None else {"known_sources": known_sources}
    return {
        "answer": None if message.answer is None else asdict(message.answer) | {"text": None},
        "resolved_query": message.resolved_query,
        "is_followup": message.is_followup,
        "error": message.error,
    }


def message_from(row: Any) -> Message:
    """Return a message from its row; one without an answer has no citations.

    Fields that the version which stored an answer did not have get their defaults.
    """
    details, answer = row.details, None
    if stored := details.get("answer"):
        card = stored.get("card")
        if card is not None and "parts" in card:  # as earlier versions stored them
            card = card | {"passages": [one for part in card["parts"] for one in part["passages"]]}
        answer = _ANSWER.validate_python(stored | {"text": row.content, "card": card})
    return Message(
        index=row.index,
        turn=row.turn,
        role=row.role,
        content=row.content,
        status=MessageStatus(row.status),
        created_at=as_utc(row.created_at),
        revision=row.revision,
        answer=answer,
        resolved_query=details.get("resolved_query"),
        is_followup=details.get("is_followup", False),
        error=details.get("error"),
        known_sources=details.get("known_sources"),
    )


def brief_message_from(row: Any) -> Message:
    """Return a message from `TEXT_COLUMNS`, which every turn reads by the dozen."""
    index, turn, role, content, status, created_at, revision = row
    return Message(index, turn, role, content, MessageStatus(status), as_utc(created_at), revision)


def source_columns(source: Source) -> dict[str, Any]:
    """Return the columns of a source, without its session."""
    columns = {name: getattr(source, name) for name in _OF_A_SOURCE}
    return {key: storable(v) if isinstance(v, str) else v for key, v in columns.items()}


def source_from(row: Any, readable: Readable) -> Source:
    """Return a source with its present state: the row has `chunk_now` and `collection_now`.

    A document that the owner may not read any more is shown as deleted.
    """
    is_there = row.collection_now is not None and readable.holds(row.collection_now)
    state = source_state(has_document=is_there, has_chunk=is_there and row.chunk_now is not None)
    columns = {name: getattr(row, name) for name in _OF_A_SOURCE}
    return Source(**columns | {"heading_path": tuple(row.heading_path), "state": state})


def summary_from(row: Any) -> Summary:
    """Return a summary from its row."""
    return Summary(
        start=row.start,
        end=row.end,
        text=row.text,
        required_numbers=tuple(row.required["numbers"]),
        required_names=tuple(row.required["names"]),
        report=_REPORT.validate_python(row.report),
        tokens=row.tokens,
        quotations=tuple(Quotation(*quotation) for quotation in row.required.get("quotations", ())),
        lines=_LINES.validate_python(row.required.get("lines", ())),
        model_lines=_LINES.validate_python(row.required.get("model_lines", ())),
        written_to=row.required.get("written_to", 0),
        edits=_EDITS.validate_python(row.required.get("edits", ())),
        id=row.summary_id,
    )


# Conditions for statements that are put together once; `SessionKey.asking` gives their values. The
# first is for the row of the session itself, the second for what belongs to the session.
IS_MINE = (sessions.c.id == bindparam("its_id")) & (sessions.c.owner == bindparam("its_owner"))
OWNED = select(literal_column("1")).select_from(sessions).where(IS_MINE).exists()
_THERE = select(sessions.c.id).where(IS_MINE)


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session's id and its owner, without whom the id opens nothing."""

    id: str
    owner: str

    def asking(self, **more: Any) -> dict[str, Any]:
        """Return the parameters of a statement with one of the conditions."""
        return {"its_id": self.id, "its_owner": self.owner, **more}


def fetch_rows(
    connection: Connection, key: SessionKey, /, query: Executable, **conditions: Any
) -> Sequence[Any]:
    """Return the rows of a statement with one of the conditions. Raises NotFound."""
    rows = connection.execute(query, key.asking(**conditions)).all()
    if not rows:
        check(connection, key)
    return rows


def check(connection: Connection, key: SessionKey) -> None:
    """Raises NotFound if the owner has no such session."""
    if connection.execute(_THERE, key.asking()).one_or_none() is None:
        raise absent(key)


def absent(key: SessionKey) -> NotFound:
    """Return the error for a session that does not exist or belongs to another owner."""
    return NotFound(f"There is no session {key.id!r}. It may have been deleted.")


ON_REQUEST = -1  # the epoch of summaries made on request: it never was, and is never over
SUMMARY_COLUMNS = (
    summaries.c.id.label("summary_id"),
    summaries.c.start,
    summaries.c.end,
    summaries.c.text,
    summaries.c.required,
    summaries.c.report,
    summaries.c.tokens,
    summaries.c.created_at.label("summarised_at"),
)
_ACTIVE = and_(
    summaries.c.session_id == sessions.c.id,
    summaries.c.epoch == sessions.c.epoch,
)
# Put together once: every turn reads by it. A session without summaries gives one row, too.
_OVERVIEW = (
    select(sessions, *SUMMARY_COLUMNS)
    .select_from(sessions.outerjoin(summaries, _ACTIVE))
    .where(IS_MINE)
    .order_by(summaries.c.start)
)
_ON_REQUEST = (
    select(*SUMMARY_COLUMNS)
    .where(summaries.c.session_id == bindparam("its_id"), summaries.c.epoch == ON_REQUEST, OWNED)
    .order_by(summaries.c.id)
)
_EPOCH = select(sessions.c.epoch).where(IS_MINE)
_PREFERENCES = select(sessions.c.preferences).where(IS_MINE)


def epoch(connection: Connection, key: SessionKey) -> int:
    """Return the number of the current epoch, which ends when summaries are forgotten."""
    return int(fetch_rows(connection, key, _EPOCH)[0].epoch)


def overview(connection: Connection, key: SessionKey) -> Overview:
    """Return the session with the parts of its present context."""
    rows = connection.execute(_OVERVIEW, key.asking()).all()
    if not rows:
        raise absent(key)
    stored = rows[0].preferences or {}
    return Overview(
        session_from(rows[0]),
        tuple(summary_from(row) for row in rows if row.summary_id is not None),
        ContextPreferences(
            rows[0].requested_start,
            rows[0].requested_end,
            include_search_results=stored.get("include_search_results", False),
            max_context_messages=stored.get("max_context_messages"),
        ),
        tuple(stored.get("matches", ())),
        rows[0].forgotten,
    )


def prefer(connection: Connection, key: SessionKey, preferences: ContextPreferences) -> None:
    """Store the preferences for the next context, in place of earlier ones."""
    stored = {
        "include_search_results": preferences.include_search_results,
        "max_context_messages": preferences.max_context_messages,
        "matches": _preferences(connection, key).get("matches", []),
    }
    start, end = preferences.slice or (None, None)
    connection.execute(
        update(sessions)
        .where(sessions.c.id == key.id)
        .values(requested_start=start, requested_end=end, preferences=stored)
    )


def note_matches(connection: Connection, key: SessionKey, indices: Sequence[int]) -> None:
    """Store which messages the last search of the history found."""
    stored = _preferences(connection, key) | {"matches": list(indices)}
    mine = sessions.c.id == key.id
    connection.execute(update(sessions).where(mine).values(preferences=stored))


def _preferences(connection: Connection, key: SessionKey) -> dict[str, Any]:
    return dict(fetch_rows(connection, key, _PREFERENCES)[0].preferences or {})


def on_request(connection: Connection, key: SessionKey) -> list[Summary]:
    """Return the summaries that a person requested, oldest first."""
    return [summary_from(row) for row in fetch_rows(connection, key, _ON_REQUEST)]


def add(
    connection: Connection, session_id: str, summary: Summary, *, in_epoch: int, now: datetime
) -> None:
    """Insert a summary, in place of one of the same range."""
    connection.execute(
        delete(summaries).where(
            summaries.c.session_id == session_id,
            summaries.c.epoch == in_epoch,
            summaries.c.start == summary.start,
            summaries.c.end == summary.end,
        )
    )
    required = {
        "numbers": list(summary.required_numbers),
        "names": [storable(name) for name in summary.required_names],
        "quotations": [
            [quotation.start, quotation.end, quotation.message] for quotation in summary.quotations
        ],
        "lines": [_line(line) for line in summary.lines],
        "model_lines": [_line(line) for line in summary.model_lines],
        "written_to": summary.written_to,
        "edits": [
            asdict(edit) | {"original": storable(edit.original), "text": storable(edit.text)}
            for edit in summary.edits
        ],
    }
    connection.execute(
        insert(summaries).values(
            session_id=session_id,
            epoch=in_epoch,
            start=summary.start,
            end=summary.end,
            text=storable(summary.text),
            report=asdict(summary.report),
            tokens=summary.tokens,
            required=required,
            created_at=now,
        )
    )


def _line(line: SummaryLine) -> dict[str, Any]:
    return asdict(line) | {"text": storable(line.text)}


def overlaps(existing: Sequence[Summary], summary: Summary, replaces: Sequence[int]) -> bool:
    """Whether a new summary overlaps an active one that it does not replace."""
    return any(
        other.id not in replaces and other.start < summary.end and summary.start < other.end
        for other in existing
    )


def remove(connection: Connection, ids: Sequence[int]) -> None:
    """Delete summaries that another one replaces."""
    connection.execute(delete(summaries).where(summaries.c.id.in_(ids)))


def remove_over(connection: Connection, key: SessionKey, start: int, end: int) -> None:
    """Delete summaries of any of these messages; the rest of their range is summarised anew.

    A summary that is being made of them fails. A model's lines about other messages stay, and a
    person's corrections, in a record that covers no messages.
    """
    its, now = summaries.c.session_id == key.id, epoch(connection, key)
    over = and_(its, summaries.c.start < end, summaries.c.end > start)
    rows = connection.execute(select(*SUMMARY_COLUMNS).where(over, summaries.c.epoch == now)).all()
    connection.execute(delete(summaries).where(over))
    connection.execute(update(summaries).where(its, summaries.c.epoch == now).values(epoch=now + 1))
    connection.execute(update(sessions).where(sessions.c.id == key.id).values(epoch=now + 1))
    erased = set(range(start, end))
    for row in rows:
        summary = summary_from(row)
        left = Summary(
            start=summary.start,
            end=summary.start,
            text="",
            tokens=0,
            required_numbers=(),
            required_names=(),
            report=SummaryReport(0, 0, 0, 0),
            edits=tuple(e for e in summary.edits if erased.isdisjoint(e.messages)),
            model_lines=tuple(e for e in summary.model_lines if erased.isdisjoint(e.messages)),
            written_to=min(summary.written_to, start),
        )
        if left.model_lines or left.edits:
            add(connection, key.id, left, in_epoch=now + 1, now=row.summarised_at)


def forget(connection: Connection, session_id: str) -> int:
    """Delete all summaries and begin a new epoch; return how many were deleted.

    Their messages are in no later summary: the next one begins behind them.
    """
    its = summaries.c.session_id == session_id
    of_epoch = select(sessions.c.epoch).where(sessions.c.id == session_id).scalar_subquery()
    active = select(func.max(summaries.c.end)).where(its, summaries.c.epoch == of_epoch)
    end = connection.execute(active).scalar()
    removed = connection.execute(delete(summaries).where(its))
    behind = sessions.c.forgotten if end is None else end
    connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(epoch=sessions.c.epoch + 1, forgotten=behind)
    )
    return removed.rowcount


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
    """Insert sources with the numbers they have."""
    if not fresh:
        return
    connection.execute(
        insert(sources),
        [source_columns(source) | {"session_id": session.id} for source in fresh],
    )
    reserve(connection, session, max(source.number for source in fresh))


def reserve(connection: Connection, session: Session, highest: int) -> None:
    """Mark the numbers up to this one as taken, with or without a source."""
    is_lower = sessions.c.source_count < highest
    is_it = sessions.c.id == session.id
    if session.family:
        is_it |= sessions.c.family == session.family
    connection.execute(update(sessions).where(is_it, is_lower).values(source_count=highest))


def _numbers_in_family(
    connection: Connection, session: Session, chunk_ids: Sequence[str] | None = None
) -> dict[str, int]:
    """Return the numbers that chunks have in any branch."""
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
    """Return sources by number, with their present state."""
    if numbers is None:
        rows = fetch_rows(connection, key, _READ)
    else:
        possible = [number for number in numbers if number < 2**31]
        rows = fetch_rows(connection, key, _READ_NUMBERS, numbers=possible)
    return [source_from(row, readable) for row in rows]


def of_chunks(
    connection: Connection, key: SessionKey, readable: Readable, chunk_ids: Sequence[str]
) -> list[Source]:
    """Return the registered sources of these chunks, by number."""
    rows = fetch_rows(connection, key, _READ_CHUNKS, chunk_ids=list(chunk_ids))
    return [source_from(row, readable) for row in rows]


def keep_result(
    connection: Connection, session_id: str, number: int, table_id: str, content: Mapping[str, Any]
) -> None:
    """Store a table result beside its source; the same plan over the same table gives the same."""
    is_it = (table_results.c.session_id == session_id) & (table_results.c.number == number)
    if connection.execute(select(table_results.c.number).where(is_it)).one_or_none() is None:
        connection.execute(
            insert(table_results).values(
                session_id=session_id, number=number, table_id=table_id, content=dict(content)
            )
        )


def result(connection: Connection, key: SessionKey, number: int) -> dict[str, Any] | None:
    """Return the table result of a source."""
    rows = fetch_rows(connection, key, _RESULT, number=number)
    return dict(rows[0].content) if rows else None


def bring(
    connection: Connection,
    key: SessionKey,
    session: Session,
    cited: Collection[int] | None,
    brought: Sequence[Source],
) -> None:
    """Register the sources and the cited numbers of an imported transcript.

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
    name = "imported conversation"
    fresh = [
        by_number.get(n) or brought_source(n, PLACEHOLDER, name, document_title=name.capitalize())
        for n in sorted(wanted - taken.keys())
    ]
    _add(connection, session, fresh)


def cited_in(messages: Iterable[ImportedMessage]) -> set[int]:
    """Return the numbers that answers cite; brackets in questions are the user's own."""
    answers = (message.content for message in messages if message.role == Role.ASSISTANT)
    return {number for answer in answers for number in cited_numbers(answer)}


BATCH = 200  # words of one statement; SQLite takes 500 parts
LONGEST = 200  # characters of a word; longer ones are not looked up
SIZE = ""  # the word whose postings tell the size of the index
_NEWEST_BLOCK = (
    select(message_words.c.end, message_words.c.postings)
    .where(message_words.c.session_id == bindparam("its_id"), message_words.c.word == SIZE, OWNED)
    .order_by(message_words.c.end.desc())
    .limit(1)
)
_BLOCKS_OF_WORD = """
SELECT * FROM (
    SELECT word, "end", postings FROM message_words
    WHERE session_id = :its_id AND word = :word{0} AND "end" <= :last
    AND EXISTS (SELECT 1 FROM sessions WHERE id = :its_id AND owner = :its_owner)
    ORDER BY "end" DESC LIMIT :most
) AS word{0}"""


@lru_cache(maxsize=256)
def _of_words(count: int) -> TextClause:
    return text(" UNION ALL ".join(_BLOCKS_OF_WORD.format(number) for number in range(count)))


def newest_block(connection: Connection, key: SessionKey) -> tuple[int, bytes]:
    """Return the end of the last block and the index's size there. Raises NotFound."""
    rows = fetch_rows(connection, key, _NEWEST_BLOCK)
    return (rows[0].end, rows[0].postings) if rows else (0, b"")


def blocks_of(
    connection: Connection, key: SessionKey, words: Sequence[str], *, last: int, most: int
) -> dict[str, list[tuple[int, bytes]]]:
    """Return the newest blocks with each word and their ends, newest first. Raises NotFound."""
    wanted = [storable(word) for word in words if 0 < len(word) <= LONGEST]
    if not wanted:
        check(connection, key)
        return {}
    blocks: dict[str, list[tuple[int, bytes]]] = {}
    for start in range(0, len(wanted), BATCH):
        some = {f"word{n}": word for n, word in enumerate(wanted[start : start + BATCH])}
        for row in fetch_rows(connection, key, _of_words(len(some)), last=last, most=most, **some):
            blocks.setdefault(row.word, []).append((row.end, bytes(row.postings)))
    return blocks


def add_words(
    connection: Connection, session_id: str, end: int, size: bytes, words: Mapping[str, bytes]
) -> None:
    """Insert the next block, up to a message."""
    every = {storable(word): postings for word, postings in words.items()} | {SIZE: size}
    rows = [
        {"session_id": session_id, "word": word, "end": end, "postings": postings}
        for word, postings in every.items()
        if len(word) <= LONGEST
    ]
    connection.execute(insert(message_words), rows)


def remove_words(connection: Connection, session_id: str, first: int) -> None:
    """Delete the blocks that hold a message or later ones; they are made anew."""
    behind = (message_words.c.session_id == session_id) & (message_words.c.end > first)
    connection.execute(delete(message_words).where(behind))


_ITS_VECTORS = (message_vectors.c.session_id == bindparam("its_id"), OWNED)
_VECTORS_OF = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS_VECTORS, message_vectors.c.index.in_(bindparam("wanted", expanding=True))
)
_BEHIND = select(message_vectors.c.index, message_vectors.c.vector).where(
    *_ITS_VECTORS, message_vectors.c.index > bindparam("last")
)
_UNTIL = (
    *_ITS_VECTORS,
    message_vectors.c.index <= bindparam("last"),
    message_vectors.c.index >= bindparam("since"),
)
_COUNTED = select(func.count()).select_from(message_vectors).where(*_UNTIL)
_INDICES = select(message_vectors.c.index).where(*_UNTIL)


def save_vectors(connection: Connection, session_id: str, vectors: Mapping[int, Any]) -> None:
    """Store vectors in place of earlier ones."""
    import numpy as np

    of_session = message_vectors.c.session_id == session_id
    connection.execute(
        delete(message_vectors).where(of_session, message_vectors.c.index.in_(vectors))
    )
    rows = [
        {"session_id": session_id, "index": index, "vector": np.asarray(vector, "<f4").tobytes()}
        for index, vector in vectors.items()
    ]
    connection.execute(insert(message_vectors), rows)


def vectors_of(connection: Connection, key: SessionKey, indices: Sequence[int]) -> dict[int, Any]:
    """Return the stored vectors of these messages. Raises NotFound."""
    return _arrays(fetch_rows(connection, key, _VECTORS_OF, wanted=list(indices)))


def vectors_besides(
    connection: Connection, key: SessionKey, indices: Collection[int], since: int
) -> dict[int, Any]:
    """Return the vectors of messages from `since` on, without these; raises NotFound.

    The given ones are mostly the newest: the others are counted first, and read if there are any.
    """
    last = max(indices, default=since - 1)
    newer = _arrays(fetch_rows(connection, key, _BEHIND, last=last))
    if fetch_rows(connection, key, _COUNTED, last=last, since=since)[0][0] == len(indices):
        return newer
    every = (index for (index,) in fetch_rows(connection, key, _INDICES, last=last, since=since))
    return newer | vectors_of(connection, key, [index for index in every if index not in indices])


def _arrays(rows: Sequence[Any]) -> dict[int, Any]:
    import numpy as np

    return {index: np.frombuffer(vector, dtype="<f4") for index, vector in rows}
