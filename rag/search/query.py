"""A user's text as terms to look up, and which words of the library stand for an unknown one.

`docters` is `doctors`, but only where the library's own words say so. What is unknown and like
nothing stays unknown.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import OSA

from rag.language.lazy_patterns import re
from rag.language.words import language_of, stem_of
from rag.search.lexical_schema import ALPHABETIC_UNSPACED, UNSPACED

MAX_CHARACTERS = 8000  # of a query; what follows is not looked at
MAX_TERMS = 64
REMEMBERED = 100  # queries: each is asked for its hits, and then how much of it they hold

_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*")


@dataclass(frozen=True, slots=True)
class Term:
    """Something to look up: these tokens, one directly after the other."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_letters: bool = False  # one run of unspaced letters


@lru_cache(REMEMBERED)
def terms_of(query: str) -> Sequence[Term]:
    """What to look up for any text a user may type; nothing when there is nothing."""
    words = _words(query)
    spoken = language_of(query)
    stop_words = spoken.words.get("idle_in_questions", spoken.function_words)
    telling = [word for word in words if not _is_stop_word(word, stop_words)] or words
    terms = dict.fromkeys(term for word in telling for term in _terms_of_word(word))
    return tuple(terms)[:MAX_TERMS]


def names_in(query: str) -> frozenset[str]:
    """Words that are written as names are, in lower case."""
    return frozenset(match[0].lower() for match in _NAME.finditer(query))


def words_of(text: str) -> list[str]:
    """The words of a text as they are looked up."""
    return [word.lower() for word in _words(text)]


def _words(query: str) -> list[str]:
    text = unicodedata.normalize("NFC", query[:MAX_CHARACTERS])
    return "".join(char if _is_of_word(char) else " " for char in text).split()


@cache
def _is_of_word(char: str) -> bool:
    """As the tokenizer of the index decides: letters, numbers, marks, private use."""
    category = unicodedata.category(char)
    return category[0] in "LNM" or category == "Co"


def _is_stop_word(word: str, stop_words: frozenset[str]) -> bool:
    """Capitals are no stop word: `IT`, `US`."""
    return word.lower() in stop_words and not (len(word) > 1 and word.isupper())


_UNSPACED = re.compile(UNSPACED)
_RUN = re.compile(f"{UNSPACED}+|[^{UNSPACED[1:]}+")


def _terms_of_word(word: str) -> Iterator[Term]:
    for run in _RUN.findall(word):
        if _UNSPACED.match(run):
            yield from _letter_terms(run)
        else:
            yield Term((run.lower(),))


def _letter_terms(run: str) -> Iterator[Term]:
    size = 3 if re.match(f"[{ALPHABETIC_UNSPACED}]", run) else 2
    if len(run) < size:
        yield Term((run,), is_prefix=True, is_letters=True)
    for start in range(len(run) - size + 1):
        yield Term((run[start : start + size],), is_letters=True)


_ACCENTS = re.compile(r"[\u0300-\u036f]+")


def plain(text: str) -> str:
    """Without capitals and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


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

    def likely(self, query: str, count_chunks: CountChunks) -> dict[str, list[str]]:
        """Words of a query that are none of the library's, with stems that each may stand for."""
        words = [term.tokens[0] for term in terms_of(query) if term.tokens[0].isalpha()]
        unknown = [
            word
            for word in words
            if not any(count_chunks(stem_of(form, self._rules)) for form in (word, plain(word)))
        ]
        if len(unknown) > max(1, len(words) // 3):
            return {}  # another language's words, or of another subject
        names = names_in(query)
        return {
            word: stems
            for word in unknown
            if word not in names
            and len(word) >= SHORTEST
            and (stems := list(islice(filter(count_chunks, self._likest(word)), MOST_LIKELY)))
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
        candidates = [
            (int(least[n]), -len(stems[n]), stems[n]) for n in np.flatnonzero(least <= slips)
        ]
        return [stem for *_, stem in sorted(candidates)[:MOST_TRIED]]

    def nearest(self, word: str, written: Iterable[str], count_chunks: CountChunks) -> str:
        """The one that slips of the keyboard make of it, or of its stem; "" where none does.

        Of those that are alike, the one that most of the asker's chunks have.
        """
        own_stem = stem_of(word, self._rules)
        results = []
        for other in written:
            whole, stem = OSA.distance(word, other), stem_of(other, self._rules)
            is_like = whole <= _slips_in(word) and len(word) >= TYPO_LETTERS
            slips = OSA.distance(own_stem, stem)
            if is_like or (len(own_stem) >= TYPO_LETTERS and slips <= _slips_in(own_stem)):
                results.append((min(whole, slips), whole, -count_chunks(stem), other))
        return min(results, default=("",))[-1]


def _slips_in(word: str) -> int:
    return 2 if len(word) >= SECOND_TYPO else 1


def _is_word(stem: str) -> bool:
    """Shorter ones are not mistyped so that one could tell."""
    return SHORTEST_STEM <= len(stem) <= LONGEST_STEM and stem.isalpha()
