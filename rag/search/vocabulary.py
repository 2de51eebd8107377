"""The words of the library, and which of them a word that it does not know may stand for.

`docters` is `doctors`, and `config` is short for `configuration`: but only where the library's own
words say so. What is unknown and like nothing stays unknown.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from rag.language.words import stem_of
from rag.search.compounds import Compounds
from rag.search.normalisation import plain
from rag.search.query import Term, names_in, terms_of

SHORTEST = 4  # letters of a word that is looked up here
TYPO_LETTERS = 5  # … of one that may be mistyped
SECOND_TYPO = 9  # letters of one that may be mistyped twice
CLIPPED_LETTERS = 7  # at most, of a short form
LONGER_BY = 2  # letters that the word has at least, which is cut to a short form
MORE_USUAL = 4  # times, than the short form
CLIPPED_WEIGHT = 0.5
FORM_WEIGHT, PART_WEIGHT = 0.9, 0.5  # of a word with another ending, of one that shares a part
SHORTEST_STEM, LONGEST_STEM = 3, 40
_LAST = chr(0x10FFFF)  # behind every letter

CountChunks = Callable[[str], int]  # in how many of the asker's chunks a word is


class Vocabulary:
    """Stems as the index holds them, with how many chunks have each.

    What stands only in documents that an asker may not read is no word for that asker.
    """

    def __init__(self, counts: Mapping[str, int], stemmer: str) -> None:
        self._counts = counts
        self._words = sorted(filter(_is_word, counts))
        self._usual = np.array([counts[word] for word in self._words], dtype=np.int64)
        self._by_letter: dict[str, list[str]] = {}
        for word in self._words:
            self._by_letter.setdefault(word[0], []).append(word)
        self._highest = max(counts.values(), default=0)
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

    @cached_property
    def _compounds(self) -> Compounds:
        return Compounds(self._words)

    def slips(self, query: str, held: CountChunks) -> dict[str, str]:
        """Words of a query that are none of the library's, with the stem that each stands for."""
        counted = [t.tokens[0] for t in terms_of(query) if t.counts and len(t.tokens) == 1]
        words = [word for word in counted if word.isalpha()]
        unknown = [word for word in words if not held(stem_of(word, self._rules))]
        if 2 * len(unknown) > len(words) + 1:
            return {}
        names = names_in(query)
        typed = {
            word: self._likest(stem_of(word, self._rules), held)
            for word in unknown
            if word not in names and len(word) >= SHORTEST
        }
        return {word: stem for word, stem in typed.items() if stem}

    def related(self, terms: Sequence[Term], rules: str, held: CountChunks) -> Iterator[Term]:
        """The terms, and for each word what it is in another form or shares a part with.

        `rules` are the stemmer's of a language that writes compounds as one word.
        """
        for term in terms:
            word = term.tokens[0]
            if len(term.tokens) > 1 or len(word) < SHORTEST or not word.isalpha():
                yield term
                continue
            forms = [form for form in self._compounds.forms(word, rules) if held(form)]
            parts = [each for each in self._compounds.sharing(word, rules) if held(each)]
            own = stem_of(plain(word), self._rules)
            others = [form for form in forms if form != own]
            is_told = bool(held(own)) or not (others or parts)
            yield replace(term, counts=term.counts and is_told)
            for each in others:
                counts = term.counts and not is_told and each == others[0]
                yield Term((each,), weight=FORM_WEIGHT * term.weight, counts=counts)
            for each in parts:
                counts = term.counts and not (is_told or others) and each == parts[0]
                yield Term((each,), weight=PART_WEIGHT * term.weight, counts=counts)

    def meant(
        self, terms: Sequence[Term], names: frozenset[str], held: CountChunks
    ) -> Iterator[Term]:
        """The terms, and for words the library does not know those that were meant.

        A mistyped word counts as the one that it stands for, a name never does: `Aera 5` may be
        another product than `Aero 5`.
        """
        for term in terms:
            word = term.tokens[0]
            if len(term.tokens) > 1 or len(word) < SHORTEST or not word.isalpha():
                yield term
                continue
            stem = stem_of(word, self._rules)
            known = held(stem)
            longer = self._longer(stem, known, held) if len(word) <= CLIPPED_LETTERS else ""
            typed = "" if known or longer else self._likest(stem, held)
            yield replace(term, counts=term.counts and (not typed or word in names))
            if longer:
                yield Term((longer,), weight=CLIPPED_WEIGHT, counts=False)
            if typed:
                yield replace(term, tokens=(typed,), counts=term.counts and word not in names)

    def _longer(self, stem: str, known: int, held: CountChunks) -> str:
        """The word that begins with this one and is far more usual in the library."""
        best, most = "", MORE_USUAL * known
        if most >= self._highest:  # tens of thousands of words may begin so
            return best
        first, end = (bisect_left(self._words, each) for each in (stem, f"{stem}{_LAST}"))
        usual = (self._words[first + at] for at in np.flatnonzero(self._usual[first:end] > most))
        long = [word for word in usual if len(word) >= len(stem) + LONGER_BY]
        for word in sorted(long, key=lambda word: -self._counts[word]):
            if self._counts[word] <= most:
                break
            count = held(word)
            if count > most:
                best, most = word, count
        return best

    def _likest(self, stem: str, held: CountChunks) -> str:
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
