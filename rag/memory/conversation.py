"""The memory of stored sessions: each is read once, and brought up to date when it is used.

The cached history of a session is reached only through its owner's handle, which reads the messages
that are new; a deleted session is no longer found.

The database stores in blocks which messages hold a word; the messages are then read from it.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from rag.citations.markers import cited_numbers, renumber
from rag.errors import ModelError, NotFound, UserError
from rag.language.names import Lexicon
from rag.memory.context import MESSAGE_TOKENS
from rag.memory.history import History, MessageReader, Messages, ParagraphSelection, ParsedMessage
from rag.memory.recall import BYTES, PLACES, Meanings, Postings, number_word
from rag.memory.summariser import Summariser, corrected
from rag.memory.summary import (
    NO_SUMMARY_DRAFT,
    OPEN,
    SUPPORTED,
    WARNED,
    Room,
    SummaryDraft,
    summarise,
)
from rag.memory.verifier import TurnEvidence, flat
from rag.records import LineEdit, Message, MessageStatus, Readable, Role, Summary, SummaryLine
from rag.runtime.budget import HangUp
from rag.seams import Embedder, OwnedSession, SessionMemory, SourceRegister, TokenCounter

if TYPE_CHECKING:
    from rag.memory.embedding import SupportedLanguages

NEWEST_MESSAGES = 400  # of the newest messages, at least
BLOCK = 256  # messages that are written down together
MOST_BLOCKS = 16  # of one word that are looked at
MOST_READ = 512  # messages that are kept at hand
PAGE = 32  # that are read with one that nobody announced
_SIZE = struct.Struct("<Qd")


class StoredMessages:
    """The messages of a session before `end`; see `rag.memory.history.OlderMessages`."""

    def __init__(self, session: SessionMemory, count: TokenCounter, lexicon: Lexicon) -> None:
        self.session, self.lexicon = session, lexicon
        self._count = count
        self._look_up_size()
        self._lock = RLock()  # who writes a summary reads while others ask
        self._read: dict[int, Message] = {}
        self._parsed: dict[int, ParsedMessage] = {}

    def _look_up_size(self) -> None:
        self.end, size = self.session.words_until()
        self._size: tuple[int, float] = _SIZE.unpack(size) if size else (0, 0.0)

    def size(self) -> tuple[int, float]:
        return self._size

    def postings(self, words: Sequence[str]) -> Mapping[str, Postings]:
        """Return the postings of the newest blocks; what older ones hold is estimated from them."""
        if not self.end:
            return {}
        postings: dict[str, Postings] = {}
        of_words = self.session.words(words, last=self.end, most=MOST_BLOCKS)
        for word, blocks in of_words.items():
            holders = sum(len(block) for _, block in blocks) // BYTES
            oldest = blocks[-1][0] - BLOCK
            if len(blocks) == MOST_BLOCKS and oldest > 0:
                holders = holders * self.end // (self.end - oldest)
            postings[word] = Postings.unpacked([block for _, block in reversed(blocks)], holders)
        return postings

    def load(self, messages: Iterable[int]) -> None:
        with self._lock:
            missing = [m for m in messages if m not in self._read and m not in self._parsed]
            if len(self._read) + len(self._parsed) > MOST_READ:
                self._read, self._parsed = {}, {}
            if missing:
                self._read |= {
                    message.index: message for message in self.session.bare_messages_at(missing)
                }

    def message(self, index: int) -> ParsedMessage:
        with self._lock:
            if index not in self._parsed:
                if index not in self._read:
                    first = index - index % PAGE
                    self.load(range(first, min(first + PAGE, self.end)))
                if index not in self._read:  # it went meanwhile
                    return ParsedMessage("", "")
                role, text = self._read[index].role, read_of(self._read[index])
                gave = lambda number: bool(self.postings([number_word(number)]))  # noqa: E731
                reader = MessageReader(self._count, gave, self.lexicon)
                tokens = self._count(text) + MESSAGE_TOKENS
                self._parsed[index] = reader.read(index, role, text, tokens)
            return self._parsed[index]

    def write(self, past: History, epoch: int) -> None:
        """Store the word blocks of the oldest messages in memory, which then leave it."""
        while len(past.parsed) - past.base >= NEWEST_MESSAGES + BLOCK:
            start, end = past.base, past.base + BLOCK
            block = past.index.block(start, end)
            sizes = [past.index.sizes[m] for m in range(start, end) if m in past.index.sizes]
            count = self._size[0] + sum(count for count, _ in sizes)
            total = self._size[1] + sum(length for _, length in sizes)
            size = _SIZE.pack(count, total)
            if self.session.add_words(start, end, size, block, epoch=epoch):
                self.end, self._size = end, (count, total)
            else:  # another process was quicker, or something was erased
                self._look_up_size()
            if self.end <= start:
                return
            past.keep(self.end, len(past.parsed))


def read_of(message: Message) -> str:
    """Return the text to remember; "" for an unfinished answer or a client's system message."""
    is_read = message.status is not MessageStatus.PENDING and message.role != Role.SYSTEM
    return message.content if is_read else ""


