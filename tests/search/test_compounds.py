"""Languages that write two words as one: what was asked for may be a part of what is written."""

import pytest

from rag.search.compounds import Compounds
from rag.search.query import Term
from rag.search.vocabulary import Vocabulary

WRITTEN = (
    "restmulltonn",
    "müllabfuhr",
    "tonnen",
    "feiertagen",
    "rasenmahen",
    "schulferien",
    "formular",
    "wasser",
)
LIBRARY = Compounds(WRITTEN)


@pytest.mark.parametrize(
    ("asked", "related"),
    [
        ("müll", ["müllabfuhr", "restmulltonn"]),
        ("Mülltonne", ["restmulltonn", "tonnen"]),
        ("Ferien", ["schulferien"]),
        ("mähen", ["rasenmahen"]),
        ("leitungswasser", ["wasser"]),
        ("uhr", []),  # too short to tell: `Abf-uhr`
        ("tonne", ["restmulltonn"]),
        ("rmular", []),  # what would stand before it, `fo`, is no word
    ],
)
def test_words_that_share_a_part(asked, related):
    assert LIBRARY.sharing(asked, "german") == related


def test_a_word_in_other_forms():
    assert LIBRARY.forms("Feiertag", "german") == ["feiertagen"]
    assert LIBRARY.forms("Tonne", "german") == ["tonnen"]
    assert LIBRARY.forms("Uhr", "german") == []


def test_no_words_have_no_parts():
    assert Compounds([]).sharing("müll", "german") == []


class TestTermsOfAQuestion:
    WORDS = Vocabulary({"restmulltonn": 3, "feiertagen": 2, "wasser": 4, "abwass": 1}, "porter")

    def looked_up(self, *asked, held=None):
        terms = [Term((word,)) for word in asked]
        found = self.WORDS.related(terms, "german", held or self.WORDS.held)
        return {term.tokens[0]: (term.weight, term.counts) for term in found}

    def test_what_the_library_has_only_within_a_word_counts_as_that(self):
        assert self.looked_up("müll") == {"müll": (1.0, False), "restmulltonn": (0.5, True)}

    def test_another_form_weighs_more_than_a_part(self):
        assert self.looked_up("feiertag") == {"feiertag": (1.0, False), "feiertagen": (0.9, True)}

    def test_what_the_library_has_counts_as_itself(self):
        assert self.looked_up("wasser")["wasser"] == (1.0, True)

    def test_what_is_like_nothing_counts_as_missing(self):
        assert self.looked_up("zeppelin") == {"zeppelin": (1.0, True)}

    def test_what_only_others_may_read_is_no_word(self):
        assert self.looked_up("müll", held=lambda _stem: 0) == {"müll": (1.0, True)}
