"""How near a statement is to its sources by meaning, as far as the embedding model knows it."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from rag.citations.checking.reading import SourceText
from rag.errors import RagError
from rag.seams import Embedder, Matrix

_MOST_WINDOWS = 25  # of a source
_LONGEST = 400  # characters of a window


def nearness(said: str, sources: Sequence[SourceText], embedder: Embedder) -> float | None:
    """The highest cosine of a statement and a window of its sources; None where no model answers.

    Costs some milliseconds for each window that was not read before.
    """
    try:
        vector = embedder.embed([said])[0]
        return max(float((_windows(source, embedder.embed) @ vector).max()) for source in sources)
    except RagError:  # the model's server is away: words have to do
        return None


@lru_cache(maxsize=64)
def _windows(source: SourceText, embed: Callable[[Sequence[str]], Matrix]) -> Matrix:
    texts = [
        f"{place.window.around} {place.text}"[:_LONGEST]
        for place in source.places
        if place.window.kind != "cell"
    ]
    return embed(texts[:_MOST_WINDOWS] or [source.source.passage[:_LONGEST]])
