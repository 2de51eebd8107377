import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.answers.evidence import MOST_EMBEDDED
from rag.answers.extractive import ExtractiveWriter
from rag.answers.prompts import DECLINE
from rag.citations.markers import cited_numbers
from rag.records import Source
from rag.seams import WriteRequest
from tests.fakes import HashEmbedder

PRICES = """\
Our price list for spring.

| Product | Price | Weight |
| --- | --- | --- |
| Aero 5 | 129 EUR | 310 g |
| Aero 5 Pro | 199 EUR | 295 g |
| Aero 5 Pro Max | 249 EUR | 330 g |
"""
RESET = """\
The router can be reset at any time. To reset the router:

1. Press the small button on the back.
2. Hold it for ten seconds.
3. Wait until the light is green.

A reset deletes the Wi-Fi password.
"""
COLOURS = """\
The headphones come in these colours:

- Midnight blue
- Coral red

They are packed in paper.
"""
REFUNDS = """\
Refunds are paid within five working days. Refunds from abroad take ten working days. \
Our office is closed on Sundays. Contact the support team for questions about refunds."""


def source(number, text, *, title="Handbook", headings=()):
    return Source(
        number=number,
        chunk_id=f"chunk-{number}",
        document_id=title,
        document_name="handbook.md",
        document_title=title,
        locator="",
        heading_path=headings,
        text=text,
        passage=text,
        content_hash="",
    )


def request(question, *sources, relevance=None):
    return WriteRequest(question, tuple(sources), (), max_tokens=500, relevance=relevance or {})


def write(question, *texts, embedder=None, **options):
    sources = [source(n, text, **options) for n, text in enumerate(texts, 1)]
    deltas = ExtractiveWriter(embedder).write(request(question, *sources))
    return "".join(delta.text for delta in deltas)


@pytest.fixture(params=["words", "words and vectors"])
def embedder(request):
    return HashEmbedder() if request.param == "words and vectors" else None


class TestAnAnswerToSeveralQuestions:
    def test_tells_each_part_with_its_own_source(self, embedder):
        text = write("How do I reset the router and what does the Aero 5 cost?", PRICES, RESET)

        assert "Hold it for ten seconds [2]" in text
        assert re.search(r"129 EUR[^.]*\[1\]", text)

    def test_knows_what_a_later_part_is_about(self, embedder):
        text = write("What does the Aero 5 Pro weigh and what does it cost?", PRICES)

        assert "295 g" in text
        assert "199 EUR" in text
        assert "129 EUR" not in text

    def test_says_which_part_the_documents_do_not_answer(self, embedder):
        asked = "How long do refunds from abroad take and who painted the ceiling in [7]?"

        text = write(asked, REFUNDS)

        assert text.startswith("Refunds from abroad take ten working days [1].")
        assert text.endswith("The documents do not answer: who painted the ceiling in (7)?")
        assert not ExtractiveWriter(None).declined(text)

    def test_declines_once_where_no_part_is_answered(self, embedder):
        text = write("Who painted the ceiling and where does the violinist live?", REFUNDS)

        assert text.startswith(DECLINE)
        assert text.count("do not answer") == 1


class TestAnAnswerWithCode:
    START = (
        "To start the server, go to its folder and run:\n\n    ./server --port=80 --hosts=h[1]\n\n"
        "It should start up. The weather may be fine."
    )

    def test_quotes_it_below_the_words_that_introduce_it(self, embedder):
        text = write("How do I start the server?", self.START, embedder=embedder)

        assert text.startswith(
            "To start the server, go to its folder and run: [1]\n"
            "```\n./server --port=80 --hosts=h[1]\n```"
        )
        assert cited_numbers(text) == [1]

    def test_tells_the_steps_in_their_order(self):
        steps = (
            "You should see that the server is installed and runs:\n\n    server: ok\n\n"
            "To run the server, type:\n\n    server run"
        )

        text = write("How do I run the server?", steps)

        assert text.index("server: ok") < text.index("server run")


