"""Recognise the conversation that a client of the OpenAI protocols continues.

Such clients name no session: they send all or a part of the messages they keep. The answers among
them, known by their fingerprints, tell which conversation it is (`rag.citations.register`).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import Engine, delete, insert, select
from sqlalchemy.exc import IntegrityError

from rag.citations.gate import canonical, in_words
from rag.citations.markers import cited_numbers, renumber
from rag.citations.register import Fingerprint, possible_fingerprints
from rag.db import (
    answer_fingerprints,
    reading,
    sessions,
    storable,
    transcript_hashes,
    writing,
)
from rag.records import ContextConfig, ImportedMessage, Role, Session, Source
from rag.seams import ConversationStore, OwnedSession, SessionHandle, SourceRegister

MOST_ANSWERS = 50  # of a request that are looked up, the newest
MOST_SESSIONS = 20  # of those that say the same, the last used
MOST_KEYS = 400  # in one query
MOST_ROWS = 2_000  # that are read: what hundreds of conversations say tells none of them
HIGHEST_JUMP = 1_000  # above its register that a request's own numbers may raise a conversation's


class Recognised(StrEnum):
    """How the conversation of a request was found."""

    NAMED = "named"
    ANSWERS = "answers"
    BRANCH = "branch"  # of one that went on since, or of several that say the same
    NEW = "new"


@dataclass(frozen=True, slots=True)
class SessionMatch:
    """The session that answers a request."""

    handle: SessionHandle
    by: Recognised
    # Whether more of it may be told than the request holds: one key may be many people.
    is_certain: bool = True
    claim: str = ""  # to be given back where nothing is asked after all

    @property
    def is_new(self) -> bool:
        return self.by in (Recognised.BRANCH, Recognised.NEW)


class FingerprintTable:
    """The fingerprints of answers and the names of conversations, by owner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def remember(self, session: OwnedSession, index: int, keys: Iterable[str]) -> None:
        """Store the fingerprints of the answer at this index."""
        table = answer_fingerprints
        row = {"owner": session.owner, "session_id": session.id, "index": index}
        wanted = sorted(set(keys))
        with writing(self._engine) as connection:
            connection.execute(
                delete(table).where(
                    table.c.session_id == session.id,
                    table.c.index == index,
                    table.c.key.in_(wanted),
                )
            )
            if wanted:
                connection.execute(insert(table), [row | {"key": key} for key in wanted])

    def find(self, owner: str, keys: Sequence[str]) -> list[tuple[str, str, int]]:
        """Return key, session and index of known fingerprints, latest used sessions first."""
        table, matches = answer_fingerprints, list[tuple[str, str, int]]()
        query = (
            select(table.c.key, table.c.session_id, table.c.index)
            .join(sessions, sessions.c.id == table.c.session_id)
            .order_by(sessions.c.last_used_at.desc(), table.c.session_id, table.c.index)
            .limit(MOST_ROWS)
        )
        with reading(self._engine) as connection:
            for start in range(0, len(keys), MOST_KEYS):
                some = table.c.key.in_(keys[start : start + MOST_KEYS])
                rows = connection.execute(query.where(table.c.owner == owner, some))
                matches += [(key, session_id, index) for key, session_id, index in rows]
        return matches

    def copy(
        self,
        parent: OwnedSession,
        fork: OwnedSession,
        count: int,
        moved: Mapping[int, int] | None = None,
    ) -> None:
        """Store the parent's fingerprints for a copy, at the places that the answers have there."""
        table = answer_fingerprints
        query = select(table.c.key, table.c.index).where(
            table.c.owner == parent.owner, table.c.session_id == parent.id, table.c.index < count
        )
        if moved is not None:
            query = query.where(table.c.index.in_(moved))
        row = {"owner": fork.owner, "session_id": fork.id}
        with writing(self._engine) as connection:
            rows = [
                row | {"key": key, "index": index if moved is None else moved[index]}
                for key, index in connection.execute(query)
            ]
            if rows:
                connection.execute(insert(table), rows)

    # Names, and places in a conversation that are taken: hashes of their own kind.

    def name(self, session: OwnedSession, key: str, *, index: int = 1) -> bool:
        """Let a session be found by this key; return False if it already is."""
        row = {"owner": session.owner, "hash": key, "session_id": session.id, "index": index}
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(transcript_hashes), row)
        except IntegrityError:
            return False
        return True

    def session_of_key(self, owner: str, key: str) -> tuple[str, int] | None:
        """Return the session of a key, and the index stored with it."""
        table = transcript_hashes
        query = select(table.c.session_id, table.c.index)
        with reading(self._engine) as connection:
            rows = connection.execute(query.where(table.c.owner == owner, table.c.hash == key))
            row = rows.first()
        return None if row is None else (str(row[0]), int(row[1]))

    def forget(self, session: OwnedSession, key: str) -> None:
        """Forget a key of the session, so that it can be claimed again."""
        table = transcript_hashes
        its = (table.c.owner == session.owner) & (table.c.session_id == session.id)
        with writing(self._engine) as connection:
            connection.execute(delete(table).where(its, table.c.hash == key))


