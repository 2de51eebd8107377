"""What is asked of a model, and what is made of its replies."""

import pytest

from rag.citations.binding import Evidence
from rag.errors import ModelUnavailable, UnreadableReply
from rag.summaries.facts import Said, facts_of
from rag.summaries.repair import sift
from rag.summaries.shorten import closed, telegram, trim_sentence
from rag.summaries.summarize import (
    Summariser,
    correction_prompt,
    first_prompt,
    parse_summary,
    transcript_text,
)
from rag.summaries.verify import check_summary
from rag.tokens import count_tokens

TURNS = [
    Said("user", "Tell me about the Vega 5."),
    Said("assistant", "The Vega 5 weighs 240 g [1]. It is not waterproof [2]. It looks nice."),
]
FACTS = facts_of(TURNS)
EVIDENCE = Evidence(FACTS.claims, FACTS.plain)


def check(text, **options):
    return check_summary(text, FACTS, EVIDENCE, **options)


def summarised(*replies, retry_tokens=500):
    asked = []

    def ask(instructions, text):
        asked.append((instructions, text))
        reply = replies[len(asked) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply

    summariser = Summariser(ask, count_tokens, 800, retry_tokens)
    return summariser.summarise(TURNS, FACTS, EVIDENCE, room=4000), asked


class TestTheCheck:
    def test_passes_a_summary_that_keeps_all(self):
        checked = check("The Vega 5 weighs 240 g [1]. It is not waterproof [2].")

        assert checked.passed
        assert checked.problems == ()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("The Vega 5 weighs 240 g [1].", "lost citations: [2]"),
            (
                "The Vega 5 weighs 240 g [1][9]. It is not waterproof [2].",
                "invented citations: [9]",
            ),
            (
                "The Vega 5 weighs 240 g [2]. It is not waterproof [1].",
                "misplaced citations: [2][1]",
            ),
            ("It weighs 240 g [1]. It is not waterproof [2].", "lost names: Vega 5"),
            ("The Vega 6 weighs 240 g.", "unknown names: Vega 6"),
        ],
    )
    def test_says_what_is_wrong(self, text, problem):
        assert problem in check(text).problems

    def test_finds_a_summary_too_long(self):
        checked = check("The Vega 5 weighs 240 g [1]. It is not waterproof [2].", tokens=9, limit=5)

        assert not checked.passed
        assert checked.problems == ("9 tokens instead of 5",)


class TestSifting:
    def test_keeps_bound_sentences_and_uncited_ones_that_the_turns_bear_out(self):
        sifted = sift(["assistant: The Vega 5 weighs 240 g [1]. It looks nice."], FACTS, EVIDENCE)

        assert [fact.text for fact in sifted.facts] == ["The Vega 5 weighs 240 g [1]."]
        assert sifted.prose == ("It looks nice.",)
        assert sifted.removed == 0

    def test_takes_out_single_markers_and_whole_sentences(self):
        reply = "The Vega 5 weighs 240 g [1][2][9]. It weighs 250 g [1]. Call 0800 for help."

        sifted = sift([reply], FACTS, EVIDENCE)

        assert [fact.text for fact in sifted.facts] == ["The Vega 5 weighs 240 g [1]."]
        assert sifted.prose == ()
        assert sifted.removed == 3

    def test_of_two_replies_counts_a_sentence_once(self):
        sifted = sift(["The Vega 5 weighs 240 g [1]."] * 2, FACTS, EVIDENCE)

        assert len(sifted.facts) == 1


class TestAsking:
    def test_lists_numbers_and_names_before_long_turns(self):
        turns = [Said("assistant", TURNS[1].text + " It looks nice." * 200)]

        prompt = first_prompt(turns, facts_of(turns), count_tokens, room=4000)

        assert prompt.startswith("Keep these citations: [1][2]\n\nKeep these names: Vega 5")

    def test_leaves_out_the_middle_of_what_is_too_long(self):
        turns = [Said("user", "short"), Said("assistant", "begin " + "word " * 5000 + "end")]

        text = transcript_text(turns, count_tokens, room=300)

        assert count_tokens(text) <= 300
        assert text.startswith("user: short\nassistant: begin")
        assert text.endswith("end")

    def test_happens_once_more_with_what_was_wrong(self):
        attempted, asked = summarised("The Vega 5 weighs 240 g [1].", "It is not waterproof [2].")

        assert attempted.attempts == 2
        assert attempted.kept_by_model == 2
        assert "Missing: Vega 5: It is not waterproof [2]." in asked[1][1]

    def test_is_not_repeated_without_room(self):
        attempted, asked = summarised("Nothing at all.", retry_tokens=0)

        assert len(asked) == 1
        assert "lost citations: [1][2]" in attempted.problems

    def test_survives_a_failure_of_the_second_try(self):
        attempted, _ = summarised("The Vega 5 weighs 240 g [1].", ModelUnavailable("Away."))

        assert attempted.kept_by_model == 1
        assert attempted.problems[-1] == "the second try failed: Away."

    def test_correction_fits_its_room(self):
        checked = check("Nothing.")

        for room in (0, 10, 40, 200):
            assert count_tokens(correction_prompt(checked, FACTS, count_tokens, room=room)) <= room

    @pytest.mark.parametrize("reply", ["", "  \n", "x" * 30_000])
    def test_ends_in_an_error_where_the_reply_is_no_summary(self, reply):
        with pytest.raises(UnreadableReply, match="Expected a summary"):
            parse_summary(reply)

    def test_takes_our_title_off_a_reply(self):
        assert parse_summary("Previous conversation summary:\nuser: It is red.") == "It is red."


class TestShortening:
    @pytest.mark.parametrize(
        ("sentence", "shorter"),
        [
            (
                "However, the Vega 5 (a newer model) weighs 240 g, which is nice to hold [1].",
                "The Vega 5 weighs 240 g [1].",
            ),
            (
                "Note that it lasts 30 hours, but not in winter [2].",
                "It lasts 30 hours, but not in winter [2].",
            ),
            (
                "It costs 9 euros, so it sells well, and weighs 5 g [3].",
                "It costs 9 euros, and weighs 5 g [3].",
            ),
            (
                "It weighs 240 g (without the 3 screws) [1].",
                "It weighs 240 g (without the 3 screws) [1].",
            ),
            ("The lamp; it shines [1].", "The lamp; it shines [1]."),
        ],
    )
    def test_drops_asides_that_state_nothing(self, sentence, shorter):
        assert trim_sentence(sentence) == shorter

    def test_drops_fillers_and_articles_before_names(self):
        assert telegram("The Vega 5 also beats the iNova 2 by a mile [1].") == (
            "Vega 5 beats iNova 2 by a mile [1]."
        )

    def test_cuts_what_is_still_long_and_keeps_what_matters(self):
        long = f"Vega 5 {'very plain words that go on ' * 9}do not exceed 240 g at all [1]."

        short = telegram(long)

        assert len(short) < len(long) / 2
        for kept in ("Vega 5", "not", "240 g", "[1]", "…"):
            assert kept in short

    @pytest.mark.parametrize("text", ["It is red", "It is red.", 'He said "no."', "Is it?"])
    def test_closes_sentences(self, text):
        assert closed(text).rstrip('"').endswith((".", "?"))

    @pytest.mark.parametrize("text", ["很轻 [1]。", "ما هو [1]؟", "यह है [1]।", "「軽い [1]。」"])
    def test_adds_no_full_stop_to_one_of_another_script(self, text):
        assert closed(text) == text
