"""Which of the library's words a word of a question stands for."""

import pytest

from rag.search.query import Term
from rag.search.vocabulary import Vocabulary

WORDS = Vocabulary(
    {
        "doctor": 5,
        "graphit": 2,
        "configur": 40,
        "config": 2,
        "port": 30,
        "portabl": 35,
        "warranti": 3,
    },
    "porter",
)


def meant(word: str, names: frozenset[str] = frozenset()) -> dict[str, bool]:
    return {term.tokens[0]: term.counts for term in WORDS.meant([Term((word,))], names, WORDS.held)}


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("docters", {"docters": False, "doctor": True}),
        ("garphite", {"garphite": False, "graphit": True}),
        ("config", {"config": True, "configur": False}),
        ("port", {"port": True}),
        ("doctors", {"doctors": True}),
        ("dactars", {"dactars": True}),
        ("car", {"car": True}),
        ("e18", {"e18": True}),
    ],
)
def test_a_word_stands_for(word, terms):
    assert meant(word) == terms


def test_a_name_counts_as_itself():
    assert meant("docters", frozenset({"docters"})) == {"docters": True, "doctor": False}


def test_phrases_are_left_as_they_are():
    term = Term(("docters", "note"), counts=False)

    assert list(WORDS.meant([term], frozenset(), WORDS.count)) == [term]
