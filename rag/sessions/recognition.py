"""Recognise the conversation that a client of the OpenAI protocols goes on with.

Such clients name no session: they send what they keep of it, all of it or a little. Our own answers
among that, with their numbers, tell which conversation it is (`rag.citations.register`).
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import Engine, delete, insert, select
from sqlalchemy.exc import IntegrityError

from rag.citations.gate import canonical, in_words
from rag.citations.markers import cited_numbers, find_markers, marker_text
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
    """Answers that clients were given, and conversations that they name, by owner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def remember(self, session: OwnedSession, index: int, keys: Iterable[str]) -> None:
        """Know the answer at this index again."""
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
        """Key, session and index of what is known; of the conversations used last."""
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
        """Know the answers of a copy as those of its parent, where they stand in the copy."""
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
        """Have a session found by this key; False where it is so already."""
        row = {"owner": session.owner, "hash": key, "session_id": session.id, "index": index}
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(transcript_hashes), row)
        except IntegrityError:
            return False
        return True

    def session_of_key(self, owner: str, key: str) -> tuple[str, int] | None:
        """The session of a key, and the index that was kept with it."""
        table = transcript_hashes
        query = select(table.c.session_id, table.c.index)
        with reading(self._engine) as connection:
            rows = connection.execute(query.where(table.c.owner == owner, table.c.hash == key))
            row = rows.first()
        return None if row is None else (str(row[0]), int(row[1]))

    def forget(self, session: OwnedSession, key: str) -> None:
        """Nobody went on from there after all."""
        table = transcript_hashes
        its = (table.c.owner == session.owner) & (table.c.session_id == session.id)
        with writing(self._engine) as connection:
            connection.execute(delete(table).where(its, table.c.hash == key))


def name_key(name: str) -> str:
    """Of a conversation's name; as it was from the first."""
    text = "\n".join(storable(name).strip().splitlines())
    return sha256(f"\0name\0{text}".encode()).hexdigest()


def calls_key(question: str, call_ids: Iterable[str]) -> str:
    """Of calls of tools that wait for their results."""
    text = "\0".join([storable(question).strip(), *call_ids])
    return sha256(f"\0calls\0{text}".encode()).hexdigest()


def quoted(message: ImportedMessage, registered: Container[int] = ()) -> ImportedMessage:
    """What a client says that somebody answered: a number that is not known there is text."""
    if message.role != Role.ASSISTANT:
        return message
    text, pieces, position = canonical(in_words(message.content)), list[str](), 0
    for marker in find_markers(text):
        ours = [number for number in marker.numbers if number in registered]
        others = [str(number) for number in marker.numbers if number not in registered]
        spelled = marker_text(ours) + (f"({', '.join(others)})" if others else "")
        pieces += [text[position : marker.start], spelled]
        position = marker.end
    return replace(message, content="".join(pieces) + text[position:])


