"""What lies outside of `readable` changes nothing (C7), for every function that takes it.

A function of `rag/` that takes it and has no case here fails this suite. Each is asked within one
collection, and within an empty one, in three states of the library: with a second collection,
without it, and without any document at all. What it says of the same documents has to be the same;
what it says to those who may read everything differs, so that a filter that is dropped is seen.
"""

import ast
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from sqlalchemy import select

from rag.chat.follow_ups import FollowUps, LastTurn
from rag.citations.verdicts import cite_text
from rag.db import documents as document_table
from rag.db import inside, reading, versions
from rag.documents.files import IncomingFile
from rag.errors import RagError
from rag.records import DEFAULT_COLLECTION, EVERYTHING, Filters, Hit, Readable, Source
from rag.render.evidence import evidence_of
from rag.search import multilingual, vectors, word_index
from rag.search.confidence import QuestionBackground
from rag.search.lexical import NameMentions, look_up_identifiers
from rag.search.word_index import Plan, WeighedTerm, chunk_count, terms_of
from rag.sessions import rows
from rag.sessions.rows import SessionKey
from rag.settings import Settings
from rag.tables.plan import Key as By
from rag.tables.plan import Kind, Measure, TablePlan
from rag.wiring.application import build
from tests.fakes import HashEmbedder
from tests.prepared import prepare

RAG = Path(__file__).parents[1] / "rag"
OPEN = {
    "aero.md": "# Aero 5\n\nThe Aero 5 weighs 120 g. Its filter AX-5400-B is washed every week.\n",
    "sales.csv": "Product,Region,Revenue\nAero 5,North,120\nAero 5,South,80\n",
}
HIDDEN = {
    "nimbus.md": "# Nimbus 7\n\nThe Nimbus 7 weighs 950 g, the Aero 5 less. NB-7001-C is dear.\n",
    "margins.md": "# Margins\n\nThe Nimbus 7 and the Aero 5 earn much.\n",
    "nimbus.csv": "Product,Region,Margin\nNimbus 7,North,41\nNimbus 7,East,17\n",
}
QUERY = "weighs filter Nimbus Aero"  # words of open texts and of hidden ones
CITED = "The Nimbus 7 weighs 950 g. The Aero 5 weighs 120 g."


class Library(NamedTuple):
    """The application, with what somebody may know of documents that he may not read."""

    app: object
    mentions: NameMentions
    document: str
    chunks: list
    result: object  # of a hidden table
    session: object  # that was shown a hidden chunk
    table: object  # of ours

    def connected(self, read):
        with reading(self.app.engine) as connection:
            return read(connection)


def asked_of_words(read):
    """A case of the database's own word index, which is asked in a transaction of its caller."""
    return lambda library, readable: library.connected(
        lambda connection: read(library.app.words._words, connection, readable)
    )


def plan(words, connection, readable):
    terms = terms_of(QUERY)
    counts = words.frequencies(connection, terms, readable, 99)
    return Plan.of(WeighedTerm(term, n, 1.0 + n) for term, n in zip(terms, counts, strict=True))


WORD_INDEX = {
    "search": asked_of_words(lambda w, c, readable: w.search(c, plan(w, c, readable), readable, 9)),
    "frequencies": asked_of_words(
        lambda w, c, readable: w.frequencies(c, terms_of(QUERY), readable, 9)
    ),
    "holding": asked_of_words(
        lambda w, c, readable: w.holding(c, terms_of("filter")[0], readable, 9)
    ),
}


def held(library, readable):
    words, terms = library.app.words, terms_of(QUERY)
    found = library.connected(lambda connection: words._cache.words_of(connection, readable))
    asked = library.connected(lambda connection: words._words.lexemes(connection, terms))
    return found and (found.search(asked, 9), found.coverage(asked, library.chunks))


def sources(read):
    """A case of a session's register, where what may not be read is told as what is gone."""
    return lambda library, readable: library.connected(
        lambda connection: read(
            connection,
            SessionKey(library.session.id, library.session.owner),
            readable,
            library.chunks,
        )
    )


def opened(library, readable):
    """The evidence behind a citation, of what may be read."""
    documents = library.app.documents
    return [
        evidence_of(
            Source(
                1,
                chunk.id,
                chunk.document_id,
                chunk.document_name,
                chunk.document_title,
                chunk.locator,
                chunk.heading_path,
                chunk.text,
                chunk.text,
                "",
            ),
            (),
            documents,
            readable,
        ).document.name
        for chunk in documents.chunks(library.chunks, readable).values()
    ]


def followed(library, readable):
    lexicon = library.app.documents.lexicon
    last = LastTurn("How heavy is the Aero 5?")
    return FollowUps(lexicon=lexicon).resolve("and nimbus 7?", last, readable)


