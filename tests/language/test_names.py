"""Product names are found whole, in any script, in linear time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.language.names import Lexicon, contains_name, find_names


def names_in(text):
    return [name.text for name in find_names(text)]


class TestALexicon:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            pytest.param("the Aero 5 Pro and the Aero 5", ["Aero 5 Pro", "Aero 5"], id="longest"),
            pytest.param("an Aero 5 Profile", ["Aero 5"], id="shorter where the longest fails"),
            pytest.param("Aero 50, Aero 5G, Aero 5-S, MegaAero 5, pre-Aero 5", [], id="boundaries"),
            pytest.param("Aero 5+ and Aero 5.1", [], id="plus and version"),
            pytest.param("(Aero 5), Aero 5's, Aero 5.", ["Aero 5"] * 3, id="punctuation"),
            pytest.param("Aero 5™ or Aero 5®", ["Aero 5"] * 2, id="trademarks"),
            pytest.param("Aero\u00a05", ["Aero\u00a05"], id="a no-break space"),
            pytest.param("an eero-mini here", ["eero-mini"], id="lower case, hyphen"),
            pytest.param("我用小米14支持", ["小米14"], id="no spaces between words"),
            pytest.param("小米14 小米140", ["小米14"], id="digits go on"),
            pytest.param("Größe X und Größe XL", ["Größe X"], id="umlauts"),
            pytest.param("AERO 5 aero 5", [], id="exact case"),
            pytest.param("e\u0301 Aero 5\u0301", [], id="a combining mark"),
        ],
    )
    def test_finds_whole_names_longest_first(self, text, found):
        lexicon = Lexicon(["Aero 5", "Aero 5 Pro", "eero-mini", "小米14", "小米", "Größe X"])

        assert [name.text for name in lexicon.find(text)] == found

    def test_gives_places_in_the_text_as_it_was(self):
        text = "\ud800 the\u00a0Aero 5 😀 Aero 5"

        for name in Lexicon(["Aero 5"]).find(text):
            assert text[name.start : name.end] == name.text == "Aero 5"

    def test_ignores_empty_and_endless_names(self):
        assert Lexicon(["", "  ", "x" * 500]).names == ()
        assert Lexicon([]).find("Aero 5") == []


class TestContainsName:
    @pytest.mark.parametrize(
        ("text", "is_kept"),
        [
            ("The Aero 5 is light.", True),
            ("Also named: Aero 5; Aero 5 Pro.", True),
            ("Aero 5", True),
            ("The Aero 5 Pro is light.", False),
            ("The Aero 5 X-200 is light.", False),
            ("The Aero 5® Pro is light.", False),
            ("The Aero 50 is light.", False),
            ("", False),
        ],
    )
    def test_asks_for_this_very_name(self, text, is_kept):
        assert contains_name(text, "Aero 5") is is_kept

    def test_of_nothing_is_false(self):
        assert not contains_name("text", " ")


class TestShapes:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("It is the Aero 5 Pro Max that wins.", ["Aero 5 Pro Max"]),
            ("Use a FritzBox 7590 AX at 5 GHz.", ["FritzBox 7590 AX"]),
            ("The WH-1000XM4 and AX-5400 differ.", ["WH-1000XM4", "AX-5400"]),
            ("Update to v2.1.3 first.", ["v2.1.3"]),
            ("An iPhone 15 with iOS.", ["iPhone 15", "iOS"]),
            ("We like the Nimbus a lot.", ["Nimbus"]),
            ("The Kindle (11th Gen) reads.", ["Kindle", "Kindle (11th Gen)"]),
            ("The 170-33505 from TP-Link Archer C7.", ["170-33505", "TP-Link Archer C7"]),
            ("Aero™ 5 and Aero 5G.", ["Aero™ 5", "Aero 5G"]),
            ("WHAT IS THE PRICE OF THE AERO 5 NOW", ["AERO 5"]),
            ("Explain Aero 5 setup. Zeige Kontor 24 PoE+.", ["Aero 5", "Kontor 24 PoE+"]),
            ("Our Echo Show 5 and the Super Compare 3.", ["Echo Show 5", "Super Compare 3"]),
            ("Battery life is good. However, it is heavy.", []),
            ("See Page 5, Section 4 and Table 2 of March 2024.", []),
            ("It has USB and a PDF, 128GB, 5GHz, 3rd, 2024-01-05 or 2019-2024.", []),
            ("On Monday I will go.", []),
            ("## Battery Life\n", []),
            ("", []),
        ],
    )
    def test_of_products_are_found_and_ordinary_words_are_not(self, text, found):
        assert names_in(text) == found

    def test_in_a_language_with_capital_nouns_need_a_figure(self):
        text = (
            "Das Gerät hat einen Akku mit großer Kapazität und die Tasche ist aus Leder und der "
            "Preis ist hoch und die Farbe ist blau. Der Aero 5 kostet nicht viel."
        )

        assert names_in(text) == ["Aero 5"]

    @given(st.text(max_size=200))
    def test_stand_in_the_text_where_they_say(self, text):
        for name in find_names(text):
            assert text[name.start : name.end] == name.text

    @pytest.mark.parametrize("piece", ["A", "A1-", "Aa ", "Aero 5 ", "a", "5 ", "™ "])
    def test_take_time_in_proportion_to_the_text(self, piece):
        def seconds(characters):
            text = piece * (characters // len(piece))
            began = time.process_time()
            find_names(text)
            return time.process_time() - began

        assert seconds(100_000) < 40 * seconds(10_000) + 0.5
