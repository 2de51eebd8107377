"""Questions that nobody should ask, over the API and over the page."""

import time

import pytest

pytestmark = pytest.mark.slow

QUESTIONS = [
    pytest.param("q " * 50_000, id="100,000 characters"),
    pytest.param("   \n\t ", id="only spaces"),
    pytest.param("", id="empty"),
]
ODD = [
    pytest.param("[99] [1][2] 【3】 [1-5]", id="markers"),
    pytest.param("<script>alert(1)</script> weight <b>of</b> the Aero 5", id="HTML"),
    pytest.param("weight\x00 \ud800 of the Aero 5", id="what no database holds"),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_cannot_be_asked_is_refused_and_stores_nothing(library, question):
    session_id = library.session()

    refused = library.post(f"/sessions/{session_id}/messages", json={"content": question})
    page = library.page(f"/sessions/{session_id}/ask", form={"content": question})

    assert refused.status_code in (413, 422)
    assert refused.get_json()["detail"]
    assert page.status_code in (200, 400, 413, 422)
    assert library.get(f"/sessions/{session_id}/messages")["total"] == 0
    assert library.ask(session_id, "How much does the Aero 5 weigh?")["citations"]


def test_a_long_question_is_refused_with_both_numbers_and_stays_in_its_form(library):
    session_id = library.session()
    question = "q" * 100_000

    refused = library.post(f"/sessions/{session_id}/messages", json={"content": question})
    page = library.page(f"/sessions/{session_id}/ask", form={"content": question})

    assert refused.status_code == 413
    assert "100,000" in refused.get_json()["detail"]
    assert "20,000" in refused.get_json()["detail"]
    assert question in page.get_data(as_text=True)
    assert "100,000" in page.get_data(as_text=True)


@pytest.mark.parametrize("question", ODD)
def test_odd_questions_are_only_words(library, question):
    session_id = library.session()

    answer = library.ask(session_id, question)
    page = library.page(
        f"/sessions/{session_id}/ask", form={"content": question.replace("\ud800", "")}
    )

    assert "[99]" not in answer["content"]
    registered = set(library.numbers(session_id).values())
    assert {each["n"] for each in answer["citations"]} <= registered
    assert page.status_code == 200
    assert "<script>alert" not in page.get_data(as_text=True)
    assert "<b>of</b>" not in page.get_data(as_text=True)
    for address in ("search?q=alert", "settings", "summaries"):
        shown = library.page(f"/sessions/{session_id}/{address}").get_data(as_text=True)
        assert "<script>alert" not in shown


def test_a_question_too_long_for_a_window_is_answered_where_no_model_reads_it(library):
    session_id = library.session(context_config={"max_tokens": 800})

    answered = library.post(
        f"/sessions/{session_id}/messages", json={"content": "battery life " * 700}
    )

    assert answered.status_code == 200
    assert answered.get_json()["card"] is not None
    assert library.ask(session_id, "How much does the Aero 5 weigh?")["citations"]


@pytest.mark.parametrize(
    "repeated", [".", "-", *(pytest.param(each, marks=pytest.mark.slow) for each in "…?")]
)
def test_what_says_nothing_many_times_costs_next_to_nothing(library, repeated):
    body = b"# Aero\n\nIt weighs 120 g. " + 19_000 * repeated.encode()
    session_id = library.session()
    library.ask(session_id, "What is first loads what is needed?")
    begun = time.process_time()

    for ending in ("md", "txt", "html", "csv"):
        library.upload(f"dots.{ending}", body)
    library.ask(session_id, "How heavy is the Aero" + 19_000 * repeated)

    assert library.page(f"/sessions/{session_id}").status_code == 200
    assert time.process_time() - begun < 3
