"""The grammar of figures: a spelling is read to the last digit, or is text; none is read wrong."""

from decimal import Decimal

import pytest
from babel import numbers
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.language.amounts import decimal_sign, parse_figure
from rag.language.figures import read_figures
from rag.tables.plan import reading_of

LOCALES = [
    "en_US",
    "en_GB",
    "en_IN",
    "hi_IN",
    "de_DE",
    "de_AT",
    "de_CH",
    "fr_FR",
    "fr_CH",
    "fr_CA",
    "es_ES",
    "es_MX",
    "it_IT",
    "it_CH",
    "pt_PT",
    "pt_BR",
    "nl_NL",
    "nl_BE",
    "da_DK",
    "sv_SE",
    "nb_NO",
    "fi_FI",
    "pl_PL",
    "cs_CZ",
    "sk_SK",
    "hu_HU",
    "ro_RO",
    "bg_BG",
    "hr_HR",
    "sl_SI",
    "lt_LT",
    "lv_LV",
    "et_EE",
    "ru_RU",
    "uk_UA",
    "el_GR",
    "tr_TR",
    "ar_EG",
    "fa_IR",
    "he_IL",
    "ja_JP",
    "zh_CN",
]


@settings(deadline=None)
@given(locale=st.sampled_from(LOCALES), cents=st.integers(-(10**14), 10**14))
def test_no_spelling_of_a_locale_is_read_wrong(locale, cents):
    value = Decimal(cents) / 100

    written = numbers.format_decimal(value, locale=locale)
    read = parse_figure(written)

    assert read is None or not read.exact or read.value == value, written


@pytest.mark.parametrize("locale", LOCALES)  # each of them
@settings(deadline=None, max_examples=15)
@given(values=st.lists(st.integers(0, 10**11), min_size=1, max_size=5))
def test_a_column_in_the_spelling_of_a_locale_is_read_to_the_last_digit(locale, values):
    amounts = [Decimal(value) / 100 for value in [*values, 123456789, 1234567]]
    form = "#,##,##0.00" if locale.endswith("_IN") else "#,##0.00"
    texts = [numbers.format_decimal(amount, form, locale=locale) for amount in amounts]

    read = reading_of(texts).read

    assert [read(text) for text in texts] == [float(amount) for amount in amounts]


@pytest.mark.parametrize("locale", LOCALES)
def test_shares_and_signs_of_a_locale_are_read(locale):
    for value in (Decimal("0.12"), Decimal("-0.5")):
        written = numbers.format_percent(value, locale=locale)
        read = parse_figure(written)

        assert read is not None, written
        assert (read.value, read.unit) == (value * 100, "%"), written


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("$1.2B", 1_200_000_000, "$"),
        ("450 m EUR", 450_000_000, "€"),
        ("1,2 Mio", 1_200_000, ""),
        ("800 Tsd.", 800_000, ""),
        ("3,5 Mrd. €", 3_500_000_000, "€"),
        ("2 Md€", 2_000_000_000, "€"),
        ("12 T€", 12_000, "€"),
        ("TEUR 12", 12_000, "€"),
        ("12,34,567.5", 1_234_567.5, ""),
        ("3 lakh", 300_000, ""),
        ("₹ 2 Cr", 20_000_000, "₹"),
        ("1.234,50-", -1234.5, ""),
        ("(1,234.00)", -1234, ""),
        ("$(1,178.50)", -1178.5, "$"),
        ("CHF 1’200.–", 1200, "CHF"),
        ("5 m", 5, "m"),
        ("512 B", 512, "B"),
        ("10⁶", 1_000_000, ""),
        ("3.2 × 10^6 cycles", 3_200_000, "cycles"),
        ("450¹", 450, ""),
        ("450 [note 1]", 450, ""),
        ("４５０", 450, ""),
        ("4006381333931", 4_006_381_333_931, ""),
        ("123456789.55", 123_456_789.55, ""),
        ("6.02e23", 6.02e23, ""),
    ],
)
def test_a_figure_has_its_scale_and_its_unit(text, value, unit):
    figure = parse_figure(text)

    assert figure is not None
    assert (figure.number, figure.unit, figure.exact) == (value, unit, True)


@pytest.mark.parametrize(
    "text",
    [
        *("450 1", "00501", "3.4.0", "12.05.2024", "5-10", "±5", "12 EUR 5 USD", "$5 €", "1 234"),
        *("450 (460 in 24)", "12345678901234567890", "x5", "", "-", "1,23,45", "1.23.456", "12,"),
        *("1234567890123456", "-5-", "(-5)", "4006381333931234"),
    ],
)
def test_what_is_more_or_less_than_a_figure_is_text(text):
    assert parse_figure(text) is None


@pytest.mark.parametrize("text", ["1.234", "1,234", "12.345", "999,999"])
def test_what_two_conventions_read_differently_is_not_exact(text):
    assert not parse_figure(text).exact
    assert parse_figure(text, decimal=",").exact


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["$1.2B", "$300M", "$45M"], [1.2e9, 300_000_000, 45_000_000]),
        (["1.234", "12,5"], [1234, 12.5]),
        (["1.234", "567"], [1234, 567]),
        (["1.234", "5678"], [1.234, 5678]),
        (["1.234", "2.345"], [None, None]),
        (["1 234", "12 345", "5"], [1234, 12345, 5]),
        (["1 234", "5678"], [None, None]),
        (["12 1", "450 1"], [None, None]),
        (["12", "14A", "16"], [None, None, None]),
        (["5 kg", "3 m"], [None, None]),
        (["1 day", "2 days"], [1, 2]),
    ],
)
def test_the_rows_of_a_column_decide_what_one_leaves_open(cells, values):
    assert list(map(reading_of(cells).read, cells)) == values


def test_cells_that_contradict_each_other_decide_nothing():
    assert decimal_sign(["1.234,5", "1,234.5"]) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [("$1.2B", 1.2e9), ("3.2 × 10^6 cycles", 3.2e6), ("4.5 bn euros", 4.5e9), ("10⁶ events", 1e6)],
)
def test_a_text_is_read_by_the_same_grammar(text, value):
    assert [each.value for each in read_figures(f"It was {text} then.")] == [value]