def names(library, readable):
    query = select(document_table.c.name).where(inside(document_table.c.collection_id, readable))
    return library.connected(lambda connection: sorted(connection.execute(query).scalars()))


class QuestionHashes(HashEmbedder):
    """A second model in the place of the multilingual one."""

    def is_word(self, text):
        return False

    def embed_questions(self, texts):
        return self.embed(texts)


def second(read, most=multilingual.MOST_HELD):
    """A case of the second model's vectors, compared in memory or looked up one by one."""

    def case(library, readable):
        made = multilingual.MultilingualVectors(library.app.engine, QuestionHashes())
        list(made.make_missing())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multilingual, "MOST_HELD", most)
            return read(made, QuestionHashes().embed([QUERY])[0], readable)

    return case


def both_ways(read):
    """The same both ways."""
    ways = second(read), second(read, most=-1)
    return lambda library, readable: [way(library, readable) for way in ways]


DOCUMENTS = "documents/store.py SqlDocumentStore."
LISTS = "documents/store_rows.py DocumentLists."
WORDS = "search/lexical.py LexicalIndex."
SECOND = "search/multilingual.py MultilingualVectors."
MENTIONS = "search/lexical.py NameMentions."
TABLES = "tables/store.py TableStore."
CASES = {
    "db/engine.py inside": names,
    "db/engine.py versions": lambda t, w: t.connected(lambda c: versions(c, w)),
    "search/word_index.py chunk_count": lambda t, w: t.connected(lambda c: chunk_count(c, w)),
    f"{DOCUMENTS}document": lambda t, w: t.app.documents.document(t.document, w).name,
    f"{DOCUMENTS}chunks": lambda t, w: t.app.documents.chunks(t.chunks, w),
    f"{DOCUMENTS}section_texts": lambda t, w: t.app.documents.section_texts([(t.document, 0)], w),
    f"{DOCUMENTS}is_empty": lambda t, w: t.app.documents.is_empty(w),
    f"{DOCUMENTS}sections": lambda t, w: t.app.documents.sections(t.document, w),
    f"{DOCUMENTS}chunks_of": lambda t, w: t.app.documents.chunks_of(t.document, w),
    f"{DOCUMENTS}neighbourhood": lambda t, w: t.app.documents.neighbourhood(t.document, 0, w),
    f"{DOCUMENTS}stretches": lambda t, w: dict(t.app.documents.stretches([t.document], w, 0, 9)),
    f"{LISTS}lexicon": lambda t, w: t.app.documents.lexicon(w),
    f"{LISTS}documents": lambda t, w: named(t.app.documents.documents(w)),
    f"{LISTS}page": lambda t, w: paged(t.app.documents.page(w, limit=1, words="nimbus aero")),
    f"{LISTS}find_named": lambda t, w: named(t.app.documents.find_named(HIDDEN, w)),
    f"{LISTS}newest": lambda t, w: named(t.app.documents.newest(w, limit=9)),
    f"{LISTS}read_before": lambda t, w: named(of_older_readers(t.app, w)),
    f"{LISTS}filtered": lambda t, w: t.app.documents.filtered(Filters(type="markdown"), w),
    f"{LISTS}facets": lambda t, w: t.app.documents.facets(w),
    f"{LISTS}spread": lambda t, w: named(t.app.documents.spread(w, limit=9)),
    "chat/follow_ups.py FollowUps.resolve": followed,
    f"{WORDS}search": lambda t, w: t.app.words.search(QUERY, w, limit=9),
    f"{WORDS}searches": lambda t, w: t.app.words.searches([QUERY, "margin"], w, limit=9),
    f"{WORDS}holding": lambda t, w: t.app.words.holding("filter", w, limit=9),
    f"{WORDS}is_known": lambda t, w: t.app.words.is_known("Nimbus", w),
    f"{WORDS}respelled": lambda t, w: t.app.words.respelled("the nimbuz filter", w),
    f"{WORDS}coverage": lambda t, w: t.app.words.coverage(QUERY, w, t.chunks),
    f"{WORDS}coverages": lambda t, w: t.app.words.coverages([QUERY, "margin"], w, t.chunks),
    "search/word_index.py CachedWords.words_of": held,
    "search/vectors.py ExactVectors.nearest": (
        lambda t, w: t.app.index._exact.nearest(t.app.embedder.embed([QUERY]), w, limit=9)
    ),
    "search/vectors.py ChromaIndex.nearest": (
        lambda t, w: t.app.index.nearest(t.app.embedder.embed([QUERY]), w, limit=9)
    ),
    **{f"search/word_tables.py Fts5Words.{name}": case for name, case in WORD_INDEX.items()},
    **{f"search/word_tables.py TsvectorWords.{name}": case for name, case in WORD_INDEX.items()},
    "search/hybrid.py HybridRetriever.search": lambda t, w: t.app.retriever.search(QUERY, w),
    "search/hybrid.py HybridRetriever.confidence": (
        lambda t, w: t.app.retriever.confidence("What is the NB-7001-D?", w)
    ),
    "search/hybrid.py HybridRetriever.by_words": lambda t, w: t.app.retriever.by_words(QUERY, w),
    "render/evidence.py evidence_of": opened,
    "search/confidence.py QuestionBackground.spread": (
        lambda t, w: QuestionBackground(t.app.engine, t.app.index).spread(
            t.app.embedder.embed([QUERY])[0], w
        )
    ),
    "search/lexical.py look_up_identifiers": (
        lambda t, w: look_up_identifiers(t.app.engine, "Does NB-7001-C fit AX-5400-C?", w)
    ),
    f"{SECOND}nearest": second(lambda made, v, w: made.nearest(v, w, limit=9)),
    f"{SECOND}spread": both_ways(lambda made, v, w: made.spread(v, w)),
    f"{SECOND}cosines": (
        lambda t, w: both_ways(lambda made, v, w: made.cosines(v, t.chunks, w))(t, w)
    ),
    f"{MENTIONS}__call__": lambda t, w: t.mentions("Nimbus 7", w),
    f"{MENTIONS}is_word": lambda t, w: t.mentions.is_word("Nimbus", w),
    f"{MENTIONS}everywhere": lambda t, w: t.mentions.everywhere("Aero 5", w),
    "sessions/rows.py read": sources(lambda c, key, w, _: rows.read(c, key, w)),
    "sessions/rows.py of_chunks": sources(rows.of_chunks),
    "sessions/rows.py source_from": sources(lambda c, key, w, _: rows.read(c, key, w)),
    f"{TABLES}tables": lambda t, w: t.app.tables.tables(w),
    f"{TABLES}ids": lambda t, w: t.app.tables.ids(w),
    f"{TABLES}table": lambda t, w: t.app.tables.table(t.result.table_id, w),
    "tables/library.py TableLibrary.rows_behind": (
        lambda t, w: t.app.table_answers.library.rows_behind(t.result, 0, w)
    ),
    "tables/library.py TableLibrary.understand": (
        lambda t, w: t.app.table_answers.library.understand("What is the total margin?", w)
    ),
    "tables/library.py TableLibrary.likely": (
        lambda t, w: t.app.table_answers.library.likely("margin or revenue by region", w)
    ),
    "tables/library.py TableLibrary.by_meaning": (
        lambda t, w: t.app.table_answers.library.by_meaning("What is the total profit?", w, meant)
    ),
    "tables/answers.py TableAnswers.ask": lambda t, w: (
        t.app.table_answers.ask("What is the total margin?", w).rows
    ),
    "tables/answers.py TableAnswers.table_of": lambda t, w: t.app.table_answers.table_of(
        t.result, w
    ),
    "citations/verdicts.py cite_text": lambda t, w: cite_text(CITED, t.app.retriever, w),
}
OF_US = Readable(frozenset({DEFAULT_COLLECTION}))
NO_DOCUMENT = Readable(frozenset({"404"}))


