"""One statement beside the sources that are to carry it together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from rag.citations.checking.given import Given, given_in
from rag.citations.checking.meaning import is_near
from rag.citations.checking.reading import Place, SourceText, is_held, share
from rag.citations.checking.rows import Row
from rag.citations.checking.weighing import Weighed, weigh
from rag.seams import Embedder
from rag.text.blocks import Window
from rag.text.languages import ENGLISH
from rag.text.related import opposites
from rag.text.words import language_of

_MOST_FIGURES = 40  # of one statement that are looked for
_FOREIGN_FIGURES = 2  # that a source in another language lacks, to say that it is silent
_FEWEST, _FEWEST_OTHER = 4, 6  # words to say so by words alone: of English, of other languages
ANYWHERE = 0.5  # of a statement's words, for which meaning is asked
UNLIKE = 0.4  # cosine of a statement and the window of its source that is nearest to it


@dataclass(frozen=True, slots=True)
class Said:
    """A statement to be judged: its own words, and those that it cannot be understood without."""

    text: str
    around: str = ""  # a list's lead-in, the label and header of a cell
    row: Row | None = None  # of a table


class Case:
    """What is compared, for all that is asked of it."""

    def __init__(
        self, said: Said, sources: Sequence[SourceText], embedder: Embedder | None = None
    ) -> None:
        self.said = said
        self.sources = sources
        self._embedder = embedder
        self.language = language_of(said.text)
        self.is_foreign = all(source.language is not self.language for source in sources)
        window = Window(0, len(said.text), said.text, said.around)
        self._place = Place(window, sources[0].lexicon, self.language)
        self.reading = self._place.own
        self.names = self._place.names

    @cached_property
    def given(self) -> list[Given]:
        """Its figures."""
        return list(islice(given_in(self._place, self.names), _MOST_FIGURES))

    @cached_property
    def weighed(self) -> list[Weighed]:
        """What became of its figures."""
        return [weigh(each, self.sources) for each in self.given]

    @cached_property
    def words_there(self) -> frozenset[str]:
        """All words of the sources."""
        return frozenset[str]().union(*(source.words for source in self.sources))

    @cached_property
    def anywhere(self) -> float:
        """The share of the statement's words that the sources hold."""
        return share(self.reading.words, self.words_there)

    @cached_property
    def near(self) -> float:
        """… that one window of them holds."""
        every = [(told, source.words) for source in self.sources for told in source.told]
        return max((share(self.reading.words, *each) for each in every), default=0.0)

    @cached_property
    def is_copy(self) -> bool:
        """Whether it is said in the words of its sources or their opposites, but for one at most.

        Who writes in other words says other things by them as well, which no rule tells apart:
        of 41 contradictions found beyond that, 19 were none; of 275 within it, 7.
        """
        turned = opposites()
        lacking = [
            word
            for word in self.reading.words
            if not is_held(word, self.words_there)
            and turned.get(word, frozenset()).isdisjoint(self.words_there)
        ]
        told = len(self.reading.words) + len(self.reading.figures)
        return len(lacking) <= min(1, told // 3)

    @cached_property
    def is_silent(self) -> bool:
        """Whether the sources do not speak of what is said: no figure, no code, another meaning.

        The embedding model knows English; of other languages, and without it, a few words have to
        tell.
        """
        codes = frozenset[str]().union(*(source.codes for source in self.sources))
        is_held = any(weighed.carried for weighed in self.weighed)
        if is_held or not codes.isdisjoint(self.reading.codes):
            return False
        if self.is_foreign:
            return len(self.weighed) >= _FOREIGN_FIGURES
        said = len(self.reading.words)
        near = None
        is_known = self._embedder is not None and self.language is ENGLISH
        if self._embedder is not None and is_known and self.anywhere <= ANYWHERE and said > 1:
            words, embedder = self.reading.words, self._embedder
            near = is_near(self.said.text, words, self.sources, embedder, least=UNLIKE)
        fewest = _FEWEST if self.language is ENGLISH else _FEWEST_OTHER
        in_words = said >= fewest and self.anywhere == 0
        return in_words if near is None else not near
