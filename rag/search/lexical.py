"""Chunks by words: BM25 over the database's own index (SQLite FTS5, PostgreSQL tsvector)."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
    """The words of a library that is too large to be held, as they were at a time."""

    size: int  # chunks
    newest: int  # row
    vocabulary: Vocabulary
    read_at: float = 0.0
    seconds: float = 0.0


class LexicalIndex:
    """Best chunks by BM25, and how much of a query a chunk holds."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._words: WordIndex = (
            TsvectorWords() if engine.dialect.name == "postgresql" else Fts5Words()
        )
        self._cache = CachedWords(self._words)
        self._library_words: _LibraryWords | None = None
        self._reading = threading.Lock()

    def search(self, query: str, readable: Readable, *, limit: int) -> list[tuple[str, float]]:
        """Ids of chunks that hold any term of the query, with their score, best first."""
        return self.searches([query], readable, limit=limit)[0]

    def searches(
        self, queries: Sequence[str], readable: Readable, *, limit: int
    ) -> list[list[tuple[str, float]]]:
        """The same for each of several queries."""
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
        """Ids of chunks that hold these words one after the other, in any form of theirs."""
        term = Term(tuple(words_of(phrase)))
        if not term.tokens or readable.ids == frozenset():
            return []
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is not None:
                return cached.holding(self._words.lexemes(connection, [term]), limit)
            return self._words.holding(connection, term, readable, limit)

    def is_known(self, word: str, readable: Readable) -> bool:
        """Whether some text holds a word, in any form or but for a slip of the keyboard."""
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
        """The query with words that no text holds as those that one slip of the keyboard away do.

        A name stays as it is, so does what `is_word` of some language, and all where most words
        are unknown: it is another language's.
        """
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            slips = self._slips(connection, cached, query, readable)
        for word, meant in slips.items():
            if is_word(word):
                continue
            query = re.sub(rf"\b{re.escape(word)}\b", meant, query, flags=re.IGNORECASE)
        return query

    def coverage(
        self, query: str, readable: Readable, chunk_ids: Sequence[str]
    ) -> dict[str, float]:
        """For each chunk the share of the query's terms that it holds, 0 to 1.

        Rare terms weigh more (by inverse document frequency), and a term that no chunk holds
        weighs most: a query about something unknown covers nothing well.
        """
        return self.coverages([query], readable, chunk_ids)[0]

    def coverages(
        self, queries: Sequence[str], readable: Readable, chunk_ids: Sequence[str]
    ) -> list[dict[str, float]]:
        """The same for each of several queries."""
        if not any(map(terms_of, queries)) or not chunk_ids:
            return [dict.fromkeys(chunk_ids, 0.0) for _ in queries]
        with reading(self.engine) as connection:
            cached = self._cache.words_of(connection, readable)
            if cached is None:
                vocabulary = self._knowing(connection)
                return [
                    self._covered(connection, vocabulary, q, readable, chunk_ids) for q in queries
                ]
            lexemes = [self._lexemes(connection, query) for query in queries]
            return [cached.coverage(of_query, chunk_ids) for of_query in lexemes]

    def _covered(
        self,
        connection: Connection,
        vocabulary: _LibraryWords,
        query: str,
        readable: Readable,
        chunk_ids: Sequence[str],
    ) -> dict[str, float]:
        terms = self._weighed(connection, vocabulary, query, readable)
        weights = [term.weight for term in terms]
        visible = _visible(connection, chunk_ids, readable)
        holders = self._words.holders(connection, [term.term for term in terms], visible)
        covered = dict.fromkeys(chunk_ids, 0.0)
        for weight, of_term in zip(weights, holders, strict=True):
            for chunk_id in of_term:
                covered[chunk_id] += weight
        return {chunk_id: weight / (sum(weights) or 1.0) for chunk_id, weight in covered.items()}

    def _lexemes(self, connection: Connection, query: str) -> Lexemes:
        return self._words.lexemes(connection, terms_of(query))

    def _slips(
        self, connection: Connection, cached: CollectionWords | None, query: str, readable: Readable
    ) -> dict[str, str]:
        """Mistyped words of a query, with what is meant as some text has it."""
        vocabulary = (cached or self._knowing(connection)).vocabulary

        @cache
        def count_readable(stem: str) -> int:
            return self._words.frequencies(connection, [Term((stem,))], readable, MOST_SCORED)[0]

        is_all = cached is not None or readable.ids is None
        count = vocabulary.chunk_count if is_all else count_readable
        likely = vocabulary.likely(query, count)
        meant = {
            word: vocabulary.nearest(
                word, self._written(connection, cached, stems, readable), count
            )
            for word, stems in likely.items()
        }
        return {word: other for word, other in meant.items() if other}

    def _written(
        self,
        connection: Connection,
        cached: CollectionWords | None,
        stems: Sequence[str],
        readable: Readable,
    ) -> set[str]:
        """The words of these stems, as some texts have them."""
        ids: dict[str, None] = {}
        for term in [Term((stem,)) for stem in stems]:
            if cached is not None:
                ids |= dict.fromkeys(cached.holding({term: term.tokens}, WRITTEN))
            else:
                ids |= dict.fromkeys(self._words.holding(connection, term, readable, WRITTEN))
        query = select(chunks.c.heading, chunks.c.text).where(chunks.c.id.in_(ids))
        texts = [f"{row.heading} {row.text}" for row in connection.execute(query)]
        words = {word for passage in texts for word in words_of(passage)}
        return {word for word in words if stem_of(plain(word), self._words.stemmer) in stems}

    def _weighed(
        self, connection: Connection, vocabulary: _LibraryWords, query: str, readable: Readable
    ) -> list[WeighedTerm]:
        """What to look up, with its frequencies: those of a library's words are known.

        All others are counted, and everything is for who may not read every collection.
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
        """As rare as the rarest of its letters, where it stands for several that are all common.

        To count these one beside the other, each chunk that holds them would be read.
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
        """What is known by now; read beside the query, which does not wait."""
        newest = int(connection.execute(_NEWEST).scalar_one() or 0)
        current = self._library_words
        if current is None or (current.newest != newest and self._is_time(current)):
            threading.Thread(target=self._read_beside, name="words", daemon=True).start()
        return current or _LibraryWords(newest, newest, Vocabulary({}, self._words.stemmer))

    def _is_time(self, words: _LibraryWords) -> bool:
        return time.monotonic() - words.read_at > words.seconds / SHARE_OF_TIME

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


