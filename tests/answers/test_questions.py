import cProfile

import pytest

from rag.answers.products import Products, unmentioned
from rag.answers.questions import Wanted, read_question
from rag.answers.words import TermWeights, terms


class TestReading:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("How many ports does it have?", Wanted.FIGURE),
            ("What is the price of the Aero 5?", Wanted.FIGURE),
            ("Was kostet der Aero 5?", Wanted.FIGURE),
            ("When was it released?", Wanted.DATE),
            ("Who wrote the handbook?", Wanted.PERSON),
            ("Where do I find the serial number?", Wanted.PLACE),
            ("Why is the light red?", Wanted.REASON),
            ("How do I reset it?", Wanted.STEPS),
            ("What is mesh mode?", Wanted.MEANING),
            ("Does it support Wi-Fi 6?", Wanted.ANYTHING),
        ],
    )
    def test_finds_what_kind_of_answer_is_wanted(self, text, wanted):
        assert read_question(text).wanted is wanted

    @pytest.mark.parametrize(
        ("question", "served", "not_served"),
        [
            ("How heavy is it?", "It weighs 310 g.", "It is light."),
            ("When was it released?", "It came in March 2024.", "It came late."),
            ("Who wrote it?", "It was written by Ada Lovelace.", "It was written well."),
            ("Why is it red?", "It is red because it is hot.", "It is red."),
            ("How do I reset it?", "Press the button.", "The reset was a success."),
        ],
    )
    def test_tells_what_serves_it(self, question, served, not_served):
        assert read_question(question).is_served_by(served)
        assert not read_question(question).is_served_by(not_served)

    def test_takes_any_text_where_anything_is_wanted(self):
        assert read_question("Does it float?").is_served_by("Yes.")

    def test_keeps_the_words_that_carry_meaning(self):
        assert read_question("How long does the battery last?").terms == terms("battery last")


class TestProducts:
    TEXTS = ("Aero 5 costs 129 EUR.", "Aero 5 Pro costs 199 EUR.", "Aero 7 is new.", "Nimbus X2.")

    @pytest.mark.parametrize(
        ("text", "fit"),
        [
            ("The Aero 5 costs 129 EUR.", 1.0),
            ("The Aero 5 Pro costs 199 EUR.", -1.0),
            ("The Aero 7 is new.", -1.0),
            ("The Aero 5 Pro is larger than the Aero 5.", 1.0),
            ("Nimbus X2 is a router.", 0.0),
            ("It is blue.", 0.0),
        ],
    )
    def test_asked_for_win_over_their_siblings(self, text, fit):
        assert Products("What does the aero 5 cost?", self.TEXTS).fit(text, "") == fit

    def test_without_siblings_do_not_count(self):
        texts = (*self.TEXTS, "WireGuard is fast.")
        products = Products("How fast is WireGuard on the Aero 5?", texts)

        assert products.fit("WireGuard is fast on the Aero 5 Pro.", "") == -1.0
        assert products.fit("WireGuard is fast.", "") == 0.0

    def test_are_looked_for_above_a_text_that_names_none(self):
        products = Products("What does the Aero 5 cost?", self.TEXTS)

        assert products.fit("It is blue.", "Aero 5 Pro › Colours") == -1.0
        assert products.fit("It is blue.", "Aero 5 › Colours") == 1.0

    def test_all_fit_when_none_is_asked_for(self):
        assert Products("What is new?", self.TEXTS).fit("Aero 5 Pro", "") == 0.0

    def test_that_are_compared_are_told_apart(self):
        products = Products("Aero 5 or Aero 5 Pro?", self.TEXTS)

        assert products.asked_in("Aero 5 Pro costs 199 EUR.") == {"aero 5 pro"}
        assert products.fit("Aero 5 Pro costs 199 EUR.", "") == 1.0

    def test_of_a_family_of_thousands_only_those_are_tried_that_a_text_holds(self):
        lexicon = [f"Widget {number}" for number in range(2000)]
        Products("", [], lexicon)  # reads the lexicon, once
        profile = cProfile.Profile()

        products = profile.runcall(Products, "How much is Widget 777?", [], lexicon)
        fit = profile.runcall(products.fit, "Widget 778; price: 1167", "")

        tried = [entry.callcount for entry in profile.getstats() if _is_replacing(entry.code)]
        assert fit == -1.0
        assert sum(tried) < 20


def _is_replacing(code):
    return not isinstance(code, str) and code.co_qualname == "sub"


