"""Two rankings into one: a weighted sum of normalised scores."""

from collections.abc import Mapping


def convex_combination(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    weight: float,
    floor: float | None = None,
) -> dict[str, float]:
    """`weight` × normalised `first` + (1 - `weight`) × normalised `second`, over both's keys.

    Scores are normalised by minimum and maximum; a key that one ranking lacks has its minimum, 0.
    `floor` stands in for the minimum of `first` where its keys reach below the ranking's end.
    Bruch, Gai and Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS 2023, find
    this better than reciprocal rank fusion and easy to tune, since it keeps the scores' distances.
    """
    normal = min_max(first, floor=floor), min_max(second)
    return {
        key: weight * normal[0].get(key, 0.0) + (1.0 - weight) * normal[1].get(key, 0.0)
        for key in dict.fromkeys((*first, *second))
    }


def min_max(scores: Mapping[str, float], *, floor: float | None = None) -> dict[str, float]:
    """Scores moved to 0 … 1; all 1 when they are equal. What is below a `floor` goes below 0."""
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    span = max(scores.values()) - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / span for key, score in scores.items()}


def ranked(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """Best first; equal scores in the order of their keys, so that runs agree."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