def name_key(name: str) -> str:
    """Return the key of a conversation's name; it never changed between versions."""
    text = "\n".join(storable(name).strip().splitlines())
    return sha256(f"\0name\0{text}".encode()).hexdigest()


def calls_key(question: str, call_ids: Iterable[str]) -> str:
    """Return the key of tool calls that wait for their results."""
    text = "\0".join([storable(question).strip(), *call_ids])
    return sha256(f"\0calls\0{text}".encode()).hexdigest()


def quoted(message: ImportedMessage, registered: Container[int] = ()) -> ImportedMessage:
    """Return a client's message with its unregistered numbers turned into text."""
    if message.role != Role.ASSISTANT:
        return message
    text = canonical(in_words(message.content))
    staying = {number: number for number in cited_numbers(text) if number in registered}
    return replace(message, content=renumber(text, staying))


def reserve_numbers(
    session: SourceRegister, past: Iterable[ImportedMessage], beside: int = 0
) -> None:
    """Let new numbers begin above those that the client sends, unless these are far away.

    `beside` is the highest number in the text around its question.
    """
    highest = session.read().source_count
    cited = (cited_numbers(message.content) for message in past if message.role == Role.ASSISTANT)
    shown = [n for numbers in cited for n in numbers if highest < n <= highest + HIGHEST_JUMP]
    if max([*shown, beside]) > highest:
        session.reserve_numbers(max([*shown, beside]))