class TestAnAnswer:
    def test_begins_with_the_most_relevant_sentence_and_its_number(self, embedder):
        text = write("How long do refunds from abroad take?", PRICES, REFUNDS, embedder=embedder)

        assert text.startswith("Refunds from abroad take ten working days [2].")

    def test_has_one_to_five_pieces_each_with_a_number(self, embedder):
        text = write("What about refunds?", *[REFUNDS] * 3, RESET, embedder=embedder)

        sentences = re.findall(r"[^.]+\.", text)
        assert 1 <= len(sentences) <= 5
        assert all(cited_numbers(sentence) for sentence in sentences)

    def test_does_not_say_the_same_thing_twice(self, embedder):
        near = REFUNDS.replace("are paid", "will be paid")

        text = write("When are refunds paid?", REFUNDS, near, embedder=embedder)

        assert text.count("within five working days") == 1

    def test_comes_piece_by_piece(self):
        deltas = list(ExtractiveWriter(None).write(request("refunds?", source(1, REFUNDS))))

        assert len(deltas) > 1
        assert all(cited_numbers(delta.text) == [1] for delta in deltas)

    def test_makes_markers_of_the_document_harmless(self, embedder):
        text = write(
            "How long do refunds take?", "Refunds take [7] five days [1, 9].", embedder=embedder
        )

        assert cited_numbers(text) == [1]
        assert "Refunds take (7) five days" in text

    def test_is_the_same_without_relevance_and_with_any_number(self, embedder):
        sources = [source(40, REFUNDS)]
        writer = ExtractiveWriter(embedder)

        text = "".join(d.text for d in writer.write(request("When are refunds paid?", *sources)))

        assert "[40]" in text

    @given(st.text(max_size=400), st.text(max_size=80))
    @settings(max_examples=60, deadline=None)
    def test_to_anything_from_anything_cites_only_its_sources(self, passage, question):
        text = write(question, passage, REFUNDS)

        assert set(cited_numbers(text)) <= {1, 2}
        assert text.strip()

    def test_from_a_million_characters_is_short(self):
        text = write("What is a refund?", "refund " * 150_000)

        assert len(text) < 5_000


class TestTables:
    @pytest.mark.parametrize(
        ("question", "expected"),
        [
            ("What does the Aero 5 cost?", "Aero 5 — Price: 129 EUR [1]."),
            ("What is the price of the Aero 5 Pro?", "Aero 5 Pro — Price: 199 EUR [1]."),
            ("how much is the aero 5 pro max?", "Aero 5 Pro Max — Price: 249 EUR [1]."),
            ("How heavy is the Aero 5 Pro?", "Aero 5 Pro — Weight: 295 g [1]."),
        ],
    )
    def test_are_answered_with_the_row_of_the_very_product(self, question, expected, embedder):
        assert write(question, PRICES, embedder=embedder).startswith(expected)

    def test_keep_every_figure_where_more_than_one_is_asked_for(self, embedder):
        text = write("What are price and weight of the Aero 5?", PRICES, embedder=embedder)

        assert text.startswith("Aero 5 — Price: 129 EUR; Weight: 310 g [1].")

    def test_keep_the_names_that_begin_with_a_figure(self, embedder):
        table = (
            "| Code | Product | Price | Weight |\n| --- | --- | --- | --- |\n"
            "| 5400 | 2.5G Switch | 129 EUR | 310 g |\n| 5500 | 10G Switch | 199 EUR | 295 g |"
        )

        text = write("What does the 2.5G Switch cost?", table, embedder=embedder)

        assert text.startswith("5400 — Product: 2.5G Switch; Price: 129 EUR [1].")

    def test_of_all_products_asked_for_are_quoted(self, embedder):
        text = write("Compare the price of Aero 5 and Aero 5 Pro", PRICES, embedder=embedder)

        assert "Aero 5 — Price" in text
        assert "Aero 5 Pro — Price" in text

    def test_are_quoted_without_the_columns_of_other_products(self, embedder):
        table = "| | Aero 5 | Aero 5 Pro |\n| --- | --- | --- |\n| Weight | 310 g | 295 g |"

        text = write("What is the weight of the Aero 5?", table, embedder=embedder)

        assert text == "Weight — Aero 5: 310 g [1]."

    def test_are_answered_with_one_row_where_one_is_asked_for(self):
        lights = "| Light | Meaning |\n| --- | --- |\n| red | hot |\n| violet | new firmware |"

        text = write("What does the violet light mean?", lights)

        assert text == "violet — Meaning: new firmware [1]."

    def test_of_parts_lose_to_the_row_about_the_product_itself(self, embedder):
        parts = (
            "| Part number | Part | Fits | Price |\n| --- | --- | --- | --- |\n"
            "| P-1 | board | Aero 5 Pro | EUR 31 |\n| P-2 | fan | Aero 5 | EUR 9 |"
        )
        prices = (
            "| Code | Product | Price |\n| --- | --- | --- |\n"
            "| NW-1 | Aero 5 | EUR 129 |\n| NW-2 | Aero 5 Pro | EUR 199 |"
        )

        text = write("What does the Aero 5 Pro cost?", parts, prices, embedder=embedder)

        assert text.startswith("NW-2 — Product: Aero 5 Pro; Price: EUR 199 [2].")

    def test_give_the_price_where_how_much_something_is_is_asked(self, embedder):
        weights = "The Aero 5 and the Aero 5 Pro are light. How much? The Aero 5 weighs 310 g."

        text = write("How much is the Aero 5?", weights, PRICES, embedder=embedder)

        assert text.startswith("Aero 5 — Price: 129 EUR")