def meant(words, names):
    """Any word means the margin."""
    return [[9.0 * (name == "margin") for name in names] for _ in words]


def named(documents):
    return [document.name for document in documents]


def of_older_readers(app, readable):
    """As after an update that reads better."""
    with patch("rag.documents.store_rows.READER", 99):
        return app.documents.read_before(readable)


def paged(page):
    return named(page.documents), page.matching, page.total


def functions_with_within():
    """By file and name, those that anybody may call."""
    for path in sorted(RAG.rglob("*.py")):
        source = path.read_text()
        if ": Readable" not in source:
            continue
        tree = ast.parse(source)
        holders = [(node.name + ".", node) for node in tree.body if isinstance(node, ast.ClassDef)]
        for prefix, holder in [("", tree), *holders]:
            for function in holder.body:
                if isinstance(function, ast.FunctionDef) and takes_within(function):
                    is_seam = prefix and "Protocol" in map(ast.unparse, holder.bases)
                    is_own = function.name.startswith("_") and function.name != "__call__"
                    if not is_seam and not is_own:
                        yield f"{path.relative_to(RAG)} {prefix}{function.name}"


def takes_within(function):
    taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return any(each.annotation and ast.unparse(each.annotation) == "Readable" for each in taken)


# Two hand it on to an index that has a case; what PostgreSQL finds is shown beside its server.
ELSEWHERE = {
    "search/pgvector.py ChangingIndex.nearest",
    "search/pgvector.py PgVectorIndex.nearest",  # tests/search/test_pgvector.py
    "search/vectors.py SharedIndex.nearest",  # tests/runtime/test_shared.py
}
EVERY = list(functions_with_within())
CASED = [each for each in EVERY if each in CASES]  # the others are told of by one test
# Where they are held in memory the databases' own index is not asked, and the other way round.
IN_MEMORY = {"search/word_index.py CachedWords.words_of", "search/vectors.py ExactVectors.nearest"}
HELD = [each for each in CASED if "Tsvector" not in each]
ASKED = [each for each in HELD if each not in IN_MEMORY]
OF_POSTGRESQL = [each for each in CASED if each not in IN_MEMORY and "Fts5" not in each]


