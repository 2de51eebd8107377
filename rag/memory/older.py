"""What a long session says before the messages that are held in memory.

Its words are found by blocks in the database; the messages that they lead to are read again.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock

from rag.language.names import Lexicon
from rag.memory.context import MESSAGE_TOKENS
from rag.memory.history import History, MessageReader, ParsedMessage
from rag.memory.recall import BYTES, Postings, number_word
from rag.records import Message, MessageStatus, Role
from rag.seams import SessionMemory, TokenCounter

HELD = 400  # of the newest messages, at least
BLOCK = 256  # messages that are written down together
MOST_BLOCKS = 16  # of one word that are looked at
MOST_READ = 512  # messages that are kept at hand
PAGE = 32  # that are read with one that nobody announced
_SIZE = struct.Struct("<Qd")


class StoredMessages:
    """The messages of a session before one; see `rag.memory.history.OlderMessages`."""

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
        """From the newest blocks; how often a word is said before them is reckoned from these."""
        if not self.end:
            return {}
        blocks = self.session.words(words, last=self.end, most=MOST_BLOCKS)
        return {word: self._joined(of_word) for word, of_word in blocks.items()}

    def _joined(self, blocks: Sequence[tuple[int, bytes]]) -> Postings:
        holders = sum(len(block) for _, block in blocks) // BYTES
        oldest = blocks[-1][0] - BLOCK
        if len(blocks) == MOST_BLOCKS and oldest > 0:
            holders = holders * self.end // (self.end - oldest)
        return Postings.unpacked([block for _, block in reversed(blocks)], holders)

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
                self._parsed[index] = self._parse(index, self._read[index])
            return self._parsed[index]

    def _parse(self, index: int, message: Message) -> ParsedMessage:
        gave = lambda number: bool(self.postings([number_word(number)]))  # noqa: E731
        text = read_of(message)
        reader = MessageReader(self._count, gave, self.lexicon)
        return reader.read(index, message.role, text, self._count(text) + MESSAGE_TOKENS)

    def write(self, past: History, epoch: int) -> None:
        """Write down the oldest messages that are held, and hold them no more."""
        while len(past.said) - past.base >= HELD + BLOCK:
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
            past.keep(self.end, len(past.said))


def read_of(message: Message) -> str:
    """What is remembered of a message: nothing of an unfinished answer, or of a client's rules."""
    is_read = message.status is not MessageStatus.PENDING and message.role != Role.SYSTEM
    return message.content if is_read else ""
