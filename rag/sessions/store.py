"""Sessions in the database, each readable by its owner only."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, Engine, Executable, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rag.citations.register import as_source
from rag.db import messages, reading, sessions, storable, writing
from rag.db.audit_trail import record
from rag.errors import Conflict, NotFound
from rag.records import (
    EVERYTHING,
    ContextConfig,
    ContextPreferences,
    Hit,
    ImportedMessage,
    Message,
    Readable,
    Session,
    Source,
    Summary,
)
from rag.runtime.budget import paced
from rag.seams import MessageMatches, OpenTurn, Overview, SessionHandle
from rag.sessions import leases, rows, transcript
from rag.sessions.rows import IS_MINE, SessionKey, absent, session_from

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
CollectionsOf = Callable[[str], Readable]  # of an owner: the collections that it may read now
TO_THE_END = 2**31 - 1
# Put together once: every call of a session begins with one of them.
_MINE = select(sessions).where(IS_MINE)
_MINE_LOCKED = _MINE.with_for_update()
_FAMILY_LOCKED = (
    select(sessions)
    .where(
        IS_MINE | sessions.c.family.in_(select(sessions.c.family).where(IS_MINE).correlate(None))
    )
    .order_by(sessions.c.id)
    .with_for_update()
)


class _OwnedRows:
    """The rows of one session of one owner; see `rag.seams.conversations` for every promise."""

    def __init__(
        self,
        engine: Engine,
        key: SessionKey,
        registry: leases.Leases,
        readable: CollectionsOf,
        *,
        clock: leases.Clock,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._key = key
        self.id, self.owner = key.id, key.owner
        self._leases = registry
        self._readable = readable

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, Session]]:
        """Open a transaction for several reads of the same state."""
        with reading(self._engine) as connection:
            yield connection, self._mine(connection, _MINE)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, Session]]:
        """Open a write transaction that locks the session's row, so that writers take turns."""
        with writing(self._engine) as connection:
            yield connection, self._mine(connection, _MINE_LOCKED)

    @contextmanager
    def _numbering(self) -> Iterator[tuple[Connection, Session]]:
        """Open a write transaction that gives numbers: all branches are locked, in one order."""
        with writing(self._engine) as connection:
            rows = connection.execute(_FAMILY_LOCKED, self._key.asking()).all()
            row = next((row for row in rows if row.id == self.id), None)
            if row is None:
                raise absent(self._key)
            yield connection, session_from(row)

    def _mine(self, connection: Connection, query: Executable) -> Session:
        row = connection.execute(query, self._key.asking()).one_or_none()
        if row is None:
            raise absent(self._key)
        return session_from(row)

    def _look(
        self,
        read: Callable[Concatenate[Connection, SessionKey, Arguments], Returned],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Returned:
        """Run one read whose statement checks the owner itself."""
        with self._engine.connect() as connection:
            return read(connection, self._key, *arguments, **named)

    def _set(self, **values: Any) -> None:
        with self._writing() as (connection, _):
            connection.execute(update(sessions).where(sessions.c.id == self.id).values(**values))

    def read(self) -> Session:
        with self._engine.connect() as connection:
            return self._mine(connection, _MINE)

    def readable(self) -> Readable:
        return self._readable(self.owner).only(self.read().collections)


class SqlTranscript(_OwnedRows):
    """The messages of a session."""

    def begin(self, question: str) -> OpenTurn:
        with writing(self._engine) as connection:
            turn = transcript.begin(connection, self._key, question, now=self._clock())
        self._leases.hold(self.id, turn.answer)
        return turn

    def begin_again(self, index: int) -> OpenTurn:
        with self._writing() as (connection, session):
            now = self._clock()
            turn = transcript.begin_again(connection, self._key, session, index, now=now)
        self._leases.hold(self.id, turn.answer)
        return turn

    def finish(self, answer: Message) -> Message:
        try:
            with writing(self._engine) as connection:
                return transcript.finish(connection, self._key, answer)
        finally:
            self._leases.release(self.id, answer)

    def erase(self, index: int) -> None:
        with self._numbering() as (connection, session):
            for holder in (session, *transcript.sharing(connection, session, index)):
                key = SessionKey(holder.id, self.owner)
                transcript.erase(connection, key, holder, index)
                rows.remove_words(connection, holder.id, index - 1)
                rows.remove_over(connection, key, index - 1, index + 1)

    def judge(self, answer: Message) -> Message:
        with writing(self._engine) as connection:
            return transcript.judge(connection, self._key, answer)

    def tell(self, index: int, text: str, stop: Callable[[], None]) -> None:
        self._leases.tell(self.id, index, text, stop)

    def written_so_far(self, index: int) -> str | None:
        return leases.written_so_far(self._engine, self.id, self.owner, index)

    def stop(self, index: int) -> bool:
        return leases.ask_to_stop(self._engine, self.id, self.owner, index)

    def messages(self, start: int = 0, end: int | None = None) -> list[Message]:
        return self._look(transcript.read, start, TO_THE_END if end is None else end)

    def messages_at(self, indices: Collection[int]) -> list[Message]:
        return self._look(transcript.read_at, indices)

    def bare_messages(self, start: int = 0, end: int | None = None) -> list[Message]:
        last = TO_THE_END if end is None else end
        return self._look(transcript.read, start, last, is_brief=True)

    def bare_messages_at(self, indices: Collection[int]) -> list[Message]:
        return self._look(transcript.read_at, indices, is_brief=True)

    def message(self, index: int) -> Message:
        for message in self.messages(index, index + 1):
            return message
        raise NotFound(f"There is no message {index} in this session.")

    def recent(self, count: int) -> list[Message]:
        with self._reading() as (connection, session):
            end = session.message_count
            return transcript.read(connection, self._key, end - count, end)

    def search(self, text: str, *, limit: int = 20) -> MessageMatches:
        with self._reading() as (connection, _):
            scope = messages.c.session_id == self.id
            return transcript.search(connection, scope, text, limit=limit)

    def append(
        self,
        messages: Sequence[ImportedMessage],
        sources: Sequence[Source],
        *,
        fills_gaps: bool = True,
    ) -> int:
        spelled = [transcript.canonical_message(message) for message in paced(messages)]
        with self._numbering() as (connection, session):
            cited = rows.cited_in(spelled) if fills_gaps else None
            rows.bring(connection, self._key, session, cited, sources)
            transcript.bring(connection, self._key, spelled, now=self._clock())
            return session.message_count


class SqlRegister(_OwnedRows):
    """The sources of a session."""

    def register(self, hits: Sequence[Hit]) -> list[Source]:
        return self.register_sources([as_source(hit) for hit in hits])

    def register_sources(self, sources: Sequence[Source]) -> list[Source]:
        wanted = list(dict.fromkeys(source.chunk_id for source in sources))
        registered = self._of_chunks(wanted)
        if len(registered) < len(wanted):
            with self._numbering() as (connection, session):
                rows.register(connection, self._key, session, sources)
            registered = self._of_chunks(wanted)
        return [registered[chunk_id] for chunk_id in wanted]

    def _of_chunks(self, chunk_ids: Sequence[str]) -> dict[str, Source]:
        readable = self._readable(self.owner)
        sources = self._look(rows.of_chunks, readable, chunk_ids)
        return {source.chunk_id: source for source in sources}

    def keep_result(self, number: int, table_id: str, content: Mapping[str, Any]) -> None:
        with self._writing() as (connection, _):
            rows.keep_result(connection, self.id, number, table_id, content)

    def result(self, number: int) -> dict[str, Any] | None:
        return self._look(rows.result, number)

    def sources(self, numbers: Sequence[int] | None = None) -> list[Source]:
        readable = self._readable(self.owner)
        return self._look(rows.read, readable, numbers)

    def reserve_numbers(self, highest: int) -> None:
        with self._numbering() as (connection, session):
            rows.reserve(connection, session, highest)


class SqlMemory(_OwnedRows):
    """The summaries of a session, and the index that finds its messages."""

    def overview(self) -> Overview:
        return self._look(rows.overview)

    def prefer(self, preferences: ContextPreferences) -> None:
        with self._writing() as (connection, _):
            rows.prefer(connection, self._key, preferences)

    def note_matches(self, indices: Sequence[int]) -> None:
        with self._writing() as (connection, _):
            rows.note_matches(connection, self._key, indices)

    def epoch(self) -> int:
        return self._look(rows.epoch)

    def summaries(self) -> list[Summary]:
        return [summary for summary in self.overview().summaries if summary.text]

    def requested_summaries(self) -> list[Summary]:
        return self._look(rows.on_request)

    def add_requested_summary(self, summary: Summary, *, epoch: int) -> None:
        with self._writing() as (connection, _):
            if epoch != rows.epoch(connection, self._key):
                raise Conflict("What was said was deleted meanwhile. Ask for the summary again.")
            now = self._clock()
            rows.add(connection, self.id, summary, in_epoch=rows.ON_REQUEST, now=now)

    def add_summary(self, summary: Summary, *, epoch: int, replaces: Sequence[int] = ()) -> bool:
        with self._writing() as (connection, _):
            if epoch != rows.epoch(connection, self._key):
                return False
            existing = rows.overview(connection, self._key).summaries
            if not set(replaces) <= {other.id for other in existing}:
                return False
            if rows.overlaps(existing, summary, replaces):
                return False
            rows.remove(connection, replaces)
            now = self._clock()
            rows.add(connection, self.id, summary, in_epoch=epoch, now=now)
            return True

    def forget_summaries(self) -> int:
        with self._writing() as (connection, _):
            return rows.forget(connection, self.id)

    def save_vectors(self, vectors: Mapping[int, Any]) -> None:
        if vectors:
            with self._writing() as (connection, _):
                rows.save_vectors(connection, self.id, vectors)

    def vectors(self, indices: Sequence[int]) -> dict[int, Any]:
        return self._look(rows.vectors_of, indices)

    def vectors_besides(self, indices: Collection[int], since: int = 0) -> dict[int, Any]:
        return self._look(rows.vectors_besides, indices, since)

    def words_until(self) -> tuple[int, bytes]:
        return self._look(rows.newest_block)

    def words(
        self, words: Sequence[str], *, last: int, most: int
    ) -> dict[str, list[tuple[int, bytes]]]:
        return self._look(rows.blocks_of, words, last=last, most=most)

    def add_words(
        self, start: int, end: int, size: bytes, words: Mapping[str, bytes], *, epoch: int
    ) -> bool:
        with self._writing() as (connection, _):
            is_next = rows.newest_block(connection, self._key)[0] == start
            if not is_next or epoch != rows.epoch(connection, self._key):
                return False
            rows.add_words(connection, self.id, end, size, words)
            return True

    def without_vectors(self, *, before: int, limit: int) -> list[Message]:
        return self._look(transcript.without_vectors, before=before, limit=limit)


class SqlSession(SqlTranscript, SqlRegister, SqlMemory):
    """A whole session: see `rag.seams.SessionHandle`."""

    def rename(self, title: str) -> None:
        self._set(title=storable(title))

    def configure(self, config: ContextConfig) -> None:
        self._set(config=asdict(config))

    def choose(self, collections: Sequence[str]) -> None:
        self._set(collections=list(collections))

    def pick_model(self, name: str) -> None:
        self._set(model=storable(name) or None)

    def shared(self) -> list[SessionHandle]:
        handles: list[SessionHandle] = []
        for session_id in self.read().config.share:
            other = self._other(session_id)
            with suppress(NotFound):
                handles += [other] if session_id != self.id and other.read() else []
        return handles

    def _other(self, session_id: str) -> "SqlSession":
        key = SessionKey(session_id, self.owner)
        return SqlSession(self._engine, key, self._leases, self._readable, clock=self._clock)

    def expire(self, moment: datetime | None) -> None:
        self._set(expires_at=moment)

    def delete(self) -> None:
        with self._numbering() as (connection, _):
            transcript.leave(connection, [self.id])
            connection.execute(delete(sessions).where(sessions.c.id == self.id))
            record(connection, "session.deleted", self.id)

    def branch(self, index: int) -> "SqlSession":
        branch_id = uuid4().hex
        with self._numbering() as (connection, session):
            transcript.make(connection, session, branch_id, index, now=self._clock())
        return self._other(branch_id)

    def family(self) -> list[Session]:
        with self._reading() as (connection, session):
            return transcript.family(connection, session)


class SqlConversationStore:
    """All sessions; see `rag.seams.ConversationStore` for every promise."""

    def __init__(
        self,
        engine: Engine,
        *,
        readable: CollectionsOf = lambda owner: EVERYTHING,
        clock: leases.Clock = lambda: datetime.now(UTC),
    ) -> None:
        """`readable` is called for each request: a right that is withdrawn ends at once."""
        self._engine = engine
        self._readable = readable
        self._clock = clock
        self._leases = leases.Leases(engine, clock)

    def create(
        self,
        owner: str,
        *,
        title: str = "",
        config: ContextConfig | None = None,
        collections: Sequence[str] = (),
        client_id: str | None = None,
    ) -> SqlSession:
        session_id, now = uuid4().hex, self._clock()
        with writing(self._engine) as connection:
            connection.execute(
                insert(sessions).values(
                    id=session_id,
                    owner=owner,
                    title=storable(title),
                    config=asdict(config or ContextConfig()),
                    created_at=now,
                    last_used_at=now,
                    collections=list(collections),
                    client_id=client_id,
                )
            )
        return self._handle(session_id, owner)

    def _handle(self, session_id: str, owner: str) -> SqlSession:
        key = SessionKey(session_id, owner)
        return SqlSession(self._engine, key, self._leases, self._readable, clock=self._clock)

    def open(self, session_id: str, *, owner: str) -> SqlSession:
        name = storable(session_id)
        handle = self._handle(name, owner)
        try:
            handle.read()
        except NotFound:
            is_it = (sessions.c.owner == owner) & (sessions.c.client_id == name)
            with reading(self._engine) as connection:
                its_id = connection.execute(select(sessions.c.id).where(is_it)).scalar()
            if its_id is None:
                raise
            return self._handle(its_id, owner)
        return handle

    def open_or_create(
        self, client_id: str, *, owner: str, config: ContextConfig | None = None
    ) -> SqlSession:
        with suppress(NotFound):
            return self.open(client_id, owner=owner)
        try:
            return self.create(owner, config=config, client_id=client_id)
        except IntegrityError:  # another request was quicker
            return self.open(client_id, owner=owner)

    def sessions(
        self, owner: str, *, limit: int = 100, offset: int = 0, one_version: bool = False
    ) -> list[Session]:
        is_listed = (sessions.c.owner == owner) & sessions.c.expires_at.is_(None)
        if one_version:
            is_listed &= transcript.IS_LATEST
        with reading(self._engine) as connection:
            rows = connection.execute(
                select(sessions)
                .where(is_listed)
                .order_by(sessions.c.last_used_at.desc(), sessions.c.id)
                .limit(limit)
                .offset(offset)
            )
            return [session_from(row) for row in rows]

    def search(self, owner: str, text: str, *, limit: int = 20) -> MessageMatches:
        with reading(self._engine) as connection:
            # What a branch has of its parent is found there.
            is_its_own = messages.c.index >= func.coalesce(sessions.c.branch_index, 0)
            scope = (sessions.c.owner == owner) & is_its_own
            return transcript.search(connection, scope, text, limit=limit)

    def delete_unused_since(self, moment: datetime) -> int:
        return self._delete(sessions.c.last_used_at < moment, "session.expired")

    def delete_expired(self) -> int:
        """Delete sessions whose messages were to be kept for a limited time only."""
        return self._delete(sessions.c.expires_at < self._clock())

    def _delete(self, old: Any, action: str = "") -> int:
        """Delete sessions; write each to the audit trail if there is an `action`."""
        with writing(self._engine) as connection:
            transcript.leave(connection, select(sessions.c.id).where(old))
            gone = delete(sessions).where(old).returning(sessions.c.id)
            ids = list(connection.execute(gone).scalars())
            record(connection, action, *(ids if action else []))
        return len(ids)

    def interrupt_lost(self, *, is_alone: bool = False) -> int:
        """End answers whose process died while it wrote them; return how many."""
        return leases.interrupt_lost(self._engine, self._clock(), is_alone=is_alone)

    def give_up_judging(self, *, is_alone: bool = False) -> int:
        """End checks whose process died; return how many."""
        return leases.give_up_judging(self._engine, self._clock(), is_alone=is_alone)