def ingest(app, files, collection_id):
    """The documents' ids."""
    read = [IncomingFile.from_bytes(name, text.encode()) for name, text in files.items()]
    incoming = [replace(file, collection_id=collection_id) for file in read]
    ended = [each for each in app.ingestion.ingest(incoming) if each.is_final]
    assert [each.name for each in ended if each.stage == "failed"] == []
    return [each.document_id for each in ended]


def result_of(app, table):
    by_region = TablePlan(table.id, group=(By("Region"),), measures=(Measure(Kind.SUM, "Margin"),))
    return app.table_answers.library.run(table, by_region)


@contextmanager
def library(settings):
    """With both collections; then what is left of it without one, and without either."""
    app = build(settings, embedder=HashEmbedder())
    hidden = Readable(frozenset({app.collections.create("ada", "Margins").id}))
    ours, theirs = (ingest(app, OPEN, "1"), ingest(app, HIDDEN, *hidden.ids))
    document = app.documents.find_named(["nimbus.md"], hidden)[0]
    chunks = app.documents.chunks_of(document.id, hidden)
    session = app.store.create("ben")
    session.register([Hit(each, 1.0, each.text, each.start, each.end) for each in chunks])
    known = Library(
        app,
        NameMentions(app.words, app.documents, app.documents.lexicon),
        document.id,
        [chunk.id for chunk in chunks],
        result_of(app, app.tables.tables(hidden)[0]),
        session,
        app.tables.tables(OF_US)[0],
    )

    def without(document_ids):
        for each in document_ids:
            app.ingestion.delete(each)
        app.words._read_beside()  # else it is read while questions are asked
        return known

    yield (without(each) for each in ([], theirs, ours))
    app.stop()


def told(state, cases):
    """What each case says within our collection, within an empty one, and within all."""
    scopes = OF_US, NO_DOCUMENT, EVERYTHING
    return {name: [said(partial(CASES[name], state, each)) for each in scopes] for name in cases}


def said(call):
    """What comes back, or what the error says."""
    try:
        return call()
    except RagError as error:
        return str(error)


def check(name, states):
    """Of a case, in a library of both collections, of ours alone, and of none."""
    both, ours, none = (state[name] for state in states)
    assert both[0] == ours[0], "what lies in another collection is seen"
    assert both[1] == ours[1] == none[1], "what lies in other collections is seen"
    assert not both[2] == ours[2] == none[2], "this case would not see a filter that is dropped"


@pytest.fixture(scope="module", params=["held in memory", "asked of the database"])
def states(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    prepare(folder / "groundnote.db")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "asked of the database":
            for limits, name in ((word_index, "MOST_HELD"), (word_index, "MOST_OF_ALL")):
                patch.setattr(limits, name, -1)
            patch.setattr(vectors, "MOST_HELD", 0)
            patch.setattr(vectors, "MOST_OF_ALL", 0)
        with library(Settings(data_dir=folder)) as found:
            cases = HELD if request.param == "held in memory" else ASKED
            yield [told(state, cases) for state in found]


def test_every_function_that_takes_it_has_a_case():
    assert set(EVERY) == set(CASES) | ELSEWHERE


@pytest.mark.parametrize("name", HELD)
def test_what_lies_outside_changes_nothing(states, name):
    if name in states[0]:
        check(name, states)


@pytest.mark.slow
def test_what_lies_outside_changes_nothing_in_postgresql(
    postgres_of_its_own, tmp_path, monkeypatch
):
    for name in ("MOST_HELD", "MOST_OF_ALL"):
        monkeypatch.setattr(word_index, name, -1)
    url = postgres_of_its_own.url.render_as_string(hide_password=False)
    settings = Settings(data_dir=tmp_path, sessions={"database_url": url})
    with library(settings) as found:
        states = [told(state, OF_POSTGRESQL) for state in found]

    for name in OF_POSTGRESQL:
        check(name, states)
