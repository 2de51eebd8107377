"""A conversation of sixty turns is stepped through, beside exactly what a model would be sent."""

import re

import pytest

from rag.tokens import count_tokens
from rag.web.pages.sessions import WINDOWS, read_talk, replay


@pytest.mark.parametrize("window", WINDOWS)
def test_every_turn_fits_and_loses_nothing(window):
    talk = read_talk()

    for at, sent in enumerate(replay(window)):
        said = "".join(each["answer"] for each in talk["turns"][:at])
        text = "".join(each["content"] for each in sent.messages)
        assert count_tokens(text) <= sent.total <= window
        if sent.report is not None:
            assert sent.report.citations_lost == sent.report.names_lost == 0
        if window >= 2_000:
            assert set(re.findall(r"\[(\d+)\]", said)) <= set(re.findall(r"\[(\d+)\]", text))


def test_the_page_shows_the_turn_and_its_messages(client):
    page = client.get("/long-talk?turn=60").text

    assert "Turn 60 of 60" in page
    assert "Previous conversation summary:" in page
    assert "Marta Lind" in page
    assert "turn=59" in page


def test_it_begins_where_the_first_turns_fall_out(client):
    page = client.get("/long-talk").text

    assert "Summarised:" in page
    assert "Written by hand" in page


@pytest.mark.parametrize("query", ["window=7", "turn=x"])
def test_what_is_not_there_is_refused(client, query):
    assert client.get(f"/long-talk?{query}").status_code in (400, 422)


@pytest.mark.parametrize("fact", ["Marta Lind", "380 m²", "1987", "EUR 22,000", "Jonas Weber"])
def test_what_the_user_said_of_herself_is_in_what_is_sent_for_an_overview(fact):
    assert fact in "".join(each["content"] for each in replay(2_000)[-1].messages)
