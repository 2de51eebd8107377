"""The words of the library, and which of them a word that it does not know may stand for.

`docters` is `doctors`, but only where the library's own words say so. What is unknown and like
nothing stays unknown.
"""

from collections.abc import Callable, Mapping

from rapidfuzz import process
from rapidfuzz.distance import OSA

from rag.language.words import stem_of
from rag.search.normalisation import plain
from rag.search.query import names_in, terms_of

SHORTEST = 4  # letters of a word that is looked up here
TYPO_LETTERS = 5  # … of one that may be mistyped
SECOND_TYPO = 9  # letters of one that may be mistyped twice
SHORTEST_STEM, LONGEST_STEM = 3, 40

CountChunks = Callable[[str], int]  # in how many of the asker's chunks a word is


class Vocabulary:
    """Stems as the index holds them, with how many chunks have each.

    What stands only in documents that an asker may not read is no word for that asker.
    """

    def __init__(self, counts: Mapping[str, int], stemmer: str) -> None:
        self._counts = counts
        self._by_letter: dict[str, list[str]] = {}
        for word in sorted(filter(_is_word, counts)):
            self._by_letter.setdefault(word[0], []).append(word)
        self._rules = stemmer

    def count(self, token: str) -> int | None:
        """How many chunks have it; None for what is not known, or not frequent enough to be."""
        return self._counts.get(stem_of(token, self._rules))

    def beginning(self, letters: str) -> list[str]:
        """The words that begin with these."""
        return [word for word in self._counts if word.startswith(letters)]

    def held(self, stem: str) -> int:
        """In how many chunks of all collections a stem is."""
        return self._counts.get(stem, 0)

    def slips(self, query: str, held: CountChunks) -> dict[str, str]:
        """Words of a query that are none of the library's, with the stem that each stands for."""
        words = [term.tokens[0] for term in terms_of(query) if term.tokens[0].isalpha()]
        unknown = [
            word
            for word in words
            if not any(held(stem_of(each, self._rules)) for each in (word, plain(word)))
        ]
        if 2 * len(unknown) > len(words) + 1:
            return {}
        names = names_in(query)
        typed = {
            word: self.likest(stem_of(word, self._rules), held)
            for word in unknown
            if word not in names and len(word) >= SHORTEST
        }
        return {word: stem for word, stem in typed.items() if stem}

    def likest(self, stem: str, held: CountChunks) -> str:
        """The word that one slip of the keyboard makes of it, two in a long one."""
        if len(stem) < TYPO_LETTERS:
            return ""
        slips = 2 if len(stem) >= SECOND_TYPO else 1
        found = process.extract(
            stem,
            self._by_letter.get(stem[0], []),
            scorer=OSA.distance,
            score_cutoff=slips,
            limit=None,
        )
        likely = [(distance, -held(word), word) for word, distance, _ in found]
        return min((each for each in likely if each[1]), default=(0, 0, ""))[2]


def _is_word(stem: str) -> bool:
    """Shorter ones are not mistyped so that one could tell."""
    return SHORTEST_STEM <= len(stem) <= LONGEST_STEM and stem.isalpha()
