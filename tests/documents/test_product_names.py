"""What a document calls a product."""

import pytest

from rag.documents.kinds import in_headings, in_table, siblings, unique


class TestHeadings:
    @pytest.mark.parametrize(
        ("heading", "names"),
        [
            pytest.param("Aero 5 Pro: Setup", ["Aero 5 Pro"], id="before a colon"),
            pytest.param("Resetting the Aero 5", ["Aero 5"], id="at the end"),
            pytest.param("Aero 5 and Aero 5 Pro Max", ["Aero 5", "Aero 5 Pro Max"], id="two"),
            pytest.param("XR-500 datasheet", ["XR-500"], id="a code"),
            pytest.param("Lofthav™ Mesh", ["Lofthav™ Mesh"], id="a trade mark"),
            pytest.param("静音 S1", ["静音 S1"], id="another script"),
            pytest.param("Kontor 24 PoE+ administration guide", ["Kontor 24 PoE+"], id="a plus"),
        ],
    )
    def test_yield_product_shapes(self, heading, names):
        assert in_headings("", [heading]) == names

    @pytest.mark.parametrize(
        "heading",
        [
            "Setup",
            "Safety information",
            "Step 3",
            "Chapter 2: Getting Started",
            "3.2 Wi-Fi Setup",
            "Release notes for 2024",
            "Version 2.1",
            "Frequently Asked Questions",
            "Q3 2024 Results",
            "WPA3 and IPv6",
            "Table 4",
            "Sheet1",
        ],
    )
    def test_that_are_ordinary_yield_nothing(self, heading):
        assert in_headings("", [heading]) == []

    def test_of_a_manual_name_what_it_is_about(self):
        assert in_headings("Nimbus Router user manual", []) == ["Nimbus Router"]


class TestTables:
    def test_product_columns_are_believed_as_written(self):
        rows = [
            ["Product", "Price"],
            ["pico-link", "9"],
            ["Aero 5 Pro", "99"],
            ["", ""],
            ["n/a", "1"],
        ]

        assert in_table(rows) == ["pico-link", "Aero 5 Pro"]

    def test_name_columns_count_beside_prices_only(self):
        assert in_table([["Name", "Price"], ["Höra Buds", "9"], ["fan", "3"]]) == ["Höra Buds"]
        assert in_table([["Name", "Birthday"], ["Ann Lee", "1 May"]]) == []

    def test_upright_tables_are_read_by_their_labels(self):
        assert in_table([["Model", "XR-5"], ["Weight", "1 kg"]]) == ["XR-5"]

    def test_a_double_name_counts_in_both_spellings(self):
        found = in_table([["Product", "W"], ["森の音 (Mori no Oto)", "1"], ["Aero 5 (used)", "2"]])

        assert found == ["森の音 (Mori no Oto)", "森の音", "Mori no Oto", "Aero 5 (used)", "Aero 5"]

    def test_sentences_in_a_product_column_are_no_names(self):
        rows = [["Product", "W"], ["See the list below. It changes.", "1"], ["x" * 200, "1"]]

        assert in_table(rows) == []


class TestUnique:
    def test_keeps_the_order_and_drops_what_can_be_no_name(self):
        assert unique(["B 2", "A\n1", "B 2", "7", "x"]) == ("B 2", "A 1")


def test_what_stands_beside_a_known_name_in_a_table_is_its_sibling():
    labels = ["", "Aero 5", "Aero 5 XL", "Aero 5 and more", "Speed", "Aeroplane 5"]

    assert list(siblings(["Aero 5"], labels)) == ["Aero 5 XL"]
