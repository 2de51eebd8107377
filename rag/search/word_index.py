"""Words of texts and of the library: what a query looks up, which chunks hold it, how they score.

A word that very many chunks hold says little and costs much. So the rare words of a query make its
candidates, together with chunks that hold several common ones at once; common words only rank them.

The database's word index is one for all. A filter makes it dearer, and shows by the time it takes
what lies beside. The words of a collection are read once, and again when it changes; what a term
weighs, which words there are and how long a search takes depends on the asker's collections alone.
Who may read all of a small library searches it so as well: it takes half as long.

`docters` is `doctors`, but only where the library's own words say so. What is unknown and like
nothing stays unknown.
"""

import math
import threading
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA
from sqlalchemy import Connection, TextClause, bindparam, func, select, text

from rag.db import chunks, inside, versions
from rag.language.lazy_patterns import re
from rag.language.words import language_of, stem_of
from rag.records import Readable
from rag.search.lexical_schema import ALPHABETIC_UNSPACED, UNSPACED

MAX_CHARACTERS = 8000  # of a query; what follows is not looked at
MAX_TERMS = 64
REMEMBERED = 100  # queries: each is asked for its hits, and then how much of it they hold

_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*")


@dataclass(frozen=True, slots=True)
class Term:
    """A term to look up: tokens that stand directly one after the other."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_letters: bool = False  # one run of unspaced letters


@lru_cache(REMEMBERED)
def terms_of(query: str) -> Sequence[Term]:
    """Return the terms of any text that a user may type; none for a text without words."""
    words = _words(query)
    spoken = language_of(query)
    stop_words = spoken.words.get("idle_in_questions", spoken.function_words)
    telling = [
        word
        for word in words
        # A stop word in capitals is none: `IT`, `US`.
        if word.lower() not in stop_words or (len(word) > 1 and word.isupper())
    ] or words
    terms = dict.fromkeys(term for word in telling for term in _terms_of_word(word))
    return tuple(terms)[:MAX_TERMS]


def names_in(query: str) -> frozenset[str]:
    """Return the words that are written as names are, in lower case."""
    return frozenset(match[0].lower() for match in _NAME.finditer(query))


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are looked up."""
    return [word.lower() for word in _words(text)]


def _words(query: str) -> list[str]:
    text = unicodedata.normalize("NFC", query[:MAX_CHARACTERS])
    return "".join(char if _is_of_word(char) else " " for char in text).split()


@cache
def _is_of_word(char: str) -> bool:
    """Whether the index's tokenizer takes a character for a part of a word."""
    category = unicodedata.category(char)
    return category[0] in "LNM" or category == "Co"


_UNSPACED = re.compile(UNSPACED)
_RUN = re.compile(f"{UNSPACED}+|[^{UNSPACED[1:]}+")


def _terms_of_word(word: str) -> Iterator[Term]:
    for run in _RUN.findall(word):
        if not _UNSPACED.match(run):
            yield Term((run.lower(),))
            continue
        size = 3 if re.match(f"[{ALPHABETIC_UNSPACED}]", run) else 2
        if len(run) < size:
            yield Term((run,), is_prefix=True, is_letters=True)
        for start in range(len(run) - size + 1):
            yield Term((run[start : start + size],), is_letters=True)


_ACCENTS = re.compile(r"[\u0300-\u036f]+")