@dataclass(frozen=True, slots=True)
class ConversationFinder:
    """Finds the conversation of a request, or begins one."""

    store: ConversationStore
    table: FingerprintTable
    config: ContextConfig
    owner: str
    user: str = ""  # whom the client says it asks for
    stores: bool = True  # False: no word of the request may be kept

    def find(self, past: Sequence[ImportedMessage], *, is_shared: bool = True) -> SessionMatch:
        """Return the session whose answers stand in `past`, or a branch where it went on since.

        If it must not be shared, return a branch in any case.
        """
        if not past:
            return self.begin(past)
        candidates: list[_Candidate] = []
        for match in self._matches(past)[:MOST_SESSIONS]:
            session = self.store.open(match.session_id, owner=self.owner)
            candidates.append(_Candidate(session, session.read(), match))
        if not candidates:
            return self.begin(past)
        candidates.sort(key=lambda candidate: candidate.state.last_used_at, reverse=True)
        is_certain = len(candidates) == 1 and len(candidates[0].match.indices) > 1
        standing = [one for one in candidates if is_shared and one.stands_at(past)]
        if len(standing) == 1 and (
            claim := self._claim(standing[0].session, standing[0].state.message_count)
        ):
            (conversation,) = standing
            if self.stores:
                conversation.bring(past)
            is_certain = is_certain or conversation.is_all_in(past)
            return SessionMatch(conversation.session, Recognised.ANSWERS, is_certain, claim)
        return self.branch(candidates[0], past, is_certain=is_certain)

    def knows(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether `past` holds an answer of a session."""
        return bool(self._matches(past))

    def waiting_for(self, key: str) -> SessionMatch | None:
        """Return the session that made these calls, to the first request with the results."""
        conversation = self.table.session_of_key(self.owner, key)
        if conversation is None:
            return None
        session = self.store.open(conversation[0], owner=self.owner)
        if session.read().message_count != conversation[1]:
            return None
        claim = _claim_key(session.id, conversation[1], key)
        if not self.table.name(session, claim, index=0):
            return None
        return SessionMatch(session, Recognised.ANSWERS, claim=claim)

    def _claim(self, session: OwnedSession, count: int) -> str:
        """Claim a place for one request to continue from; of several at once, one succeeds."""
        claim = _claim_key(session.id, count)
        return claim if self.table.name(session, claim, index=0) else ""

    def begin(self, past: Sequence[ImportedMessage]) -> SessionMatch:
        """Begin a session, in which the numbers in `past` are text."""
        session = self.store.create(self.owner, config=self.config)
        if past and self.stores:
            session.append([quoted(message) for message in past], [], fills_gaps=False)
        return SessionMatch(session, Recognised.NEW)

    def branch(
        self, parent: "_Candidate", past: Sequence[ImportedMessage], *, is_certain: bool
    ) -> SessionMatch:
        """Return a branch with the numbers up to the last answer that the request shows.

        It holds the parent's messages if it is surely the same conversation, else only those of the
        request.
        """
        match, is_certain = parent.match, is_certain and self.stores
        count = match.indices[match.last] + 1
        rest = past[match.last + 1 :] if is_certain else past
        rest = rest if self.stores else ()
        fork = copy_of(self.store, parent.session, count, rest, copies=is_certain)
        moved = None if is_certain else {index: place for place, index in match.indices.items()}
        self._claim(fork, fork.read().message_count)  # nobody else may find it before its turn
        if self.stores:
            self.table.copy(parent.session, fork, count, moved)
        return SessionMatch(fork, Recognised.BRANCH, is_certain)

    def _matches(self, past: Sequence[ImportedMessage]) -> list["_Match"]:
        """Return the sessions that hold most of the request's answers, including the newest."""
        places = [n for n, message in enumerate(past) if message.role == Role.ASSISTANT]
        looked_up: dict[str, list[_Sighting]] = {}
        for place in places[-MOST_ANSWERS:]:
            is_asked = place > 0 and past[place - 1].role == Role.USER
            question = past[place - 1].content if is_asked else ""
            for fingerprint in possible_fingerprints(self.user, question, past[place].content):
                looked_up.setdefault(fingerprint.key, []).append(_Sighting(place, 0, fingerprint))
        results: dict[str, list[_Sighting]] = {}
        for key, session_id, index in self.table.find(self.owner, list(looked_up)):
            for evidence in looked_up[key]:
                results.setdefault(session_id, []).append(replace(evidence, index=index))
        matches = [_match_places(session_id, evidence) for session_id, evidence in results.items()]
        matches = [match_ for match_ in matches if match_.is_strong or len(match_.indices) > 1]
        newest = max((match_.last for match_ in matches), default=0)
        matches = [match_ for match_ in matches if match_.last == newest]
        most = max((match_.weight for match_ in matches), default=(0, 0))
        return [match_ for match_ in matches if match_.weight == most]


@dataclass(frozen=True, slots=True)
class _Sighting:
    """An answer of the request, and the session's message that it may be."""

    place: int
    index: int
    print: Fingerprint


@dataclass(frozen=True, slots=True)
class _Match:
    """A session, and which of its messages are answers of the request, by their places there."""

    session_id: str
    indices: Mapping[int, int]
    paired: frozenset[int]  # places whose question is the same, too
    is_strong: bool  # one of them tells the conversation alone

    @property
    def last(self) -> int:
        return max(self.indices)

    @property
    def weight(self) -> tuple[int, int]:
        """How much of the request the session holds."""
        return len(self.indices), len(self.paired)


def _match_places(session_id: str, evidence: Sequence[_Sighting]) -> _Match:
    """Pair places with indices in increasing order, from the newest answer back."""
    indices: dict[int, int] = {}
    below = max(sighting.index for sighting in evidence) + 1
    for place in sorted({sighting.place for sighting in evidence}, reverse=True):
        possible = [
            sighting for sighting in evidence if sighting.place == place and sighting.index < below
        ]
        best = [sighting for sighting in possible if sighting.print.has_question] or possible
        if best:
            indices[place] = below = max(sighting.index for sighting in best)
    sightings = [sighting for sighting in evidence if indices.get(sighting.place) == sighting.index]
    paired = frozenset(sighting.place for sighting in sightings if sighting.print.has_question)
    return _Match(
        session_id, indices, paired, any(sighting.print.is_strong for sighting in sightings)
    )


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A session that holds answers of a request."""

    session: SessionHandle
    state: Session
    match: _Match

    @property
    def _since(self) -> int:
        """Return how many messages the session has after the last common answer."""
        return self.state.message_count - self.match.indices[self.match.last] - 1

    def stands_at(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether the session has no message after the last common answer, or the request's."""
        return self._since in (0, len(past) - self.match.last - 1)

    def is_all_in(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether the request holds all messages of the session."""
        places = [index for index, message in enumerate(past) if message.role == Role.ASSISTANT]
        are_paired = self.match.paired.issuperset(places[-MOST_ANSWERS:])
        are_in_place = all(place == index for place, index in self.match.indices.items())
        return not self._since and are_paired and are_in_place

    def bring(self, past: Sequence[ImportedMessage]) -> None:
        """Add messages that the client got elsewhere, if the session has none in their place."""
        rest = past[self.match.last + 1 :]
        if rest and not self._since:
            cited = {n for message in rest for n in cited_numbers(message.content)}
            registered = {source.number for source in self.session.sources(sorted(cited))}
            self.session.append(
                [quoted(message, registered) for message in rest], [], fills_gaps=False
            )


def _claim_key(session_id: str, count: int, calls: str = "") -> str:
    return sha256(f"\0claim\0{session_id}\0{count}\0{calls}".encode()).hexdigest()


def copy_of(
    store: ConversationStore,
    parent: SessionHandle,
    count: int,
    rest: Sequence[ImportedMessage] = (),
    *,
    copies: bool = True,
) -> SessionHandle:
    """Copy a session's numbers up to a message, its messages, and append the rest.

    Without the messages (`copies`) it is no branch: it may be another person's conversation.
    """
    following = parent.messages(count, count + 1)
    highest = following[0].known_sources if following else None  # when the next question came
    sources = [source for source in parent.sources() if highest is None or source.number <= highest]
    if copies:
        copy, brought = parent.branch(count), list[Source]()
    else:
        read = parent.read()
        title, chosen = read.title if rest else "", read.collections
        copy = store.create(parent.owner, title=title, config=read.config, collections=chosen)
        brought = sources
    registered = {source.number for source in sources}
    if rest or brought:
        copy.append([quoted(message, registered) for message in rest], brought, fills_gaps=False)
    return copy
