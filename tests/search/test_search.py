from dataclasses import replace

import pytest

from rag.errors import ModelUnavailable
from rag.records import EVERYTHING, NO_EARLIER_TOPICS, EarlierTopics
from rag.search.hybrid import HybridRetriever, relevance
from tests.search.conftest import Library

FILLER = "Plain words about nothing in particular fill this sentence up to its end."


def test_the_chunk_that_holds_the_words_comes_first(library: Library) -> None:
    library.add("Router", "Hold the reset button for ten seconds.")
    library.add("Lamp", "Dim the light with the slider.")

    hits = library.retriever.search("how do I reset the router?", EVERYTHING)

    assert hits[0].chunk.document_title == "Router"
    assert hits[0].passage == "Hold the reset button for ten seconds."


def test_an_empty_library_and_an_empty_query_find_nothing(library: Library) -> None:
    assert library.retriever.search("anything", EVERYTHING) == []

    library.add("Router", "Hold the reset button.")

    assert library.retriever.search("  \0 ", EVERYTHING) == []
    assert library.retriever.search("reset", EVERYTHING, limit=0) == []


def test_the_conversation_moves_the_query_towards_what_was_talked_about(library: Library) -> None:
    lamp, router = library.add("Lamp", "Dim light."), library.add("Router", "Wireless reset.")

    plain, moved, away = (
        library.retriever.search("reset light", EVERYTHING, before=before, limit=1)
        for before in (
            NO_EARLIER_TOPICS,
            EarlierTopics((("Router wireless reset", 2.0),)),
            EarlierTopics((("Lamp dim light", 2.0),)),
        )
    )

    assert plain
    assert moved[0].chunk.id == router[0].id
    assert away[0].chunk.id == lamp[0].id


def test_words_of_the_last_question_count_less_than_those_of_this_one(library: Library) -> None:
    lamp, router = library.add("A", "The lamp is dim."), library.add("B", "The router is loud.")
    kettle = library.add("C", "The kettle boils.")
    before = EarlierTopics((("kettle router", 0.3),))

    plain = library.retriever.by_words("lamp", EVERYTHING)
    after = library.retriever.by_words("lamp", EVERYTHING, before=before)

    assert [hit.chunk.id for hit in plain] == [lamp[0].id]
    assert after[0].chunk.id == lamp[0].id
    assert {hit.chunk.id for hit in after} == {lamp[0].id, router[0].id, kettle[0].id}


def test_of_two_alike_the_document_that_was_cited_last_comes_nearer(library: Library) -> None:
    library.add("A", "Hold the reset button of the lamp.", name="a.md")
    library.add("B", "Hold the reset button of the desk.", name="b.md")

    _, second = library.retriever.search("reset button", EVERYTHING)
    before = EarlierTopics(documents=frozenset([second.chunk.document_id]))
    after = library.retriever.search("reset button", EVERYTHING, before=before)

    (cited,) = (hit for hit in after if hit.chunk.id == second.chunk.id)
    assert cited.score > second.score


def test_how_relevant_a_hit_is_does_not_depend_on_what_was_talked_of(library: Library) -> None:
    said = (("Is the kettle loud?", 0.3), ("Which lamp is bright?", 0.25))
    for title in ("Lamp", "Router", "Kettle"):
        library.add(title, f"Reset of the {title.lower()} by its button.")

    plain, after = (
        library.retriever.search("reset button", EVERYTHING, before=before)
        for before in (NO_EARLIER_TOPICS, EarlierTopics(said))
    )

    told = {hit.chunk.id: hit.relevance for hit in after}
    assert told == pytest.approx({hit.chunk.id: hit.relevance for hit in plain})


def test_a_chunk_that_the_database_no_longer_has_is_dropped(library: Library) -> None:
    kept, gone = library.add("Kept", "Reset here."), library.add("Gone", "Reset there.")
    library.store.delete(gone[0].document_id)

    hits = library.retriever.search("reset", EVERYTHING)

    assert [hit.chunk.id for hit in hits] == [kept[0].id]


def test_copies_under_the_same_heading_are_folded(library: Library) -> None:
    library.add("Manual", "Hold the  reset button.", name="a.md")
    library.add("Manual", "Hold the reset BUTTON.", name="copy/a.md")

    assert len(library.retriever.search("reset button", EVERYTHING)) == 1


def test_sibling_products_with_the_same_words_are_no_copies(library: Library) -> None:
    library.add("Aero 5", "Hold the reset button.")
    library.add("Aero 5 Pro", "Hold the reset button.")

    hits = library.retriever.search("How do I reset the Aero 5 Pro?", EVERYTHING)

    assert [hit.chunk.document_title for hit in hits] == ["Aero 5 Pro", "Aero 5"]


