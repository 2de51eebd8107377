"""Sources that disagree, and answers about another product than asked."""

from dataclasses import replace

import pytest

from rag.chat.disagreeing import disagreement, other_product
from rag.records import Source
from tests.citations.test_check import AERO, FAMILY

HANDBOOK = replace(
    AERO,
    number=1,
    document_id="handbook",
    document_title="Handbook",
    text="",
    passage="| Product | Warranty |\n|---|---|\n| Tarn 2, Tarn 2 Max | 24 months |\n"
    "| Tarn 3 | 12 months |",
)
LIST = replace(
    HANDBOOK,
    number=2,
    document_id="list",
    document_title="Price list",
    passage="| Product | Price EUR | warranty_months |\n|---|---|---|\n| Tarn 2 | 149 | 24 |\n"
    "| Tarn 2 Max | 199 | 36 |",
)
MEMO = replace(
    HANDBOOK,
    number=3,
    document_id="memo",
    document_title="Memo",
    passage="Date: 12 May 2026. The Tarn 2 Max has a warranty of 36 months instead of 24. "
    "The price list takes precedence.",
)
ALL = [HANDBOOK, LIST, MEMO]


def test_says_both_values_and_which_holds() -> None:
    said = disagreement("How long is the warranty of the Tarn 2 Max?", ALL)

    assert "24 months (Handbook [1])" in said
    assert "36 months" in said
    assert "Memo [3] says: “The price list takes precedence.”" in said


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("How long is the warranty of the Tarn 2?", id="they-agree"),
        pytest.param("What does the Tarn 2 Max cost?", id="another-attribute"),
        pytest.param("How long is the warranty?", id="no-product"),
        pytest.param("", id="empty"),
    ],
)
def test_says_nothing_where_they_do_not_disagree(question: str) -> None:
    assert disagreement(question, ALL) == ""


def test_reads_no_source_whole_unless_two_documents_measure_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag.chat.disagreeing.read_source", None)
    steps = replace(MEMO, passage="1. Hold the button of the Tarn 2 Max.\n2. Tap it twice.")

    assert disagreement("How long is the warranty of the Tarn 2 Max?", [HANDBOOK, steps]) == ""


@pytest.mark.parametrize(
    "question", ["How can I open the mail?", "What should I do first", "Warum?", ""]
)
def test_reads_no_source_for_a_question_that_names_nothing(
    monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr("rag.chat.disagreeing.read_source", None)

    assert other_product(question, "Any Tarn 2 [1].", ALL) == ""


def test_says_that_the_answer_is_about_another_product() -> None:
    question = "What does the Tarn 2 cost?"

    assert "Tarn 2 Max" in other_product(question, "The Tarn 2 Max costs EUR 199 [4].", [FAMILY])
    assert other_product(question, "The Tarn 2 costs EUR 149 [4].", [FAMILY]) == ""
    assert other_product(question, "It costs EUR 149, the Tarn 2 Max more [4].", [FAMILY]) == ""


def page(number: int, passage: str, title: str = "") -> Source:
    name = title or f"Page {number}"
    return replace(
        AERO,
        number=number,
        document_id=name,
        document_title=name,
        heading_path=(),
        text="",
        passage=passage,
    )


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (
            "How long do refunds to customers abroad take?",
            "Refunds to customers abroad take 12 working days.",
            "Customers abroad get refunds within 5 working days.",
        ),
        (
            "What is the deposit for a rowing boat?",
            "The deposit for a rowing boat is €50.",
            "| Boat | Deposit |\n|---|---|\n| rowing boat | €80 |",
        ),
        (
            "How warm must the incubator for cultures be?",
            "The incubator for cultures is set to 37 °C.",
            "Set the incubator to 35 °C for all cultures.",
        ),
        (
            "How many days of holiday do trainees get?",
            "Trainees get 28 days of holiday a year.",
            "Each year trainees have 30 days of holiday.",
        ),
    ],
)
def test_statements_without_a_product_disagree_as_well(question: str, one: str, other: str) -> None:
    assert "The sources disagree" in disagreement(question, [page(1, one), page(2, other)])


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (
            "What is the deposit for a rowing boat?",
            "The deposit for a rowing boat is €50.",
            "A rowing boat costs €12 an hour.",
        ),
        (
            "How long do refunds to customers abroad take?",
            "Refunds to customers abroad take 12 working days.",
            "Parcels to customers abroad weigh at most 30 kg.",
        ),
        (
            "How much does the battery weigh?",
            "The battery of the Aero 5 weighs 120 g.",
            "The battery of the Tarn 2 weighs 140 g.",
        ),
        (
            "How warm must the incubator for cultures be?",
            "The incubator for cultures is set to 37 °C.",
            "The incubator for cultures is kept at 37 °C.",
        ),
        ("How long?", "It takes 5 days.", "It takes 9 days."),
    ],
)
def test_other_things_do_not_disagree(question: str, one: str, other: str) -> None:
    assert disagreement(question, [page(1, one), page(2, other)]) == ""


def test_what_holds_is_said_by_a_source_that_speaks_of_it_only() -> None:
    sources = [
        page(1, "The deposit for a rowing boat is €50."),
        page(2, "The deposit for a rowing boat is €80."),
        page(3, "For moorings the newer list takes precedence.", "Moorings"),
    ]

    told = disagreement("What is the deposit for a rowing boat?", sources)

    assert "50 €" in told
    assert "precedence" not in told