MOST_PARAGRAPHS = 100_000  # of all sessions together, some 100 MB
CAUGHT_UP = 400  # messages embedded in one go
ON_REQUEST = 4  # times `max_summary_tokens`: what a summary on request may take
LEAST_ROOM = 400  # tokens, of a summary in which a line was corrected


@dataclass(slots=True)
class _CachedSession:
    """The history of one session that is kept in memory, with the lock that guards it."""

    history: History
    epoch: int = 0  # of the session as it was read: another one where turns were erased since
    last: str = ""  # the newest message that was read, as it is stored
    lock: Any = field(default_factory=RLock)


class ConversationMemory:
    """The memory of stored sessions: recall, summaries, compaction."""

    def __init__(
        self,
        count: TokenCounter,
        embedder: Embedder | None = None,
        *,
        names: Callable[[Readable], Sequence[str]] = lambda readable: (),
        summariser: Summariser | None = None,
        max_tokens: int = 800,
    ) -> None:
        """`names` returns the product names in documents.

        A summary on request takes up to `ON_REQUEST` times `max_tokens`.
        """
        self._count = count
        self._embedder = embedder
        self._languages: SupportedLanguages | None = None
        self._names = names
        self._summariser = summariser
        self._writing: dict[tuple[str, str], HangUp] = {}  # sessions of which a model writes now
        self._max_tokens = max_tokens
        self._sessions: dict[tuple[str, str], _CachedSession] = {}  # the one used last stands last
        self._turn = Lock()

    # ── Recall ───────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def recalled(
        self, session: SessionMemory, question: str, *, before: int, room: int, beside: str = ""
    ) -> Iterator[ParagraphSelection]:
        """Yield paragraphs before message `before` that bear on a question and not in `beside`."""
        with self._brought_up_to(session, before) as cached:
            yield cached.history.recalled(
                question,
                before=before,
                room=room,
                meanings=self._meanings(session, cached.history, question),
                beside=beside,
            )

    def shared(
        self, session: SourceRegister, others: Sequence[SessionMemory], question: str, room: int
    ) -> str:
        """Return the text of other sessions of the same owner that bears on a question.

        Their sources get numbers of this session; a number without a source is no citation.
        """
        blocks: list[str] = []
        for place, other in enumerate(others):
            own_room = (room - sum(map(self._count, blocks))) // (len(others) - place)
            try:
                count = other.read().message_count
                with self.recalled(other, question, before=count, room=own_room) as paragraphs:
                    text = paragraphs.text()
                sources = other.sources(cited_numbers(text))
            except NotFound:  # deleted meanwhile
                continue
            registered = session.register_sources(sources)
            pairs = zip(sources, registered, strict=True)
            numbers = {source.number: ours.number for source, ours in pairs}
            blocks += [renumber(text, numbers)] if text else []
        return "\n".join(blocks)

    def search(self, session: SessionMemory, query: str, limit: int) -> list[tuple[int, str, str]]:
        """Return index, role and a paragraph of the messages that bear on a query, best first."""
        count = session.read().message_count
        with self._brought_up_to(session, count) as cached:
            past, first = cached.history, dict[int, str]()
            best = past.ranked(query, count, self._meanings(session, past, query))
            for position in islice(best, 4 * limit):
                first.setdefault(position // PLACES, past.paragraph(position).text)
            messages = past.parsed
            return [(m, messages[m].role, text) for m, text in islice(first.items(), limit)]

    def remember(self, session: SessionMemory, *, embeds: bool = True) -> None:
        """Store the word blocks of old messages and embed new messages; runs in the background."""
        count = session.read().message_count
        with self._brought_up_to(session, count) as cached:
            if isinstance(cached.history.parsed.older, StoredMessages):
                cached.history.parsed.older.write(cached.history, cached.epoch)
        if self._embedder is None or not embeds:
            return
        count = session.read().message_count  # of now: a turn may have ended meanwhile
        missing = [
            message.index
            for message in session.without_vectors(before=count, limit=CAUGHT_UP)
            if message.status is not MessageStatus.PENDING
        ]
        from rag.memory.embedding import embed_paragraphs, marked, texts_of

        with self._brought_up_to(session, count) as cached:
            texts = texts_of(cached.history, missing)
        try:
            rows = embed_paragraphs(texts, self._embedder.embed)
        except ModelError:
            return  # those that come later catch up
        if rows:
            name = self._embedder.name
            session.save_vectors({index: marked(vectors, name) for index, vectors in rows.items()})

    def _meanings(self, session: SessionMemory, past: History, question: str) -> Meanings | None:
        """Return a function that compares paragraphs with a question by their vectors.

        Return None without an embedder, if it fails, or if its model does not know the language;
        then words alone decide.
        """
        if self._embedder is None:
            return None
        from rag.memory.embedding import SupportedLanguages, near, rows_of

        embed, model = self._embedder.embed, (self._embedder.name, self._embedder.dimensions)
        stored = session.vectors_besides(past.vectors.keys(), past.base)
        past.vectors |= {m: rows for m, rows in stored.items() if m < len(past.parsed)}
        self._languages = self._languages or SupportedLanguages(embed)
        try:
            if past.phrases not in self._languages:
                return None
        except ModelError:
            return None  # the words do alone

        def meanings(older: Sequence[int]) -> dict[int, float]:
            sizes = past.index.sizes
            recent = {m: rows_of(v, *model) for m, v in past.vectors.items() if m in sizes}
            rows = {m: vectors for m, vectors in recent.items() if len(vectors) == sizes[m][0]}
            read = session.vectors(older) if older else {}
            rows |= {m: rows_of(v, *model) for m, v in read.items()}
            try:
                return near(rows, question, embed)
            except ModelError:
                return {}

        return meanings

    # ── Summaries ────────────────────────────────────────────────────────────────────────────

    def compact(
        self,
        session: SessionMemory,
        plan: Callable[[History, int], tuple[int, Room] | None],
        *,
        at_once: bool,
        stores: bool = True,
    ) -> Summary | None:
        """Summarise the oldest turns; return None if none is due, or if another was quicker.

        `plan` returns where the summary shall end, at the last answer at most, and its room in
        tokens. One summary replaces all turns up to its end; it is composed anew. `at_once` skips
        the model; no lock is held while a model writes.

        Raises:
            SummaryCancelled: the owner asked meanwhile; nothing was stored.
        """
        epoch, overview = session.epoch(), session.overview()
        active = overview.summaries
        draft = draft_of(active)
        with self._brought_up_to(session, overview.session.message_count) as cached:
            past = _since(cached.history, overview.forgotten, active)
            last = len(past.parsed)
            while last and past.parsed[last - 1].role == Role.USER:
                last -= 1  # an open question is never summarised
            planned = plan(past, last)
            if planned is None:
                return None
            end, room = planned
            evidence = past.evidence(past.first, end)
        if self._summariser is not None and not at_once and draft.written_to < end:
            draft = self._written(session, evidence, draft)
        with self._brought_up_to(session, overview.session.message_count) as cached:
            past = _since(cached.history, overview.forgotten, active)
            summary = _judged_summary(session, past, end, room, draft)
        if not stores:
            return summary
        replaced = [older.id for older in active if older.id is not None]
        return summary if session.add_summary(summary, epoch=epoch, replaces=replaced) else None

    def is_due(self, summaries: Sequence[Summary]) -> bool:
        """Whether a summary must be written anew: its form is old, or no model has read its turns.

        After a failure the model is not tried again until more turns are summarised.
        """
        for summary in summaries:
            is_old = not summary.lines and not summary.written_to and bool(summary.text)
            is_unread = self._summariser is not None and summary.written_to < summary.end
            if is_old or (is_unread and not summary.report.problems):
                return True
        return False

    def cancel(self, session: OwnedSession) -> bool:
        """Stop the model that writes a summary of a session; return whether one was writing."""
        hang_up = self._writing.get((session.owner, session.id))
        if hang_up is None:
            return False
        hang_up.now()
        return True

    def summarize(self, session: SessionMemory, start: int, end: int) -> Summary:
        """Summarise the messages `[start, end)` on request; the summary is no part of the context.

        Raises:
            UserError: there are no such messages, or some were deleted meanwhile.
        """
        epoch, count = session.epoch(), session.read().message_count
        if not 0 <= start < end <= count:
            raise UserError(
                f"There are no messages {start} to {end}: the conversation has {count}. "
                f"Ask for a range from 0 to {count}, the end not included."
            )
        most = ON_REQUEST * self._max_tokens
        with self._brought_up_to(session, count) as cached:
            end = min(end, len(cached.history.parsed))
            if end <= start:
                raise UserError("These messages are being written. Ask again when they are there.")
            evidence = cached.history.evidence(start, end)
        draft = replace(NO_SUMMARY_DRAFT, written_to=start)
        if self._summariser is not None:
            draft = self._written(session, evidence, draft)
        with self._brought_up_to(session, count) as cached:
            cached.history.first = start  # a compaction says anew where its own begins
            summary = _judged_summary(session, cached.history, end, Room(most, 2 * most), draft)
        session.add_requested_summary(summary, epoch=epoch)
        return summary

    def correct(self, session: SessionMemory, line: str, text: str) -> Summary | None:
        """Replace the text of a summary line, or delete the line; later summaries keep to that.

        Return None if the summary has no such line any more.
        """
        epoch, overview = session.epoch(), session.overview()
        lines = ((summary, shown) for summary in overview.summaries for shown in summary.lines)
        pair = next((pair for pair in lines if pair[1].text == line), None)
        if pair is None:
            return None
        summary, original = pair
        draft = draft_of([summary])
        edits = (
            *(e for e in draft.edits if e.text != line),
            LineEdit(original.text, flat(text), original.messages),
        )
        draft = replace(draft, edits=edits)
        with self._brought_up_to(session, overview.session.message_count) as cached:
            past = _since(cached.history, overview.forgotten, overview.summaries)
            draft = corrected(draft, original, flat(text), past.evidence(past.first, past.covered))
            room = Room(max(summary.tokens, LEAST_ROOM), max(4 * summary.tokens, LEAST_ROOM))
            made = _judged_summary(session, past, past.covered, room, draft)
        ids = [summary.id for summary in overview.summaries if summary.id is not None]
        return made if session.add_summary(made, epoch=epoch, replaces=ids) else None

    def _written(
        self, session: OwnedSession, evidence: TurnEvidence, draft: SummaryDraft
    ) -> SummaryDraft:
        """Return the draft with the lines that a model adds; no lock is held meanwhile."""
        assert self._summariser is not None, "only called where there is a model"
        key, hang_up = (session.owner, session.id), HangUp()
        self._writing[key] = hang_up
        try:
            return self._summariser.write(evidence, draft, hang_up)
        finally:
            if self._writing.get(key) is hang_up:
                del self._writing[key]

    # ── Read ─────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _brought_up_to(self, session: SessionMemory, before: int) -> Iterator[_CachedSession]:
        """Yield the history of a session up to message `before`, under its lock."""
        key = (session.owner, session.id)
        with self._turn:
            cached = self._sessions.pop(key, None) or _CachedSession(History(self._count))
            self._sessions[key] = cached
            while len(self._sessions) > 1 and self._size() > MOST_PARAGRAPHS:
                self._sessions.pop(next(iter(self._sessions)))
        with cached.lock:
            epoch = session.epoch()
            if epoch != cached.epoch:  # whichever process erased something: nothing of it is held
                cached.history, cached.last, cached.epoch = History(self._count), "", epoch
            self._read(session, cached, before)
            yield cached

    def _size(self) -> int:
        return sum(session.history.index.count for session in self._sessions.values())

    def _read(self, session: SessionMemory, cached: _CachedSession, before: int) -> None:
        """Read each message once; the newest one is read again if its text has changed since."""
        past, count = cached.history, len(cached.history.parsed)
        if past.parsed.older is None:  # it begins behind what is written down in the database
            older = StoredMessages(session, self._count, Lexicon(self._names(session.readable())))
            past.parsed, past.index.older, count = Messages(older, older.end), older, older.end
        is_known = count > past.base
        messages = session.bare_messages(count - is_known, max(before, count))
        if is_known and messages and messages[0].content == cached.last:
            messages = messages[1:]
        elif is_known:
            past.keep(past.base, count - 1)
        # of two that are being written at once, what stands behind the first is read when it ends
        earlier = (message for message in messages if message.index < before)
        ended = list(
            takewhile(lambda message: message.status is not MessageStatus.PENDING, earlier)
        )
        if not ended:
            return
        lexicon = Lexicon(self._names(session.readable()))
        for message in ended:
            if message.role == Role.USER:
                past.turns.append(message.index)
            text = read_of(message)
            past.read(message.role, text, self._count(text) + MESSAGE_TOKENS, lexicon)
        cached.last = ended[-1].content


def draft_of(active: Sequence[Summary]) -> SummaryDraft:
    """Return the lines that a model wrote so far, and the corrections of a person."""
    return SummaryDraft(
        tuple(line for summary in active for line in summary.model_lines),
        max((summary.written_to for summary in active), default=0),
        tuple(edit for summary in active for edit in summary.edits),
        next((summary.report.model for summary in reversed(active) if summary.model_lines), ""),
    )


def _since(past: History, forgotten: int, active: Sequence[Summary]) -> History:
    past.first = forgotten
    for summary in active if past.base > forgotten else ():
        past.carry(summary)
    past.cover(max((summary.end for summary in active), default=forgotten))
    return past


def _judged_summary(
    session: SessionMemory, past: History, end: int, room: Room, draft: SummaryDraft
) -> Summary:
    """Summarise with the titles of documents and the current verdicts on statements."""

    def titles(numbers: Sequence[int]) -> Mapping[int, str]:
        return {source.number: source.document_title for source in session.sources(numbers)}

    def weigh(lines: Sequence[SummaryLine]) -> list[int]:
        messages = session.messages_at({message for line in lines for message in line.messages})
        judged = {message.index: message for message in messages}
        return [
            max(
                (_weight(judged[message], line) for message in line.messages if message in judged),
                default=OPEN,
            )
            for line in lines
        ]

    return summarise(past, end, room, draft, documents=titles, weigh=weigh)


def _weight(message: Message, line: SummaryLine) -> int:
    """Return the weight of the verdicts on a line's statement in the message that made it."""
    citations = message.checked(line.text)
    if not citations and message.answer is not None and line.text not in message.content:
        citations = [
            citation for citation in message.answer.citations if citation.number in line.numbers
        ]
    verdicts = [citation.verdict for citation in citations]
    if any(verdict.is_warning for verdict in verdicts):
        return WARNED
    return SUPPORTED if any(verdict.is_certain for verdict in verdicts) else OPEN
