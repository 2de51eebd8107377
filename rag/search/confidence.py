"""How sure it is that what was found answers: by hit, and for all hits together."""

import math


def relevance(standing: float, coverage: float) -> float:
    """How likely a chunk is about its query, 0 to 1, comparable between queries and models.

    `standing` is by how many standard deviations it is nearer than others, `coverage` the share of
    the query's words that it holds. A logistic regression over the best hits of questions that the
    documents answer, and of questions put to the wrong library.
    """
    return 1.0 / (1.0 + math.exp(-(0.45 * standing + 4.8 * coverage - 5.3)))