def reserve_numbers(
    session: SourceRegister, past: Iterable[ImportedMessage], beside: int = 0
) -> None:
    """Have new numbers begin above those that the client shows, if these are not far away.

    `beside` is the highest in what it puts beside its question.
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
        """The session whose answers stand in `past`; a branch of it where it went on since.

        Where it is not to be shared, it is a branch in any case.
        """
        if not past:
            return self.begin(past)
        matches = [self._opened(match_) for match_ in self._matches(past)[:MOST_SESSIONS]]
        matches.sort(key=lambda candidate: candidate.state.last_used_at, reverse=True)
        if not matches:
            return self.begin(past)
        is_certain = len(matches) == 1 and len(matches[0].match.indices) > 1
        standing = [match_ for match_ in matches if is_shared and match_.stands_at(past)]
        if len(standing) == 1 and (
            claim := self._claim(standing[0].session, standing[0].state.message_count)
        ):
            (conversation,) = standing
            if self.stores:
                conversation.bring(past)
            is_certain = is_certain or conversation.is_all_in(past)
            return SessionMatch(conversation.session, Recognised.ANSWERS, is_certain, claim)
        return self.branch(matches[0], past, is_certain=is_certain)

    def knows(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether an answer of a session stands there."""
        return bool(self._matches(past))

    def waiting_for(self, key: str) -> SessionMatch | None:
        """The session whose last answer made these calls, for who brings the results first."""
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

    def _opened(self, match: "_Match") -> "_Candidate":
        session = self.store.open(match.session_id, owner=self.owner)
        return _Candidate(session, session.read(), match)

    def _claim(self, session: OwnedSession, count: int) -> str:
        """Given to the first to go on from there: of several at once, one does."""
        claim = _claim_key(session.id, count)
        return claim if self.table.name(session, claim, index=0) else ""

    def begin(self, past: Sequence[ImportedMessage]) -> SessionMatch:
        """A new one, in which numbers of the past are text."""
        session = self.store.create(self.owner, config=self.config)
        if past and self.stores:
            session.append([quoted(message) for message in past], [], fills_gaps=False)
        return SessionMatch(session, Recognised.NEW)

    def branch(
        self, parent: "_Candidate", past: Sequence[ImportedMessage], *, is_certain: bool
    ) -> SessionMatch:
        """Another one with the numbers up to the last answer that the request shows of it.

        It holds what its parent holds where that is the same conversation for certain, else no
        more than the request.
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
        """Sessions that hold most of the request's answers, its newest among them."""
        places = [n for n, message in enumerate(past) if message.role == Role.ASSISTANT]
        looked_up: dict[str, list[_Sighting]] = {}
        for place in places[-MOST_ANSWERS:]:
            question = _question_of(past, place)
            for fingerprint in possible_fingerprints(self.user, question, past[place].content):
                looked_up.setdefault(fingerprint.key, []).append(_Sighting(place, 0, fingerprint))
        results: dict[str, list[_Sighting]] = {}
        for key, session_id, index in self.table.find(self.owner, list(looked_up)):
            for evidence in looked_up[key]:
                results.setdefault(session_id, []).append(replace(evidence, index=index))
        matches = [_match_places(session_id, evidence) for session_id, evidence in results.items()]
        matches = [match_ for match_ in matches if match_.holds]
        newest = max((match_.last for match_ in matches), default=0)
        matches = [match_ for match_ in matches if match_.last == newest]
        most = max((match_.weight for match_ in matches), default=(0, 0))
        return [match_ for match_ in matches if match_.weight == most]


@dataclass(frozen=True, slots=True)
class _Sighting:
    """An answer of the request, and the message of a session that it may be."""

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
        """How much of the request is in it."""
        return len(self.indices), len(self.paired)

    @property
    def holds(self) -> bool:
        return self.is_strong or len(self.indices) > 1


def _match_places(session_id: str, evidence: Sequence[_Sighting]) -> _Match:
    """Places and indices in the same order, from the newest answer on."""
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
    """A session that answers of a request come from."""

    session: SessionHandle
    state: Session
    match: _Match

    @property
    def _since(self) -> int:
        """How many messages it holds after the last answer in common."""
        return self.state.message_count - self.match.indices[self.match.last] - 1

    def stands_at(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether it holds as much after the last answer in common as the request, or nothing."""
        return self._since in (0, len(past) - self.match.last - 1)

    def is_all_in(self, past: Sequence[ImportedMessage]) -> bool:
        """Whether all that was said in it stands in the request."""
        places = [index for index, message in enumerate(past) if message.role == Role.ASSISTANT]
        are_paired = self.match.paired.issuperset(places[-MOST_ANSWERS:])
        are_in_place = all(place == index for place, index in self.match.indices.items())
        return not self._since and are_paired and are_in_place

    def bring(self, past: Sequence[ImportedMessage]) -> None:
        """What the client heard elsewhere since, where the session has nothing in that place."""
        rest = past[self.match.last + 1 :]
        if rest and not self._since:
            cited = {n for message in rest for n in cited_numbers(message.content)}
            registered = {source.number for source in self.session.sources(sorted(cited))}
            self.session.append(
                [quoted(message, registered) for message in rest], [], fills_gaps=False
            )


def _question_of(past: Sequence[ImportedMessage], place: int) -> str:
    before = past[place - 1] if place else None
    return before.content if before is not None and before.role == Role.USER else ""


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
    """Another session with the numbers that so many messages gave, these messages, and the rest.

    Where the messages are not to be in it, it is no branch: it may be somebody else's talk.
    """
    sources = _sources_before(parent, count)
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


def _sources_before(parent: SessionHandle, count: int) -> list[Source]:
    """Those that were there when the next question came."""
    following = parent.messages(count, count + 1)
    highest = following[0].known_sources if following else None
    return [source for source in parent.sources() if highest is None or source.number <= highest]
