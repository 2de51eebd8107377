"""Codes are the same however they are written, and words, quantities and years are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.language.names import code_of, identifiers, identifiers_of_question


def codes(text):
    return [each.code for each in identifiers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Order KH-2319-K today.", ["kh2319k"]),
        ("kh2319k", ["kh2319k"]),
        ("ＫＨ－２３１９－Ｋ", ["kh2319k"]),
        ("KH_2319.K", ["kh2319k"]),
        ("Article 22220297 is old", ["22220297"]),
        ("Since version 2.10.3 and v2.1.03", ["2.10.3", "2.1.03"]),
        ("99.35.181", ["99.35.181"]),
        ("Wi-Fi 6, A4, 2026, 149.00 EUR, 3.5, 1,000,000, Aero 5", []),
        ("a" * 41 + "1", []),
        ("", []),
    ],
)
def test_are_read_from_a_text(text, expected):
    assert codes(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Was kostet der KH-2319-K-Ventil?", {"kh2319k"}),
        ("Is KH 2319 K in stock?", {"kh2319k"}),
        ("does it run with 2.10.3", {"2.10.3"}),
        ("What is Wi-Fi 6, and A4, in 2026?", set()),
    ],
)
def test_of_a_question_any_may_be_meant(question, expected):
    found = {each.code for choices in identifiers_of_question(question) for each in choices}

    assert expected <= found
    assert bool(found) == bool(expected)


@given(st.text(max_size=200))
def test_any_text_is_read_and_what_is_read_is_one(text):
    for each in identifiers(text):
        assert code_of(each.written) == each.code
        assert len(each.code) <= 40
        assert len(each.written) <= 80
    identifiers_of_question(text)