def _visible(connection: Connection, chunk_ids: Sequence[str], readable: Readable) -> Sequence[str]:
    """Those of the chunks that the asker may read."""
    if readable.ids is None:
        return chunk_ids
    is_open = inside(chunks.c.collection_id, readable)
    return list(connection.scalars(select(chunks.c.id).where(chunks.c.id.in_(chunk_ids), is_open)))


MOST_HOLDERS = 5  # passages that an exact code may be in to stand first; words rank more
ENDS = 2  # signs at either end, one of which near codes have in common
LONG = 9  # signs of a code in which two may differ; in a shorter one, one
MOST_NEAR, NEAR_SHOWN = 5_000, 3
MOST_PASSAGES = 200


@dataclass(frozen=True, slots=True)
class Identified:
    """Passages by the codes of a question: that hold one, that hold one near to it."""

    exact: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    missing: tuple[MissingIdentifier, ...] = field(default=())


NONE = Identified()


class IdentifierIndex:
    """Looks up codes in the table that is written with the chunks, within what may be read."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def look_up(self, question: str, readable: Readable) -> Identified:
        """What the codes of a question point at; nothing for one that is everywhere."""
        wanted = identifiers_of_question(question)
        if not wanted or readable.ids == frozenset():
            return NONE
        with reading(self._engine) as connection:
            holders = _holders(
                connection, {identifier.code for one in wanted for identifier in one}, readable
            )
            exact: set[str] = set()
            near: set[str] = set()
            missing = []
            for choices in wanted:
                exact_ids = [holders[choice.code] for choice in choices if choice.code in holders]
                if exact_ids:
                    exact.update(exact_ids[0] if len(exact_ids[0]) <= MOST_HOLDERS else ())
                    continue
                like = _similar_codes(connection, choices, readable)
                similar = _holders(connection, like, readable)
                near.update(chunk_id for ids in similar.values() for chunk_id in ids)
                shown = tuple(like[code] for code in list(like)[:NEAR_SHOWN] if code in similar)
                missing.append(MissingIdentifier(choices[0].written, shown))
        return Identified(frozenset(exact), frozenset(near - exact), tuple(missing))


def _holders(
    connection: Connection, codes: Iterable[str], readable: Readable
) -> dict[str, Sequence[str]]:
    """Passages by the codes that any holds; figures alone may be written with stops there."""
    wanted = set(codes)
    is_one: ColumnElement[bool] = table.c.code.in_(sorted(wanted))
    figures = sorted(filter(str.isdigit, wanted))
    if figures:
        is_parted = table.c.code.contains(".")
        is_one = or_(is_one, and_(is_parted, func.replace(table.c.code, ".", "").in_(figures)))
    query = (
        select(table.c.code, table.c.chunk_id)
        .join(chunks, chunks.c.id == table.c.chunk_id)
        .where(is_one, inside(chunks.c.collection_id, readable))
        .limit(MOST_PASSAGES * max(1, len(wanted)))
    )
    results: dict[str, list[str]] = {}
    for row in connection.execute(query):
        code = row.code if row.code in wanted else row.code.replace(".", "")
        results.setdefault(code, []).append(row.chunk_id)
    return dict(results)


def _similar_codes(
    connection: Connection, choices: Sequence[Identifier], readable: Readable
) -> Mapping[str, str]:
    """Codes that a slip or two make of one that was asked for, the nearest first, as written."""
    results: dict[str, tuple[int, str]] = {}
    for identifier in choices:
        slips = 2 if len(identifier.code) >= LONG else 1
        query = (
            select(table.c.code, func.min(table.c.written).label("written"))
            .join(chunks, chunks.c.id == table.c.chunk_id)
            .where(
                func.length(table.c.code).between(
                    len(identifier.code) - slips, len(identifier.code) + slips
                ),
                or_(
                    table.c.code.startswith(identifier.code[:ENDS], autoescape=True),
                    table.c.code.endswith(identifier.code[-ENDS:], autoescape=True),
                ),
                inside(chunks.c.collection_id, readable),
            )
            .group_by(table.c.code)
            .limit(MOST_NEAR)
        )
        for row in connection.execute(query):
            distance = OSA.distance(identifier.code, row.code, score_cutoff=slips)
            if distance <= slips:
                results.setdefault(row.code, (distance, row.written))
    least = min((distance for distance, _ in results.values()), default=0)
    best = {code: slip for code, slip in results.items() if slip[0] == least}
    return {code: best[code][1] for code in sorted(best)}


MOST_CHUNKS = 300  # looked at beside an answer; a name in more of them is not counted
ALL_CHUNKS = 20_000  # looked at where somebody asks for all
LINKED = 5


class NameMentions:
    """Counts through the word index, and reads what it finds: `Aero 5` is not in `Aero 5 Pro`."""

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
        """None for a name of one document, and where there is too much to count."""
        chunks = self._chunks(name, readable, MOST_CHUNKS)
        if len(chunks) == MOST_CHUNKS:
            return None
        links = {
            chunk.document_id: DocumentLink(
                chunk.document_id, chunk.document_name, chunk.document_title
            )
            for chunk in chunks
            if _holds(chunk, name)
        }
        if len(links) < 2:
            return None
        ordered = _with_distinct_titles(sorted(links.values(), key=lambda link: link.name))
        return Mention(name, len(ordered), tuple(ordered[:LINKED]))

    def is_word(self, word: str, readable: Readable) -> bool:
        """Whether any text holds a word, in whatever form, or one that it may be meant for."""
        return self._words.is_known(word, readable)

    def everywhere(self, words: str, readable: Readable) -> list[Chunk]:
        """Every chunk that holds these words: a name as it is written, others in any form."""
        chunks = self._chunks(words, readable, ALL_CHUNKS)
        names = {name.casefold(): name for name in self._lexicon(readable)}
        name = words if words.isupper() else names.get(words.casefold())
        return chunks if name is None else [chunk for chunk in chunks if _holds(chunk, name)]

    def _chunks(self, name: str, readable: Readable, limit: int) -> list[Chunk]:
        ids = self._words.holding(name, readable, limit=limit)
        return list(self.documents.chunks(ids, readable).values())


def _with_distinct_titles(links: Sequence[DocumentLink]) -> list[DocumentLink]:
    """Documents of one title are called by the names of their files."""
    titles = Counter(link.title for link in links)
    return [replace(link, title=link.name) if titles[link.title] > 1 else link for link in links]


def _holds(chunk: Chunk, name: str) -> bool:
    return contains_name(f"{chunk.heading}\n{chunk.text}", name)
