"""The second model's vectors follow the database, are exact, and are never needed."""

import hashlib

import numpy as np
import pytest
from sqlalchemy import select

from rag.db import reading, second_vectors, writing
from rag.errors import SetupError
from rag.records import EVERYTHING, Certainty
from rag.search import multilingual
from rag.search.embedders import local
from rag.search.embedders.local import E5Embedder, packaged_file
from rag.search.hybrid import HybridRetriever
from rag.search.multilingual import MultilingualVectors
from tests.fakes import HashEmbedder


class Translating(HashEmbedder):
    """Knows that a Leuchte is a lamp, and tells questions from texts."""

    name = "translating"

    def __init__(self):
        super().__init__(name="translating")
        self.questions = 0

    def embed(self, texts):
        return super().embed([text.lower().replace("leuchte", "lamp") for text in texts])

    def is_word(self, text):
        return False

    def embed_questions(self, texts):
        self.questions += len(texts)
        return self.embed(texts)


@pytest.fixture
def second(library):
    return MultilingualVectors(library.engine, Translating())


@pytest.fixture
def retriever(library, second):
    parts = library.embedder, library.index, library.lexical, library.store
    return HybridRetriever(*parts, second=second)


def rows(library):
    with reading(library.engine) as connection:
        return set(connection.scalars(select(second_vectors.c.chunk_id)))


def test_each_chunk_is_read_once(library, second, monkeypatch):
    monkeypatch.setattr(multilingual, "BATCH", 2)
    library.add("Lamp", "Dim the lamp.", "Clean the lamp.", "Sell the lamp.")

    assert list(second.make_missing()) == [(2, 3), (3, 3)]
    assert list(second.make_missing()) == []
    assert second.progress() == (3, 3)


def test_they_go_with_their_chunks_and_come_with_new_ones(library, second):
    library.add("Lamp", "Dim the lamp.")
    list(second.make_missing())
    [chunk] = library.add("Lamp", "Clean the lamp.")

    assert rows(library) == set()
    list(second.make_missing())
    assert rows(library) == {chunk.id}


def test_those_of_another_model_are_made_anew(library, second):
    library.add("Lamp", "Dim the lamp.")
    list(second.make_missing())
    with writing(library.engine) as connection:
        connection.execute(second_vectors.update().values(model="older"))

    assert list(second.make_missing()) == [(1, 1)]


@pytest.mark.parametrize("most", [multilingual.MOST_HELD, -1])
def test_the_cosines_are_those_of_the_vectors(library, second, monkeypatch, most):
    monkeypatch.setattr(multilingual, "MOST_HELD", most)
    chunks = [*library.add("Lamp", "Dim the lamp."), *library.add("Router", "Reset the router.")]
    list(second.make_missing())
    embedder = Translating()
    [vector] = embedder.embed(["dim a lamp"])
    exact = embedder.embed([chunk.embedded_text for chunk in chunks]) @ vector

    found = second.cosines(vector, [chunk.id for chunk in chunks], EVERYTHING)

    np.testing.assert_allclose([found[chunk.id] for chunk in chunks], exact, atol=0.005)
    assert second.spread(vector, EVERYTHING).count == 2


def test_what_only_the_second_model_knows_is_found(library, retriever, second):
    for number in range(30):
        library.add(f"Note {number}", f"Meeting {number} was about budgets.")
    [lamp] = library.add("Wall", "Dim the lamp.")
    question = "Leuchte"
    before = [hit.chunk.id for hit in retriever.search(question, EVERYTHING, limit=1)]

    list(second.make_missing())
    after = [hit.chunk.id for hit in retriever.search(question, EVERYTHING, limit=1)]

    assert after == [lamp.id] != before


def test_no_model_is_loaded_before_there_is_a_vector(library, retriever, second):
    library.add("Lamp", "Dim the lamp.")

    retriever.search("lamp", EVERYTHING)

    assert second._embedder.questions == 0


# ── The model that the package carries ───────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_question_finds_its_answer_in_another_language() -> None:
    embedder = E5Embedder(packaged_file())
    texts = ["Dogs must be kept on a lead in the park.", "The library closes at six.", "中国 20 €"]
    questions = ["Müssen Hunde angeleint sein?", "¿A qué hora cierra la biblioteca?"]

    cosines = embedder.embed_questions(questions) @ embedder.embed(texts).T

    assert cosines.argmax(axis=1).tolist() == [0, 1]
    assert embedder.count_tokens(["Dogs must be kept on a lead."])[0] > 8


def test_letters_become_what_the_model_was_trained_on() -> None:
    tokenizer = E5Embedder(packaged_file()).tokenizer

    def pieces(text):
        return tokenizer.encode(text).tokens

    assert pieces("ﬁx  it\tnow\u200b") == pieces("fix it now ")
    assert pieces("ＫＨ") == pieces("KH")
    assert (pieces("a")[0], pieces("a")[-1]) == ("<s>", "</s>")


def test_another_file_than_was_measured_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(local, "SHA256", hashlib.sha256(b"another").hexdigest())

    with pytest.raises(SetupError, match=r"embedding\.multilingual"):
        E5Embedder(packaged_file()).embed(["text"])


def test_what_another_language_asks_for_is_weighed_by_the_second_model_alone(
    library, second, retriever
):
    words = ("gull", "rope", "tide", "mast", "keel", "oar", "dock", "reef", "sail", "crew")
    library.add("Lamp", "Lamp.", *(f"The {word} of the harbour." for word in words))
    list(second.make_missing())

    def confidence(question):
        return retriever.confidence(question, EVERYTHING)

    assert (
        confidence("wo steht nun hier drin jene Leuchte denn bitte").certainty is Certainty.PERHAPS
    )
    assert confidence("wo steht nun hier drin jene Leuchte denn bitte").is_other_language
    assert (
        confidence("wo steht nun hier drin jenes Wahlergebnis denn bitte").certainty
        is Certainty.NOTHING
    )
    assert not confidence("the lobster of the sky").is_other_language