def plain(text: str) -> str:
    """Return the text without capitals and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


SHORTEST = 4  # letters of a word that is looked up here
TYPO_LETTERS = 5  # … of one that may be mistyped
SECOND_TYPO = 9  # letters of one that may be mistyped twice
SHORTEST_STEM, LONGEST_STEM = 3, 40  # in which a slip can be recognised
LONGEST = LONGEST_STEM + 10  # letters of a word that may be mistyped, with its ending
MOST_LIKELY = 12  # stems that a word may stand for
MOST_TRIED = 200  # … that are counted for it among the asker's chunks

CountChunks = Callable[[str], int]  # in how many of the asker's chunks a word is


class Vocabulary:
    """The stems of the index, with the number of chunks that hold each.

    A stem that only unreadable documents hold is no word for an asker.
    """

    def __init__(self, counts: Mapping[str, int], stemmer: str) -> None:
        self._counts = counts
        self._by_letter: dict[str, list[str]] = {}
        for stem in sorted(counts):
            if SHORTEST_STEM <= len(stem) <= LONGEST_STEM and stem.isalpha():
                self._by_letter.setdefault(stem[0], []).append(stem)
        self._rules = stemmer

    def count(self, token: str) -> int | None:
        """Return how many chunks hold a token; None if that is unknown or too few."""
        return self._counts.get(stem_of(token, self._rules))

    def beginning(self, letters: str) -> list[str]:
        """Return the words that begin with these letters."""
        return [word for word in self._counts if word.startswith(letters)]

    def chunk_count(self, stem: str) -> int:
        """Return in how many chunks of all collections a stem stands."""
        return self._counts.get(stem, 0)

    def likely(self, query: str, count_chunks: CountChunks) -> dict[str, list[str]]:
        """Return the words of a query that the library lacks, with the stems each may stand for."""
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
        """Return the stems like a word's own, or like its beginning: endings hide slips."""
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
        """Return the written word that a word or its stem is mistyped for; "" if there is none.

        Of several alike, it is the one that most of the asker's chunks hold.
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


HEADING_WEIGHT = 2.0  # a word in a heading counts as so many in the text
SHARE_OF_TIME = 0.01  # that reading the words of a large library may take
MOST_WORDS = 200_000  # of a vocabulary
MOST_SCORED = 2_500  # chunks that the rare terms of one query may hold, summed
MOST_COUNTED = 1_000  # chunks of a phrase's rarest letter: each is read to count the phrase
RANKED = 2  # times the limit: of rare terms' chunks, and again of common ones', that all terms rank
LEAST = 0.05  # of the heaviest term's weight: what nearly every chunk holds decides nothing
TOGETHER = 4  # common terms that are looked up as one
K1, B = 1.2, 0.75  # of BM25, as in FTS5

IN_TEXT = 1 << 15  # of a place, beside its position; without it the place is in the heading

Positions = NDArray[np.int64]  # of a lexeme: row << 16 | IN_TEXT | position
PerRow = NDArray[np.float64]  # one for each of some rows

NOWHERE: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term with the number of chunks that hold it, and its weight."""

    term: Term
    frequency: int
    weight: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The rare and the common terms of a query, each rarest first."""

    rare: Sequence[WeighedTerm]
    common: Sequence[WeighedTerm]

    @classmethod
    def of(cls, weighed: Iterable[WeighedTerm]) -> "Plan":
        rare, scored = [], 0
        every = sorted(weighed, key=lambda term: term.frequency)
        least = LEAST * max((term.weight for term in every if term.frequency), default=0.0)
        ordered = [term for term in every if term.weight >= least]
        for term in ordered:
            scored += term.frequency
            if scored > MOST_SCORED:
                break
            rare.append(term)
        return cls(rare, ordered[len(rare) :])

    @property
    def all(self) -> list[WeighedTerm]:
        return [*self.rare, *self.common]

    def together(self) -> Iterator[list[Term]]:
        """Yield groups of common terms; chunks with all of a group become candidates, best groups
        first.
        """
        words = [term.term for term in self.common[:TOGETHER]]
        for many in range(len(words), 1 if self.rare else 0, -1):
            yield words[:many]


class WordIndex(Protocol):
    """The operations of the word index that differ between databases."""

    stemmer: str  # Snowball's name of the one that the index uses

    def search(
        self, connection: Connection, plan: Plan, readable: Readable, limit: int
    ) -> list[tuple[str, float]]:
        """Return the ids of chunks that hold terms of the plan, with scores, best first."""

    def frequencies(
        self, connection: Connection, terms: Sequence[Term], readable: Readable, most: int
    ) -> list[int]:
        """Return in how many chunks each term stands, counted up to `most`."""

    def holders(
        self, connection: Connection, terms: Sequence[Term], chunk_ids: Sequence[str]
    ) -> list[list[str]]:
        """Return for each term the ids of the chunks that hold it, among those given."""

    def holding(
        self, connection: Connection, term: Term, readable: Readable, limit: int
    ) -> list[str]:
        """Return the ids of the chunks that hold the term, oldest first."""

    def vocabulary(self, connection: Connection) -> dict[str, int]:
        """Return the words of the index in their stored form, with the number of chunks of each.

        Of all collections: nothing of it may be told before `frequencies` finds it within.
        """

    def tokens(self, term: Term) -> Sequence[str]:
        """Return the tokens that the index has side by side for a term, before stemming."""

    def lexemes(self, connection: Connection, terms: Sequence[Term]) -> dict[Term, list[str]]:
        """Return the stored forms of each term, after stemming."""

    def places(
        self, connection: Connection, collection_id: str, first_row: int
    ) -> Iterator[tuple[str, Positions]]:
        """Yield each lexeme of a collection's chunks from a row on with its positions, in order."""


