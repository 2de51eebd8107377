"""The Protocols of sessions and of their store."""

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
class FoundMessage:
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
    preferences: ContextPreferences = NO_PREFERENCES  # for the next context
    matches: tuple[int, ...] = ()  # messages that the last search of the history found
    forgotten: int = 0  # messages before this one are in no summary any more


@dataclass(frozen=True, slots=True)
class Versions:
    """A place where a session continues in several branches."""

    index: int  # of the first message that differs
    sessions: tuple[Session, ...]  # one for each branch, oldest first
    position: int  # in `sessions`, of the session that was read


@dataclass(frozen=True, slots=True)
class MessageMatches:
    """The best results of a search in transcripts, and the number of all."""

    found: tuple[FoundMessage, ...]
    total: int


class OwnedSession(Protocol):
    """One session of one owner, and the only way to read it (C7).

    Every method raises NotFound once the session is deleted. Message ranges are half-open and count
    from 0.
    """

    @property
    def id(self) -> str: ...

    @property
    def owner(self) -> str: ...

    def read(self) -> Session: ...
    def readable(self) -> Readable:
        """The collections the session may search: those chosen that its owner may read now."""


class SessionTranscript(OwnedSession, Protocol):
    """The session's messages: append-only; what is returned is the newest revision of each."""

    def begin(self, question: str) -> OpenTurn:
        """Store a question and reserve the place of its answer, in one transaction."""

    def begin_again(self, index: int) -> OpenTurn:
        """Add a revision of the last answer. Raises NotFound, or Conflict if it is not the last."""

    def finish(self, answer: Message) -> Message:
        """Store the end of a pending answer. Raises Conflict if it has ended already."""

    def erase(self, index: int) -> None:
        """Delete the question and the answer at `index`, in every revision, and quotations of them.

        Indexes and numbers stay, nothing else changes. Raises NotFound, or Conflict while the
        answer is being written.
        """

    def judge(self, answer: Message) -> Message:
        """Store the verdicts on a finished answer's citations; its text stays.

        Raises Conflict where it is no finished answer of this session.
        """

    def tell(self, index: int, text: str, stop: Callable[[], None]) -> None:
        """Publish the text so far of an answer that this process writes, and how to stop it."""

    def written_so_far(self, index: int) -> str | None:
        """Return the text so far of a pending answer, in any process; None if it is not known."""

    def stop(self, index: int) -> bool:
        """Stop a pending answer in the process that writes it; return False if none is known."""

    def messages(self, start: int = 0, end: int | None = None) -> list[Message]: ...
    def messages_at(self, indices: Collection[int]) -> list[Message]: ...
    def bare_messages(self, start: int = 0, end: int | None = None) -> list[Message]:
        """Return messages as `messages` does, without the details of answers: for contexts."""

    def bare_messages_at(self, indices: Collection[int]) -> list[Message]:
        """Return the messages with these indexes, as `bare_messages` does."""

    def message(self, index: int) -> Message:
        """Return the message at `index`. Raises NotFound."""

    def recent(self, count: int) -> list[Message]:
        """Return the newest `count` messages, oldest first; the cost is independent of others."""

    def search(self, text: str, *, limit: int = 20) -> MessageMatches:
        """Return the messages that contain the text, ignoring case, newest first."""

    def append(
        self,
        messages: Sequence[ImportedMessage],
        sources: Sequence[Source],
        *,
        fills_gaps: bool = True,
    ) -> int:
        """Import a transcript; return the index of its first message.

        Numbers that it cites or skips without a source get a source that says so, if `fills_gaps`.
        Raises Conflict if a number of `sources` is taken by another chunk.
        """


class SourceRegister(OwnedSession, Protocol):
    """The session's sources, each with the number that it keeps (C1)."""

    def register(self, hits: Sequence[Hit]) -> list[Source]:
        """Return the hits as numbered sources, in order; new chunks get the next free numbers."""

    def register_sources(self, sources: Sequence[Source]) -> list[Source]:
        """Number sources as `register` does; two of one chunk id are the same source."""

    def keep_result(self, number: int, table_id: str, content: Mapping[str, Any]) -> None:
        """Store the table that a source shows; the first one stored stays."""

    def result(self, number: int) -> dict[str, Any] | None:
        """Return the table that a source shows; None for any other source."""

    def sources(self, numbers: Sequence[int] | None = None) -> list[Source]:
        """Return sources by number, with their present state; unknown numbers are left out."""

    def reserve_numbers(self, highest: int) -> None:
        """Give new sources only numbers above `highest`."""


