"""Recognise a session by the transcript that a client sends back.

Clients of the OpenAI protocol name no session: they send all messages again each time. A chain of
hashes over the questions and answers stands for each state of a conversation; the table keeps the
chains that we sent out.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Engine, delete, insert, select, update

from rag.db import reading, storable, transcript_hashes, writing
from rag.records import ContextConfig, ImportedMessage, Role
from rag.runtime.budget import paced
from rag.seams import ConversationStore, SessionHandle

START = ""
LOOKED_UP = 500  # chains in one query


@dataclass(frozen=True, slots=True)
class KnownState:
    """A state of a session that some client has seen."""

    session_id: str
    index: int  # messages of the session up to there
    is_open: bool = True  # nobody has gone on from there yet


def chain(messages: Iterable[ImportedMessage]) -> list[str]:
    """The hash after each message, from the start of the conversation."""
    hashes: list[str] = []
    for message in messages:
        hashes.append(link(hashes[-1] if hashes else START, message.role, message.content))
    return hashes


def link(previous: str, role: str, content: str) -> str:
    """The hash after one more message; blanks at its ends and kinds of line break do not count."""
    text = "\n".join(storable(content).strip().splitlines())
    return sha256(f"{previous}\0{role}\0{text}".encode()).hexdigest()


def link_of_calls(previous: str, call_ids: Iterable[str]) -> str:
    """The hash after calls of tools, which no other conversation has."""
    return link(previous, "calls", "\0".join(call_ids))


@dataclass(frozen=True, slots=True)
class FoundSession:
    """The session that goes on from a transcript."""

    session: SessionHandle
    is_new: bool
    state: KnownState | None = None  # that it goes on from, if not a copy of it


class TranscriptTable:
    """The states of conversations that were sent out, by owner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def remember(self, session: SessionHandle, hashes: Iterable[str], *, index: int) -> None:
        """These chains lead to the session's first `index` messages."""
        table = transcript_hashes
        wanted = sorted(set(hashes))
        rows = [
            {"owner": session.owner, "hash": hash_, "session_id": session.id, "index": index}
            for hash_ in wanted
        ]
        with writing(self._engine) as connection:
            connection.execute(
                delete(table).where(
                    table.c.owner == session.owner,
                    table.c.session_id == session.id,
                    table.c.hash.in_(wanted),
                )
            )
            connection.execute(insert(table), rows)

    def find(self, owner: str, hash_: str) -> list[KnownState]:
        """States with this chain."""
        return self._find_all(owner, [hash_]).get(hash_, [])

    def known(self, owner: str, hashes: Sequence[str]) -> Iterator[tuple[int, list[KnownState]]]:
        """How many messages lead to states that are known, and these; the longest first."""
        for end in paced(range(len(hashes), 0, -LOOKED_UP), weight=LOOKED_UP):
            some = hashes[max(0, end - LOOKED_UP) : end]
            found = self._find_all(owner, some)
            for length in range(end, end - len(some), -1):
                if hashes[length - 1] in found:
                    yield length, found[hashes[length - 1]]

    def _find_all(self, owner: str, hashes: Sequence[str]) -> dict[str, list[KnownState]]:
        table, states = transcript_hashes, defaultdict[str, list[KnownState]](list)
        query = select(table.c.hash, table.c.session_id, table.c.index)
        query = query.where(table.c.owner == owner, table.c.hash.in_(hashes))
        with reading(self._engine) as connection:
            for hash_, session_id, index in connection.execute(query):
                states[hash_].append(KnownState(session_id, abs(index), is_open=index > 0))
        return states

    def go_on(self, owner: str, state: KnownState) -> bool:
        """Whether we are the first to go on from there: of several at once, one is."""
        return self._sign(owner, state, is_open=False)

    def give_back(self, owner: str, state: KnownState) -> None:
        """Nobody went on from there after all."""
        self._sign(owner, state, is_open=True)

    def _sign(self, owner: str, state: KnownState, *, is_open: bool) -> bool:
        """States that were left are kept with a minus, for those that fork from them."""
        table = transcript_hashes
        after = state.index if is_open else -state.index
        with writing(self._engine) as connection:
            signed = connection.execute(
                update(table)
                .where(
                    table.c.owner == owner,
                    table.c.session_id == state.session_id,
                    table.c.index == -after,
                )
                .values(index=after)
            )
            return signed.rowcount > 0


def copy_of(
    store: ConversationStore,
    parent: SessionHandle,
    count: int,
    rest: Sequence[ImportedMessage] = (),
) -> SessionHandle:
    """Another session that begins with so many messages and the same numbers, then the rest."""
    read = parent.read()
    copy = store.create(
        parent.owner, title=read.title, config=read.config, collections=read.collections
    )
    common = [ImportedMessage(each.role, each.content) for each in parent.messages(0, count)]
    copy.append([*common, *rest], parent.sources())
    return copy


@dataclass(frozen=True, slots=True)
class SessionFinder:
    """The session that goes on from a transcript: the one we know, or a new one made from it."""

    store: ConversationStore
    table: TranscriptTable
    config: ContextConfig

    def session_for(
        self, owner: str, past: Sequence[ImportedMessage], *, instructions: Sequence[str] = ()
    ) -> FoundSession:
        """The session whose transcript is exactly `past`; else a new one that begins with it.

        What a new one has in common with a known session keeps its numbers and their sources.
        """
        hashes = chain(past)
        for length, states in self.table.known(owner, hashes):
            found = self._only_open(owner, states) if length == len(past) else None
            if found is not None:
                return found
            parent = self.store.open(states[-1].session_id, owner=owner)
            fork = copy_of(self.store, parent, states[-1].index, past[length:])
            return FoundSession(fork, is_new=True)
        system = [ImportedMessage(Role.SYSTEM, text) for text in instructions]
        return FoundSession(self._begin(owner, [*system, *past]), is_new=True)

    def waiting_for(self, owner: str, hash_: str) -> FoundSession | None:
        """The one session that stands exactly there."""
        return self._only_open(owner, self.table.find(owner, hash_))

    def _only_open(self, owner: str, states: Sequence[KnownState]) -> FoundSession | None:
        """The one session that stands there; of several that say the same, who can tell whose."""
        standing = {}
        for state in states:
            session = self.store.open(state.session_id, owner=owner)
            if self._is_at(session, state):
                standing[session.id] = (session, state)
        if len(standing) != 1:
            return None
        ((session, state),) = standing.values()
        if not self.table.go_on(owner, state):
            return None
        return FoundSession(session, is_new=False, state=state)

    def _is_at(self, session: SessionHandle, state: KnownState) -> bool:
        return state.is_open and session.read().message_count == state.index

    def _begin(self, owner: str, messages: Sequence[ImportedMessage]) -> SessionHandle:
        session = self.store.create(owner, config=self.config)
        if messages:
            session.append(messages, [])
        return session