def chunk_count(connection: Connection, readable: Readable, most: int | None = None) -> int:
    """Count the chunks of the readable collections, up to `most`."""
    rows = select(chunks.c.row).where(inside(chunks.c.collection_id, readable)).limit(most)
    return int(connection.execute(select(func.count()).select_from(rows.subquery())).scalar_one())


def idf(size: int, frequency: int) -> float:
    """Return BM25's inverse document frequency, never below 0."""
    return math.log1p(max(0.0, size - frequency + 0.5) / (frequency + 0.5))


def score(
    weighed: Iterable[WeighedTerm],
    lexemes: Mapping[Term, Sequence[str]],
    places: Mapping[str, Positions],
    lengths: Mapping[int, int],
) -> dict[int, float]:
    """Return the BM25 scores by row (Robertson and Zaragoza, 2009); `lengths` are of the rows."""
    rows = np.array(sorted(lengths), dtype=np.int64)
    sizes = np.array([lengths[row] for row in rows.tolist()], dtype=np.float64)
    relative = sizes / max(float(sizes.mean()) if len(sizes) else 0.0, 1.0)
    scores = np.zeros(len(rows))
    for term in weighed:
        stands = _of_term(lexemes[term.term], places)
        scores += term.weight * saturated(counts_in(rows, stands), relative)
    return dict(zip(rows.tolist(), scores.tolist(), strict=True))


def rows_of_terms(
    lexemes: Mapping[Term, Sequence[str]], places: Mapping[str, Positions], ids: Mapping[int, str]
) -> list[list[str]]:
    """Return for each term the ids of the rows that hold it."""
    results = (_of_term(of_term, places) >> 16 for of_term in lexemes.values())
    return [[ids[row] for row in np.unique(rows).tolist()] for rows in results]


def _of_term(lexemes: Sequence[str], places: Mapping[str, Positions]) -> Positions:
    return in_a_row([places.get(lexeme, NOWHERE) for lexeme in lexemes])


def in_a_row(places: Sequence[Positions]) -> Positions:
    """Return where words stand one after the other, by the position of the first."""
    starts, *rest = places or [NOWHERE]
    for step, later in enumerate(rest, start=1):
        next_places = np.searchsorted(later, starts + step)
        starts = starts[np.append(later, -1)[next_places] == starts + step]
    return starts


def counts_in(rows: NDArray[np.int64], places: Positions) -> PerRow:
    """Return how often a word stands in each row; in a heading it counts more."""
    weights = np.where(places & IN_TEXT, 1.0, HEADING_WEIGHT)
    counts = np.bincount(np.searchsorted(rows, places >> 16), weights, len(rows))
    return counts.astype(np.float64, copy=False)


def saturated(count: PerRow, relative_length: PerRow) -> PerRow:
    """Return BM25's share of one term: it levels off, later in longer chunks."""
    return count * (K1 + 1) / (count + K1 * (1 - B + B * relative_length))