class SessionMemory(SessionTranscript, SourceRegister, Protocol):
    """What a context is made from: the session's summaries, vectors and word blocks."""

    def overview(self) -> Overview: ...
    def prefer(self, preferences: ContextPreferences) -> None:
        """Replace the preferences for the next context, which `overview` returns."""

    def note_matches(self, indices: Sequence[int]) -> None:
        """Store the messages that a search of the history found, in place of the last search's."""

    def epoch(self) -> int:
        """Return the epoch; read it before a compaction begins, and pass it to `add_summary`.

        It also changes when a message is erased.
        """

    def summaries(self) -> list[Summary]:
        """Return the active summaries, oldest first; their ranges do not overlap."""

    def requested_summaries(self) -> list[Summary]:
        """Return the summaries made on request, oldest first; they are not in the context."""

    def add_requested_summary(self, summary: Summary, *, epoch: int) -> None:
        """Store a summary made on request. Raises Conflict if the epoch is over."""

    def add_summary(self, summary: Summary, *, epoch: int, replaces: Sequence[int] = ()) -> bool:
        """Store a summary. `replaces` are the ids of active summaries that it replaces.

        Return False, and store nothing, if the range overlaps another active summary or the epoch
        is over: another compaction was quicker, or summaries were forgotten meanwhile.
        """

    def forget_summaries(self) -> int:
        """Delete the derived summaries and end the epoch; return how many there were.

        The messages stay and are recalled; those that were summarised never go into a summary
        again.
        """

    # Recall
    def save_vectors(self, vectors: Mapping[int, Any]) -> None:
        """Store the vectors of messages, by index (float32 arrays)."""

    def vectors(self, indices: Sequence[int]) -> dict[int, Any]:
        """Return the stored vectors of these messages."""

    def vectors_besides(self, indices: Collection[int], since: int = 0) -> dict[int, Any]:
        """Return the vectors of all other messages from `since` on.

        The cost is small if these are the newest, or none.
        """

    def words_until(self) -> tuple[int, bytes]:
        """Return the end of the last block of words, and the total size of all blocks."""

    def words(
        self, words: Sequence[str], *, last: int, most: int
    ) -> dict[str, list[tuple[int, bytes]]]:
        """Return each word's newest `most` blocks before the message `last`, with their ends."""

    def add_words(
        self, start: int, end: int, size: bytes, words: Mapping[str, bytes], *, epoch: int
    ) -> bool:
        """Store the next block of words, of the messages `[start, end)`.

        Return False, and store nothing, if it is not the next one any more, or the epoch is over.
        """

    def without_vectors(self, *, before: int, limit: int) -> list[Message]:
        """Return the newest messages before an index that have words but no vector, as `said`."""


class SessionHandle(SessionMemory, Protocol):
    """A whole session, with its owner's settings and its branches."""

    def rename(self, title: str) -> None: ...
    def configure(self, config: ContextConfig) -> None: ...
    def choose(self, collections: Sequence[str]) -> None:
        """Search only these collections from now on; none: all that the owner may read."""

    def pick_model(self, name: str) -> None:
        """Let this model answer from now on, where it may be picked; "": the default model."""

    def expire(self, moment: datetime | None) -> None:
        """Delete the session at this moment, and do not list it before; None: keep it."""

    def shared(self) -> list[SessionHandle]:
        """Return the owner's sessions that the configuration names as shared, if they exist."""

    def delete(self) -> None:
        """Delete the session; its branches stay."""

    # Branches
    def branch(self, index: int) -> SessionHandle:
        """Create a session with the messages before `index`, at the same indexes.

        Both sessions have one register. Raises Conflict while the last of these messages is being
        written.
        """

    def family(self) -> list[Session]:
        """Return the sessions that branched from one another, this one included, oldest first."""


class ConversationStore(Protocol):
    """All sessions; every method that reads one needs its owner."""

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
        """Open a session by its id, or by its client's own id.

        Raises NotFound, also when the session is another owner's.
        """

    def open_or_create(
        self, client_id: str, *, owner: str, config: ContextConfig | None = None
    ) -> SessionHandle:
        """Open the owner's session that a client calls so, or create it."""

    def sessions(
        self, owner: str, *, limit: int = 100, offset: int = 0, one_version: bool = False
    ) -> list[Session]:
        """Return sessions, last used first: all branches, or of each family the one used last."""

    def search(self, owner: str, text: str, *, limit: int = 20) -> MessageMatches:
        """Search in all sessions of one owner."""

    def delete_expired(self) -> int:
        """Delete the sessions whose `expires_at` has passed; return how many."""

    def delete_unused_since(self, moment: datetime) -> int:
        """Delete every owner's sessions that were last used before `moment`; return how many."""
