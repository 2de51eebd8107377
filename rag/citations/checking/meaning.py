"""How near a statement is to its sources by meaning, as far as the embedding model knows it."""

from collections.abc import Sequence

from rag.citations.checking.reading import SourceText, share
from rag.errors import RagError
from rag.seams import Embedder

_MOST_WINDOWS = 25  # of a source
_LONGEST = 400  # characters of a window


def nearness(
    said: str, words: Sequence[str], sources: Sequence[SourceText], embedder: Embedder
) -> float | None:
    """The highest cosine of a statement and a window of its sources; None where no model answers.

    Costs some milliseconds for each window.
    """
    texts = [text for source in sources for text in _windows(words, source)]
    try:
        vectors = embedder.embed([said, *texts])
    except RagError:  # the model's server is away: words have to do
        return None
    return float((vectors[1:] @ vectors[0]).max())


def _windows(words: Sequence[str], source: SourceText) -> list[str]:
    """Those that share most words with a statement."""
    places = [each for each in source.places if each.window.kind != "cell"]
    nearest = sorted(places, key=lambda each: -share(words, each.words))[:_MOST_WINDOWS]
    texts = [f"{place.window.around} {place.own.text}"[:_LONGEST] for place in nearest]
    return texts or [source.source.passage[:_LONGEST]]