class TestContradictions:
    MEMO = "The warranty of the Aero 5 is 36 months. The memo is final."
    HANDBOOK = "The warranty of the Aero 5 is 24 months. It covers the battery."

    def test_are_told_with_both_numbers(self, embedder):
        text = write("How long is the warranty of the Aero 5?", self.MEMO, self.HANDBOOK)

        assert "36 months [1]" in text
        assert "24 months [2]" in text

    def test_are_none_where_both_say_the_same(self):
        text = write("How long is the warranty of the Aero 5?", self.MEMO, self.MEMO)

        assert cited_numbers(text) == [1]


class TestLength:
    def test_is_that_of_one_statement_where_one_is_asked_for(self, embedder):
        filler = "The case is made of wood. The colour is grey. The lid opens upwards."

        text = write("How much does the Aero 5 weigh?", f"The Aero 5 weighs 310 g. {filler}")

        assert text == "The Aero 5 weighs 310 g [1]."

    def test_goes_on_to_the_sentence_that_has_the_missing_word(self):
        text = write(
            "What does the Plus plan cost?",
            "The Plus plan adds 24 months. It costs 9 EUR a year. Ask in May.",
        )

        assert "It costs 9 EUR a year [1]." in text

    def test_is_bounded_in_what_is_embedded(self):
        embedder = Counting()

        write("How long do refunds take?", *[REFUNDS, PRICES, RESET, COLOURS] * 10)
        write("How long do refunds take?", *[REFUNDS] * 30, embedder=embedder)

        assert embedder.most == MOST_EMBEDDED + 1


class Counting(HashEmbedder):
    most = 0

    def embed(self, texts):
        self.most = max(self.most, len(texts))
        return super().embed(texts)


class TestWhatIsAsked:
    def test_is_not_only_said_again(self, embedder):
        page = "The wireless signal is too weak. Place the router in the middle of the flat."

        text = write("Why is the wireless signal too weak?", page, embedder=embedder)

        assert text.startswith("Place the router in the middle of the flat [1].")

    def test_is_what_the_question_says_rather_than_what_was_told_before(self, embedder):
        text = write(
            "I have trouble with my refunds office. How long is the warranty of the lamp?",
            "The refunds office has trouble.",
            "The warranty of the lamp is 24 months.",
            embedder=embedder,
        )

        assert text.startswith("The warranty of the lamp is 24 months [2].")

    def test_is_answered_below_the_heading_that_asks_the_same(self, embedder):
        sources = [
            source(1, "Express charges are refunded late.", headings=("3.1 Charges",)),
            source(
                2, "- opened ear tips\n- engraved cases", headings=("1.4 What is not refunded",)
            ),
        ]

        deltas = ExtractiveWriter(embedder).write(request("What is not refunded?", *sources))

        assert cited_numbers(next(deltas).text)[0] == 2


