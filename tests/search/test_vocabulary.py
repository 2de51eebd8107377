"""Which of the library's words a word of a question stands for."""

import pytest

from rag.search.vocabulary import Vocabulary, nearest

WORDS = Vocabulary({"doctor": 5, "graphit": 2, "configur": 40, "port": 30, "müll": 3}, "porter")


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        pytest.param("docters", {"docters": "doctor"}, id="one letter"),
        pytest.param("garphite", {"garphite": "graphit"}, id="two letters in each other's place"),
        pytest.param("which doctors", {}, id="a form of a word"),
        pytest.param("configurtaions", {"configurtaions": "configur"}, id="behind the stem"),
        pytest.param("prt", {}, id="too short"),
        pytest.param("e18x", {}, id="a code"),
        pytest.param("see the Docters", {}, id="a name"),
        pytest.param("Müll", {}, id="with its accents"),
        pytest.param("combien de temps dure docter", {}, id="another language's words"),
        pytest.param("wer war der docter am port", {}, id="another language's small words"),
        pytest.param("doctor, doctor: docters?", {"docters": "doctor"}, id="one word of three"),
    ],
)
def test_a_word_may_stand_for(query, meant):
    found = WORDS.meant(query, WORDS.held)

    assert {word: stems[0] for word, stems in found.items()} == meant


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("docters", "doctors"),
        ("dactars", ""),
        ("docotrs", "doctors"),
        ("notificatinos", "notifications"),
        ("ntificatinos", "notifications"),
        ("ntifcatinos", ""),
    ],
)
def test_it_is_one_that_a_slip_makes_of_it_or_two_in_a_long_one(word, meant):
    assert nearest(word, {"doctors", "notifications", "graphite"}, "porter") == meant


def test_what_only_others_may_read_is_no_word():
    assert WORDS.meant("docters", lambda _stem: 0) == {}
