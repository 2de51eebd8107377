"""How far the best passages stand out from the background of a model or a question.

A cosine counts by how far it lies above those of texts that have nothing to do with each other, in
their standard deviations: so the bounds hold for any model, whatever its cosines are like.

A cosine alone tells little: one model's lie about 0, another's about .8, and a question about
everything is somewhat like everything. Standardised against the question's own background all are
told in one measure: by how many standard deviations a text stands out.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine, select

from rag.db import chunks, inside, reading, versions
from rag.language.words import read_lists
from rag.records import Certainty, Readable
from rag.seams import ChunkIndex


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression over the nearest passage of each model and the best coverage.

    Below `nothing` lie 3 % of the questions that the documents answer, below `perhaps` 15 %.
    """

    first: float
    second: float
    coverage: float
    constant: float
    nothing: float
    perhaps: float

    def score(self, first: float, second: float, coverage: float) -> float:
        return self.first * first + self.second * second + self.coverage * coverage + self.constant


# Of questions to the library that answers them and of the same questions to another one: a
# company's handbook, a vacuum cleaner's documentation and a game's rules in askers' words, a
# phone's manual and a cloud's documentation.
BOTH = Regression(1.2, 1.18, 3.06, -8.4, -1.18, 1.11)
ALONE = Regression(1.44, 0.0, 3.49, -6.75, -0.86, 0.86)

# Of questions in six languages to an encyclopedia's paragraphs in two others, to a phone's manual,
# and of that one's and a cloud's documentation to the encyclopedia: `second` is the nearest
# passage, `coverage` how far it stands out of the question's own background.
OTHER_LANGUAGE = Regression(0.0, 1.17, 0.9, -3.91, -1.28, math.inf)
LITTLE = 0.3  # of a question's words that the passages nearest to it hold, and its language is none


def relevance(nearness: float, coverage: float) -> float:
    """Return how likely a passage is about its query, 0 to 1, comparable between models.

    A logistic regression over the best hits of questions that the documents answer (manuals, web
    documentation, encyclopedia, abstracts), of the same questions with the answering documents
    taken away, and of questions put to the wrong library.
    """
    return 1.0 / (1.0 + math.exp(-(0.38 * nearness + 4.8 * coverage - 5.5)))


def across_languages(nearness: float, standing: float) -> Certainty:
    """Judge a question in a language that no document is in, by the second model alone.

    `nearness` of the nearest passage above what is usual, `standing` above all that may be read.
    Held out library by library, 26 and 8 % of those that the documents answer are taken for
    unanswered (85 % by `certainty`), and 14 and 45 % of those to another library are told.
    """
    score = OTHER_LANGUAGE.score(0.0, nearness, standing)
    return Certainty.NOTHING if score < OTHER_LANGUAGE.nothing else Certainty.PERHAPS


def certainty(first: float, second: float | None, coverage: float) -> Certainty:
    """Judge a question by the nearest passage of each model and the best coverage.

    Held out set by set, of questions to another library's documents 84 % are told, of those that
    the documents answer 4 % are taken for them.
    """
    regression = ALONE if second is None else BOTH
    score = regression.score(first, second or 0.0, coverage)
    if score < regression.nothing:
        return Certainty.NOTHING
    return Certainty.PERHAPS if score < regression.perhaps else Certainty.FOUND


SAMPLE = 500  # chunks that stand for all of a library
USUAL = 50  # chunks: from so many on a library's own spread counts alone
SETS_KEPT = 32  # of collections, as askers choose them

UNRELATED = tuple(read_lists("unrelated")["sentences"])  # neither of a subject nor of a language

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, standard deviation and number of a question's cosines."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, cosines: NDArray[np.float32]) -> "Spread":
        if not len(cosines):
            return cls(0.0, 0.0, 0)
        return cls(float(cosines.mean()), float(cosines.std()), len(cosines))

    def steadied(self, usual: "Spread") -> "Spread":
        """Mix in the model's usual spread, the more the fewer chunks there are."""
        weight = min(1.0, self.count / USUAL)
        mean = weight * self.mean + (1 - weight) * usual.mean
        readable = weight * self.deviation**2 + (1 - weight) * usual.deviation**2
        between = weight * (1 - weight) * (self.mean - usual.mean) ** 2
        return Spread(mean, max((readable + between) ** 0.5, 1e-6), self.count)

    def nearness(self, cosine: float) -> float:
        """Return by how many standard deviations a cosine lies above the mean."""
        return (cosine - self.mean) / max(self.deviation, 1e-6)

    def standardised(self, cosines: Mapping[str, float]) -> dict[str, float]:
        return {key: self.nearness(cosine) for key, cosine in cosines.items()}


def usual_spread(embed: Callable[[Sequence[str]], Vectors]) -> Spread:
    """Return the spread of a model's cosines between unrelated texts; it never changes."""
    rows = embed(UNRELATED)
    return Spread.of((rows @ rows.T)[~np.eye(len(rows), dtype=bool)])


class QuestionBackground:
    """A fixed sample of the chunks that an asker may read, until they change."""

    def __init__(self, engine: Engine, index: ChunkIndex) -> None:
        self._engine = engine
        self._index = index
        self._samples: OrderedDict[frozenset[str] | None, tuple[Mapping[str, int], Vectors]]
        self._samples = OrderedDict()
        self._lock = threading.Lock()

    def spread(self, vector: Vectors, readable: Readable) -> Spread:
        """Return the spread of a question's cosines with that sample."""
        sample = self._sample(readable)
        return Spread.of(sample @ vector if len(sample) else np.empty(0, dtype=np.float32))

    def _sample(self, readable: Readable) -> Vectors:
        with reading(self._engine) as connection:
            now = versions(connection, readable)
            with self._lock:
                sample = self._samples.get(readable.ids)
            if sample is not None and sample[0] == now:
                return sample[1]
            # Ids come of the content: their order is none of the library's.
            query = select(chunks.c.id).where(inside(chunks.c.collection_id, readable))
            ids = list(connection.scalars(query.order_by(chunks.c.id).limit(SAMPLE)))
        vectors = np.array(list(self._index.vectors(ids).values()), dtype=np.float32)
        if len(vectors) < len(ids):  # some are being embedded
            return vectors
        with self._lock:
            self._samples[readable.ids] = (now, vectors)
            self._samples.move_to_end(readable.ids)
            while len(self._samples) > SETS_KEPT:
                self._samples.popitem(last=False)
        return vectors
