"""Follow-ups by rules: what a question leaves out is carried over, and nothing else is touched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat.follow_ups.names import Names
from rag.chat.follow_ups.resolution import FollowUps
from rag.records import EVERYTHING, NO_EARLIER_TOPICS

LEXICON = ("Aero 5", "Aero 5 Pro", "Aero 7", "Nimbus Router X2", "Nimbus Router X2 Lite")
BATTERY = [("What is the battery life of the Aero 5?", "It lasts 20 hours [1].")]
HEAVY = [("How heavy is the Aero 5?", "200 g [1].")]
MESH = [("Does the Nimbus Router X2 support mesh?", "Yes [1].")]
TOP = [("Top 10 products in Q3", "Here they are [1].")]
SOLD = [("What do you sell?", "1. **Nimbus Router X2** – fast [4]\n2. **Aero 5** – light [7]")]
PROSE = [("What do you sell?", "We sell the Nimbus Router X2 [4], the Aero 5 [7] and pens.")]
COLOURS = [("Which colours are there?", "It comes in red, dark green and blue [1].")]
OFFER = [("Is it waterproof?", "No [1]. Would you like to know which models are?")]
JOIN = [("When did Jane Doe join?", "In 2020 [1].")]


def resolve(question, history, lexicon=()):
    return FollowUps(lexicon=lambda within: lexicon).resolve(question, history, EVERYTHING)


FILLED = [
    ("quarter", "What about Q4?", TOP, "Top 10 products in Q4"),
    ("month", "And May?", [("What was our churn in April?", "")], "What was our churn in May?"),
    ("year", "How about 2024?", [("Revenue in 2023?", "")], "Revenue in 2024?"),
    ("year-and-quarter", "in Q1 2024", [("Revenue in Q3 2023", "")], "Revenue in Q1 2024"),
    ("variant", "and the Pro?", BATTERY, "What is the battery life of the Aero 5 Pro?"),
    ("long-variant", "and the X2 Lite?", MESH, "Does the Nimbus Router X2 Lite support mesh?"),
    ("product", "Aero 7?", HEAVY, "How heavy is the Aero 7?"),
    (
        "name-of-many-words",
        "and the Nimbus Router X2 Lite?",
        MESH,
        "Does the Nimbus Router X2 Lite support mesh?",
    ),
    ("same-for", "Same for the Aero 7", HEAVY, "How heavy is the Aero 7?"),
    ("person", "what about Bob Smith?", JOIN, "When did Bob Smith join?"),
    (
        "place",
        "What about Germany?",
        [("What is the VAT in France?", "")],
        "What is the VAT in Germany?",
    ),
    ("acronym", "What about the US?", [("Sales in Europe?", "")], "Sales in US?"),
    (
        "on-it",
        "and on the Pro?",
        [("How do I reset the Aero 5?", "")],
        "How do I reset the Aero 5 Pro?",
    ),
    (
        "system",
        "and on iOS?",
        [("Does the app run on Android?", "")],
        "Does the app run on iOS?",
    ),
    (
        "system-alone",
        "and macOS?",
        [("How do I update it on Windows?", "")],
        "How do I update it on macOS?",
    ),
    (
        "german-variant",
        "Und der Pro?",
        [("Wie schwer ist der Aero 5?", "")],
        "Wie schwer ist der Aero 5 Pro?",
    ),
    (
        "german",
        "und das Aero 7?",
        [("Wie schwer ist das Aero 5?", "")],
        "Wie schwer ist das Aero 7?",
    ),
]
ALONE = [
    ("other-product", "Does the Aero 7 have Bluetooth?", HEAVY),
    ("new-subject", "What did we decide about the database?", HEAVY),
    ("german", "Wie schwer ist das Aero 7?", HEAVY),
    ("empty", "   ", HEAVY),
    ("question-mark", "?", HEAVY),
    ("own-antecedent", "Is web chat good and how do I add it?", HEAVY),
    ("own-things", "Do refunds take long when they come from abroad?", HEAVY),
    ("own-person", "Does the manager approve his own expenses?", MESH),
]
POINTING = [
    ("it", "How do I reset it?", MESH),
    ("its", "What is its weight?", BATTERY),
    ("she", "Where does she live?", JOIN),
    ("property", "and the price?", BATTERY),
    ("circumstance", "And from abroad?", [("How long do refunds take?", "")]),
    ("no-figure-yet", "and in 2022?", [("What was the churn?", "")]),
    ("no-name", "last year?", [("What is our churn this year?", "")]),
    ("no-place", "and macOS?", [("How do I install it?", "Run it [1].")]),
    ("those", "which of those is heavier?", SOLD),
    ("counted", "the second one?", SOLD),
    ("asking-word", "Why?", [("May I keep bees?", "Two colonies [1].")]),
    ("german", "Und nachts?", [("Wie lange darf ich arbeiten?", "")]),
]


def cases(table):
    return [pytest.param(*row[1:], id=row[0]) for row in table]


@pytest.mark.parametrize(("question", "history", "expected"), cases(FILLED))
def test_a_follow_up_is_made_whole(question, history, expected):
    resolution = resolve(question, history, lexicon=LEXICON)

    assert resolution.query == expected
    assert resolution.is_followup
    assert resolution.method == "rules"


@pytest.mark.parametrize(("question", "history"), cases(ALONE))
def test_a_standalone_question_passes_unchanged(question, history):
    resolution = resolve(question, history, lexicon=LEXICON)

    assert resolution.query == question
    assert resolution.method == "unchanged"


def test_follow_ups_of_follow_ups_build_on_what_was_resolved():
    history = [*BATTERY, ("and the Pro?", "30 hours [2].")]

    assert resolve("and the Aero 7?", history, lexicon=LEXICON).query == (
        "What is the battery life of the Aero 7?"
    )


@given(st.text(max_size=80))
@settings(max_examples=60, deadline=None)
def test_a_first_question_is_never_changed(question):
    resolution = resolve(question, [])

    assert resolution.query == question
    assert not resolution.is_followup
    assert resolution.before == NO_EARLIER_TOPICS


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.text(max_size=40), st.text(max_size=80)), max_size=4),
)
@settings(max_examples=120, deadline=None)
def test_any_text_is_resolved_into_some_query(question, history):
    resolution = resolve(question, history, lexicon=LEXICON)

    assert bool(resolution.query.strip()) or not question.strip()


@pytest.mark.parametrize(
    ("question", "numbers"),
    [
        pytest.param("Tell me more about [3]", (3,), id="one"),
        pytest.param("[3]", (3,), id="alone"),
        pytest.param("Compare [2, 5] and [2]", (2, 5), id="several"),
        pytest.param("What do [2-4] say?", (2, 3, 4), id="range"),
        pytest.param("What does source 12 say?", (12,), id="in-words"),
        pytest.param("What is my_rows[3]?", (), id="index-of-an-array"),
    ],
)
def test_sources_that_a_question_names_are_found(question, numbers):
    resolution = resolve(question, SOLD)

    assert resolution.source_numbers == numbers


def test_numbers_are_shown_but_not_searched_for():
    resolution = resolve("What is the weight in [3]?", HEAVY)

    assert resolution.query == "What is the weight in [3]?"
    assert "[3]" not in resolution.dense_query + resolution.lexical_query


@pytest.mark.parametrize("question", ["Is there a warranty?", "How do I reset it?", "and why?"])
def test_the_last_question_always_leads_the_search(question):
    history = [("What is web chat?", "A widget."), *HEAVY]

    before = resolve(question, history).before

    assert [text for text, _ in before.said] == ["How heavy is the Aero 5?"]
    assert [text for text, _ in before.words] == ["How heavy is the Aero 5?"]
    assert all(0 < weight < 1 for _, weight in (*before.said, *before.words))


def test_the_lexical_query_of_a_standalone_question_is_the_question():
    resolution = resolve("Does the Aero 7 have Bluetooth?", HEAVY, lexicon=LEXICON)

    assert resolution.lexical_query == "Does the Aero 7 have Bluetooth?"


def test_only_the_last_turns_count():
    history = [("What is the Aero 5?", "A phone."), ("What is a refund?", "Money back.")]

    resolution = FollowUps(max_turns=1).resolve("Where is it made?", history, EVERYTHING)

    assert "Aero" not in resolution.query
    assert len(resolution.before.said) == 1


@pytest.mark.parametrize(("question", "history"), cases(POINTING))
def test_what_points_back_stands_behind_its_question_word_for_word(question, history):
    resolution = resolve(question, history, lexicon=LEXICON)

    assert resolution.query == f"{history[-1][0]} {question}"
    assert resolution.is_followup
    assert resolution.dense_query == resolution.lexical_query == question


def test_a_pronoun_is_never_replaced():
    resolution = resolve("and when does it end if I quit?", [("Is the US office open?", "Yes.")])

    assert resolution.query.endswith("and when does it end if I quit?")
    assert "the US end" not in resolution.query


def test_what_is_asked_on_from_is_the_question_that_stands_alone():
    history = [*BATTERY, ("How do I charge it?", "By USB [1].")]

    resolution = resolve("And does it get hot?", history)

    assert resolution.query == f"{BATTERY[0][0]} And does it get hot?"


def test_cue_words_can_be_configured():
    history = [("Umsatz in Q3", "10")]

    plain = FollowUps().resolve("wie steht es mit Q4 2024?", history, EVERYTHING)
    told = FollowUps(cue_words=["wie steht es mit"]).resolve(
        "wie steht es mit Q4 2024?", history, EVERYTHING
    )

    assert plain.query != told.query
    assert told.query == "Umsatz in Q4 2024"


def in_a_library_of(words, question, *asked):
    followups = FollowUps(is_word=lambda word, within: word in words)
    history = [(each, "So [1].") for each in asked]
    return followups.resolve(question, history, EVERYTHING)


class TestWordsThatNobodyKnows:
    """Neither the library nor a language has them."""

    WORDS = ("warranty", "batteries", "long")

    def test_point_at_nothing_that_was_said(self):
        found = in_a_library_of(self.WORDS, "asdf qwer zxcv", "How long is the warranty?")

        assert (found.query, found.is_followup) == ("asdf qwer zxcv", False)

    def test_are_passed_over_by_what_comes_next(self):
        asked = ("How long is the warranty?", "asdf qwer zxcv")

        found = in_a_library_of(self.WORDS, "batteries?", *asked)

        assert found.query == "How long is the warranty? batteries?"

    @pytest.mark.parametrize("question", ["batteries qwer?", "why qwer?", "and qwer?", "of it?"])
    def test_beside_one_that_is_known_leave_it_as_it_is(self, question):
        found = in_a_library_of(self.WORDS, question, "How long is the warranty?")

        assert found.query == f"How long is the warranty? {question}"


def test_product_names_are_known_in_any_spelling():
    resolution = resolve("and the aero 7?", [("is the aero 5 heavy?", "Yes.")], lexicon=LEXICON)

    assert resolution.query == "is the aero 7 heavy?"


def test_letters_that_grow_in_lower_case_do_not_shift_names():
    found = Names(LEXICON).find("İİ: is the AERO 7 new?")

    assert [(name.text, name.start) for name in found] == [("AERO 7", 11)]


def test_a_lexicon_that_grows_is_read_again():
    names = ["Nimbus One"]
    followups = FollowUps(lexicon=lambda within: names)
    history = [("Is the Nimbus One new?", "Yes.")]
    before = followups.resolve("and the Twin?", history, EVERYTHING)

    names.append("Nimbus Twin")
    after = followups.resolve("and the Twin?", history, EVERYTHING)

    assert before.query != after.query == "Is the Nimbus Twin new?"


@pytest.mark.parametrize(
    ("question", "history"),
    [
        pytest.param("What about " + "in " * 200, [("in " * 3000, "a, " * 5000)], id="preposition"),
        pytest.param("the second one?", [("x?", "a b c, " * 20_000)], id="enumeration"),
        pytest.param("it " * 5000, HEAVY, id="long-question"),
    ],
)
def test_long_texts_are_resolved_all_the_same(question, history):
    assert resolve(question, history).query
