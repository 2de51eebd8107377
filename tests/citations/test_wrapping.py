"""A question out of the template that a program put around it."""

import time

import pytest

from rag.citations.register import Wrapped, unwrapped

CONTEXT = "The travel budget of team 2 is 2000 euros a year; trips are booked by the office. " * 4
QUESTION = "How long does the battery last?"


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("Use this.\n\n<context>\n{c}</context>\n\n{q}", id="context first"),
        pytest.param("{q}\n\nAttached:\n```md\n{c}\n```", id="context last"),
        pytest.param("{q}\n\n~~~\n{c}\n~~~", id="tildes"),
        pytest.param("<documents>\n<doc>{c}</doc>\n</documents>\n{q}", id="tags in tags"),
        pytest.param("<doc id=a>{c}</doc>\n<doc id=b>{c}</doc>\n\n{q}", id="several"),
        pytest.param("<prompt><data>{c}</data><query>{q}</query></prompt>", id="in one tag"),
        pytest.param("<data>{c}</data>\n<user_query>\n{q}\n</user_query>\nBe brief.", id="tagged"),
        pytest.param("## Context\n\n```\n{c}\n```\n\n## Question\n\n{q}", id="headings"),
        pytest.param("```\n{c}\n```\nand\n```\n{c}\n```\n\n{q}", id="two fences"),
    ],
)
def test_the_question_alone_is_left(template):
    assert unwrapped(template.format(c=CONTEXT, q=QUESTION)).question == QUESTION


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(QUESTION, id="bare"),
        pytest.param(f"What does <b>last</b> mean in `x`?\n```\nx\n```\n{QUESTION}", id="short"),
        pytest.param(f"<context>{CONTEXT}\n\n{QUESTION}", id="never closed"),
        pytest.param(f"<context>{CONTEXT}</context>", id="nothing else"),
        pytest.param(f"```\n{CONTEXT}\n```\nAnd?", id="nothing asked in words"),
        pytest.param(f"```\nx\n```\n{CONTEXT}\n```\nx\n```\n{QUESTION}", id="between fences"),
    ],
)
def test_what_is_no_template_stays_whole(text):
    assert unwrapped(text).question == text


def test_numbers_of_the_context_are_named_up_to_a_bound():
    context = f'<source id="7">{CONTEXT}</source><source id="2026">{CONTEXT} [9]</source>'

    assert unwrapped(f"{context}\n\n{QUESTION}") == Wrapped(QUESTION, 9)


@pytest.mark.parametrize(
    "hostile",
    ["".join(f"<a{n}> word " for n in range(9000)), "```a\n" * 20_000, "<query>   " * 9000],
    ids=["tags", "fences", "questions"],
)
def test_edges_without_end_take_no_time(hostile):
    began = time.thread_time()
    unwrapped(f"<context>{CONTEXT}</context>{hostile}")

    assert time.thread_time() - began < 2
