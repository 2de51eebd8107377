"""How sure it is that what was found answers: of one passage, and of all together.

A cosine counts by how far it lies above those of texts that have nothing to do with each other, in
their standard deviations: so the bounds hold for any model, whatever its cosines are like.
"""

import math

from rag.records import Certainty

# Logistic regressions over the best passages of questions to the library that answers them and of
# the same questions to another one: a company's handbook and a vacuum cleaner's documentation, in
# askers' words, and a phone's manual in its own.
FIRST, FIRST_COVERAGE, FIRST_CONSTANT = 1.68, 4.14, -8.19
BOTH_FIRST, BOTH_SECOND, BOTH_COVERAGE, BOTH_CONSTANT = 1.42, 1.24, 3.96, -10.0
NOTHING, PERHAPS = -1.0, 0.2  # below the first 5 % of answered questions lie, below the other 15 %


def relevance(nearness: float, coverage: float) -> float:
    """How likely a passage is about its query, 0 to 1, comparable between queries and models.

    A logistic regression over the best hits of questions that the documents answer (manuals, web
    documentation, encyclopedia, abstracts), of the same questions with the answering documents
    taken away, and of questions put to the wrong library.
    """
    return 1.0 / (1.0 + math.exp(-(0.38 * nearness + 4.8 * coverage - 5.5)))


def certainty(first: float, second: float | None, coverage: float) -> Certainty:
    """What is to be said of a question, by the nearest passage for each model and the words held.

    Of questions to another library's documents four in five are told, of those that the documents
    answer one in thirty.
    """
    if second is None:
        score = FIRST * first + FIRST_COVERAGE * coverage + FIRST_CONSTANT
    else:
        score = BOTH_FIRST * first + BOTH_SECOND * second + BOTH_COVERAGE * coverage + BOTH_CONSTANT
    if score < NOTHING:
        return Certainty.NOTHING
    return Certainty.PERHAPS if score < PERHAPS else Certainty.FOUND
