"""Compare paragraphs with a question by their vectors, where there is an embedding model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from functools import cache
from hashlib import sha256
from itertools import chain, islice
from typing import Any

import numpy as np

from rag.memory.history import History, SummaryPhrases, all_phrases
from rag.memory.recall import PLACES, Embed

EMBEDDED_CHARACTERS = 1200  # of a text; what follows seldom changes what it is about
# Of the phrases of one language that are nearest to their English ones: a model of English alone
# gives .6 at most, a multilingual one .7 at least.
LEAST_KNOWN = 0.65
LEAST_MEANING = 0.25  # cosine; what is farther off was meant by nothing in the question
MOST_NEAR = 400  # paragraphs that may be found by their meaning


class SupportedLanguages:
    """The languages that an embedding model knows, each measured once.

    The same phrases stand in each language of `rag.memory.history`; a model that knows a language
    places its phrases near the English ones. In an unknown language vectors would only disturb the
    ranking by words.
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._support: dict[SummaryPhrases, bool] = {all_phrases()["en"]: True}

    def __contains__(self, phrases: object) -> bool:
        assert isinstance(phrases, SummaryPhrases), "a language is known by its phrases"
        if phrases not in self._support:
            english = np.asarray(self._embed(list(astuple(all_phrases()["en"]))))
            theirs = np.asarray(self._embed(list(astuple(phrases))))
            nearest = np.argmax(theirs @ english.T, axis=1)
            share = float(np.mean(nearest == np.arange(len(english))))
            self._support[phrases] = share >= LEAST_KNOWN
        return self._support[phrases]


def texts_of(past: History, messages: Iterable[int]) -> dict[int, list[str]]:
    """Return the texts to embed for each paragraph of these messages."""
    return {
        message: [
            f"{past.question_of(message)}\n{paragraph.setting}\n{paragraph.text}".strip()[
                :EMBEDDED_CHARACTERS
            ]
            for paragraph in past.parsed[message].paragraphs
        ]
        for message in messages
        if message < len(past.parsed) and past.parsed[message].paragraphs
    }


def marked(rows: Any, model: str) -> Any:
    """Return the rows as one stored array: one after the other, then a number for their model."""
    return np.append(np.asarray(rows, np.float32).reshape(-1), _mark(model))


def rows_of(stored: Any, model: str, dimensions: int) -> Any:
    """Return the stored rows, or none if another model made them.

    Rows of an earlier version have no mark; they are recognised by their size alone.
    """
    without_mark = stored[:-1] if stored.size % dimensions == 1 else stored
    is_other = stored.size % dimensions == 1 and stored[-1] != _mark(model)
    if is_other or without_mark.size % dimensions:
        return np.empty((0, dimensions), np.float32)
    return without_mark.reshape(-1, dimensions)


@cache
def _mark(model: str) -> np.float32:
    """Return the first 24 bits of a digest of the name, which a float32 holds exactly."""
    return np.float32(int.from_bytes(sha256(model.encode()).digest()[:3]))


def embed_paragraphs(texts: Mapping[int, Sequence[str]], embed: Embed) -> dict[int, Any]:
    """Embed the texts of each message: one row for each text."""
    every = [*chain.from_iterable(texts.values())]
    rows = iter(np.asarray(embed(every), np.float32) if every else ())
    return {m: np.stack([*islice(rows, len(texts[m]))]) for m in texts}


def near(vectors: Mapping[int, Any], question: str, embed: Embed) -> dict[int, float]:
    """Return the paragraphs nearest to a question with their cosines, at most `MOST_NEAR`."""
    filled = [(message, rows) for message, rows in vectors.items() if len(rows)]
    if not filled:
        return {}
    positions = [index * PLACES + place for index, rows in filled for place in range(len(rows))]
    cosines = np.concatenate([rows for _, rows in filled]) @ np.asarray(embed([question]))[0]
    best = np.argsort(-cosines)[:MOST_NEAR]
    return {positions[i]: float(cosines[i]) for i in best if cosines[i] >= LEAST_MEANING}
