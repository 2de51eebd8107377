"""Find the turns that fell out of the context and bear on a question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from rag.citations.gate import canonical
from rag.citations.statements import quotation, read_statements
from rag.errors import ModelError
from rag.records import Message, Role
from rag.retrieval.held.vectors import AT_ONCE
from rag.seams import Embedder, MatchedMessage, SessionHandle
from rag.text.languages import words as word_set
from rag.text.related import alike
from rag.text.words import is_function_word, stem, tokens

CANDIDATES = 200  # messages that the text search may propose
RERANKED = 96  # turns that are read, for their words and for their meaning each
EMBEDDED_CHARACTERS = 1200  # of a text; what follows seldom changes what it is about
MOST_STATEMENTS = 40  # of an answer that are embedded
CAUGHT_UP = 400  # messages embedded in one go
LEAST_MEANING = 0.25  # cosine; what is farther off was meant by nothing in the question
REMEMBERED = 60_000  # vectors, of all sessions together
MAX_WORDS = 24
# Words about the conversation itself: every turn could hold them.
TALK = word_set(
    "say said says tell told mention mentioned talk talked discuss discussed answer answered ask "
    "asked explain explained decide decided agree agreed conclude concluded earlier before "
    "previously conversation chat again remember recall remind write wrote know think thought "
    "give gave given exactly thing things something anything happened go back"
)
# From a matching message to those of its turn.
STEPS = {Role.USER.value: (0, 1), Role.ASSISTANT.value: (-1, 0)}


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """An earlier turn that is worth showing again."""

    question: Message
    answer: Message
    near: tuple[float, ...] = ()  # cosines of the answer's statements, where they are embedded


class Recall:
    """Looks up evicted turns: by an index over words, and by meaning if there is an embedder."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, _Vectors] = {}  # by session, the one used last stands last

    def relevant(
        self, session: SessionHandle, question: str, *, before: int, limit: int
    ) -> list[RecalledTurn]:
        """The turns among the first `before` messages that bear most on the question, best first.

        By words it costs the same however long the session is, by meaning little more.
        """
        words = telling_words(question)
        if before < 2 or limit < 1 or not words:
            return []
        near = self._near(session, question)
        matched = session.matching(words, limit=CANDIDATES, before=before, alike=_alike(words))
        by_words = _by_turn(matched)
        closest = near.messages(before=before, most=RERANKED)
        held = {
            match.index + step
            for match in matched
            if match.turn in by_words
            for step in STEPS.get(match.role, (-1, 0, 1))
        }
        pairs = _read(session, held | _around(closest), before)
        said = {turn: by_words[turn] for turn in pairs if turn in by_words}
        meant = {turn: max(0.0, _nearest(near, pair)) for turn, pair in pairs.items()}
        best = list(_in_turn(said, meant))[:limit]
        return [RecalledTurn(*pairs[turn], near.of(pairs[turn][1].index)) for turn in best]

    def remember(self, session: SessionHandle, messages: Sequence[Message]) -> None:
        """Embed messages once, so that later questions find their vectors; done in background.

        Some of those before them, which an imported transcript brought along, are caught up on
        each time, the newest first.
        """
        if self._embedder is None or not messages:
            return
        known = session.vectors([message.index for message in messages])
        missing = [message for message in messages if message.index not in known]
        self._embed(self._embedder, session, missing)
        first = min(message.index for message in messages)
        older = session.without_vectors(before=first, limit=max(0, CAUGHT_UP - len(missing)))
        self._embed(self._embedder, session, older)

    def _embed(
        self, embedder: Embedder, session: SessionHandle, messages: Sequence[Message]
    ) -> None:
        """Embed what says something, and save its vectors."""
        wanted = [message for message in messages if message.content.strip()]
        if wanted:
            texts = [_embedded(message) for message in wanted]
            try:
                rows = iter(embedder.embed([text for own in texts for text in own]))
            except ModelError:
                return  # those that come later catch up
            vectors = [np.concatenate(list(islice(rows, len(own)))) for own in texts]
            indices = (message.index for message in wanted)
            session.save_vectors(dict(zip(indices, vectors, strict=True)))

    def _near(self, session: SessionHandle, question: str) -> "_Near":
        """How near each embedded message is to the question; nothing without an embedder."""
        if self._embedder is None:
            return _Near()
        try:
            return self._measured(session, question, self._embedder)
        except ModelError:
            return _Near()  # the words do alone

    def _measured(self, session: SessionHandle, question: str, embedder: Embedder) -> "_Near":
        known = self._vectors.pop(session.id, None) or _Vectors()
        known = known.brought_up_to_date(session, embedder.dimensions)
        self._vectors[session.id] = known
        while len(self._vectors) > 1 and sum(map(len, self._vectors.values())) > REMEMBERED:
            self._vectors.pop(next(iter(self._vectors)))
        if not len(known):
            return _Near()
        asked = embedder.embed([question])[0]
        parts = np.array_split(known.rows, 1 + len(known) // AT_ONCE)
        return _Near(known.places, np.concatenate([part @ asked for part in parts]))


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vectors of one session: each row's message, in order."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    messages: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.places)

    def brought_up_to_date(self, session: SessionHandle, dimensions: int) -> "_Vectors":
        """With those that were saved since."""
        found = session.vectors_besides(self.messages)
        new = [
            (index, vectors.reshape(-1, dimensions))
            for index, vectors in found.items()
            if vectors.size % dimensions == 0  # of another model, if not
        ]
        messages = self.messages.union(found)
        if not new:
            return replace(self, messages=messages)
        places = np.concatenate([self.places, *(np.full(len(rows), at) for at, rows in new)])
        rows = np.concatenate([self.rows.reshape(-1, dimensions), *(rows for _, rows in new)])
        order = np.argsort(places, kind="stable")
        return _Vectors(places[order], rows[order], messages)


@dataclass(frozen=True, slots=True)
class _Near:
    """How near each row of some vectors is to a question."""

    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cosines: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    def of(self, message: int) -> tuple[float, ...]:
        """Of each statement of a message; nothing of one that nobody embedded yet."""
        first, last = np.searchsorted(self.places, (message, message + 1))
        return tuple(self.cosines[first:last].tolist())

    def messages(self, *, before: int, most: int) -> list[int]:
        """The nearest before one, as far as they are near at all."""
        until = int(np.searchsorted(self.places, before))
        best = np.argsort(-self.cosines[:until], kind="stable")[: 3 * most]
        near = (int(self.places[at]) for at in best if self.cosines[at] >= LEAST_MEANING)
        return list(dict.fromkeys(near))[:most]


def _by_turn(matched: Iterable[MatchedMessage]) -> dict[int, float]:
    """The best turns of these messages, with what these score together."""
    scores: dict[int, float] = {}
    for match in matched:
        scores[match.turn] = scores.get(match.turn, 0.0) + match.score
    return dict(sorted(scores.items(), key=lambda each: -each[1])[:RERANKED])


def _around(indices: Iterable[int]) -> set[int]:
    return {index + step for index in indices for step in (-1, 0, 1)}


def _read(
    session: SessionHandle, places: Iterable[int], before: int
) -> dict[int, tuple[Message, Message]]:
    """The turns of these messages that are whole: question and answer."""
    by_turn: dict[int, list[Message]] = {}
    for message in session.said_at(sorted({at for at in places if 0 <= at < before})):
        by_turn.setdefault(message.turn, []).append(message)
    pairs = {turn: _pair(messages) for turn, messages in by_turn.items()}
    return {turn: pair for turn, pair in pairs.items() if pair is not None}


def _nearest(near: _Near, pair: tuple[Message, Message]) -> float:
    return max((*near.of(pair[0].index), *near.of(pair[1].index)), default=0.0)


def _in_turn(*scores: Mapping[int, float]) -> Iterable[int]:
    """The best by each of these scores in turn, once each: neither crowds the other out."""
    ranks = (sorted(filter(each.get, each), key=each.__getitem__, reverse=True) for each in scores)
    every = chain.from_iterable(zip_longest(*ranks))
    return dict.fromkeys(turn for turn in every if turn is not None)


def telling_words(question: str) -> list[str]:
    """The words to look up: those that are not in every question."""
    found = (token.lowered.removesuffix("'s") for token in tokens(question))
    told = (word for word in found if not is_function_word(word) and word not in TALK)
    return list(dict.fromkeys(told))[:MAX_WORDS]


def _alike(words: Sequence[str]) -> dict[str, list[str]]:
    """For each word those that mean about the same, as far as they are not looked up as well."""
    others = {word: sorted(alike(stem(word)).difference(words)) for word in words}
    return {word: near for word, near in others.items() if near}


def _pair(messages: Sequence[Message]) -> tuple[Message, Message] | None:
    """A question with its answer; None for a question that was never answered."""
    asked = [message for message in messages if message.role == Role.USER]
    answered = [message for message in messages if message.role == Role.ASSISTANT]
    if not asked or not answered or not answered[-1].content.strip():
        return None
    return asked[0], answered[-1]


def _embedded(message: Message) -> list[str]:
    """What is embedded of a message: each statement of an answer, with what it leans on."""
    if message.role != Role.ASSISTANT:
        return [message.content[:EMBEDDED_CHARACTERS]]
    text = canonical(message.content)
    stated = [quotation(text, each) for each in read_statements(text) if each.states]
    return [each[:EMBEDDED_CHARACTERS] for each in stated[:MOST_STATEMENTS] or [text]]
