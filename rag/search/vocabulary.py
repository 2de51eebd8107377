"""The words of the library, and which of them a word that it does not know may stand for.

`docters` is `doctors`, but only where the library's own words say so. What is unknown and like
nothing stays unknown.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from rag.language.words import stem_of
from rag.search.query import names_in, plain, terms_of

SHORTEST = 4  # letters of a word that is looked up here
TYPO_LETTERS = 5  # … of one that may be mistyped
SECOND_TYPO = 9  # letters of one that may be mistyped twice
SHORTEST_STEM, LONGEST_STEM = 3, 40
LONGEST = LONGEST_STEM + 10  # letters of a word that may be mistyped, with its ending
MOST_LIKELY = 12  # stems that a word may stand for
MOST_TRIED = 200  # … that are counted for it among the asker's chunks

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

    def chunk_count(self, stem: str) -> int:
        """In how many chunks of all collections a stem is."""
        return self._counts.get(stem, 0)

    def likely(self, query: str, held: CountChunks) -> dict[str, list[str]]:
        """Words of a query that are none of the library's, with stems that each may stand for."""
        words = [term.tokens[0] for term in terms_of(query) if term.tokens[0].isalpha()]
        unknown = [
            word
            for word in words
            if not any(held(stem_of(each, self._rules)) for each in (word, plain(word)))
        ]
        if len(unknown) > max(1, len(words) // 3):
            return {}  # another language's words, or of another subject
        names = names_in(query)
        return {
            word: stems
            for word in unknown
            if word not in names
            and len(word) >= SHORTEST
            and (stems := list(islice(filter(held, self._likest(word)), MOST_LIKELY)))
        }

    def _likest(self, word: str) -> list[str]:
        """The stems that are like its own, or like what it begins with: endings hide slips."""
        stems = self._by_letter.get(word[0], [])
        if not TYPO_LETTERS <= len(word) <= LONGEST or not stems:
            return []
        ends = range(SHORTEST_STEM, len(word) + 1)
        heads = [stem_of(word, self._rules), *(word[:end] for end in ends)]
        slips = _slips_in(word)
        distances = process.cdist(heads, stems, scorer=OSA.distance, score_cutoff=slips)
        least = distances.min(axis=0)
        found = [(int(least[n]), -len(stems[n]), stems[n]) for n in np.flatnonzero(least <= slips)]
        return [stem for *_, stem in sorted(found)[:MOST_TRIED]]

    def nearest(self, word: str, written: Iterable[str], held: CountChunks) -> str:
        """The one that slips of the keyboard make of it, or of its stem; "" where none does.

        Of those that are alike, the one that most of the asker's chunks have.
        """
        own = stem_of(word, self._rules)
        results = []
        for other in written:
            whole, stem = OSA.distance(word, other), stem_of(other, self._rules)
            is_like = whole <= _slips_in(word) and len(word) >= TYPO_LETTERS
            slips = OSA.distance(own, stem)
            if is_like or (len(own) >= TYPO_LETTERS and slips <= _slips_in(own)):
                results.append((min(whole, slips), whole, -held(stem), other))
        return min(results, default=("",))[-1]


def _slips_in(word: str) -> int:
    return 2 if len(word) >= SECOND_TYPO else 1


def _is_word(stem: str) -> bool:
    """Shorter ones are not mistyped so that one could tell."""
    return SHORTEST_STEM <= len(stem) <= LONGEST_STEM and stem.isalpha()
