"""What a card shows, and how it reads as text."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.chat.card import MOST_SHOWN, CardWriter, card_of, gist, markdown_of
from rag.chat.evidence import StatementVectors
from rag.citations.gate import canonical
from rag.citations.markers import cited_numbers
from rag.errors import ModelUnavailable
from rag.records import (
    Card,
    Certainty,
    Confidence,
    DocumentLink,
    Mention,
    MissingIdentifier,
    QuotedPassage,
    Source,
)
from rag.records.answers import OPEN
from rag.render.gate import sanitise
from rag.seams import WriteRequest
from tests.fakes import HashEmbedder

NAMES = ("Aero 5", "Aero 5 Pro")
WEIGHTS = "| Name | Weight |\n| --- | --- |\n| Aero 5 | 410 g |\n| Aero 7 | 510 g |"
embed = HashEmbedder().embed


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


def written(request):
    writer = CardWriter(embed, lexicon=lambda readable: NAMES)
    return sanitise("".join(delta.text for delta in writer.write(request)))


def marked(question, text, title="Manual", embed=embed):
    (passage,) = card_of(asked(question, source(1, text, title, ())), embed).passages
    return [passage.text[start:end] for start, end in passage.marked]


REFUNDS = source(
    1, "Refunds are made by bank transfer. A refund takes five business days. Call us."
)
TABLE = source(2, WEIGHTS, "Price list", ("Weights",))


class TestPassages:
    def test_keep_in_one_line_what_looks_like_a_tag(self):
        folded = [source(n, f"Or WAIT [TIME=<seconds>] {n}.") for n in range(1, OPEN + 2)]

        assert written(asked("wait?", *folded)).split("More passages:")[1].count("\\<seconds>") == 1

    def test_keep_in_markdown_what_looks_like_a_tag_and_leave_code_alone(self):
        passage = "Say `SET a=<b>` now.\n\nOr WAIT [TIME=<seconds>] once.\n\n    echo <name>"

        text = written(asked("wait?", source(1, passage)))

        assert "SET a=<b>" in text
        assert "WAIT [TIME=\\<seconds>]" in text
        assert "    echo <name>" in text

    def test_stand_whole_with_their_headings(self):
        (passage,) = card_of(asked("How long does a refund take?", REFUNDS), embed).passages

        assert passage.text == REFUNDS.passage
        assert passage.heading == "Handbook › Refunds"

    def test_keep_the_order_of_the_search(self):
        likelier = [source(1, "The canteen opens at eleven."), source(2, "A refund takes days.")]

        card = card_of(asked("How long does a refund take?", *likelier), embed)

        assert [each.number for each in card.passages] == [1, 2]

    def test_are_three_open_and_the_others_folded(self):
        found = [source(n, f"A refund of kind {n} takes {n} days.") for n in range(1, 9)]

        card = card_of(asked("How long does a refund take?", *found), embed)

        assert [each.number for each in card.open] == [1, 2, 3]
        assert len(card.passages) == OPEN + len(card.folded) == MOST_SHOWN
        assert not any(each.marked for each in card.folded)

    def test_have_the_header_of_a_long_table_once(self):
        more = WEIGHTS.replace("Aero 5", "Brummer 1").replace("Aero 7", "Brummer 2")
        other = "| Colour | Code |\n| --- | --- |\n| red | 7 |"
        parts = source(1, f"{WEIGHTS}\n\n{more}\n\n{WEIGHTS}\n\n{other}", path=())

        (passage,) = card_of(asked("What is the weight of the Brummer 2?", parts), embed).passages

        lines = passage.text.split("\n")
        assert lines.count("| Name | Weight |") == lines.count("| Colour | Code |") == 1

    def test_leave_out_the_table_that_a_certain_cell_was_looked_up_in(self):
        looked_up = source(1, "| Item | Quantity |\n| --- | --- |\n| Gasket | 12 |", path=())
        looked_up = replace(looked_up, chunk_id="table:one:1")
        whole = "| Item | Quantity | Price |\n| --- | --- | --- |\n| Gasket | 12 | 3.40 |"
        same = replace(source(2, whole, path=()), document_id=looked_up.document_id)
        other_table = replace(same, number=3, passage=whole.replace("12", "14"))
        elsewhere = source(4, whole, path=())

        card = card_of(
            asked("What is the quantity of Gasket?", looked_up, same, other_table, elsewhere), embed
        )

        assert card.lead == 'Handbook: "Gasket · Quantity: **12**" [1]'
        assert [each.number for each in card.passages] == [1, 3, 4]

    def test_are_none_where_nothing_was_found(self):
        assert card_of(asked("How long does a refund take?"), embed) == Card()


class TestWhatIsMarked:
    def test_is_the_sentence_nearest_to_the_question(self):
        assert marked("How long does a refund take?", REFUNDS.passage) == [
            "A refund takes five business days."
        ]

    def test_is_one_row_at_most(self):
        assert marked("What is the weight of the Aero 5?", WEIGHTS) == ["| Aero 5 | 410 g |"]

    def test_is_two_sentences_at_most(self):
        text = " ".join(f"A refund of kind {each} takes long." for each in "abcde")

        assert len(marked("How long does a refund take?", text)) == 2

    def test_is_nothing_where_nothing_stands_out(self):
        assert marked("How long does a refund take?", "The canteen is closed on Mondays.") == []

    def test_never_repeats_the_question(self):
        faq = "Is the fan noisy at night?\nThis fan is noisy after an update."

        assert marked("Is the fan noisy at night?", faq) == ["This fan is noisy after an update."]
        assert marked("Is the fan noisy?", "The fan is noisy.") == []

    def test_is_a_value_behind_its_label(self):
        text = (
            "Flash point: -14 °C\nBoiling point: 56 to 79 °C\nDensity at 20 °C: 0.82 g/cm3\n\nMore."
        )

        assert "Flash point: -14 °C" in marked("What is the flash point?", text)

    def test_is_not_what_is_said_of_a_sibling(self):
        prices = source(1, WEIGHTS.replace("Aero 7", "Aero 5 Pro"), "Prices", ())

        for asked_for in NAMES:
            (shown,) = card_of(
                asked(f"How heavy is the {asked_for}?", prices), embed, NAMES
            ).passages
            ((start, end),) = shown.marked
            assert shown.text[start:end].startswith(f"| {asked_for} |")

    def test_goes_by_meaning_where_no_word_is_shared(self):
        def by_meaning(texts):
            return np.array(
                [[1.0, 0.0] if "days" in t or "long" in t else [0.0, 1.0] for t in texts]
            )

        found = marked(
            "How long?", "Call us. Five business days. Ask at the desk.", embed=by_meaning
        )

        assert found == ["Five business days."]

    def test_goes_by_words_alone_while_the_model_is_away(self):
        def away(texts):
            raise ModelUnavailable("no server")

        assert marked("How long does a refund take?", REFUNDS.passage, embed=away) == [
            "A refund takes five business days."
        ]


class TestWhatIsWeak:
    WEAK = asked("How long does a refund take?", REFUNDS, TABLE, relevance=0.01)
    NOTHING = Confidence(Certainty.NOTHING)

    @pytest.mark.parametrize(
        ("question", "said"),
        [
            ("How long does a refund take?", "The documents do not seem to answer this."),
            (
                "Wie lange dauert die Erstattung?",
                "Die Dokumente scheinen das nicht zu beantworten.",
            ),
            ("Combien de temps prend le retour ?", "Les documents ne semblent pas y répondre."),
        ],
    )
    def test_begins_with_saying_so_in_the_language_of_the_question(self, question, said):
        writer = CardWriter(embed, confidence=lambda text, readable: self.NOTHING)
        deltas = writer.write(asked(question, REFUNDS, TABLE, relevance=0.01))

        assert "".join(delta.text for delta in deltas).startswith(said)

    def test_is_folded_and_nothing_is_marked(self):
        card = card_of(self.WEAK, embed, confidence=self.NOTHING)

        assert card.is_weak
        assert card.open == ()
        assert [each.number for each in card.folded] == [1, 2]
        assert not any(each.marked for each in card.passages)

    def test_is_not_what_was_looked_up_or_pointed_at(self):
        pointed = asked("How long does a refund take?", REFUNDS, TABLE, relevance=0.1)

        assert not card_of(pointed, embed, confidence=self.NOTHING).is_weak

    def test_is_not_what_the_search_is_sure_of(self):
        assert not card_of(self.WEAK, embed).is_weak

    def test_what_is_not_sure_names_documents_to_choose_from(self):
        perhaps = Confidence(Certainty.PERHAPS)
        asked_for = asked("How long does a refund take?", REFUNDS, TABLE, relevance=0.2)
        card = card_of(asked_for, embed, confidence=perhaps)
        titles = ", ".join(each.document_title for each in (REFUNDS, TABLE))

        assert not card.is_weak
        assert card.perhaps == f"Perhaps in one of these: {titles}."
        assert card.perhaps in "".join(markdown_of(card))
        alone = asked("How long does a refund take?", REFUNDS, relevance=0.2)
        assert card_of(alone, embed, confidence=perhaps).perhaps == ""

    def test_what_another_language_asks_for_is_shown_where_no_sentence_can_be_near(self):
        foreign = asked("zzz", REFUNDS, TABLE, relevance=0.01)
        perhaps = Confidence(Certainty.PERHAPS)

        def unlike(texts):
            return np.eye(99, dtype=np.float32)[: len(texts)]

        assert card_of(foreign, unlike, confidence=perhaps).is_weak
        other = replace(perhaps, is_other_language=True)
        assert card_of(foreign, unlike, confidence=other).perhaps

    def test_what_can_be_computed_is_offered_before_it_is_denied(self):
        unlike = asked("zzz", REFUNDS, relevance=0.01)
        nothing = Confidence(Certainty.NOTHING)

        assert "do not seem" in card_of(unlike, embed, confidence=nothing).said
        offered = replace(unlike, has_offers=True)
        assert card_of(offered, embed, confidence=nothing).said.startswith("A table may tell")

    def test_a_name_alone_is_answered_in_the_language_of_the_talk(self):
        few = asked("Heron", REFUNDS, TABLE)
        perhaps = Confidence(Certainty.PERHAPS)

        german = replace(few, talk="Wie lange dauert die Erstattung?")

        assert card_of(few, embed, confidence=perhaps).perhaps.startswith("Perhaps")
        assert card_of(german, embed, confidence=perhaps).perhaps.startswith("Vielleicht")


class TestAsText:
    def test_nothing_is_bold(self):
        assert "**" not in written(asked("How long does a refund take?", REFUNDS, TABLE))

    def test_the_marked_row_carries_the_number(self):
        text = written(asked("What is the weight of the Aero 5?", TABLE))

        assert "> | Aero 5 | 410 g [2] |" in text

    def test_steps_are_numbered_without_a_dash_before(self):
        steps = source(1, "- 1. Unlock the gate of the pier.\n- 2. Set out two rings.")

        assert "\n> 2. Set out" in written(asked("How is the gate of the pier unlocked?", steps))

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (WEIGHTS, "Name · Weight; Aero 5 · 410 g; Aero 7 · 510 g"),
            ("Tools:\n\n- 1. A hammer.\n- 2. Nails.", "Tools: 1. A hammer. 2. Nails."),
            ("Run this:\n\n    make all", "Run this: make all"),
        ],
    )
    def test_folded_passages_are_one_line_without_signs(self, text, told):
        assert gist(QuotedPassage(1, "A", text)) == told

    def test_folded_passages_are_cut_with_their_number_behind(self):
        long = QuotedPassage(4, "B", "one two three four " * 30)
        first = [QuotedPassage(n, "A", "text") for n in (1, 2, 3)]

        assert "".join(markdown_of(Card((*first, long)))).endswith("one two three four … [4]")

    def test_documents_that_mention_a_name_are_counted_and_linked(self):
        mention = Mention("Aero 5", 7, (DocumentLink("d9", "a.md", "A [1] * list"),))
        writer = CardWriter(
            embed, lexicon=lambda readable: NAMES, mentions=lambda name, readable: mention
        )

        text = "".join(d.text for d in writer.write(asked("What does the Aero 5 weigh?", TABLE)))

        assert text.endswith(
            "7 documents mention Aero 5: [A (1) \\* list](/documents/d9) and 6 more."
        )
        assert set(cited_numbers(text)) == {2}

    @pytest.mark.parametrize(
        ("question", "words"),
        [
            ("What is the XK-4471-D?", "No document has XK-4471-D. Near are XK-4471-B."),
            ("Was ist die XK-4471-D?", "Kein Dokument enthält XK-4471-D. Ähnlich sind XK-4471-B."),
        ],
    )
    def test_a_code_that_no_document_holds_is_said_first(self, question, words):
        missing = (MissingIdentifier("XK-4471-D", ("XK-4471-B",)),)
        writer = CardWriter(embed, confidence=lambda text, readable: Confidence(missing=missing))
        found = source(1, "The XK-4471-B is a pump.")

        text = "".join(delta.text for delta in writer.write(asked(question, found)))

        assert text.startswith(words)

    def test_markers_of_the_documents_are_no_citations(self):
        found = source(3, "A refund takes five days [7]. See [1, 2].", "Title [4]", ("Path [5]",))

        assert set(cited_numbers(written(asked("How long does a refund take?", found)))) == {3}


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="aB5 .?:|-*1\n[]>#`", max_size=60), max_size=4),
    st.text(alphabet="aB5 ?[]1", max_size=30),
)
def test_no_number_is_invented_whatever_the_documents_say(passages, question):
    sources = [source(n + 1, text, text[:9], (text[:5],)) for n, text in enumerate(passages)]

    text = written(asked(question, *sources))

    assert set(cited_numbers(text)) <= {each.number for each in sources}


def test_a_quoted_passage_keeps_its_brackets_and_cites_nothing_by_them():
    passage = "The effect was 17 ms, 95 % CI [3, 9], in both groups of the first trial."
    said = written(asked("How large was the effect?", source(9, passage)))

    assert "`[3, 9]`" in said
    assert cited_numbers(said) == [9]
    assert cited_numbers(canonical(said)) == [9]  # imported again


def test_a_folded_passage_is_cut_outside_of_its_brackets():
    words = "word " * 59 + "[3, 9] and more that is left out here"
    folded = [source(at, f"Text {at}. {words}") for at in range(1, OPEN + 2)]
    said = written(asked("word?", *folded))

    assert set(cited_numbers(said)) == set(range(1, OPEN + 2))
    assert said.rpartition("- ")[2].count("`") % 2 == 0


def test_a_products_name_tells_no_language():
    prices = (source(n, f"The price of the Aero 5 Pro is € {n}90.", f"List {n}") for n in (1, 2))

    assert "Otherwise" in card_of(asked("price aero 5 pro", *prices), embed, NAMES).lead


class TestStatements:
    """What is compared with a question is embedded once for many."""

    def test_of_passages_that_were_read_before_are_not_embedded_again(self):
        embedder = HashEmbedder()
        writer = CardWriter(embedder.embed)
        list(writer.write(asked("How long does a refund take?", REFUNDS, TABLE)))
        embedder.embedded.clear()

        list(writer.write(asked("By which way is it paid?", REFUNDS, TABLE)))

        assert embedder.embedded == ["By which way is it paid?"]

    @given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), max_size=12))
    def test_have_the_vectors_of_the_model_however_few_are_remembered(self, asked_for):
        embedder = HashEmbedder()
        vectors = StatementVectors(embedder.embed, most=3)

        for texts in asked_for:
            np.testing.assert_array_equal(vectors.embed(texts), embed(texts))
            embedder.embedded.clear()
            newest = list(dict.fromkeys(texts))[-3:]
            np.testing.assert_array_equal(vectors.embed(newest), embed(newest))
            assert embedder.embedded == []

    def test_that_were_met_longest_ago_are_forgotten(self):
        embedder = HashEmbedder()
        vectors = StatementVectors(embedder.embed, most=2)
        for text in ("one", "two", "one", "three"):
            vectors.embed([text])
        embedder.embedded.clear()

        vectors.embed(["one", "two"])

        assert embedder.embedded == ["two"]

    def test_are_asked_for_again_after_the_model_was_away(self):
        def away(texts):
            raise ModelUnavailable("away")

        vectors = StatementVectors(away)
        with pytest.raises(ModelUnavailable):
            vectors.embed(["one"])
        vectors._embed = embed

        np.testing.assert_array_equal(vectors.embed(["one"]), embed(["one"]))
