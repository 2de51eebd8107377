"""One statement beside the sources that are to carry it together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.citations.checking.comparing import Clause, Spot, clauses, coverage, spots, weigh_figure
from rag.citations.checking.naming import names_agree
from rag.citations.checking.reading import SourceText, read, share
from rag.text.languages import ENGLISH
from rag.text.related import opposites
from rag.text.words import language_of

_FEWEST_WORDS = 3  # to say of a source that it does not speak of them
_AS_NEAR = 0.05  # by so much less than the nearest, a clause may be meant as well
_FOREIGN_FIGURES = 2  # that a source in another language lacks, to say so of it


@dataclass(frozen=True, slots=True)
class Said:
    """A statement to be judged: its own words, and those that it cannot be understood without."""

    text: str
    around: str = ""  # a list's lead-in, the label and header of a cell
    about: str = ""  # the product that was asked about, where the statement names none


class Case:
    """What is compared, for all that is asked of it."""

    def __init__(self, said: Said, sources: Sequence[SourceText]) -> None:
        self.said = said
        self.sources = sources
        self.language = language_of(said.text)
        self.is_foreign = all(source.language is not self.language for source in sources)
        lexicon = sources[0].lexicon
        self.reading = read(said.text, lexicon, self.language)
        around = read(said.around, lexicon, self.language)
        told = self.reading.names or around.names
        self.names = told or tuple(filter(None, [said.about]))
        self.clauses = clauses(said.text, lexicon, self.language)
        self.weighed = [
            (clause, weigh_figure(figure, clause, self.names_of(clause), sources))
            for clause in self.clauses
            for figure in clause.reading.figures
        ]
        self.near = max(coverage(self.reading, source) for source in sources)
        words = frozenset[str]().union(*(source.words for source in sources))
        self.anywhere = share(self.reading.words, words)

    def names_of(self, clause: Clause) -> Sequence[str]:
        return clause.reading.names or self.names

    def spots(self) -> Iterator[Spot]:
        return (spot for source in self.sources for spot in spots(source))

    def near_or_turned(self, said: Sequence[str], spot: Spot) -> float:
        """The share of words that are there, or whose opposite is."""
        table = opposites()
        turned = [w for w in said if not table.get(w, frozenset()).isdisjoint(spot.words)][:1]
        rest = [word for word in said if word not in turned]
        if not rest:
            return 0.0
        return (share(rest, spot.told, spot.among) * len(rest) + len(turned)) / len(said)

    def spelled(self, name: str) -> str:
        """A name as the source spells it."""
        known = (each for source in self.sources for each in source.lexicon.names)
        return next((each for each in known if each.lower() == name), name)

    def is_silent(self) -> bool:
        """Whether the sources speak of nothing that is said: hardly a word, no figure, no code.

        One word any text may hold, and one that means about the same as another: of 3,700
        statements whose sources are known, 6 right ones have no more, and half of the wrong ones.
        """
        codes = frozenset[str]().union(*(source.codes for source in self.sources))
        is_held = any(weighed.carried for _, weighed in self.weighed)
        if is_held or not codes.isdisjoint(self.reading.codes):
            return False
        if self.is_foreign:
            return len(self.weighed) >= _FOREIGN_FIGURES
        said = len(self.reading.words)
        is_short = said < 4 or (said < 8 and self.language is not ENGLISH)  # no related words
        by_chance = 0.8 if is_short else 1.8 if said < 16 else 2.6
        return said >= _FEWEST_WORDS and self.anywhere * said <= by_chance

    def nearest(self, clause: Clause) -> list[tuple[float, Spot]]:
        """The clauses of the sources that share most words with one of the statement."""
        found: list[tuple[float, float, Spot]] = []
        said = frozenset(self.reading.words)
        for spot in self.spots():
            if spot.clause.reading.words:
                near = self.near_or_turned(clause.reading.words, spot)
                agreed = names_agree(self.names_of(clause), spot.names)
                score = near + 0.3 * agreed + 0.3 * share(spot.clause.reading.words, said)
                found.append((score, near, spot))
        found.sort(key=lambda each: -each[0])
        return [(near, spot) for score, near, spot in found if score >= found[0][0] - _AS_NEAR]
