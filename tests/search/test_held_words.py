"""Searching chosen collections: as if there were nothing else, and as they are now."""

import pytest
from sqlalchemy import event

from rag.documents.collections import Collections
from rag.records import EVERYTHING, Readable
from rag.search import word_index
from tests.search.conftest import Library

QUERIES = [
    "red lamp",
    "lamps or gardens?",
    "brihgt",
    "the lamp glows red",
    "路由器",
    "zeppelin",
    "conf",
]


def of(*collections: str) -> Readable:
    return Readable(frozenset(collections))


def found(library: Library, query: str, readable: Readable) -> list[tuple[str, float]]:
    chunks = library.store.chunks(
        [key for key, _ in library.lexical.search(query, readable, limit=20)], readable
    )
    hits = library.lexical.search(query, readable, limit=20)
    return [(chunks[key].text, score) for key, score in hits]


def fill(library: Library, collection: str = "1") -> None:
    library.add("Lamp", "The lamp glows red.", "A lamp is bright at night.", collection=collection)
    library.add("Garden", "Gardens are bright.", "按住路由器背面的按钮", collection=collection)


def other(library: Library, name: str = "Other") -> str:
    return Collections(library.engine).create("ben", name).id


class TestACollectionAmongOthers:
    @pytest.fixture
    def crowded(self, library: Library) -> tuple[Library, str]:
        """Anna's, and Ben's with many of the same words and some that nobody else has."""
        fill(library)
        theirs = other(library)
        for number in range(30):
            library.add(
                f"Theirs {number}",
                f"A zeppelin is red, number {number}. Configuration of lamps.",
                collection=theirs,
            )
        return library, theirs

    @pytest.mark.parametrize("query", QUERIES)
    def test_finds_and_weighs_what_it_would_alone(self, crowded, query, tmp_path, engine_at):
        library, _ = crowded
        alone = Library(engine_at(tmp_path / "alone.db"))
        fill(alone)

        assert found(library, query, of("1")) == found(alone, query, of("1"))

    def test_several_are_weighed_as_one(self, crowded, tmp_path, engine_at):
        library, theirs = crowded
        one = Library(engine_at(tmp_path / "one.db"))
        fill(one)
        for number in range(30):
            text = f"A zeppelin is red, number {number}. Configuration of lamps."
            one.add(f"Theirs {number}", text)

        for query in QUERIES:
            both = dict(found(library, query, of("1", theirs)))
            assert both == pytest.approx(dict(found(one, query, of("1"))))

    def test_words_in_a_row_are_found_wherever_the_collections_lie(
        self, library, tmp_path, engine_at
    ):
        one, theirs = Library(engine_at(tmp_path / "one.db")), other(library)
        for number in range(6):  # by turns in the one and in the other
            said = f"A red lamp, {number}." if number % 3 else f"A lamp that is not red, {number}."
            library.add(f"Note {number}", said, collection=("1", theirs)[number % 2])
            one.add(f"Note {number}", said)

        alone = dict(found(one, "red lamp", EVERYTHING))
        for readable in (EVERYTHING, of("1", theirs)):
            assert dict(found(library, "red lamp", readable)) == pytest.approx(alone)
            assert len(library.lexical.holding("red lamp", readable, limit=9)) == 4

    def test_a_word_of_others_takes_the_steps_of_a_word_of_nobody(self, crowded):
        library, _ = crowded
        found(library, "lamp", of("1"))  # held from now on
        statements: list[list[tuple[str, str]]] = []

        def note(_connection, _cursor, statement, parameters, *_):
            statements[-1].append((statement, str(parameters)))

        event.listen(library.engine, "before_cursor_execute", note)
        for word in ("zeppelin", "nileppez"):
            statements.append([])
            assert library.lexical.search(word, of("1"), limit=5) == []
            assert library.lexical.holding(word, of("1"), limit=5) == []
            assert not library.lexical.is_known(word, of("1"))
            assert library.lexical.coverage(word, of("1"), ["none"]) == {"none": 0.0}
        assert statements[0] == statements[1]


class TestWhatIsHeldOfACollection:
    def test_follows_each_change(self, library: Library) -> None:
        fill(library)
        theirs = other(library)
        (moving,) = library.add("Moving", "A zeppelin rises.", collection=theirs)
        assert found(library, "zeppelin", of("1")) == []

        library.store.move(moving.document_id, "1")
        assert [text for text, _ in found(library, "zeppelin", of("1"))] == ["A zeppelin rises."]
        assert found(library, "zeppelin", of(theirs)) == []

        library.add("New", "A zeppelin lands.")
        assert len(found(library, "zeppelin", of("1"))) == 2

        library.store.delete(moving.document_id)
        assert [text for text, _ in found(library, "zeppelin", of("1"))] == ["A zeppelin lands."]

    def test_is_what_reading_it_anew_would_hold(self, library: Library) -> None:
        fill(library)
        (old,) = library.add("Old", "An old lamp.")
        found(library, "lamp", of("1"))
        library.store.delete(old.document_id)  # its row may be given to another
        library.add("New", "A new lamp glows.", "Lamps.")

        anew = Library(library.engine)
        for query in QUERIES:
            assert found(library, query, of("1")) == found(anew, query, of("1"))

    def test_may_be_texts_without_words(self, library: Library) -> None:
        added = library.add("—", "!!!", "…")
        assert found(library, "lamp", of("1")) == []

        library.store.delete(added[0].document_id)
        assert found(library, "lamp", of("1")) == []

        library.add("Lamp", "A lamp.")
        assert [text for text, _ in found(library, "lamp", of("1"))] == ["A lamp."]

    def test_only_what_is_new_is_read(self, library: Library, monkeypatch) -> None:
        fill(library)
        found(library, "lamp", of("1"))
        read = []
        places = library.lexical._words.places
        monkeypatch.setattr(
            library.lexical._words,
            "places",
            lambda *asked: read.append(asked[1:]) or places(*asked),
        )

        found(library, "lamp", of("1"))
        assert read == []
        library.add("New", "A new lamp.")
        found(library, "lamp", of("1"))
        assert read == [("1", 5)]

    @pytest.mark.parametrize("query", QUERIES)
    def test_the_whole_library_is_held_as_its_collections_are(self, library, query) -> None:
        fill(library)
        theirs = other(library)
        library.add("Theirs", "A red zeppelin.", collection=theirs)

        assert found(library, query, EVERYTHING) == found(library, query, of("1", theirs))
        (gone,) = library.add("Gone", "The lamps of a zeppelin.", collection=theirs)
        assert found(library, query, EVERYTHING) == found(library, query, of("1", theirs))
        library.store.delete(gone.document_id)
        assert found(library, query, EVERYTHING) == found(library, query, of("1", theirs))

    def test_has_bounds(self, library: Library, monkeypatch) -> None:
        fill(library)
        theirs = other(library)
        library.add("Theirs", "A lamp.", "A pump.", collection=theirs)
        monkeypatch.setattr(word_index, "MOST_HELD", 4)

        assert len(found(library, "lamp", of("1"))) == 2
        assert len(found(library, "lamp", of(theirs))) == 1
        assert list(library.lexical._cache._collections) == [theirs]
        assert len(found(library, "lamp", of("1", theirs))) == 3  # in the database's own index
        assert len(found(library, "lamp", EVERYTHING)) == 3