class TestLists:
    def test_of_steps_stay_together_and_in_order(self, embedder):
        text = write("How do I reset the router?", RESET, REFUNDS, embedder=embedder)

        assert (
            "To reset the router: [1]\n1. Press the small button on the back [1].\n"
            "2. Hold it for ten seconds [1].\n3. Wait until the light is green [1]."
        ) in text

    def test_are_quoted_with_their_introduction(self, embedder):
        text = write(
            "In which colours do the headphones come?", COLOURS, REFUNDS, embedder=embedder
        )

        assert "these colours: [1]\n- Midnight blue [1]\n- Coral red [1]" in text

    def test_with_several_sentences_an_entry_cite_in_each(self):
        text = write("Which colours are sold out?", "- Red is sold out. Ask in May.\n- Blue")

        assert "Red is sold out [1]. Ask in May [1]." in text

    def test_of_steps_in_running_text_are_quoted_in_their_order(self, embedder):
        steps = (
            "1. Press the reset button. \n\n2. Wait for the reset light. \n\n3. Reset the clock."
        )
        pieces = [f"{step}\n\nNote well." for step in steps.split("\n\n")]

        text = write("How do I reset it?", "\n".join(pieces), embedder=embedder)

        numbers = [int(number) for number in re.findall(r"(\d)\. ", text)]
        assert numbers == sorted(numbers)

    def test_begin_on_a_line_of_their_own(self, embedder):
        text = write("Tell me about the colours of the headphones", COLOURS, embedder=embedder)

        assert all(line.startswith("- ") for line in text.split("\n") if "- " in line)

    def test_give_way_to_the_one_entry_that_answers(self, embedder):
        notes = "- Fixed: the clock was late.\n- Closed: NWSA-2026-001 let guests in.\n- New: lamp."

        text = write("Which release closed NWSA-2026-001?", notes, embedder=embedder)

        assert text == "Closed: NWSA-2026-001 let guests in [1]."


class TestProducts:
    def test_that_were_not_asked_for_lose(self, embedder):
        pro = "The battery of the Aero 5 Pro lasts for 40 hours of music."
        plain = "The battery of the Aero 5 lasts for 24 hours."

        text = write("How long does the battery of the Aero 5 last?", pro, plain, embedder=embedder)

        assert text.startswith("The battery of the Aero 5 lasts for 24 hours [2].")

    def test_are_known_from_the_title_where_the_sentence_does_not_say(self, embedder):
        text = "The battery lasts for {} hours."
        sources = [
            source(1, text.format(40), title="Aero 5 Pro"),
            source(2, text.format(24), title="Aero 5"),
        ]

        deltas = ExtractiveWriter(embedder).write(
            request("How long does the Aero 5 battery last?", *sources)
        )

        assert next(deltas).text == "The battery lasts for 24 hours [2]."

    def test_compared_with_another_one_stay_what_the_heading_says(self, embedder):
        fixed = "The USB port of the Aero 5 could fail."
        sources = [
            source(1, fixed, title="Aero 5"),
            source(2, "Compared with the Aero 5 it has a USB port.", title="Aero 5 Pro"),
        ]

        deltas = ExtractiveWriter(embedder).write(
            request("Does the Aero 5 Pro have a USB port?", *sources)
        )

        assert "it has a USB port [2]" in next(deltas).text

    def test_asked_for_together_are_both_told_with_their_figure(self, embedder):
        sources = [
            source(1, "The Aero 5 Pro is 62 cm wide. It has no lamp.", title="Aero 5 Pro"),
            source(2, "The Aero 5 is round. It is 104 cm wide.", title="Aero 5"),
        ]

        deltas = ExtractiveWriter(embedder).write(
            request("How wide are the Aero 5 and the Aero 5 Pro?", *sources)
        )
        text = "".join(delta.text for delta in deltas)

        assert "62 cm wide [1]" in text
        assert "104 cm wide [2]" in text

    def test_of_the_lexicon_are_told_apart_in_small_letters(self, embedder):
        table = "| name | light |\n| --- | --- |\n| pico-link | green |\n| pico-link s | blue |"
        writer = ExtractiveWriter(embedder, lexicon=lambda: ("pico-link", "pico-link s"))

        deltas = writer.write(request("which light has the pico-link s?", source(1, table)))

        assert next(deltas).text == "pico-link s — light: blue [1]."

    def test_of_the_lexicon_do_not_answer_for_others(self, embedder):
        sources = [
            source(1, "The cases are protected against water.", title="Tuli"),
            source(2, "It is protected to IP67 and floats.", title="Mora"),
        ]
        writer = ExtractiveWriter(embedder, lexicon=lambda: ("Tuli", "Mora"))

        deltas = writer.write(request("Is the Mora protected against water?", *sources))

        assert next(deltas).text == "It is protected to IP67 and floats [2]."


