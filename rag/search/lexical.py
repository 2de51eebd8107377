"""Chunks by words: BM25 over the database's own index (SQLite FTS5, PostgreSQL tsvector)."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from math import prod

from rapidfuzz.distance import OSA
from sqlalchemy import ColumnElement, Connection, Engine, and_, func, or_, select, text

from rag.db import chunks, inside, reading
from rag.db import identifiers as table
from rag.errors import StorageFailed
from rag.language.names import Identifier, contains_name, identifiers_of_question
from rag.language.words import stem_of
from rag.records import Chunk, DocumentLink, Mention, MissingIdentifier, Readable
from rag.seams import DocumentStore
from rag.search.word_index import (
    MOST_COUNTED,
    MOST_SCORED,
    SHARE_OF_TIME,
    CachedWords,
    CollectionWords,
    Lexemes,
    Plan,
    Term,
    Vocabulary,
    WeighedTerm,
    WordIndex,
    chunk_count,
    idf,
    plain,
    terms_of,
    words_of,
)
from rag.search.word_tables import Fts5Words, TsvectorWords

WRITTEN = 10  # chunks in which it is looked how a word is written
_NEWEST = text("SELECT max(row) FROM chunks")
_COUNT = text("SELECT count(*) FROM chunks")


@dataclass(frozen=True, slots=True)
class _LibraryWords:
    """The counted words of a library that is too large to keep in memory."""

    size: int  # chunks
    newest: int  # row
    vocabulary: Vocabulary
    read_at: float = 0.0
    seconds: float = 0.0


class LexicalIndex:
    """Ranks chunks by BM25, and tells how much of a query a chunk holds."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._words: WordIndex = (
            TsvectorWords() if engine.dialect.name == "postgresql" else Fts5Words()
        )
        self._cache = CachedWords(self._words)
        self._library_words: _LibraryWords | None = None
        self._reading = threading.Lock()

    def search(self, query: str, readable: Readable, *, limit: int) -> list[tuple[str, float]]:
        """Return the ids of chunks that hold any term of the query, with scores, best first."""
        return self.searches([query], readable, limit=limit)[0]

    def searches(
        self, queries: Sequence[str], readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        """Search for each of several queries."""
        if not any(map(terms_of, queries)) or limit <= 0 or readable.ids == frozenset():
            return [[] for _ in queries]
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is not None:
                return [cached.search(self._lexemes(connection, q), limit) for q in queries]
            vocabulary = self._knowing(connection)
            plans = [Plan.of(self._weighed(connection, vocabulary, q, readable)) for q in queries]
            look = partial(self._words.search, connection)
            return [look(plan, readable, limit) if plan.all else [] for plan in plans]

    def holding(self, phrase: str, readable: Readable, *, limit: int) -> list[str]:
        """Return the ids of chunks that hold these words in a row, in any form."""
        term = Term(tuple(words_of(phrase)))
        if not term.tokens or readable.ids == frozenset():
            return []
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is not None:
                return cached.holding(self._words.lexemes(connection, [term]), limit)
            return self._words.holding(connection, term, readable, limit)

    def is_known(self, word: str, readable: Readable) -> bool:
        """Whether a text holds a word, in any form, or one that it may be mistyped for."""
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is not None:
                is_held = bool(cached.holding(self._lexemes(connection, word), 1))
            else:
                is_held = any(self._words.frequencies(connection, terms_of(word), readable, 1))
            return is_held or bool(self._slips(connection, cached, word.lower(), readable))

    def respelled(
        self, query: str, readable: Readable, is_word: Callable[[str], bool] = lambda word: False
    ) -> str:
        """Correct words that no text holds, if one slip of the keyboard away stands one that is
        held.

        A name stays as it is, so does what `is_word` of some language, and all where most words
        are unknown: it is another language's.
        """
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            slips = self._slips(connection, cached, query, readable)
        for word, correction in slips.items():
            if not is_word(word):
                pattern = rf"\b{re.escape(word)}\b"
                query = re.sub(pattern, correction, query, flags=re.IGNORECASE)
        return query

    def coverage(
        self, query: str, readable: Readable, chunk_ids: Sequence[str]
    ) -> dict[str, float]:
        """Return for each chunk the share of the query's terms that it holds, 0 to 1.

        Rare terms weigh more (by inverse document frequency), and a term that no chunk holds
        weighs most: a query about something unknown covers nothing well.
        """
        return self.coverages([query], readable, chunk_ids)[0]

    def coverages(
        self, queries: Sequence[str], readable: Readable, chunk_ids: Sequence[str]
    ) -> list[dict[str, float]]:
        """Return the coverage for each of several queries."""
        if not any(map(terms_of, queries)) or not chunk_ids:
            return [dict.fromkeys(chunk_ids, 0.0) for _ in queries]
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is None:
                return self._coverages_in_database(connection, queries, readable, chunk_ids)
            lexemes = [self._lexemes(connection, query) for query in queries]
            return [cached.coverage(of_query, chunk_ids) for of_query in lexemes]

    def _coverages_in_database(
        self,
        connection: Connection,
        queries: Sequence[str],
        readable: Readable,
        chunk_ids: Sequence[str],
    ) -> list[dict[str, float]]:
        library = self._knowing(connection)
        visible = chunk_ids
        if readable.ids is not None:
            is_open = inside(chunks.c.collection_id, readable)
            query = select(chunks.c.id).where(chunks.c.id.in_(chunk_ids), is_open)
            visible = list(connection.scalars(query))
        results = []
        for text_of_query in queries:
            terms = self._weighed(connection, library, text_of_query, readable)
            holders = self._words.holders(connection, [term.term for term in terms], visible)
            weights = dict.fromkeys(chunk_ids, 0.0)
            for term, of_term in zip(terms, holders, strict=True):
                for chunk_id in of_term:
                    weights[chunk_id] += term.weight
            total = sum(term.weight for term in terms) or 1.0
            results.append({chunk_id: weight / total for chunk_id, weight in weights.items()})
        return results

    def _lexemes(self, connection: Connection, query: str) -> Lexemes:
        return self._words.lexemes(connection, terms_of(query))

    def _slips(
        self, connection: Connection, cached: CollectionWords | None, query: str, readable: Readable
    ) -> dict[str, str]:
        """Return the mistyped words of a query with the words that they are corrected to."""
        vocabulary = (cached or self._knowing(connection)).vocabulary

        @cache
        def count_readable(stem: str) -> int:
            return self._words.frequencies(connection, [Term((stem,))], readable, MOST_SCORED)[0]

        is_all = cached is not None or readable.ids is None
        count = vocabulary.chunk_count if is_all else count_readable
        corrections = {}
        for word, stems in vocabulary.likely(query, count).items():
            written = self._written(connection, cached, stems, readable)
            nearest = vocabulary.nearest(word, written, count)
            if nearest:
                corrections[word] = nearest
        return corrections

    def _written(
        self,
        connection: Connection,
        cached: CollectionWords | None,
        stems: Sequence[str],
        readable: Readable,
    ) -> set[str]:
        """Return the words of these stems, as texts have them."""
        ids: dict[str, None] = {}
        for stem in stems:
            term = Term((stem,))
            if cached is not None:
                ids |= dict.fromkeys(cached.holding({term: term.tokens}, WRITTEN))
            else:
                ids |= dict.fromkeys(self._words.holding(connection, term, readable, WRITTEN))
        query = select(chunks.c.heading, chunks.c.text).where(chunks.c.id.in_(ids))
        rows = connection.execute(query)
        words = {word for row in rows for word in words_of(f"{row.heading} {row.text}")}
        return {word for word in words if stem_of(plain(word), self._words.stemmer) in stems}

    def _weighed(
        self, connection: Connection, vocabulary: _LibraryWords, query: str, readable: Readable
    ) -> list[WeighedTerm]:
        """Return the terms of a query with their frequencies and weights.

        Frequencies come from the library's counted words. Other terms are counted now, and all
        terms for an asker who may not read every collection.
        """
        is_open = readable.ids is None
        size = vocabulary.size if is_open else chunk_count(connection, readable)
        terms = terms_of(query)
        weighed = {
            term: self._by_vocabulary(vocabulary, term) if is_open else None for term in terms
        }
        uncounted = [term for term in terms if weighed[term] is None]
        counts = self._words.frequencies(connection, uncounted, readable, MOST_SCORED + 1)
        for term, count in zip(uncounted, counts, strict=True):
            weighed[term] = WeighedTerm(term, count, idf(size, count))
        return list(filter(None, weighed.values()))

    def _by_vocabulary(self, library: _LibraryWords, term: Term) -> WeighedTerm | None:
        """Weigh a term by the counted words; None if it has to be counted in the index.

        A term of several tokens that are all common gets the weight of the rarest: to count how
        often they stand side by side, each chunk that holds them would have to be read.
        """
        counts = [library.vocabulary.count(token) for token in self._words.tokens(term)]
        numbers = [count for count in counts if count is not None]
        if term.is_prefix or len(numbers) < len(counts):
            return None
        if len(counts) > 1 and min(numbers) <= MOST_COUNTED:
            return None
        together = library.size * prod(count / library.size for count in numbers)
        return WeighedTerm(term, min(numbers), idf(library.size, round(together)))

    # ── What is known of the library's words ─────────────────────────────────────────────────

    def _knowing(self, connection: Connection) -> _LibraryWords:
        """Return the words counted so far; the query does not wait for a count to end."""
        newest = int(connection.execute(_NEWEST).scalar_one() or 0)
        current = self._library_words
        is_old = current is None or (
            current.newest != newest
            and time.monotonic() - current.read_at > current.seconds / SHARE_OF_TIME
        )
        if is_old:
            threading.Thread(target=self._read_beside, name="words", daemon=True).start()
        return current or _LibraryWords(newest, newest, Vocabulary({}, self._words.stemmer))

    def _read_beside(self) -> None:
        if self._reading.acquire(blocking=False):
            try:
                # Of a damaged index the searches themselves tell.
                with suppress(StorageFailed), reading(self.engine) as connection:
                    newest = int(connection.execute(_NEWEST).scalar_one() or 0)
                    size = int(connection.execute(_COUNT).scalar_one())
                    began = time.monotonic()
                    words = Vocabulary(self._words.vocabulary(connection), self._words.stemmer)
                    now = time.monotonic()
                    self._library_words = _LibraryWords(size, newest, words, now, now - began)
            finally:
                self._reading.release()


MOST_HOLDERS = 5  # passages that an exact code may be in to stand first; words rank more
ENDS = 2  # signs at either end, one of which near codes have in common
LONG = 9  # signs of a code in which two may differ; in a shorter one, one
MOST_NEAR, NEAR_SHOWN = 5_000, 3
MOST_PASSAGES = 200


@dataclass(frozen=True, slots=True)
class Identified:
    """Ids of passages that hold a code of the question, or one near to it."""

    exact: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    missing: tuple[MissingIdentifier, ...] = ()


NONE = Identified()


def look_up_identifiers(engine: Engine, question: str, readable: Readable) -> Identified:
    """Return the passages with the codes of a question; none for a code in many passages."""
    identifiers = identifiers_of_question(question)
    if not identifiers or readable.ids == frozenset():
        return NONE
    exact: set[str] = set()
    near: set[str] = set()
    missing = []
    with reading(engine) as connection:
        codes = {choice.code for choices in identifiers for choice in choices}
        holders = _holders(connection, codes, readable)
        for choices in identifiers:
            exact_ids = [holders[choice.code] for choice in choices if choice.code in holders]
            if exact_ids:
                exact.update(exact_ids[0] if len(exact_ids[0]) <= MOST_HOLDERS else ())
                continue
            like = _similar_codes(connection, choices, readable)
            similar = _holders(connection, like, readable)
            near.update(chunk_id for ids in similar.values() for chunk_id in ids)
            nearest = tuple(like[code] for code in list(like)[:NEAR_SHOWN] if code in similar)
            missing.append(MissingIdentifier(choices[0].written, nearest))
    return Identified(frozenset(exact), frozenset(near - exact), tuple(missing))


def _holders(
    connection: Connection, codes: Collection[str], readable: Readable
) -> dict[str, list[str]]:
    """Return the ids of the passages that hold each code; digits match with points between, too."""
    is_one: ColumnElement[bool] = table.c.code.in_(sorted(codes))
    figures = sorted(filter(str.isdigit, codes))
    if figures:
        is_parted = table.c.code.contains(".")
        is_one = or_(is_one, and_(is_parted, func.replace(table.c.code, ".", "").in_(figures)))
    query = (
        select(table.c.code, table.c.chunk_id)
        .join(chunks, chunks.c.id == table.c.chunk_id)
        .where(is_one, inside(chunks.c.collection_id, readable))
        .limit(MOST_PASSAGES * max(1, len(codes)))
    )
    results: dict[str, list[str]] = {}
    for row in connection.execute(query):
        code = row.code if row.code in codes else row.code.replace(".", "")
        results.setdefault(code, []).append(row.chunk_id)
    return results


def _similar_codes(
    connection: Connection, choices: Sequence[Identifier], readable: Readable
) -> Mapping[str, str]:
    """Return the codes one or two slips from those asked for, nearest first, as written."""
    results: dict[str, tuple[int, str]] = {}
    for identifier in choices:
        code = identifier.code
        slips = 2 if len(code) >= LONG else 1
        query = (
            select(table.c.code, func.min(table.c.written).label("written"))
            .join(chunks, chunks.c.id == table.c.chunk_id)
            .where(
                func.length(table.c.code).between(len(code) - slips, len(code) + slips),
                or_(
                    table.c.code.startswith(code[:ENDS], autoescape=True),
                    table.c.code.endswith(code[-ENDS:], autoescape=True),
                ),
                inside(chunks.c.collection_id, readable),
            )
            .group_by(table.c.code)
            .limit(MOST_NEAR)
        )
        for row in connection.execute(query):
            distance = OSA.distance(code, row.code, score_cutoff=slips)
            if distance <= slips:
                results.setdefault(row.code, (distance, row.written))
    least = min((distance for distance, _ in results.values()), default=0)
    best = {code: slip for code, slip in results.items() if slip[0] == least}
    return {code: best[code][1] for code in sorted(best)}


MOST_CHUNKS = 300  # looked at beside an answer; a name in more of them is not counted
ALL_CHUNKS = 20_000  # looked at where somebody asks for all
LINKED = 5


class NameMentions:
    """Counts where a product name stands: `Aero 5` does not stand in `Aero 5 Pro`."""

    def __init__(
        self,
        words: LexicalIndex,
        documents: DocumentStore,
        lexicon: Callable[[Readable], Sequence[str]] = lambda readable: (),
    ) -> None:
        self._words = words
        self.documents = documents
        self._lexicon = lexicon

    def __call__(self, name: str, readable: Readable) -> Mention | None:
        """Return None for a name of one document, and if there is too much to count."""
        chunks = self._chunks(name, readable, MOST_CHUNKS)
        if len(chunks) == MOST_CHUNKS:
            return None
        holding = {chunk.document_id: chunk for chunk in chunks if _holds(chunk, name)}
        if len(holding) < 2:
            return None
        titles = Counter(chunk.document_title for chunk in holding.values())
        links = []
        for chunk in sorted(holding.values(), key=lambda chunk: chunk.document_name):
            name_of_file, title = chunk.document_name, chunk.document_title
            # Documents that share a title are called by the names of their files.
            label = name_of_file if titles[title] > 1 else title
            links.append(DocumentLink(chunk.document_id, name_of_file, label))
        return Mention(name, len(links), tuple(links[:LINKED]))

    def is_word(self, word: str, readable: Readable) -> bool:
        """Whether a text holds a word, in any form, or one that it may be mistyped for."""
        return self._words.is_known(word, readable)

    def everywhere(self, words: str, readable: Readable) -> list[Chunk]:
        """Return every chunk that holds these words: a name as written, others in any form."""
        chunks = self._chunks(words, readable, ALL_CHUNKS)
        names = {name.casefold(): name for name in self._lexicon(readable)}
        name = words if words.isupper() else names.get(words.casefold())
        return chunks if name is None else [chunk for chunk in chunks if _holds(chunk, name)]

    def _chunks(self, name: str, readable: Readable, limit: int) -> list[Chunk]:
        ids = self._words.holding(name, readable, limit=limit)
        return list(self.documents.chunks(ids, readable).values())


def _holds(chunk: Chunk, name: str) -> bool:
    return contains_name(f"{chunk.heading}\n{chunk.text}", name)