def with_list(statement: str) -> TextClause:
    """Return a statement whose parameter `keys` is a list."""
    return text(statement).bindparams(bindparam("keys", expanding=True))


MOST_HELD = 50_000  # chunks: about 80 MB; of more the database is asked
MOST_OF_ALL = 10_000  # chunks, where nothing is filtered: the database is quick by itself
SETS_KEPT = 32  # of collections, as askers choose them

Lexemes = Mapping[Term, Sequence[str]]


@dataclass(frozen=True, slots=True)
class CachedCollection:
    """The words of one collection at one version of it."""

    version: int
    chunks: Mapping[int, str]  # their ids by row, the oldest first
    places: Mapping[str, Positions]  # of each lexeme, in order


class CollectionWords:
    """The words of several collections together."""

    def __init__(self, parts: Mapping[str, CachedCollection], stemmer: str) -> None:
        self._parts = [part.places for part in parts.values() if part.places]
        ids = sorted(row_and_id for part in parts.values() for row_and_id in part.chunks.items())
        self._rows = np.array([row for row, _ in ids], dtype=np.int64)
        self._ids = [chunk_id for _, chunk_id in ids]
        self._indices = {chunk_id: index for index, chunk_id in enumerate(self._ids)}
        counts: Counter[str] = Counter()
        lengths = np.zeros(len(ids))
        for part in self._parts:
            places, firsts = _joined(part)
            rows = places >> 16
            is_new = np.diff(rows, prepend=-1) != 0
            is_new[firsts] = True
            counted = np.add.reduceat(is_new, firsts, dtype=int).tolist()
            counts.update(dict(zip(part, counted, strict=True)))
            lengths += np.bincount(np.searchsorted(self._rows, rows), minlength=len(ids))
        self._lengths = lengths / max(float(lengths.mean()) if ids else 0.0, 1.0)
        self.vocabulary = Vocabulary(counts, stemmer)

    def search(self, query: Lexemes, limit: int) -> list[tuple[str, float]]:
        """Return the ids of the best chunks by BM25, best first."""
        scores = np.zeros(len(self._ids))
        for term, lexemes in query.items():
            counts = self._counts(term, lexemes)
            scores += self._idf(counts) * saturated(counts, self._lengths)
        hits = np.flatnonzero(scores)
        best = hits[np.argsort(-scores[hits], kind="stable")[:limit]]
        return [(self._ids[hit], float(scores[hit])) for hit in best]

    def coverage(self, query: Lexemes, chunk_ids: Sequence[str]) -> dict[str, float]:
        """Return for each chunk the share of the terms that it holds, weighed by rarity."""
        present = [chunk_id for chunk_id in chunk_ids if chunk_id in self._indices]
        indices = [self._indices[chunk_id] for chunk_id in present]
        weights, total = np.zeros(len(present)), 0.0
        for term, lexemes in query.items():
            counts = self._counts(term, lexemes)
            weight = self._idf(counts)
            total += weight
            weights += weight * (counts[indices] > 0)
        shares = dict(zip(present, (weights / (total or 1.0)).tolist(), strict=True))
        return {chunk_id: shares.get(chunk_id, 0.0) for chunk_id in chunk_ids}

    def holding(self, query: Lexemes, limit: int) -> list[str]:
        """Return the chunks that hold any of the terms, oldest first."""
        counts = np.zeros(len(self._ids))
        for term, lexemes in query.items():
            counts += self._counts(term, lexemes)
        return [self._ids[hit] for hit in np.flatnonzero(counts)[:limit]]

    def _idf(self, counts: PerRow) -> float:
        return idf(len(self._ids), int(np.count_nonzero(counts)))

    def _counts(self, term: Term, lexemes: Sequence[str]) -> PerRow:
        """Return how often each chunk holds these words in a row; headings count more."""
        if term.is_prefix and term.is_letters and len(lexemes) == 1:
            words = self.vocabulary.beginning(lexemes[0])
            return counts_in(self._rows, np.concatenate([NOWHERE, *map(self._places, words)]))
        return counts_in(self._rows, in_a_row([self._places(lexeme) for lexeme in lexemes]))

    def _places(self, lexeme: str) -> Positions:
        results = [part[lexeme] for part in self._parts if lexeme in part]
        return results[0] if len(results) == 1 else np.sort(np.concatenate([NOWHERE, *results]))


