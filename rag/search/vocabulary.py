"""The words of the library, and which of them a word that it does not know may stand for.

`docters` is `doctors`, but only where the library's own words say so. What is unknown and like
nothing stays unknown.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from rapidfuzz.distance import OSA

from rag.language.words import stem_of
from rag.search.query import names_in, plain, terms_of, words_of

TYPO_LETTERS = 5  # of a word that may be mistyped
SECOND_TYPO, MOST_SLIPS = 9, 2  # letters of one that may be mistyped twice
MOST_LIKE = 12  # stems that are tried
BEHIND = 8  # letters of a word in which the slip may be behind the stem
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

    def meant(self, query: str, held: CountChunks) -> dict[str, list[str]]:
        """Words of a query that are none of the library's, with stems that each may stand for."""
        said = [word for word in words_of(query) if word.isalpha()]
        unknown = [
            word
            for word in said
            if not held(word)  # SQLite leaves short ones whole
            and not any(held(stem_of(each, self._rules)) for each in (word, plain(word)))
        ]
        if len(unknown) > max(1, len(said) // 3):
            return {}  # most of it, what it is joined by as well: another language's
        names = names_in(query)
        return {
            word: likely
            for word in set(unknown) & {term.tokens[0] for term in terms_of(query)}
            if word not in names
            and len(word) >= TYPO_LETTERS
            and (likely := [stem for stem in self._like(word) if held(stem)])
        }

    def _like(self, word: str) -> list[str]:
        """The likeliest stems first: a slip may be in the stem, or in what stands behind it."""
        own = stem_of(word, self._rules)
        is_long, slips = len(own) >= TYPO_LETTERS, _slips_in(word)
        begins = len(word) >= BEHIND  # of a shorter one what stands behind is another ending
        found = [
            (
                min(
                    OSA.distance(stem, own, score_cutoff=slips) if is_long else len(word),
                    OSA.distance(stem, word[: len(stem)]) if begins else len(word),
                ),
                -len(stem),
                stem,
            )
            for stem in self._by_letter.get(word[0], [])
        ]
        return [
            stem for far, _, stem in sorted(found)[:MOST_LIKE] if far <= (2 if begins else slips)
        ]


def nearest(word: str, written: Iterable[str], stemmer: str) -> str:
    """The one that a slip of the keyboard makes of it, or of its stem, two in a long one; or ""."""
    most = _slips_in(word)
    stem = partial(stem_of, rules=stemmer)
    distances = [
        (min(OSA.distance(word, each), OSA.distance(stem(word), stem(each))), each)
        for each in written
    ]
    return min((each for each in distances if each[0] <= most), default=(0, ""))[1]


def _slips_in(word: str) -> int:
    return MOST_SLIPS if len(word) >= SECOND_TYPO else 1


def _is_word(stem: str) -> bool:
    """Shorter ones are not mistyped so that one could tell."""
    return SHORTEST_STEM <= len(stem) <= LONGEST_STEM and stem.isalpha()
