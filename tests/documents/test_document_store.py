"""Documents in the database."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import event

from rag.documents.chunking import cut, document_id_for
from rag.documents.store import SqlDocumentStore
from rag.documents.store_rows import StoredDocument
from rag.errors import NotFound
from rag.records import EVERYTHING, Document, Readable, Section
from tests.fakes import HashEmbedder
from tests.prepared import migrated

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    engine = migrated(tmp_path / "d.sqlite3")
    yield SqlDocumentStore(engine)
    engine.dispose()


def document(name="a.md", *, names=("Aero 5",)) -> Document:
    return Document(document_id_for(name), name, "Manual", "text/markdown", "h", 9, 2, NOW, names)


def stored(*texts: str, name="a.md", names=("Aero 5",)) -> StoredDocument:
    sections = [
        Section(at, ("Part",), f"page {at + 1}", text, at + 1) for at, text in enumerate(texts)
    ]
    counting = HashEmbedder()
    chunks = cut(
        document_id_for(name),
        name,
        "Manual",
        sections,
        count_tokens=counting.count_tokens,
        max_tokens=256,
    )
    return StoredDocument(document(name, names=names), sections, chunks)


def write(store, *texts: str, name="a.md", names=("Aero 5",)):
    it = stored(*texts, name=name, names=names)
    return store.replace(it.document, it.sections, it.chunks), it.chunks


def statements_of(engine, call) -> int:
    """How many statements a call sends to the database."""
    sent = []
    event.listen(engine, "before_cursor_execute", lambda *_args: sent.append(1))
    call()
    return len(sent)


class TestSqlDocumentStore:
    def test_gives_back_what_was_stored(self, store):
        _changes, chunks = write(store, "One.", "Two.")

        assert store.documents(EVERYTHING) == [document()]
        assert store.document(document().id, EVERYTHING) == document()
        assert store.existing(document().name, "1").content_hash == "h"
        assert store.chunks([chunks[1].id, "unknown"], EVERYTHING) == {chunks[1].id: chunks[1]}
        assert store.section_texts([(document().id, 1), ("x", 0)], EVERYTHING) == {
            (document().id, 1): "Two."
        }
        assert store.neighbourhood(document().id, 1, EVERYTHING, reach=0) == [
            Section(1, ("Part",), "page 2", "Two.", 2)
        ]

    def test_lists_a_page_and_counts_the_rest(self, store):
        for name in ("Über uns.md", "b prices.md", "a prices.md", "c.md"):
            write(store, "One.", name=name)

        page = store.page(EVERYTHING, limit=2, offset=1)
        found = store.page(EVERYTHING, limit=9, words="PRICES manual")
        one = store.page(EVERYTHING, limit=9, words="über")

        assert [each.name for each in page.documents] == ["b prices.md", "c.md"]
        assert (page.matching, page.total) == (4, 4)
        assert [each.name for each in found.documents] == ["a prices.md", "b prices.md"]
        assert (found.matching, found.total) == (2, 4)
        assert [each.name for each in one.documents] == ["Über uns.md"]
        assert store.page(Readable(frozenset()), limit=9).total == 0

    def test_finds_words_with_signs_that_databases_read(self, store):
        for name in ("50 % off.md", "a_b.md", "acb.md"):
            write(store, "One.", name=name)

        def found(words):
            return [each.name for each in store.page(EVERYTHING, limit=9, words=words).documents]

        assert (found("%"), found("A_B")) == (["50 % off.md"], ["a_b.md"])
        assert found("\0") == []
        assert found(" ".join(map(str, range(3000)))) == []

    def test_gives_some_by_name_by_time_and_from_all_over(self, store):
        names = [f"{number:02}.md" for number in range(30)]
        for name in names:
            write(store, "One.", name=name)

        assert [each.name for each in store.find_named(["07.md", "99.md"], EVERYTHING)] == ["07.md"]
        assert [each.name for each in store.newest(EVERYTHING, limit=2)] == ["00.md", "01.md"]
        spread = [each.name for each in store.spread(EVERYTHING, limit=3)]
        assert spread == ["00.md", "10.md", "20.md"]

        nobody = Readable(frozenset())
        assert store.find_named(names, nobody) == store.newest(nobody, limit=2) == []
        assert store.spread(nobody, limit=3) == []

    def test_touches_only_the_chunks_that_changed(self, store):
        _first, before = write(store, "One.", "Two.")
        store.mark_embedded([chunk.id for chunk in before])

        changes, after = write(store, "New.", "Two.")

        assert [chunk.text for chunk in changes.added] == ["New."]
        assert changes.removed == (before[0].id,)
        assert [chunk.id for chunk in store.unembedded(9)] == [after[0].id]
        assert store.removed(9) == [before[0].id]

    def test_moves_a_chunk_without_embedding_it_again(self, store):
        _first, before = write(store, "One.")
        store.mark_embedded([before[0].id])

        changes, _after = write(store, "New.", "One.")

        assert [chunk.text for chunk in changes.added] == ["New."]
        moved = store.chunks([before[0].id], EVERYTHING)[before[0].id]
        assert (moved.section_index, moved.position, moved.locator) == (1, 1, "page 2")

    def test_replaces_a_whole_batch_as_it_would_each_of_its_documents(self, store):
        write(store, "One.", name="a.md")
        write(store, "Two.", "Three.", name="b.md")

        batch = [
            stored("One.", "More.", name="a.md"),
            stored("Three.", name="b.md"),
            stored("Four.", name="c.md"),
        ]
        changes = store.replace_all(batch)

        assert [chunk.text for chunk in changes.added] == ["More.", "Four."]
        assert len(changes.removed) == 1
        assert [each.name for each in store.documents(EVERYTHING)] == ["a.md", "b.md", "c.md"]
        found = store.chunks([chunk.id for each in batch for chunk in each.chunks], EVERYTHING)
        assert found == {chunk.id: chunk for each in batch for chunk in each.chunks}

    def test_takes_the_later_of_two_with_the_same_id(self, store):
        changes = store.replace_all([stored("Old."), stored("New.")])

        assert [chunk.text for chunk in changes.added] == ["New."]
        assert [chunk.text for chunk in store.unembedded(9)] == ["New."]

    def test_sends_as_many_statements_for_a_batch_as_for_one_document(self, tmp_path):
        engine = migrated(tmp_path / "counted.sqlite3")
        store = SqlDocumentStore(engine)
        batch = [stored("One.", "Two.", name=f"{number}.md") for number in range(40)]

        of_one = statements_of(engine, lambda: store.replace_all([stored("One.", name="x.md")]))
        of_batch = statements_of(engine, lambda: store.replace_all(batch))

        assert of_batch == of_one
        engine.dispose()

    def test_forgets_a_removal_when_the_chunk_comes_back(self, store):
        write(store, "One.")
        write(store, "Two.")
        write(store, "One.")

        assert [chunk.text for chunk in store.unembedded(9)] == ["One."]
        assert len(store.removed(9)) == 1

    def test_deletes_a_document_with_everything(self, store):
        _changes, chunks = write(store, "One.", "Two.")

        changes = store.delete(document().id)

        assert set(changes.removed) == {chunk.id for chunk in chunks} == set(store.removed(9))
        assert store.documents(EVERYTHING) == []
        assert store.section_texts([(document().id, 0)], EVERYTHING) == {}
        with pytest.raises(NotFound, match="no document"):
            store.document(document().id, EVERYTHING)

    def test_refuses_to_delete_what_is_not_there(self, store):
        with pytest.raises(NotFound, match="no document"):
            store.delete("unknown")

    def test_says_which_marked_chunks_were_deleted_meanwhile(self, store):
        _changes, chunks = write(store, "One.")

        assert store.mark_embedded([chunks[0].id, "gone"]) == ["gone"]
        assert store.unembedded(9) == []

    def test_forgets_removals_that_the_index_followed(self, store):
        write(store, "One.")
        store.delete(document().id)

        store.forget_removed(store.removed(9))

        assert store.removed(9) == []

    def test_can_ask_for_everything_to_be_embedded_again(self, store):
        _changes, chunks = write(store, "One.", "Two.")
        store.mark_embedded([chunk.id for chunk in chunks])
        write(store, "One.")

        store.mark_all_unembedded()

        assert store.unembedded_count() == 1
        assert store.removed(9) == []

    def test_shows_a_section_among_its_neighbours(self, store):
        write(store, "One.", "Two.", "Three.", "Four.")

        found = store.neighbourhood(document().id, 2, EVERYTHING)

        assert [section.text for section in found] == ["Two.", "Three.", "Four."]
        with pytest.raises(NotFound, match="no section 4"):
            store.neighbourhood(document().id, 4, EVERYTHING)

    def test_holds_more_chunks_than_a_statement_has_variables(self, store):
        _changes, chunks = write(store, *(f"Text {n}." for n in range(1_300)))

        assert len(store.chunks([chunk.id for chunk in chunks], EVERYTHING)) == 1_300
        assert len(store.delete(document().id).removed) == 1_300


class TestLexicon:
    def test_has_the_names_of_all_documents_once(self, store):
        write(store, "One.", names=("Aero 5", "Aero 5 Pro"))
        write(store, "Two.", name="b.md", names=("Aero 5", "Brummer®"))

        assert store.lexicon(EVERYTHING) == ("Aero 5", "Aero 5 Pro", "Brummer®")

    def test_follows_changes(self, store):
        write(store, "One.", names=("Aero 5",))
        store.lexicon(EVERYTHING)

        write(store, "One.", names=("Aero 6",))
        assert store.lexicon(EVERYTHING) == ("Aero 6",)
        store.delete(document().id)
        assert store.lexicon(EVERYTHING) == ()

    def test_follows_changes_by_another_process(self, store):
        write(store, "One.", names=("Aero 5",))
        store.lexicon(EVERYTHING)

        other = SqlDocumentStore(store._engine)
        later = replace(document("b.md", names=("Aero 7",)), ingested_at=NOW.replace(year=2027))
        other.replace(later, [], [])

        assert store.lexicon(EVERYTHING) == ("Aero 5", "Aero 7")
