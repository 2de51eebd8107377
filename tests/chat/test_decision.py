"""What is said first: quoted words with their numbers, and never one of two values alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.chat.decision import SURE, decide
from rag.chat.evidence import MOST_CELLS, EvidenceReader
from rag.citations.markers import cited_numbers
from tests.made import made_source

NAMES = ("Heron", "Heron 2", "Heron 2 Plus")


def near(texts):
    """Each text as near to the first as any: words alone decide."""
    return np.ones((len(texts), 1), dtype=np.float32)


def lead(question, *texts, names=NAMES, embed=near):
    sources = [
        made_source(number, text, document_id=f"d{number}", document_title=title)
        for number, (title, text) in enumerate(texts, start=1)
    ]
    return decide(EvidenceReader(question, names).read(sources, embed), sources)


QUESTION = "How long is the warranty of the Heron 2?"
HANDBOOK = ("Handbook", "The warranty of the Heron 2 is 24 months.")
MEMO = ("Memo", "From now on the warranty of the Heron 2 is 36 months instead of 24 months.")


def test_a_lead_quotes_words_with_their_title_and_number():
    assert lead(QUESTION, HANDBOOK).text == f'Handbook: "{HANDBOOK[1]}" [1]'


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ('a 19" rack', 'a 19" rack'),
        ('a 19" or a 21" rack', 'a 19" or a 21" rack'),
        ('the shelf "Oak 3" alone', "the shelf 'Oak 3' alone"),
        ("the “Oak 3” shelf", "the 'Oak 3' shelf"),
        ("das „Oak 3“", "das 'Oak 3'"),
        ('a "shelf', "a 'shelf"),
    ],
)
def test_quotes_within_a_lead_are_single_and_inches_stay_inches(words, written):
    text = f"The warranty of the Heron 2 is 24 months for {words}."

    assert lead(QUESTION, ("Handbook", text)).text == (
        f'Handbook: "The warranty of the Heron 2 is 24 months for {written}." [1]'
    )


@pytest.mark.parametrize("order", [(HANDBOOK, MEMO), (MEMO, HANDBOOK)])
def test_what_supersedes_leads_and_the_other_is_told_behind_it(order):
    found = lead(QUESTION, *order)

    assert found.is_denied
    assert found.text.startswith('Memo: "From now on')
    assert "Otherwise Handbook" in found.text


def test_the_newer_leads_where_none_supersedes():
    old = ("Price list of 3 May 2021", "The fee of the Heron 2 is € 20.")
    new = ("Price list of 4 June 2025", "The fee of the Heron 2 is € 25.")

    found = lead("What is the fee of the Heron 2?", old, new)

    assert found.text.startswith("Price list of 4 June 2025")


PAST = (
    "The warranty of 24 months was corrected to 36 months.",
    "Warranty: corrected to 36 months.",
    "Warranty: 24 Monate, korrigiert auf 36 Monate.",
    "Warranty: 24 mois, corrigée à 36 mois.",
)


@given(st.sampled_from(PAST), st.permutations(range(3)))
def test_what_a_text_says_is_past_never_leads_though_that_text_names_no_product(ruling, order):
    texts = [HANDBOOK, ("Revisions", ruling), ("Guide", "A Heron 2 is taken back for 36 months.")]

    found = lead(QUESTION, *(texts[place] for place in order))

    assert found.evidence[0].values[0].value == 36
    assert "Otherwise Handbook" in found.text


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How often must the filter be replaced?", "Replace the filter every 6 months."),
        ("Wie oft wird der Filter ersetzt?", "Der Filter wird alle 6 Monate ersetzt."),
        ("Il faut remplacer le filtre quand ?", "On remplace le filtre tous les 6 mois."),
        ("How long is an offer valid?", "After 14 days an offer is no longer valid."),
        ("How much does a ticket cost?", "A ticket costs 20 EUR. Members pay 12 EUR instead."),
    ],
)
def test_a_word_of_replacing_or_ending_does_not_make_a_value_past(question, sentence):
    assert lead(question, ("Manual", sentence)).text.startswith('Manual: "')


def test_what_replaces_a_part_is_no_ruling_about_another_of_its_values():
    text = "Replace the filter every 6 months. Clean the filter every 2 weeks."

    assert "every 2 weeks" in lead("How often must the filter be cleaned?", ("Manual", text)).text


@pytest.mark.parametrize(
    "ruling",
    [
        "The battery of 24 months was corrected to 36 months.",  # another attribute
        "The warranty of 20 kg was corrected to 36 kg.",  # another unit
        "The warranty of 18 months was corrected to 24 months.",
    ],
)
def test_a_value_that_no_text_calls_past_leads(ruling):
    guide = ("Guide", "A Heron 2 is taken back for 36 months.")

    assert lead(QUESTION, HANDBOOK, ("Revisions", ruling), guide).text.startswith("Handbook")


def test_what_a_mail_only_quotes_does_not_lead():
    now, before = (
        made_source(number, f"The fee of the Heron 2 is € {fee}.", locator=locator)
        for number, fee, locator in ((2, 25, ""), (1, 20, "quoted"))
    )
    evidence = EvidenceReader("What is the fee of the Heron 2?", NAMES).read([before, now], near)

    assert decide(evidence, [before, now]).text.endswith('"The fee of the Heron 2 is € 25." [2]')


def test_the_same_value_in_other_words_is_no_disagreement():
    other = ("Leaflet", "The Heron 2 has a warranty of 2 years.")

    assert not lead(QUESTION, HANDBOOK, other).is_denied


@pytest.mark.parametrize(
    "other",
    [
        ("Leaflet", "The warranty of the Heron 2 Plus is 48 months."),  # of another product
        ("Leaflet", "The warranty of the Heron is 12 months."),
        ("Leaflet", "The battery of the Heron 2 lasts 30 months."),  # another attribute
        ("Leaflet", "The warranty of the Heron 2 costs € 30."),  # another unit
        ("Leaflet", "| Product | Warranty |\n| --- | --- |\n| Heron 2 Plus | 48 months |\n"),
    ],
)
def test_values_are_compared_only_of_one_subject_one_attribute_and_one_unit(other):
    found = lead(QUESTION, HANDBOOK, other)

    assert (found.text, found.is_denied) == (lead(QUESTION, HANDBOOK).text, False)


def test_a_row_is_quoted_by_its_label_and_the_header_of_the_cell():
    rows = "| Product | Warranty | Fee |\n| --- | --- | --- |\n| Heron 2 | 24 months | € 20 |\n"
    rows += "| Heron 2 Plus | 36 months | € 30 |\n"

    assert (
        lead(QUESTION, ("Prices", rows)).text == 'Prices: "Heron 2 · Warranty: **24 months**" [1]'
    )


@pytest.mark.parametrize(
    ("question", "is_said"),
    [
        ("Which party has the most votes?", False),  # one row does not tell
        ("What is the highest temperature of the hall?", True),  # that is what it says
        ("How many votes has the Elm party?", True),
    ],
)
def test_a_row_is_no_answer_to_what_all_rows_together_tell(question, is_said):
    votes = "| Party | Votes |\n| --- | --- |\n| Elm party | 60 votes |\n| Oak party | 90 votes |\n"
    hall = "| Hall | Value |\n| --- | --- |\n| highest temperature of the hall | 40 °C |\n"

    assert bool(lead(question, ("Data", votes), ("Hall", hall)).evidence) is is_said


def test_a_property_list_gives_the_cell_of_the_product():
    rows = "| Property | Heron | Heron 2 |\n| --- | --- | --- |\n| Weight | 310 g | 540 g |\n"
    rows += "| Idle weight | 1 g | 2 g |\n"

    found = lead("What is the weight of the Heron 2?", ("Data", rows))

    assert found.text == 'Data: "Weight · Heron 2: **540 g**" [1]'


@pytest.mark.parametrize(
    "text",
    [
        "Subject: warranty of the Heron 2",  # a figure that is a part of a name
        "The Heron 2 has a long warranty.",
        "See 18 Warranty Street.",
    ],
)
def test_nothing_is_said_without_a_figure(text):
    assert lead(QUESTION, ("Memo", text)).text == ""


def test_nothing_is_said_of_two_products_at_once():
    assert lead("Is the Heron or the Heron 2 longer under warranty?", HANDBOOK).text == ""


def test_nothing_is_said_where_nothing_is_near():
    def far(texts):
        return np.array([[1.0, 0.0], *[[0.0, 1.0]] * (len(texts) - 1)], dtype=np.float32)

    found = lead("How long is the lease of the Heron 2?", HANDBOOK, embed=far)

    assert SURE > 0
    assert found.text == ""


@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(1, 90)), min_size=1, max_size=5))
def test_only_given_numbers_are_cited_and_every_quotation_stands_in_its_source(values):
    texts = [(f"Paper {name}", f"The warranty of the Heron 2 is {n} months.") for name, n in values]

    found = lead(QUESTION, *texts)

    assert set(cited_numbers(found.text)) <= set(range(1, len(texts) + 1))
    assert all(each.quote in each.source.passage for each in found.evidence)


def test_words_of_a_document_cannot_cite():
    found = lead(QUESTION, ("Memo [7]", "The warranty of the Heron 2 is 24 months [9]."))

    assert cited_numbers(found.text) == [1]


def test_a_follow_up_is_answered_by_its_own_words():
    text = "The lockers take a coin of € 1, which is given back. A lost key costs € 25."
    first, then = "How do the lockers work with coins?", "And if I lose the key?"
    source = made_source(1, text, document_id="d", document_title="Pool")

    reader = EvidenceReader(f"{first} {then}", earlier=first)

    assert reader.read([source], near)[0].quote == "A lost key costs € 25."
    assert (
        EvidenceReader(f"{first} {then}").read([source], near)[0].quote != "A lost key costs € 25."
    )


CASES = ("Handbook", "A refund takes 5 days. A refund from abroad takes 12 days.")


def test_two_cases_of_one_document_are_both_said():
    found = lead("How many days does a refund take?", CASES)

    assert "5 days" in found.text
    assert "12 days" in found.text
    assert found.text.count("Handbook") == 1
    assert not found.is_denied


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What was the revenue in 2022?", "The revenue in 2023 was 5 million EUR."),
        ("When is the clinic open on Wednesdays?", "On Saturdays the clinic is open until 12:00."),
        ("What were the sales in July?", "In June the sales were 410 EUR."),
        ("What is the longest lease?", "The shortest lease is 3 months."),
        ("Was kostet der Eintritt am Montag?", "Am Samstag kostet der Eintritt 5 EUR."),
    ],
)
def test_what_gives_another_day_or_the_opposite_is_never_said(question, text):
    assert not lead(question, ("Handbook", text)).text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What was the revenue in 2022?", "In June 2022 the revenue was 5 million EUR."),
        (
            "When is the clinic open on Wednesday?",
            "Monday to Friday the clinic is open until 12:00.",
        ),
        ("How long may a guest stay?", "A short visit of a guest may take 2 days."),
        ("What is the longest lease?", "The shortest lease is 3 months, the longest 9 months."),
    ],
)
def test_a_part_of_a_year_a_range_of_days_and_both_opposites_are_said(question, text):
    assert lead(question, ("Handbook", text)).text


def test_a_newer_document_of_another_year_denies_nothing():
    old = ("Price list of 2021", "The fee of the Heron 2 is € 20.")
    new = ("Price list of 2025", "The fee of the Heron 2 is € 25.")

    found = lead("What was the fee of the Heron 2 in 2021?", old, new)

    assert found.text == 'Price list of 2021: "The fee of the Heron 2 is € 20." [1]'


def test_what_is_near_by_meaning_alone_is_said_only_in_a_word_of_the_question():
    def rather_near(texts):
        return np.array([[1.0], *[[0.8]] * (len(texts) - 1)], dtype=np.float32)

    question = "How much power does the Heron 2 have?"

    assert not lead(
        question, ("Manual", "Older papers state 370 W for the Heron 2."), embed=rather_near
    ).text
    assert lead(question, ("Manual", "The power of the Heron 2 is 250 W."), embed=rather_near).text


def test_a_case_of_another_year_is_not_said_beside_the_one_that_is_asked_for():
    text = "The revenue in 2021 was 4 million EUR. The revenue in 2023 was 5 million EUR."

    found = lead("What was the revenue in 2023?", ("Handbook", text)).text

    assert found == 'Handbook: "The revenue in 2023 was 5 million EUR." [1]'


def test_of_three_cases_none_is_said():
    title, text = CASES

    assert not lead(
        "How many days does a refund take?", (title, f"{text} A refund in June takes 8 days.")
    ).text


def test_of_two_rows_none_is_said():
    rows = "| Plot | Lost |\n| --- | --- |\n| Plot 3 | 355 kg |\n| Plot 11 | 291 kg |\n"

    assert not lead("How much was lost?", ("Harvests", rows), names=()).text


def test_two_cases_stand_together_where_another_document_denies_both():
    other = ("Leaflet", "A refund takes 30 days.")

    found = lead("How many days does a refund take?", CASES, other)

    assert found.is_denied
    assert all(value in found.text for value in ("5 days", "12 days", "30 days"))


def test_what_agrees_with_the_second_case_denies_nothing():
    assert not lead(
        "How many days does a refund take?", CASES, ("Leaflet", "A refund takes 12 days.")
    ).is_denied


@pytest.mark.parametrize(("given", "is_said"), [("2 years", True), ("30 minutes", False)])
def test_what_two_documents_say_needs_to_be_less_near(given, is_said):
    def some_way(texts):
        return np.array([[1.0], *[[0.4]] * (len(texts) - 1)], dtype=np.float32)

    leaflet = ("Leaflet", f"We give {given} of warranty for the Heron 2.")

    assert not lead(QUESTION, HANDBOOK, embed=some_way).text
    assert bool(lead(QUESTION, HANDBOOK, leaflet, embed=some_way).text) is is_said


def test_of_a_long_table_only_the_cells_nearest_by_words_are_embedded():
    embedded = []

    def counting(texts):
        embedded.extend(texts)
        return near(texts)

    rows = "".join(f"| Lamp {n} | {n} months |\n" for n in range(10, 90))
    table = f"| Product | Warranty |\n| --- | --- |\n{rows}| Desk | 99 months |\n"
    reader = EvidenceReader("How long is the warranty of the desk?", ())

    found = reader.read([made_source(1, table)], counting)

    assert len(embedded) <= 1 + MOST_CELLS
    assert any("99" in each.quote for each in found)