# With the versions of its collections; None in place of what is too large.
_Set = tuple[Mapping[str, int], CollectionWords | None]


class CachedWords:
    """A cache of words by collection; the least recently searched go first."""

    def __init__(self, words: WordIndex) -> None:
        self._words = words
        self._collections: OrderedDict[str, CachedCollection] = OrderedDict()
        self._sets: OrderedDict[frozenset[str] | None, _Set] = OrderedDict()
        self._lock = threading.Lock()

    def words_of(self, connection: Connection, readable: Readable) -> CollectionWords | None:
        """Return the words of the readable collections; None if they are too many to keep."""
        now = versions(connection, readable)
        with self._lock:
            words = self._sets.get(readable.ids)
        if words is None or words[0] != now:
            most = MOST_OF_ALL if readable.ids is None else MOST_HELD
            made = None
            if chunk_count(connection, readable, most + 1) <= most:
                parts = {key: self._part(connection, key, now[key]) for key in sorted(now)}
                made = CollectionWords(parts, self._words.stemmer)
            words = now, made
        with self._lock:
            self._sets[readable.ids] = words
            self._sets.move_to_end(readable.ids)
            while len(self._sets) > SETS_KEPT:
                self._sets.popitem(last=False)
        return words[1]

    def _part(self, connection: Connection, collection_id: str, version: int) -> CachedCollection:
        with self._lock:
            collection = self._collections.get(collection_id)
        if collection is None or collection.version != version:
            collection = self._read(connection, collection_id, version, collection)
        with self._lock:
            self._collections[collection_id] = collection
            self._collections.move_to_end(collection_id)
            while sum(len(cached.chunks) for cached in self._collections.values()) > MOST_HELD:
                gone, _ = self._collections.popitem(last=False)
                for chosen in [set_ for set_ in self._sets if set_ is None or gone in set_]:
                    del self._sets[chosen]
        return collection

    def _read(
        self,
        connection: Connection,
        collection_id: str,
        version: int,
        collection: CachedCollection | None,
    ) -> CachedCollection:
        """Read a collection's words; of a cached one, only the rows that are new."""
        listed = select(chunks.c.row, chunks.c.id).where(chunks.c.collection_id == collection_id)
        rows = connection.execute(listed.order_by(chunks.c.row))
        ids: dict[int, str] = {row.row: row.id for row in rows}
        before = collection.chunks if collection is not None else {}
        fresh = next((row for row, key in ids.items() if before.get(row) != key), None)
        old = [row for row in ids if fresh is None or row < fresh]
        places = dict(collection.places) if collection is not None else {}
        if places and len(old) < len(before):
            places = _in_rows(places, old)
        if fresh is not None:
            for word, positions in self._words.places(connection, collection_id, fresh):
                if word in places:
                    positions = np.concatenate([places[word], positions])
                places[word] = positions
        return CachedCollection(version, ids, places)


def _joined(places: Mapping[str, Positions]) -> tuple[Positions, NDArray[np.int64]]:
    """Return the positions of all words in one array, and where each word's begin."""
    counts = [len(place) for place in places.values()]
    return np.concatenate([*places.values()]), np.cumsum([0, *counts[:-1]])


def _in_rows(places: Mapping[str, Positions], rows: Sequence[int]) -> dict[str, Positions]:
    """Return the positions within these rows; words that stand in none are left out."""
    joined, firsts = _joined(places)
    stays = np.isin(joined >> 16, np.array(rows, dtype=np.int64))
    counts = np.add.reduceat(stays, firsts, dtype=np.int64)
    pieces = np.split(joined[stays], np.cumsum(counts)[:-1])
    return {word: piece for word, piece in zip(places, pieces, strict=True) if len(piece)}
