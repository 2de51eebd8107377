"""Whether a source speaks of what a statement says at all, weighed by what was fitted."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Any

from rag.citations.checking.reading import SourceText, share
from rag.text.languages import Language
from rag.text.related import canonical
from rag.text.words import content_words

_MOST = 10  # words: more tell nothing more


@dataclass(frozen=True, slots=True)
class Silence:
    """How little a source has of a statement; each from 0 to 1."""

    anywhere: float  # of its words, in all of the source
    near: float  # … in the best window under title and headings
    window: float  # … in the best window alone
    paired: float  # 1: two of its words stand together there as well
    length: float

    def probability(self) -> float:
        """That the source does not speak of it, as fitted over statements with known sources."""
        weights = fitted()["silence"]
        told = sum(weights[name] * value for name, value in asdict(self).items())
        return 1 / (1 + exp(-told - weights["bias"]))


@cache
def fitted() -> Any:
    """What `python -m benchmarks.fit` wrote."""
    text = files("rag.citations.checking").joinpath("weights.json").read_text(encoding="utf-8")
    return json.loads(text)


def silence(
    said: str, words: Sequence[str], near: float, sources: Sequence[SourceText], language: Language
) -> Silence:
    """Compare the words of a statement with all that some sources say."""
    there = frozenset[str]().union(*(source.words for source in sources))
    windows = ((place.words, source.words) for source in sources for place in source.places)
    run = list(map(canonical, content_words(said, language)))
    told = frozenset[tuple[str, str]]().union(*(source.pairs for source in sources))
    return Silence(
        anywhere=share(words, there),
        near=near,
        window=max((share(words, *each) for each in windows), default=0.0),
        paired=float(not told.isdisjoint(pairwise(run))),
        length=min(len(words), _MOST) / _MOST,
    )
