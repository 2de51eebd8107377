"""What a card shows, and how it reads as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.answers.card import MOST_SHOWN, card_of
from rag.answers.card_writer import CardWriter
from rag.answers.markdown import CLOSEST, gist, markdown_of
from rag.citations.markers import cited_numbers
from rag.records import Card, CardPart, DocumentLink, Mention, ShownPassage, Source
from rag.seams import WriteRequest

NAMES = ("Aero 5", "Aero 5 Pro")
WEIGHTS = "| Name | Weight |\n| --- | --- |\n| Aero 5 | 410 g |\n| Aero 7 | 510 g |"


def source(number, passage, title="Handbook", path=("Refunds",), text=None):
    return Source(
        number=number,
        chunk_id=f"c{number}",
        document_id=f"d{number}",
        document_name=f"{number}.md",
        document_title=title,
        locator="",
        heading_path=path,
        text=text or passage,
        passage=passage,
        content_hash="",
    )


def asked(question, *sources, relevance=0.9):
    relevances = {each.number: relevance for each in sources}
    return WriteRequest(question, sources, (), 1_000, relevance=relevances)


def card(request, lexicon=NAMES, mentions=lambda name: None):
    return card_of(request, lexicon, mentions)


def written(request):
    return "".join(delta.text for delta in CardWriter(lexicon=lambda within: NAMES).write(request))


REFUNDS = source(
    1, "Refunds are made by bank transfer. A refund takes five business days. Call us."
)
TABLE = source(2, WEIGHTS, "Price list", ("Weights",))


class TestTheFirstPassage:
    def test_is_shown_whole_with_its_headings(self):
        (part,) = card(asked("How long does a refund take?", REFUNDS)).parts

        assert part.passages[0].text == REFUNDS.passage
        assert part.passages[0].heading == "Handbook › Refunds"

    def test_has_the_sentence_marked_that_matters_most(self):
        (part,) = card(asked("How long does a refund take?", REFUNDS)).parts

        assert gist(part.passages[0]) == "A refund takes five business days."

    def test_has_the_row_marked(self):
        (part,) = card(asked("What is the weight of the Aero 5?", TABLE)).parts

        assert gist(part.passages[0]) == "Aero 5 · 410 g"

    def test_has_all_rows_marked_that_matter_alike(self):
        rows = "| Linden | 9.5 |\n| Clover | 4 |\n| Linden | 7.1 |"
        harvest = f"| Crop | Kilograms |\n| --- | --- |\n{rows}"
        (part,) = card(asked("Which hive gave most linden honey?", source(1, harvest))).parts

        assert gist(part.passages[0]) == "Linden · 9.5; Linden · 7.1"

    def test_has_no_row_marked_by_chance(self):
        rows = "".join(f"\n| Linden | {weight} |" for weight in range(1, 9))
        harvest = f"| Crop | Kilograms |\n| --- | --- |{rows}"
        (linden,) = card(asked("How much linden honey was there?", source(1, harvest))).parts
        (clover,) = card(asked("How much clover honey was there?", source(1, harvest))).parts

        assert linden.passages[0].marked == clover.passages[0].marked == ()

    def test_has_the_header_of_a_long_table_once(self):
        more = WEIGHTS.replace("Aero 5", "Brummer 1").replace("Aero 7", "Brummer 2")
        other = "| Colour | Code |\n| --- | --- |\n| red | 7 |"
        parts = source(1, f"{WEIGHTS}\n\n{more}\n\n{WEIGHTS}\n\n{other}", path=())

        (part,) = card(asked("What is the weight of the Brummer 2?", parts)).parts

        lines = part.passages[0].text.split("\n")
        assert lines.count("| Name | Weight |") == lines.count("| Colour | Code |") == 1
        assert gist(part.passages[0]) == "Brummer 2 · 510 g"

    def test_is_about_the_product_that_was_asked_for_not_its_sibling(self):
        sibling = source(1, "Hold RESET for 15 seconds.", "Aero 5 Pro manual", ("Reset",))
        right = source(2, "Hold RESET for 10 seconds.", "Aero 5 manual", ("Reset",))

        (part,) = card(asked("How do I reset the Aero 5?", sibling, right)).parts

        assert part.passages[0].number == 2

    def test_has_what_is_said_of_the_product_marked_not_what_is_said_of_its_sibling(self):
        right = "The Aero 5 Pro is protected to IPX4: sweat and rain do no harm."
        both = f"The Aero 5 is protected from water 1 m deep for 30 minutes. {right}"
        heading = "Aero 5 and Aero 5 Pro"

        (part,) = card(
            asked("Is the Aero 5 Pro protected from water?", source(1, both, heading))
        ).parts

        assert gist(part.passages[0]) == right

    def test_holds_what_is_asked_for_by_an_adjective(self):
        curtains = source(1, "Hang heavy curtains behind the Aero 5.", "Planning guide", ("Rooms",))
        weight = source(2, "Weight of the Aero 5: 410 g.", "Aero routers: manual", ("Data",))

        (part,) = card(asked("How heavy is the Aero 5?", curtains, weight)).parts

        assert part.passages[0].number == 2

    def test_may_stand_under_the_name_of_the_family(self):
        family = source(1, "Hold RESET on the Aero 5.", "Aero routers: manual", ("Reset",))
        other = source(2, "The Aero 5 stands upright.", "Planning guide", ("Rooms",))
        names = [*NAMES, "Aero routers"]

        (part,) = card(asked("How do I reset the Aero 5?", family, other), names).parts

        assert part.passages[0].number == 1

    def test_comes_with_what_follows_a_repeated_question_marked(self):
        faq = source(1, "Is the fan noisy at night?\nThis is normal after an update.")

        (part,) = card(asked("Why is the fan noisy at night?", faq)).parts

        assert gist(part.passages[0]) == "This is normal after an update."


class TestTheLineAbove:
    def test_is_quoted_where_it_surely_answers(self):
        farther = source(2, "The canteen opens at eleven.", "Lunch", ())
        relevance = {1: 0.97, 2: 0.1}
        question = "How many business days does a refund take?"

        (part,) = card(
            WriteRequest(question, (REFUNDS, farther), (), 1_000, relevance=relevance)
        ).parts

        assert part.line == "A refund takes five business days."

    @pytest.mark.parametrize(
        ("question", "passage"),
        [
            pytest.param(
                "How do I reset the Aero 5?", "To reset the Aero 5, hold the button.", id="steps"
            ),
            pytest.param(
                "What does the Aero 5 cost?", "Revision B of the Aero 5 costs much.", id="no price"
            ),
            pytest.param(
                "Is the fan noisy at night?", "The fan is noisy at night.", id="nothing new"
            ),
        ],
    )
    def test_is_left_out_otherwise(self, question, passage):
        found = source(1, passage, "Aero 5 manual", ())

        assert not card(asked(question, found)).parts[0].line

    def test_is_no_other_product_s(self):
        other = source(1, "The Aero 5 Pro weighs 620 g and is black.", "Routers", ())

        assert not card(asked("How much does the Aero 5 weigh?", other)).parts[0].line


class TestFurtherPassages:
    def test_are_three_at_most(self):
        found = [source(n, f"A refund of kind {n} takes {n} days.") for n in range(1, 9)]

        (part,) = card(asked("How long does a refund take?", *found)).parts

        assert len(part.passages) == MOST_SHOWN

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (WEIGHTS, "Name · Weight; Aero 5 · 410 g; Aero 7 · 510 g"),
            ("Tools:\n\n- 1. A hammer.\n- 2. Nails.", "Tools: 1. A hammer. 2. Nails."),
            ("Run this:\n\n    make all", "Run this: make all"),
        ],
    )
    def test_are_one_line_without_the_signs_of_tables_and_lists(self, text, told):
        assert gist(ShownPassage(1, "A", text)) == told

    def test_are_cut_with_their_number_behind(self):
        long = ShownPassage(2, "B", "one two three four " * 30)
        first = ShownPassage(1, "A", "text")

        told = "".join(markdown_of(Card((CardPart("", (first, long)),))))

        assert told.endswith("one two three four … [2]")


class TestSeveralParts:
    def test_two_questions_get_a_part_each(self):
        question = "How long does a refund take and what is the weight of the Aero 5?"

        parts = card(asked(question, REFUNDS, TABLE)).parts

        assert [part.asked for part in parts] == [
            "How long does a refund take", "what is the weight of the Aero 5?",
        ]  # fmt: skip
        assert [part.passages[0].number for part in parts] == [1, 2]

    def test_each_begins_with_the_passage_about_it_however_the_question_ranked_them(self):
        water = source(1, "Rain does the Aero 5 no harm.", "Aero 5", ("Water",))
        playing = source(2, "The Aero 5 plays for 7 hours.", "Aero 5", ("Playing time",))
        question = "Does rain harm the Aero 5, and how many hours does it play?"
        relevance = {1: 0.99, 2: 0.2}

        request = WriteRequest(question, (water, playing), (), 1_000, relevance=relevance)
        first, second = card(request).parts

        assert (first.passages[0].number, second.passages[0].number) == (1, 2)

    def test_two_products_get_a_part_each(self):
        one = source(1, "It weighs 410 g.", "Aero 5 manual", ("Technical data",))
        other = source(2, "It weighs 620 g.", "Aero 5 Pro manual", ("Technical data",))

        parts = card(asked("What do the Aero 5 and the Aero 5 Pro weigh?", one, other)).parts

        assert [(part.asked, part.passages[0].number) for part in parts] == [
            ("Aero 5", 1), ("Aero 5 Pro", 2),
        ]  # fmt: skip

    def test_what_one_passage_answers_is_one_part(self):
        question = "What is the weight of the Aero 5 and what is the weight of the Aero 7?"

        (part,) = card(asked(question, TABLE)).parts

        assert len(part.passages[0].marked) == 2


class TestWhatIsWeak:
    def test_is_shown_but_claims_nothing(self):
        text = written(asked("How many business days does a refund take?", REFUNDS, relevance=0.01))

        assert text.startswith(CLOSEST)
        assert REFUNDS.passage[:40] in text

    def test_is_declined_without_sources(self):
        assert card(asked("How long does a refund take?")).parts == ()


def test_documents_that_mention_a_name_are_counted_and_linked():
    mention = Mention("Aero 5", 7, (DocumentLink("d9", "a.md", "A [1] * list"),))
    writer = CardWriter(lexicon=lambda within: NAMES, mentions=lambda name, within: mention)

    text = "".join(d.text for d in writer.write(asked("What is the weight of the Aero 5?", TABLE)))

    assert text.endswith("7 documents mention Aero 5: [A (1) \\* list](/documents/d9) and 6 more.")
    assert cited_numbers(text) == [2]


def test_as_text_the_marked_row_carries_the_number():
    assert "> | Aero 5 | 410 g [2] |" in written(asked("What is the weight of the Aero 5?", TABLE))


def test_as_text_steps_are_numbered_without_a_dash_before():
    steps = source(1, "- 1. Unlock the gate of the pier.\n- 2. Set out two rings.")

    assert "\n> 2. Set out" in written(asked("How is the gate of the pier unlocked?", steps))


def test_markers_of_the_documents_are_no_citations():
    found = source(3, "A refund takes five days [7]. See [1, 2].", "Title [4]", ("Path [5]",))

    assert set(cited_numbers(written(asked("How long does a refund take?", found)))) == {3}


@given(
    st.lists(st.text(alphabet="aB5 .?:|-*1\n[]>#`", max_size=60), max_size=4),
    st.text(alphabet="aB5 ?[]1", max_size=30),
)
def test_no_number_is_invented_whatever_the_documents_say(passages, question):
    sources = [source(n + 1, text, text[:9], (text[:5],)) for n, text in enumerate(passages)]

    text = written(asked(question, *sources))

    assert set(cited_numbers(text)) <= {each.number for each in sources}


def test_a_line_that_leaves_the_price_of_a_wide_row_out_is_not_said():
    header = (
        "| Code | Name | Fits | Size | Stuff | Weight | In stock | Price |\n" + "| --- " * 8 + "|\n"
    )
    row = "| G8 | Gasket 8 | pumps | M8 | rubber | 1 g | 310 | 2.10 EUR |"

    (part,) = card(
        asked("What is the price of the Gasket 8?", source(1, header + row, "", ()))
    ).parts

    assert "2.10 EUR" in part.passages[0].text
    assert not part.line or "2.10 EUR" in part.line


class TestWhatIsMarked:
    def marked(self, question, text, title="Manual"):
        (part,) = card(asked(question, source(1, text, title, ()))).parts
        passage = part.passages[0]
        return [passage.text[start:end] for start, end in passage.marked]

    def test_says_what_may_be_true_or_not_again_to_answer_it(self):
        text = (
            "The lift carries at most 180 kg. Never use the lift in a fire. Children need an adult."
        )

        assert self.marked("Can I use the lift in a fire?", text) == [
            "Never use the lift in a fire."
        ]

    def test_is_no_figure_of_a_name_alone(self):
        text = "| | Aero 5 | Aero 5 Pro |\n| --- | --- | --- |\n| Noise | 52 dB | 57 dB |\n"
        text += "| Warranty | 5 years | 6 years |"

        assert len(self.marked("Is the Aero 5 louder?", text, "")) == 2  # as much as the other row

    def test_is_a_value_behind_its_label(self):
        text = (
            "Flash point: -14 °C\nBoiling point: 56 to 79 °C\nDensity at 20 °C: 0.82 g/cm3\n\nMore."
        )

        assert self.marked("What is the flash point?", text) == ["Flash point: -14 °C"]
