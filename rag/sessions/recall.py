"""Find the turns that fell out of the context and bear on a question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rag.records import Message, Role
from rag.seams import Embedder, MatchedMessage, SessionHandle
from rag.text.languages.language import words as word_set
from rag.text.words import STOP_WORDS

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
# From a matching message to those of its turn.
STEPS = {Role.USER.value: (0, 1), Role.ASSISTANT.value: (-1, 0)}
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
        matched = session.matching(words, limit=CANDIDATES)
        candidates = _candidates([match for match in matched if match.index < before])
        marks = self._marks(session, question, candidates)
        ranked = sorted(zip(candidates, marks, strict=True), key=lambda pair: -pair[1])
        found: list[RecalledTurn] = []
        for some in (ranked[: 2 * limit], ranked[2 * limit :]):
            if some and len(found) < limit:  # seldom twice: some questions had no answer
                found += _read(session, some, before)
        floor = WORTH_SHOWING * found[0].score if found else 0.0
        return [turn for turn in found if turn.score >= floor][:limit]

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
        self, session: SessionHandle, question: str, candidates: Sequence["_Candidate"]
    ) -> list[float]:
        by_words = _shares([candidate.score for candidate in candidates])
        if self._embedder is None or not candidates:
            return by_words
        vectors = session.vectors([at for candidate in candidates for at in candidate.places])
        if not vectors:
            return by_words
        asked = self._embedder.embed([question])[0]
        return [
            WORDS_WEIGHT * words + (1 - WORDS_WEIGHT) * _meaning(asked, candidate, vectors, words)
            for words, candidate in zip(by_words, candidates, strict=True)
        ]


@dataclass(slots=True)
class _Candidate:
    """A turn as far as its matching messages tell of it."""

    turn: int
    score: float = 0.0
    places: set[int] = field(default_factory=set)  # of its question and answer, as it seems


def _candidates(matched: Sequence[MatchedMessage]) -> list[_Candidate]:
    """The turns of these messages, best first."""
    by_turn: dict[int, _Candidate] = {}
    for match in matched:
        candidate = by_turn.setdefault(match.turn, _Candidate(match.turn))
        candidate.score += match.score
        candidate.places |= {match.index + step for step in STEPS.get(match.role, (-1, 0, 1))}
    ranked = sorted(by_turn.values(), key=lambda candidate: -candidate.score)
    return ranked[:RERANKED]


def _meaning(
    asked: NDArray[np.float32],
    candidate: _Candidate,
    vectors: Mapping[int, Any],
    otherwise: float,
) -> float:
    """Cosine of the nearer message; a turn that nobody embedded yet is judged by its words."""
    near = [float(asked @ vectors[at]) for at in candidate.places if at in vectors]
    return max(0.0, *near) if near else otherwise


def _read(
    session: SessionHandle, ranked: Sequence[tuple[_Candidate, float]], before: int
) -> list[RecalledTurn]:
    """Those of the turns that are whole."""
    places = {at for candidate, _ in ranked for at in candidate.places if 0 <= at < before}
    by_turn: dict[int, list[Message]] = {}
    for message in session.said_at(sorted(places)):
        by_turn.setdefault(message.turn, []).append(message)
    pairs = ((_pair(by_turn.get(candidate.turn, [])), mark) for candidate, mark in ranked)
    return [RecalledTurn(*pair, score=mark) for pair, mark in pairs if pair is not None]


def telling_words(question: str) -> list[str]:
    """The words to look up: those that are not in every question."""
    found = [word.lower().replace("’", "'") for word in WORD.findall(question)]
    words = [word.removesuffix("'s") for word in found]
    told = [word for word in words if word not in STOP_WORDS | TALK]
    return list(dict.fromkeys(told))[:MAX_WORDS]


def _pair(messages: Sequence[Message]) -> tuple[Message, Message] | None:
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
