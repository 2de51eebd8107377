"""Which of the library's words a word of a question stands for."""

import pytest

from benchmarks.corpora import multilingual
from rag.search.vocabulary import Vocabulary

WORDS = Vocabulary(
    {"doctor": 5, "graphit": 2, "configur": 40, "port": 30, "müll": 3, "notif": 9, "chang": 4},
    "porter",
)
WRITTEN = ["doctors", "doctor", "graphite", "configuration", "port", "müll", "notifications"]


@pytest.mark.parametrize(
    ("query", "stems"),
    [
        pytest.param("docters", {"docters": ["doctor"]}, id="one letter"),
        pytest.param("garphite", {"garphite": ["graphit"]}, id="letters in each other's place"),
        pytest.param("notificatinos", {"notificatinos": ["notif"]}, id="behind the stem"),
        pytest.param("chnge", {"chnge": ["chang"]}, id="whose ending is none any more"),
        pytest.param("which doctors", {}, id="a form of a word"),
        pytest.param("dactars", {}, id="too far"),
        pytest.param("prt", {}, id="too short"),
        pytest.param("e18x", {}, id="a code"),
        pytest.param("see the Docters", {}, id="a name"),
        pytest.param("Müll", {}, id="with its accents"),
        pytest.param("combien de temps dure docter", {}, id="another language's words"),
    ],
)
def test_a_word_may_stand_for(query, stems):
    assert WORDS.likely(query, WORDS.held) == stems


def test_what_only_others_may_read_is_no_word():
    assert WORDS.likely("docters", lambda _stem: 0) == {}


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("docters", "doctors"),
        ("notificatinos", "notifications"),
        ("notion", ""),
        ("poet", ""),
    ],
)
def test_it_stands_for_what_is_written_and_one_slip_away(word, meant):
    assert WORDS.nearest(word, WRITTEN) == meant


def test_words_of_many_languages_are_told_from_slips():
    words = ["light", "sleep", "changes", "lange", "halten", "visiteurs", "garde", "gerät"]
    slips = ["lihgt", "slepe", "chnages", "lnage", "hlaten", "vsiiteurs", "ggarde", "greät"]
    model = multilingual()

    assert [word for word in words if not model.is_word(word)] == []
    assert [word for word in slips if model.is_word(word)] == []