class TestTerms:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("charging", "charges"),
            ("batteries", "battery"),
            ("It weighs", "weight"),
            ("cost", "Price"),
            ("user's", "users"),
        ],
    )
    def test_of_kindred_words_meet(self, one, other):
        assert terms(one) & terms(other)

    def test_of_codes_are_whole(self):
        assert terms("error E-23 in 3.4.2") == terms("Error") | {"e-23", "3.4.2"}
        assert terms("a 24-port switch") >= terms("port")

    def test_of_unspaced_scripts_are_pairs_of_letters(self):
        assert terms("充電器") == {"充電", "電器"}

    def test_weigh_more_the_rarer_they_are(self):
        weights = TermWeights([terms("router port"), terms("router"), terms("router lamp")])

        assert weights.of("port") > weights.of("rout")
        assert weights.coverage(terms("port router"), terms("port")) > 0.5
        assert weights.coverage(frozenset(), terms("port")) == 0.0


def test_a_possessive_after_a_figure_is_no_term_of_its_own():
    assert read_question("What is Aero 4's successor?").terms == terms("Aero 4 successor")


def test_what_names_both_below_a_rivals_heading_is_about_the_rival():
    products = Products("How do I reset the Aero 7?", ["Aero 5", "Aero 7"])

    assert products.fit("Settings of an Aero 5 fit an Aero 7.", "Aero 5 manual") == -1.0
    assert products.fit("Settings of an Aero 5 fit an Aero 7.", "Aero 7 manual") == 1.0


class TestUnmentioned:
    TEXTS = (
        "Aero 5 costs 129 EUR, with its warranty. Use the Galaxy S10+ or the e-strand 2400.",
        "Step by step. Firmware 3.4.1. E-23: the fan.",
    )

    @pytest.mark.parametrize(
        ("question", "missing"),
        [
            ("What does the Aero 6 cost?", ("Aero 6",)),
            ("what does the aero 6 cost?", ("aero 6",)),
            ("What does E-99 mean?", ("E-99",)),
            ("What changed in firmware 3.9.9?", ("3.9.9",)),
            ("How fast is the e-strand 9900?", ("e-strand 9900",)),
            ("Is the Aero 5 Ultra new?", ("Aero 5 Ultra",)),
            ("Is the Aero 5 better than the Aero 6?", ("Aero 6",)),
            ("What does the Aero 5 cost?", ()),
            ("What does the AERO5 cost?", ()),
            ("Is the aero-5 quiet?", ()),
            ("What is the Aero 5 Warranty?", ()),
            ("Is the Galaxy S10 Plus new?", ()),
            ("What is Step 3?", ()),
            ("What changed in June 2024?", ()),
            ("What does E-23 mean?", ()),
            ("Who sells the Nimbus Prime?", ()),
        ],
    )
    def test_are_models_codes_and_versions_that_no_text_has(self, question, missing):
        assert unmentioned(question, self.TEXTS) == missing

    def test_is_nothing_where_there_are_no_texts(self):
        assert unmentioned("What does the Aero 6 cost?", ()) == ()


class TestMeasures:
    @pytest.mark.parametrize(
        ("question", "measured", "other"),
        [
            ("How wide is it?", "It is 104 cm wide.", "It has 3 channels."),
            ("How long does it take?", "It takes 70 seconds.", "It has 70 keys."),
            ("How heavy is it?", "980 g", "980 lamps"),
            ("What does it cost?", "List price EUR: 29", "29 lamps"),
            ("How fast is it?", "It reaches 620 Mbit/s.", "It reaches 620 people."),
        ],
    )
    def test_are_in_units_of_what_is_asked(self, question, measured, other):
        assert read_question(question).is_measured_in(measured)
        assert not read_question(question).is_measured_in(other)

    def test_are_not_asked_for_in_other_questions(self):
        assert not read_question("Who wrote it?").is_measured_in("104 cm")


@pytest.mark.parametrize(
    ("question", "is_brief"),
    [
        ("How heavy is it?", True),
        ("What is the address of the office?", True),
        ("Does it float?", True),
        ("Which codecs does it support?", True),
        ("How do I reset it?", False),
        ("Tell me about refunds", False),
        ("What is the difference of the two for me?", False),
    ],
)
def test_a_question_is_brief_if_one_statement_may_answer_it(question, is_brief):
    assert read_question(question).is_brief is is_brief
