import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answers.comparing import MOST_SIDES, compared_in

LEXICON = ("Aero 5", "Aero 5 Pro", "Tuli", "pico-link", "pico-link s", "Cantoro One+")


def read(question, lexicon=LEXICON):
    comparison = compared_in(question, lexicon)
    return comparison and ([side.name for side in comparison.sides], comparison.focus)


@pytest.mark.parametrize(
    ("question", "sides", "focus"),
    [
        ("What is the difference between the Aero 5 and the Aero 5 Pro?", "Aero 5|Aero 5 Pro", ""),
        ("aero 5 vs aero 5 pro", "aero 5|aero 5 pro", ""),
        ("Compare the pico-link with the pico-link s", "pico-link|pico-link s", ""),
        ("How do the Aero 5 and the Tuli differ?", "Aero 5|Tuli", ""),
        ("How does the Tuli compare to the Aero 5 in weight?", "Tuli|Aero 5", "weight"),
        ("Which is better, the Aero 5 or the Tuli, for a boat?", "Aero 5|Tuli", "boat"),
        ("Is the Aero 5 Pro heavier than the Aero 5?", "Aero 5 Pro|Aero 5", "heavier"),
        ("Is the Tuli or the Aero 5 cheaper?", "Tuli|Aero 5", "cheaper"),
        ("Which is cheapest: Tuli, Aero 5 or Aero 5 Pro?", "Tuli|Aero 5|Aero 5 Pro", "cheapest"),
        ("What does the Aero 5 Pro have that the Aero 5 has not?", "Aero 5 Pro|Aero 5", ""),
        ("What do the Tuli and the Aero 5 cost?", "Tuli|Aero 5", "cost"),
        ("What is the difference in price between Tuli and Aero 5?", "Tuli|Aero 5", "price"),
        ("Compare the price of the Tuli with that of the Aero 5", "Tuli|Aero 5", "price"),
        ("Tuli vs Zeppelin 9 range", "Tuli|Zeppelin 9", "range"),
        ("Vergleiche Aero 5 mit Aero 5 Pro", "Aero 5|Aero 5 Pro", ""),
        ("Was ist der Unterschied zwischen dem Aero 5 und dem Tuli?", "Aero 5|Tuli", ""),
        ("Worin unterscheiden sich Aero 5 und Tuli?", "Aero 5|Tuli", ""),
        ("Wie unterscheidet sich der Aero 5 vom Tuli?", "Aero 5|Tuli", ""),
        ("Aero 5 oder Tuli: welcher ist schwerer?", "Aero 5|Tuli", "schwerer"),
        (
            "What is the difference between sick leave and unpaid leave?",
            "sick leave|unpaid leave",
            "",
        ),
        ("How do interns and trainees differ in pay?", "interns|trainees", "pay"),
        ("Is it better to use a private car or a rental car?", "private car|rental car", ""),
        ("How much pay do interns get compared to trainees?", "interns|trainees", "pay"),
        ("Which boat is quieter, the Aero 5 or the Tuli?", "Aero 5|Tuli", "quieter"),
        ("Ist der Aero 5 Pro teurer als der Aero 5?", "Aero 5 Pro|Aero 5", "teurer"),
        ("Compare the notice period of interns and trainees", "interns|trainees", "notice period"),
    ],
)
def test_the_sides_of_a_comparison_are_found_with_what_is_asked_of_them(question, sides, focus):
    assert read(question) == (sides.split("|"), focus)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What does the Aero 5 weigh and what does the Tuli cost?", id="two questions"),
        pytest.param("Can I use the Aero 5 and the Aero 5 Pro together?", id="together"),
        pytest.param("How do I press or hold the button?", id="two verbs"),
        pytest.param("How do I select Usage or Retail Mode?", id="two menu entries"),
        pytest.param("Does it take longer than 5 minutes?", id="than a figure"),
        pytest.param("What is the difference between them?", id="nothing named"),
        pytest.param("What distance lies between the Aero 5 and the wall?", id="no comparison"),
        pytest.param("How does it compare to last year?", id="one thing"),
        pytest.param("Is Kim older than the average Premier League player?", id="a class"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_sets_nothing_side_by_side_is_no_comparison(question):
    assert read(question) is None


def test_each_side_is_asked_about_alone():
    comparison = compared_in("Is the Tuli or the Aero 5 cheaper?", LEXICON)

    assert [comparison.alone(side) for side in comparison.sides] == [
        "cheaper Tuli",
        "cheaper Aero 5",
    ]


WORDS = ["what", "is", "the", "difference", "between", "A 1", "B", "and", "or", "vs", ",", "than",
         "better", "compare", "with", "?", "Aero 5", "[1]", "\ue000"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=20))
def test_any_text_gives_several_sides_or_none(words):
    comparison = compared_in(" ".join(words), LEXICON)

    assert comparison is None or 2 <= len(comparison.sides) <= MOST_SIDES
