"""Which of the library's words a word of a question stands for."""

import random
import time
from string import ascii_lowercase

import pytest

from benchmarks.corpora import multilingual
from rag.search.word_index import Vocabulary

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
    assert WORDS.likely(query, WORDS.chunk_count) == stems


def test_what_only_others_may_read_is_no_word():
    assert WORDS.likely("docters", lambda _stem: 0) == {}


def test_what_only_others_may_read_takes_no_place_among_the_likely():
    nearer = {f"garphit{letter}": 9 for letter in ascii_lowercase if letter != "e"}
    own = {"graphit": 2}

    words = Vocabulary(nearer | own, "porter")

    assert words.likely("garphite", lambda stem: own.get(stem, 0)) == {"garphite": ["graphit"]}


def test_a_word_without_end_is_like_nothing_and_costs_nothing():
    letters = random.Random(1)
    stems = {"".join(letters.choices(ascii_lowercase, k=12)): 1 for _ in range(1_000)}
    words = Vocabulary({f"a{stem}": count for stem, count in stems.items()}, "porter")
    began = time.monotonic()

    assert (
        words.likely("a" + "".join(letters.choices(ascii_lowercase, k=7_999)), words.chunk_count)
        == {}
    )
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("counts", "meant"),
    [({"doctor": 5, "dactor": 9}, "dactors"), ({"doctor": 5}, "doctors")],
    ids=["both are read", "one is others'"],
)
def test_of_words_as_near_the_one_that_the_asker_reads_most_is_meant(counts, meant):
    words = Vocabulary({"doctor": 5, "dactor": 9}, "porter")

    assert words.nearest("ductors", ["doctors", "dactors"], lambda s: counts.get(s, 0)) == meant


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
    assert WORDS.nearest(word, WRITTEN, WORDS.chunk_count) == meant


def test_words_of_many_languages_are_told_from_slips():
    words = ["light", "sleep", "changes", "lange", "halten", "visiteurs", "garde", "gerät"]
    slips = ["lihgt", "slepe", "chnages", "lnage", "hlaten", "vsiiteurs", "ggarde", "greät"]
    model = multilingual()

    assert [word for word in words if not model.is_word(word)] == []
    assert [word for word in slips if model.is_word(word)] == []