class TestCodes:
    def test_lead_to_what_stands_below_them(self):
        manual = "E-31\n\nThe power was cut.\n\nE-23\n\nThe fan is blocked."
        notes = "Fixed: error E-31 on the router. What this error means is now shown."

        text = write("What does error E-23 mean?", manual, notes)

        assert text.startswith("The fan is blocked [1].")


class TestDeclining:
    @pytest.mark.parametrize(
        "texts",
        [
            pytest.param([], id="no sources"),
            pytest.param(["", "  \n| | |\n"], id="empty sources"),
        ],
    )
    def test_happens_when_there_is_nothing_to_quote(self, texts, embedder):
        text = write("How long do refunds take?", *texts, embedder=embedder)

        assert text == DECLINE

    def test_says_so_and_names_nothing_that_is_far_away(self, embedder):
        text = write("Who won the football match in Madrid?", REFUNDS, embedder=embedder)

        assert text == DECLINE

    def test_names_what_comes_nearest(self):
        text = write("Which colour has the Aero 7 in Iceland?", "The Aero 5 has a grey colour.")

        assert text.startswith(DECLINE)
        assert "The nearest that they say: The Aero 5 has a grey colour [1]." in text

    @pytest.mark.parametrize(
        ("question", "name"),
        [
            pytest.param("What is the price of the Aero 6?", "Aero 6", id="a sibling"),
            pytest.param("what is the price of the aero 6?", "aero 6", id="in small letters"),
            pytest.param("What is the price of the Aero 5 Ultra?", "Aero 5 Ultra", id="longer"),
            pytest.param("What does E-99 say about the price?", "E-99", id="a code"),
        ],
    )
    def test_follows_from_a_name_that_no_source_mentions(self, question, name, embedder):
        text = write(question, PRICES, embedder=embedder)

        assert text.startswith(f"{DECLINE} Nothing that was found in them mentions {name}.")

    def test_follows_where_nothing_of_the_product_is_about_what_is_asked(self):
        text = write("Is the Aero 5 Pro waterproof?", PRICES)

        assert text.startswith(DECLINE)

    def test_is_recognised(self):
        writer = ExtractiveWriter(None)

        assert writer.declined(write("Who won in Madrid?", REFUNDS))
        assert not writer.declined(write("How long do refunds take?", REFUNDS))

    def test_never_happens_to_a_source_that_was_asked_for_by_its_number(self, embedder):
        asked = request("Tell me more about [7]", source(7, REFUNDS), relevance={7: 1.0})

        text = "".join(delta.text for delta in ExtractiveWriter(embedder).write(asked))

        assert not text.startswith(DECLINE)
        assert cited_numbers(text) == [7]

    def test_follows_from_a_question_without_words(self, embedder):
        assert write("???", REFUNDS, embedder=embedder).startswith(DECLINE)
