"""Which passages hold a code that a question names, and which codes are near to an unknown one."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rapidfuzz.distance import OSA
from sqlalchemy import ColumnElement, Connection, Engine, and_, func, or_, select

from rag.db import chunks, inside, reading
from rag.db import identifiers as table
from rag.language.names import Identifier, contains_name, identifiers_of_question
from rag.records import Chunk, DocumentLink, Mention, MissingIdentifier, Readable
from rag.seams import DocumentStore
from rag.search.lexical import LexicalIndex

FEW, SHARE = 5, 0.01  # passages that a code may be in, at most, to be one: so many, or that share
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
            most = max(FEW, int(SHARE * _size(connection, readable)))
            holders = _holders(
                connection, {identifier.code for one in wanted for identifier in one}, readable
            )
            exact: set[str] = set()
            near: set[str] = set()
            missing = []
            for choices in wanted:
                exact_ids = [holders[choice.code] for choice in choices if choice.code in holders]
                if exact_ids:
                    exact.update(exact_ids[0] if len(exact_ids[0]) <= most else ())
                    continue
                like = _similar_codes(connection, choices, readable)
                similar = _holders(connection, like, readable)
                near.update(chunk_id for ids in similar.values() for chunk_id in ids)
                shown = tuple(like[code] for code in list(like)[:NEAR_SHOWN] if code in similar)
                missing.append(MissingIdentifier(choices[0].written, shown))
        return Identified(frozenset(exact), frozenset(near - exact), tuple(missing))


def _size(connection: Connection, readable: Readable) -> int:
    count = select(func.count()).select_from(chunks).where(inside(chunks.c.collection_id, readable))
    return int(connection.execute(count).scalar_one())


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
