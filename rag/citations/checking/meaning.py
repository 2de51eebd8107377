"""How near a statement is to its sources by meaning, as far as the embedding model knows it."""

from collections.abc import Callable, Sequence

from rag.citations.checking.reading import SourceText
from rag.errors import RagError
from rag.seams import Embedder, Matrix

_LONGEST = 250  # characters of a window
_KEPT = 512  # texts whose vectors are remembered
_known: dict[tuple[Callable[[Sequence[str]], Matrix], str], Matrix] = {}


def nearness(
    said: str, words: Sequence[str], sources: Sequence[SourceText], embedder: Embedder
) -> float | None:
    """The highest cosine of a statement and those windows of its sources that share most words.

    None where no model answers. Costs some milliseconds for each window that was not read before.
    """
    texts = [text[:_LONGEST] for source in sources for text in _nearest(words, source)]
    try:
        vectors = _vectors([said, *texts], embedder)
    except RagError:  # the model's server is away: words have to do
        return None
    return max(float(vectors[text] @ vectors[said]) for text in texts)


def _nearest(words: Sequence[str], source: SourceText) -> list[str]:
    near = source.nearest(words)
    return [f"{place.window.around} {place.own.text}" for place in near] or [source.text]


def _vectors(texts: Sequence[str], embedder: Embedder) -> dict[str, Matrix]:
    """All that is not remembered in one call."""
    found = {text: _known.get((embedder.embed, text)) for text in texts}
    new = [text for text, vector in found.items() if vector is None]
    told = dict(zip(new, embedder.embed(new), strict=True)) if new else {}
    if len(_known) > _KEPT:
        _known.clear()
    _known.update({(embedder.embed, text): vector for text, vector in told.items()})
    return {text: vector for text, vector in (found | told).items() if vector is not None}
