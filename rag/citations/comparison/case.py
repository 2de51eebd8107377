"""One statement beside the sources that are to carry it together."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from rag.citations.comparison.figures import WeighedFigure, figures_in, weigh
from rag.citations.comparison.parser import Place, SourceText, read, share
from rag.citations.comparison.rows import Row
from rag.errors import RagError
from rag.language.languages import ENGLISH, phrases
from rag.language.sentences import Window
from rag.language.words import language_of
from rag.seams import Embedder, Matrix

_MOST_FIGURES = 40  # of one statement that are looked for
_FEWEST = 2  # words that mean anything
# Who is said to say so: `According to the manual, …`, `The handbook says that …`.
_FRAME = re.compile(rf"\W*(?:{phrases('frames')})\s+", re.IGNORECASE)
_ANYWHERE = 1 / 3  # of a statement's words, for which meaning is asked
UNLIKE = 0.4  # cosine of a statement and the window of its source that is nearest to it


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement to be judged: its own words, and those that it cannot be understood without."""

    text: str
    around: str = ""  # a list's lead-in, the label and header of a cell
    row: Row | None = None  # of a table


class Case:
    """What is compared, for all that is asked of it."""

    def __init__(
        self,
        statement: ComparedStatement,
        sources: Sequence[SourceText],
        embedder: Embedder | None = None,
    ) -> None:
        self.statement = statement
        self.sources = sources
        self._embedder = embedder
        self.language = language_of(statement.text)
        lexicon = sources[0].lexicon
        frame = _FRAME.match(statement.text)
        is_bare = frame and not read(frame.group(), lexicon, self.language).names
        text = statement.text[frame.end() :] if frame and is_bare else statement.text
        window = Window(0, len(text), text, statement.around)
        self._place = Place(window, lexicon, self.language)
        self.reading = self._place.own
        self.names = self._place.names

    @property
    def says_something(self) -> bool:
        """Whether anything of it can be compared."""
        return bool(self.reading.words or self.reading.figures or self.reading.names)

    @cached_property
    def weighed(self) -> list[WeighedFigure]:
        """What became of its figures."""
        stated = islice(figures_in(self._place, self.names), _MOST_FIGURES)
        return [weigh(figure, self.sources) for figure in stated]

    @cached_property
    def words_there(self) -> frozenset[str]:
        """All words of the sources."""
        return frozenset[str]().union(*(source.words for source in self.sources))

    @cached_property
    def near(self) -> float:
        """The share of the statement's words that one window of the sources holds."""
        places = (words for source in self.sources for words in source.words_of_places)
        return max((share(self.reading.words, words) for words in places), default=0.0)

    @cached_property
    def is_copy(self) -> bool:
        """Whether it is said in the words of its sources, but for one at most.

        Who writes in other words says other things by them as well, which no rule tells apart:
        of 41 contradictions found beyond that, 19 were none; of 275 within it, 7.
        """
        lacking = [word for word in self.reading.words if word not in self.words_there]
        count = len(self.reading.words) + len(self.reading.figures)
        return len(lacking) <= min(1, count // 3)

    @cached_property
    def is_silent(self) -> bool:
        """Whether the sources do not speak of what is said: no figure, and another meaning.

        The embedding model knows English; without it, and in other languages, nothing tells.
        """
        words, embedder = self.reading.words, self._embedder
        if embedder is None or self.language is not ENGLISH or len(words) < _FEWEST:
            return False
        if share(words, self.words_there) > _ANYWHERE or any(
            weighed.carried for weighed in self.weighed
        ):
            return False
        signs = (e for e in self.reading.raw if e.isalnum() and not e.isalpha() and not e.isdigit())
        if any(sign in source.text.lower() for sign in signs for source in self.sources):
            return False
        return is_near(self.statement.text, words, self.sources, embedder, least=UNLIKE) is False


_LONGEST = 250  # characters of a window


def is_near(
    text: str,
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
        vector, *vectors = embedder.embed([text, *firsts])
        if _highest(vector, vectors) >= least:
            return True
        return bool(others) and _highest(vector, embedder.embed(others)) >= least
    except RagError:  # the model's server is away: words have to do
        return None


def _highest(vector: Matrix, others: Iterable[Matrix]) -> float:
    return max(float(other @ vector) for other in others)


def _nearest(words: Sequence[str], source: SourceText) -> list[str]:
    near = source.nearest(words)
    texts = [f"{place.window.around} {place.own.text}" for place in near] or [source.text]
    return [text[:_LONGEST] for text in texts]