def test_hits_whose_passages_meet_become_one(library: Library) -> None:
    first, second = library.add("Router", "Reset by the button.", "Reset by the app.")

    hits = library.retriever.search("reset by the app", EVERYTHING)

    assert [hit.chunk for hit in hits] == [second]
    assert hits[0].passage == "Reset by the button.\n\nReset by the app."
    assert first.text in hits[0].passage


def test_hits_far_apart_in_a_section_stay_apart(library: Library) -> None:
    between = " ".join([FILLER] * 60)
    library.add(
        "Router",
        "Reset by the button.",
        "Reset by the app.",
        section=f"Reset by the button. {between} Reset by the app.",
    )

    assert len(library.retriever.search("reset", EVERYTHING)) == 2


def test_a_passage_encloses_its_chunk_and_is_cut_from_the_section(library: Library) -> None:
    section = " ".join([FILLER] * 30 + ["Reset by the button."] + [FILLER] * 30)
    library.add("Router", "Reset by the button.", section=section)

    (hit,) = library.retriever.search("reset", EVERYTHING)

    assert hit.passage == section[hit.passage_start : hit.passage_end]
    assert hit.passage_start <= hit.chunk.start
    assert hit.chunk.end <= hit.passage_end
    assert 150 < len(hit.passage.split()) <= 230


def test_at_most_the_limit_is_returned_best_first(library: Library) -> None:
    for number in range(20):
        library.add(f"Router {number}", "Reset " * (number + 1))

    hits = library.retriever.search("reset", EVERYTHING, limit=7)

    assert len(hits) == 7
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_hits_that_fit_equally_come_in_the_order_of_the_documents(library: Library) -> None:
    """Their ids differ from library to library."""
    titles = ["Lamp", "Aero", "Router", "Desk", "Chair", "Bulb"]
    for title in titles:
        library.add(title, "It stands in the hall.")

    hits = library.retriever.search("hall", EVERYTHING)

    assert len({hit.score for hit in hits}) == 1
    assert [hit.chunk.document_title for hit in hits] == sorted(titles)


def test_relevance_tells_a_query_about_the_documents_from_one_that_is_not(library: Library) -> None:
    library.add("Router", "Hold the reset button for ten seconds to reset the router.")
    library.add("Lamp", "Dim the light with the slider.")

    about = library.retriever.search("reset the router", EVERYTHING)[0].relevance
    other = library.retriever.search("price of the Zeppelin tour", EVERYTHING)[0].relevance

    assert 0.0 <= other < 0.5 < about <= 1.0


def test_relevance_grows_with_similarity_and_with_coverage() -> None:
    assert relevance(0.7, 0.5) > relevance(0.3, 0.5)
    assert relevance(0.5, 0.9) > relevance(0.5, 0.1)
    assert 0.0 <= relevance(-1.0, 0.0) < relevance(1.0, 1.0) <= 1.0


def test_a_failing_embedding_server_is_told_of(library: Library) -> None:
    class Down:
        name, dimensions, max_tokens = "down", 3, 256

        def count_tokens(self, texts):
            return [1] * len(texts)

        def embed(self, texts):
            raise ModelUnavailable("The embedding server cannot be reached.")

    retriever = HybridRetriever(Down(), library.index, library.lexical, library.store)

    with pytest.raises(ModelUnavailable):
        retriever.search("reset", EVERYTHING)


def test_a_reranker_has_the_last_word(library: Library) -> None:
    class Backwards:
        def score(self, query, texts):
            return [float(place) for place, _ in enumerate(texts)]

    library.add("Router", "Reset the router with the button.")
    library.add("Lamp", "The lamp has a switch and a reset.")
    reranked = HybridRetriever(
        library.embedder, library.index, library.lexical, library.store, reranker=Backwards()
    )

    plain = [hit.chunk.id for hit in library.retriever.search("reset the router", EVERYTHING)]

    assert [hit.chunk.id for hit in reranked.search("reset the router", EVERYTHING)] == plain[::-1]


def test_a_chunk_whose_section_is_missing_is_still_readable(library: Library) -> None:
    (chunk,) = library.add("Router", "Hold the reset button.")
    moved = replace(chunk, section_index=7)

    class Elsewhere:
        def lexicon(self, readable):
            return ()

        def chunks(self, chunk_ids, readable):
            return {chunk.id: moved}

        def section_texts(self, keys, readable):
            return {}

    retriever = HybridRetriever(library.embedder, library.index, library.lexical, Elsewhere())

    assert retriever.search("reset", EVERYTHING)[0].passage == chunk.text
