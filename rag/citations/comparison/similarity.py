"""How near a statement is to its sources by meaning, as far as the embedding model knows it."""

from collections.abc import Iterable, Sequence

from rag.citations.comparison.parser import SourceText
from rag.errors import RagError
from rag.seams import Embedder, Matrix

_LONGEST = 250  # characters of a window


def is_near(
    said: str,
    words: Sequence[str],
    sources: Sequence[SourceText],
    embedder: Embedder,
    *,
    least: float,
) -> bool | None:
    """Whether the cosine of a statement and a window of its sources is at least so high.

    The one of each source that shares most words is compared before the others: it tells mostly,
    and the model takes some milliseconds a window. None where no model answers.
    """
    nearest = [_nearest(words, source) for source in sources]
    firsts = [texts[0] for texts in nearest]
    others = [text for texts in nearest for text in texts[1:]]
    try:
        own, *vectors = embedder.embed([said, *firsts])
        if _highest(own, vectors) >= least:
            return True
        return bool(others) and _highest(own, embedder.embed(others)) >= least
    except RagError:  # the model's server is away: words have to do
        return None


def _highest(own: Matrix, vectors: Iterable[Matrix]) -> float:
    return max(float(vector @ own) for vector in vectors)


def _nearest(words: Sequence[str], source: SourceText) -> list[str]:
    near = source.nearest(words)
    texts = [f"{place.window.around} {place.own.text}" for place in near] or [source.text]
    return [text[:_LONGEST] for text in texts]
