"""Which questions ask of the library itself."""

import json

import pytest

from benchmarks.corpora import data_dir
from rag.library.answers import courtesy, library_question

ASKED = {
    "contents": [
        "What is in the library?",
        "Which files are there?",
        "Can you list all your documents, please?",
        "How many documents do you have?",
        "What can I ask you?",
        "Was ist in der Bibliothek?",
        "Welche Dokumente gibt es?",
        "Wie viele Dateien hast du?",
    ],
    "newest": [
        "Show me the newest documents",
        "Which documents were added last?",
        "Welche Dokumente wurden zuletzt hinzugefügt?",
    ],
    "mentions": [
        "Which documents mention the Aero 5?",
        "How many files mention “parental leave”?",
        "Where is Bluetooth mentioned?",
        "In welchen Dokumenten kommt der Aero 5 vor?",
        "Wo wird Bluetooth erwähnt?",
    ],
    "topic": [
        "Which documents talk about refunds?",
        "Do you have a document about batteries?",
        "What do you have about firmware?",
        "Was habt ihr über Firmware?",
    ],
    "about": [
        "What is the support handbook about?",
        "What is in prices.csv?",
        "Give me an outline of the service manual",
        "Worum geht es im Handbuch?",
    ],
    "summary": [
        "Summarise the support handbook",
        "Please give me a short summary of section 2 of the FAQ",
        "tl;dr of memo.txt",
        "Fasse bitte das Handbuch zusammen",
    ],
    "unread": [
        "Which files could not be read and why?",
        "Why couldn't lease-scan.pdf be read?",
        "Welche Dateien konnten nicht gelesen werden?",
    ],
}


@pytest.mark.parametrize(
    ("kind", "question"), [(kind, each) for kind, those in ASKED.items() for each in those]
)
def test_is_recognised(kind, question):
    assert library_question(question).kind == kind


@pytest.mark.parametrize(
    "question",
    [
        "Which documents do I need for a refund?",
        "Which files contain the keymap?",
        "What is in the box?",
        "What does the warranty cover?",
        "How do I list all files?",
        "Why can't I apply a subscription code?",
        "Was kostet die Bibliothek?",
        "How long is the manual valid?",
        "Where is the reset button?",
        "Welche Unterlagen brauche ich für den Antrag?",
    ],
)
def test_is_none_of_the_library(question):
    assert library_question(question) is None


@pytest.mark.skipif(data_dir() is None, reason="the public data sets are not on this machine")
def test_hardly_any_question_that_people_asked_of_documents_has_such_a_form():
    asked = set()
    for path in sorted(data_dir().glob("*/dev/*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            asked.add(row.get("question") or row.get("text") or "")

    taken = [each for each in asked if isinstance(each, str) and library_question(each)]

    assert len(asked) > 10_000
    assert len(taken) <= len(asked) / 1_000, taken


@pytest.mark.parametrize(
    ("message", "kind"),
    [("hello", "greeting"), ("Thanks!", "thanks"), ("What can you do?", "help"),
     ("Guten Tag", "greeting"), ("Was kannst du?", "help"), ("Bonjour", "greeting")],
)  # fmt: skip
def test_a_whole_message_may_be_a_courtesy(message, kind):
    assert courtesy(message)[0] == kind


@pytest.mark.parametrize(
    "message", ["How long do refunds take?", "", "  ?", "hello world example", "Et quand je pars ?"]
)
def test_what_only_lies_near_one_is_none(message):
    assert courtesy(message) is None
