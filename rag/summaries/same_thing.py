"""Whether two statements speak of the same thing and give different figures for it."""

from functools import lru_cache

from rag.summaries.required import Line
from rag.text.amounts import Figure, agree
from rag.text.figures import read_figures
from rag.text.names import find_names
from rag.text.words import language_of, stem, tokens

About = tuple[frozenset[str], frozenset[str]]


def about(line: Line) -> About:
    """Names and words of a statement, without its figures: the same of one thing, said twice."""
    return _read(line.bare)[0]


@lru_cache(maxsize=16_384)  # a conversation asks about the same lines at each of its turns
def gives_another_figure(one: Line, other: Line) -> bool:
    """Whether each says what the other says, but for a figure of the same kind."""
    (said, figures), (there, others) = _read(one.bare), _read(other.bare)
    return said == there and any(
        not any(agree(figure, other) for figure in figures[kind] for other in others[kind])
        for kind in figures.keys() & others.keys()
    )


@lru_cache(maxsize=8192)
def _read(text: str) -> tuple[About, dict[tuple[str, str], list[Figure]]]:
    """What a statement says apart from its figures, and these by their kind."""
    names = find_names(text)
    figures: dict[tuple[str, str], list[Figure]] = {}
    taken: list[tuple[int, int]] = []
    for figure in read_figures(text):
        if not any(name.start < figure.end and figure.start < name.end for name in names):
            figures.setdefault((figure.kind, figure.dimension), []).append(figure)
            taken.append((figure.start, figure.end))
    code = language_of(text).code
    words = frozenset(
        stem(token.lowered, code)
        for token in tokens(text)
        if not any(start < token.end and token.start < end for start, end in taken)
    )
    return (frozenset(name.text for name in names), words), figures
