"""Find the turns that fell out of the context and bear on a question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.conversation.followup_words import STOPWORDS, word_set
from rag.records import Message, Role
from rag.seams import Embedder, SessionHandle

CANDIDATES = 60  # messages that the text search may propose
RERANKED = 12  # turns that are read and compared by meaning
EMBEDDED_CHARACTERS = 1200  # of a message; what follows seldom changes what it is about
CAUGHT_UP = 400  # messages embedded in one go
WORDS_WEIGHT = 0.5  # the rest of a score is meaning
WORTH_SHOWING = 0.5  # of the best score
MAX_WORDS = 24
# Words about the conversation itself: every turn could hold them.
TALK = word_set(
    "say said says tell told mention mentioned talk talked discuss discussed answer answered ask "
    "asked explain explained decide decided agree agreed conclude concluded earlier before "
    "previously conversation chat again remember recall remind write wrote know think thought "
    "give gave given exactly thing things something anything happened go back"
)
WORD = re.compile(r"[^\W_]+(?:[-./'’][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """An earlier turn that is worth showing again."""

    question: Message
    answer: Message
    score: float  # 0 to 1, comparable within one question only

    @property
    def start(self) -> int:
        return self.question.index

    @property
    def end(self) -> int:
        return self.answer.index + 1


class Recall:
    """Looks up evicted turns: by an index over words, then by meaning if there is an embedder."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def relevant(
        self, session: SessionHandle, question: str, *, before: int, limit: int
    ) -> list[RecalledTurn]:
        """The turns among the first `before` messages that bear most on the question, best first.

        What it costs does not grow with the session.
        """
        words = telling_words(question)
        if before < 2 or limit < 1 or not words:
            return []
        scores = dict(session.matching(words, limit=CANDIDATES))
        turns = _turns(session, [index for index in scores if index < before], before)
        if not turns:
            return []
        marks = self._marks(session, question, turns, scores)
        ranked = sorted(zip(turns, marks, strict=True), key=lambda pair: -pair[1])
        floor = WORTH_SHOWING * ranked[0][1]
        found = [RecalledTurn(*turn, score=mark) for turn, mark in ranked if mark >= floor]
        return found[:limit]

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
            rows = embedder.embed([_embedded(message) for message in wanted])
            pairs = zip(wanted, rows, strict=True)
            session.save_vectors({message.index: row for message, row in pairs})

    def _marks(
        self,
        session: SessionHandle,
        question: str,
        turns: Sequence["Turn"],
        scores: dict[int, float],
    ) -> list[float]:
        by_words = _shares([sum(scores.get(m.index, 0.0) for m in turn) for turn in turns])
        if self._embedder is None:
            return by_words
        vectors = session.vectors([message.index for turn in turns for message in turn])
        if not vectors:
            return by_words
        asked = self._embedder.embed([question])[0]
        return [
            WORDS_WEIGHT * words + (1 - WORDS_WEIGHT) * _meaning(asked, turn, vectors, words)
            for words, turn in zip(by_words, turns, strict=True)
        ]


Turn = tuple[Message, Message]


def _meaning(
    asked: NDArray[np.float32], turn: Turn, vectors: Mapping[int, Any], otherwise: float
) -> float:
    """Cosine of the nearer message; a turn that nobody embedded yet is judged by its words."""
    near = [float(asked @ vectors[message.index]) for message in turn if message.index in vectors]
    return max(0.0, *near) if near else otherwise


def telling_words(question: str) -> list[str]:
    """The words to look up: those that are not in every question."""
    found = [word.lower().replace("’", "'") for word in WORD.findall(question)]
    words = [word.removesuffix("'s") for word in found]
    told = [word for word in words if word not in STOPWORDS | TALK]
    return list(dict.fromkeys(told))[:MAX_WORDS]


def _turns(session: SessionHandle, indices: Sequence[int], before: int) -> list[Turn]:
    """The whole turns that hold these messages, in their order."""
    wanted = indices[: 2 * RERANKED]
    around = {near for index in wanted for near in (index - 1, index, index + 1)}
    read = session.said_at([index for index in sorted(around) if 0 <= index < before])
    by_index = {message.index: message for message in read}
    found: dict[int, Turn] = {}
    for index in wanted:
        beside = (by_index.get(near) for near in (index - 1, index, index + 1))
        same = [m for m in beside if m is not None and m.turn == by_index[index].turn]
        pair = _pair(same)
        if pair is not None and len(found) < RERANKED:
            found.setdefault(pair[0].index, pair)
    return list(found.values())


def _pair(messages: Sequence[Message]) -> Turn | None:
    """A question with its answer; None for a question that was never answered."""
    asked = [message for message in messages if message.role == Role.USER]
    answered = [message for message in messages if message.role == Role.ASSISTANT]
    if not asked or not answered or not answered[-1].content.strip():
        return None
    return asked[0], answered[-1]


def _shares(scores: Sequence[float]) -> list[float]:
    best = max(scores, default=0.0)
    return [max(score, 0.0) / best if best > 0 else 0.0 for score in scores]


def _embedded(message: Message) -> str:
    return message.content[:EMBEDDED_CHARACTERS]
