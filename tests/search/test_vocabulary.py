"""Which of the library's words a word of a question stands for."""

import pytest

from rag.search.vocabulary import Vocabulary

WORDS = Vocabulary({"doctor": 5, "graphit": 2, "configur": 40, "port": 30, "müll": 3}, "porter")


@pytest.mark.parametrize(
    ("query", "slips"),
    [
        pytest.param("docters", {"docters": "doctor"}, id="one letter"),
        pytest.param("garphite", {"garphite": "graphit"}, id="two letters in each other's place"),
        pytest.param("which doctors", {}, id="a form of a word"),
        pytest.param("dactars", {}, id="too far"),
        pytest.param("prt", {}, id="too short"),
        pytest.param("e18x", {}, id="a code"),
        pytest.param("see the Docters", {}, id="a name"),
        pytest.param("Müll", {}, id="with its accents"),
        pytest.param("combien de temps dure docter", {}, id="another language's words"),
    ],
)
def test_a_word_stands_for(query, slips):
    assert WORDS.slips(query, WORDS.held) == slips


def test_what_only_others_may_read_is_no_word():
    assert WORDS.slips("docters", lambda _stem: 0) == {}
