"""Who greets, thanks or asks what can be done is answered; a question to the documents is not."""

import pytest

from benchmarks.corpora import packaged
from rag.errors import ModelUnavailable
from rag.library.manners import Manners
from rag.records import Resolution
from tests.fakes import HashEmbedder

EMBED = HashEmbedder().embed


def said_to(text, embed=EMBED):
    answer = Manners(embed).answer(None, text, Resolution(text, False, "unchanged"))
    return answer.text if answer else None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello", "Hello."),
        ("Thanks!", "You are welcome."),
        ("What can you do?", "I show the passages"),
        ("Guten Tag", "Guten Tag."),
        ("Was kannst du?", "Ich zeige die Stellen"),
    ],
)
def test_what_asks_nothing_is_answered_in_its_language(text, told):
    assert said_to(text).startswith(told)


def test_a_greeting_within_a_conversation_searches_nothing():
    resolved = Resolution("What does the Aero 5 cost? hello", True, "rules")

    answer = Manners(EMBED).answer(None, "hello", resolved)

    assert answer.resolution == Resolution("hello", False, "unchanged")


@pytest.mark.parametrize("text", ["How long do refunds take?", "", "  ?", "hello " * 20])
def test_a_question_is_left_to_the_documents(text):
    assert said_to(text) is None


def test_nothing_is_guessed_while_the_model_is_away():
    def away(texts):
        raise ModelUnavailable("no server")

    assert said_to("hello", away).startswith("Hello.")
    assert said_to("hello there, friend", away) is None


def test_of_a_model_whose_nearness_was_not_measured_only_examples_are_known():
    assert said_to("Thanks!", None).startswith("You are welcome.")
    assert said_to("How long do refunds take?", None) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "is_answered"),
    [
        ("good afternoon", True),
        ("great, thank you very much", True),
        ("perfect, that helped", True),
        ("thanks a lot!", True),
        ("many thanks", True),
        ("Hey, how are you?", True),
        ("What can it do?", False),
        ("Did that do well?", False),
        ("What are you able to do?", True),
        ("How does it work?", False),
        ("what can I do with it", False),
        ("hello world example", False),
        ("Was kann der Hund", False),
    ],
)
def test_by_meaning_with_the_packaged_model(text, is_answered):
    assert (said_to(text, packaged().embed) is not None) is is_answered
