"""Sessions and their store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from rag.records import (
    NO_PREFERENCES,
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


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A stored question with the answer that is being written to it."""

    question: Message
    answer: Message  # pending, empty


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """One result of a search in transcripts."""

    session_id: str
    session_title: str
    index: int
    role: str
    snippet: str  # a stretch of the content around the first match
    match_start: int  # offsets into the snippet
    match_end: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A session as a turn finds it, at one moment."""

    session: Session
    summaries: tuple[Summary, ...]  # the active ones, oldest first
    preferences: ContextPreferences = NO_PREFERENCES  # of the next context
    matches: tuple[int, ...] = ()  # messages that the last search of the history found
    forgotten: int = 0  # messages before this one are in no summary any more


@dataclass(frozen=True, slots=True)
class Versions:
    """A place where a conversation went on in several ways."""

    index: int  # of the first message that is not the same
    sessions: tuple[Session, ...]  # one for each way, the oldest first
    position: int  # among them, of the session that was asked


@dataclass(frozen=True, slots=True)
class MessageMatches:
    """The best results, and how many there are in all."""

    found: tuple[MessageMatch, ...]
    total: int


class OwnedSession(Protocol):
    """One session of one owner: nothing of it is read by another way (C7).

    Every method raises NotFound once the session is deleted. Message ranges are half-open and
    count from 0.
    """

    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    def read(self) -> Session: ...
    def readable(self) -> Readable:
        """What may be asked here: those of the chosen collections that its owner may read now."""


class SessionTranscript(OwnedSession, Protocol):
    """Its messages: append-only; what is returned is the newest revision of each."""

    def begin(self, question: str) -> OpenTurn:
        """Store a question and reserve the place of its answer, in one transaction."""

    def begin_again(self, index: int) -> OpenTurn:
        """A new revision of the last answer. Raises NotFound, or Conflict if it is not the last."""

    def finish(self, answer: Message) -> Message:
        """Store the end of a pending answer. Raises Conflict if it has ended already."""

    def erase(self, index: int) -> None:
        """Take away what was asked and answered there, in every revision, and what quotes it.

        Places and numbers stay, nothing else changes. Raises NotFound, or Conflict while it is
        being written.
        """

    def judge(self, answer: Message) -> Message:
        """Store what was found of a finished answer's citations afterwards; its text stays.

        Raises Conflict where it is no finished answer of this session.
        """

    def tell(self, index: int, text: str, stop: Callable[[], None]) -> None:
        """What is written so far of an answer that this process has begun, and how to end it."""

    def written_so_far(self, index: int) -> str | None:
        """What any process has written of a pending answer; None while that is not known."""

    def stop(self, index: int) -> bool:
        """Have whoever writes an answer end it; False if nobody is known to."""

    def messages(self, start: int = 0, end: int | None = None) -> list[Message]: ...
    def messages_at(self, indices: Collection[int]) -> list[Message]: ...
    def bare_messages(self, start: int = 0, end: int | None = None) -> list[Message]:
        """As `messages`, without what is known of answers beside their text: for contexts."""

    def bare_messages_at(self, indices: Collection[int]) -> list[Message]:
        """As `bare_messages`, those with these indices."""

    def message(self, index: int) -> Message:
        """Raises NotFound."""

    def recent(self, count: int) -> list[Message]:
        """The newest `count`, oldest first; the cost does not grow with the session."""

    def search(self, text: str, *, limit: int = 20) -> MessageMatches:
        """Messages that contain the text, ignoring case, newest first."""

    def append(
        self,
        messages: Sequence[ImportedMessage],
        sources: Sequence[Source],
        *,
        fills_gaps: bool = True,
    ) -> int:
        """Bring a transcript along; returns the index of its first message.

        Numbers that it cites or skips without a source get one that says so, unless it is not to
        fill gaps. Raises Conflict if a number of `sources` is taken by another chunk.
        """


class SourceRegister(OwnedSession, Protocol):
    """Its sources, each with the number that it keeps (C1)."""

    def register(self, hits: Sequence[Hit]) -> list[Source]:
        """The hits with the session's numbers, in order; new chunks get the next free numbers."""

    def register_sources(self, sources: Sequence[Source]) -> list[Source]:
        """As `register`, of sources without a number; two of one chunk id are the same source."""

    def keep_result(self, number: int, table_id: str, content: Mapping[str, Any]) -> None:
        """Keep the table that a source is; the first one stays."""

    def result(self, number: int) -> dict[str, Any] | None:
        """The table that a source is; None for any other source."""

    def sources(self, numbers: Sequence[int] | None = None) -> list[Source]:
        """By number, with their present state; numbers that are not registered are left out."""

    def reserve_numbers(self, highest: int) -> None:
        """Give new sources numbers above this one only."""


