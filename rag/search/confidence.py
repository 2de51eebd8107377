"""How sure it is that what was found answers: of one passage, and of all together.

A cosine counts by how far it lies above those of texts that have nothing to do with each other, in
their standard deviations: so the bounds hold for any model, whatever its cosines are like.
"""

import math
from dataclasses import dataclass

from rag.records import Certainty


@dataclass(frozen=True, slots=True)
class Regression:
    """Over a question's nearest passage for each model and the words that its best one holds.

    `nothing`: below it lie 3 % of the questions that the documents answer; `perhaps`: 15 %.
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
    """How likely a passage is about its query, 0 to 1, comparable between queries and models.

    A logistic regression over the best hits of questions that the documents answer (manuals, web
    documentation, encyclopedia, abstracts), of the same questions with the answering documents
    taken away, and of questions put to the wrong library.
    """
    return 1.0 / (1.0 + math.exp(-(0.38 * nearness + 4.8 * coverage - 5.5)))


def across_languages(nearness: float, standing: float) -> Certainty:
    """Of a question in a language that the documents do not speak, by the second model alone.

    `nearness` of the nearest passage above what is usual, `standing` above all that may be read.
    Held out library by library, 26 and 8 % of those that the documents answer are taken for
    unanswered (85 % by `certainty`), and 14 and 45 % of those to another library are told.
    """
    score = OTHER_LANGUAGE.score(0.0, nearness, standing)
    return Certainty.NOTHING if score < OTHER_LANGUAGE.nothing else Certainty.PERHAPS


def certainty(first: float, second: float | None, coverage: float) -> Certainty:
    """What is to be said of a question, by the nearest passage for each model and the words held.

    Held out set by set, of questions to another library's documents 84 % are told, of those that
    the documents answer 4 % are taken for them.
    """
    regression = ALONE if second is None else BOTH
    score = regression.score(first, second or 0.0, coverage)
    if score < regression.nothing:
        return Certainty.NOTHING
    return Certainty.PERHAPS if score < regression.perhaps else Certainty.FOUND
