import pytest

from rag.answers.evidence import weigh
from rag.answers.extractive import ExtractiveWriter
from rag.answers.passages import pieces_of
from rag.answers.questions import read_question
from rag.answers.verdict import verdict
from rag.citations.check import check
from rag.records import Source
from rag.seams import WriteRequest


def source(text):
    return Source(1, "c", "d", "n", "Manual", "", (), text, text, "")


def verdict_of(question, text):
    read = read_question(question)
    (found,) = weigh(read, pieces_of(source(text)), relevance={}, embedder=None)
    return verdict(read, found)


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Does the pico-link s have a light?", "The pico-link s has no light at all.", "No"),
        ("Can a gift card be returned?", "A gift card cannot be returned.", "No"),
        ("Is the Aero 4 discontinued?", "The Aero 4 is discontinued.", "Yes"),
        ("Does the hub support USB-C?", "The hub does support USB-C.", "Yes"),
        ("Does the Aero 5 lead the Aero 7?", "The Aero 7 can lead the Aero 5.", ""),
        ("Does it cover a garden?", "It covers a garden without walls.", ""),
        ("Is the Aero 4 still made?", "The Aero 4 is discontinued.", ""),
        ("Is the cable free?", "The cable is free only until May.", ""),
        ("Is the cable free?", "The cable is not free, and not new.", ""),
        ("Is the Aero 5 smaller than a book?", "The Aero 5 is smaller than a book.", ""),
        ("Is the cable red or blue?", "The cable is red, blue is sold out.", ""),
        ("Is the cable not free?", "The cable is not free.", ""),
        ("How free is the cable?", "The cable is free.", ""),
    ],
)
def test_a_verdict_is_given_only_where_it_is_plain(question, text, expected):
    assert verdict_of(question, text) == expected


def test_an_answer_leads_with_its_verdict_and_is_supported():
    text = "The pico-link s has no light at all."
    request = WriteRequest("Does the pico-link s have a light?", (source(text),), (), 500)

    answer = "".join(delta.text for delta in ExtractiveWriter(None).write(request))

    assert answer == "No: The pico-link s has no light at all [1]."
    assert check(answer, {1: source(text)}).unsourced == ()