class SessionMemory(SessionTranscript, SourceRegister, Protocol):
    """What is made of its messages and sources for a context: summaries, and what finds them."""

    def overview(self) -> Overview: ...
    def prefer(self, preferences: ContextPreferences) -> None:
        """For the next context; `overview` tells of it. Without any, the earlier are forgotten."""

    def note_matches(self, indices: Sequence[int]) -> None:
        """Messages that a search of the history found; they stand in the next one's place."""

    def epoch(self) -> int:
        """To be read before a compaction begins, and given to `add_summary`.

        It is another one as well where something that was said was erased.
        """

    def summaries(self) -> list[Summary]:
        """The active ones, oldest first; their ranges do not overlap."""

    def requested_summaries(self) -> list[Summary]:
        """Those made on request, oldest first; they are no part of the context."""

    def add_requested_summary(self, summary: Summary, *, epoch: int) -> None:
        """Store one made on request beside the messages. Raises Conflict if the epoch is over."""

    def add_summary(self, summary: Summary, *, epoch: int, replaces: Sequence[int] = ()) -> bool:
        """Store beside the messages. `replaces` are ids of active summaries that it stands in for.

        False, and nothing stored, if the range overlaps another active summary or the epoch is
        over: another compaction was quicker, or summaries were forgotten meanwhile.
        """

    def forget_summaries(self) -> int:
        """Forget derived summaries and end the epoch; returns how many.

        The messages stay, and are recalled; what was summarised is in no summary again.
        """

    # Recall
    def save_vectors(self, vectors: Mapping[int, Any]) -> None:
        """Embedded messages by index (float32 arrays)."""

    def vectors(self, indices: Sequence[int]) -> dict[int, Any]:
        """Those that are saved."""

    def vectors_besides(self, indices: Collection[int], since: int = 0) -> dict[int, Any]:
        """Those of other messages from one on; costs little where these are new or none."""

    def words_until(self) -> tuple[int, bytes]:
        """Up to which message it is written down where words are said, and how much that is."""

    def words(
        self, words: Sequence[str], *, last: int, most: int
    ) -> dict[str, list[tuple[int, bytes]]]:
        """Where words are said before a message: the newest blocks of each, with their ends."""

    def add_words(
        self, start: int, end: int, size: bytes, words: Mapping[str, bytes], *, epoch: int
    ) -> bool:
        """Write down the next block, of the messages `[start, end)`.

        False, and nothing stored, if it is not the next one any more, or the epoch is over.
        """

    def without_vectors(self, *, before: int, limit: int) -> list[Message]:
        """The newest messages before an index that say something and have none, as `said`."""


class SessionHandle(SessionMemory, Protocol):
    """All of a session, and what its owner settles of it: for whoever opens it."""

    def rename(self, title: str) -> None: ...
    def configure(self, config: ContextConfig) -> None: ...
    def choose(self, collections: Sequence[str]) -> None:
        """Ask only these collections from now on; none: all that the owner may read."""

    def pick_model(self, name: str) -> None:
        """Have this one answer here from now on, where it may be picked; empty: as everybody."""

    def expire(self, moment: datetime | None) -> None:
        """Have it deleted then, and not listed until then; None: keep it."""

    def shared(self) -> list[SessionHandle]:
        """Those of the same owner that its configuration says are read as well, if still there."""

    def delete(self) -> None:
        """Its branches stay."""

    # Branches
    def branch(self, index: int) -> SessionHandle:
        """Another session with the messages before this one, at the same places, and one register.

        Raises Conflict while the last of them is being written.
        """

    def family(self) -> list[Session]:
        """Those that branched from one another, this one among them; the first one first."""


class ConversationStore(Protocol):
    """Everything about conversations; everything needs the owner."""

    def create(
        self,
        owner: str,
        *,
        title: str = "",
        config: ContextConfig | None = None,
        collections: Sequence[str] = (),
        client_id: str | None = None,
    ) -> SessionHandle: ...

    def open(self, session_id: str, *, owner: str) -> SessionHandle:
        """By our id, or by what its owner's client calls it.

        Raises NotFound, also when the session is somebody else's.
        """

    def open_or_create(
        self, client_id: str, *, owner: str, config: ContextConfig | None = None
    ) -> SessionHandle:
        """The owner's session that a client calls so; made if there is none."""

    def sessions(
        self, owner: str, *, limit: int = 100, offset: int = 0, one_version: bool = False
    ) -> list[Session]:
        """Newest use first; of each conversation all versions, or the one that was used last."""

    def search(self, owner: str, text: str, *, limit: int = 20) -> MessageMatches:
        """Over all of one owner's sessions."""

    def delete_expired(self) -> int:
        """Delete sessions whose time is over; returns how many."""

    def delete_unused_since(self, moment: datetime) -> int:
        """Delete every owner's sessions that were last used before; returns how many."""
