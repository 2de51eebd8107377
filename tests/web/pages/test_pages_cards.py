"""Answer cards on the page."""

import pytest
from flask import get_template_attribute

from rag.chat.card import gist
from rag.records import Card, DocumentLink, Mention, QuotedPassage
from rag.render.answers import Register
from rag.render.evidence import FOLDED, parts_of, passage_html
from tests.made import made_source

REGISTER = Register("/sessions/s1", {n: made_source(n) for n in range(1, 6)}, answer=3)
MENTIONS = (Mention("X", 2, (DocumentLink("d1", "a", "A"),)),)
PASSAGES = tuple(QuotedPassage(n, f"Title {n}", f"Text {n}.") for n in range(1, 6))


def shown(app, card):
    with app.test_request_context():
        return str(get_template_attribute("card.html", "card_block")(card, REGISTER))


def test_what_is_nearest_is_marked_in_its_passage():
    html = passage_html(QuotedPassage(1, "A › B", "First. <b>Then</b> that.", ((7, 24),)))

    assert "First. <mark" in html
    assert "&lt;b&gt;Then&lt;/b&gt;" in html


def test_a_row_is_marked_as_a_row():
    html = passage_html(QuotedPassage(1, "A", "| A | B |\n| - | - |\n| 1 | 2 |", ((22, 31),)))

    assert 'class="is-marked"' in html


FAR = "Far from it.\n\n" * 40
NEAR = "Beside it.\n\nHere it is. And more.\n\nBeside it, too.\n\n"


@pytest.mark.parametrize(("before", "after"), [("", ""), (FAR, ""), ("", FAR), (FAR, FAR)])
def test_what_is_far_from_the_marks_is_folded(app, before, after):
    at = len(before) + NEAR.index("Here")
    passage = QuotedPassage(1, "A", before + NEAR + after, ((at, at + len("Here it is.")),))

    folded_before, open_part, folded_after = parts_of(passage)

    assert (folded_before.text, open_part.text, folded_after.text) == (before, NEAR, after)
    assert [open_part.text[a:b] for a, b in open_part.marked] == ["Here it is."]
    assert shown(app, Card((passage,))).count("<details") == bool(before) + bool(after)


def test_the_cell_of_a_leading_row_is_strong_and_all_else_is_text(app):
    lead = 'Handbook: "Aero <5> · Warranty: **24 months**" [1]. Otherwise memo: "a **b** c" [2].'

    html = shown(app, Card(PASSAGES[:2], lead=lead))

    assert "Aero &lt;5&gt; · Warranty: <strong>24 months</strong>&#34; <a" in html
    assert "a **b** c" in html


@pytest.mark.parametrize("text", ["x" * FOLDED * 2, "Short.\n\n" * 5, FAR])
def test_what_is_short_or_has_no_mark_is_whole(text):
    marked = () if text == FAR else ((0, 1),)

    assert [each.text for each in parts_of(QuotedPassage(1, "A", text, marked))] == ["", text, ""]


def test_folded_passages_are_one_line_until_they_are_opened():
    assert gist(QuotedPassage(2, "B", "One.\nTwo three.")) == "One. Two three."


def test_the_number_leads_to_what_this_answer_marks(app):
    html = shown(app, Card(PASSAGES, mentions=MENTIONS))

    assert 'href="/sessions/s1/sources/1?m=3#passage"' in html
    assert 'href="/sessions/s1/sources/5?m=3#passage"' in html
    assert "2 documents mention X" in html


def test_three_passages_stand_open_and_nothing_is_bold(app):
    html = shown(app, Card(PASSAGES))

    assert html.count('class="card-passage"') == 3
    assert html.count("<details>") == 2
    assert "<b>" not in html
    assert "<strong>" not in html


def test_what_hardly_answers_is_folded_below_the_line_that_says_so(app):
    html = shown(app, Card(PASSAGES, "These hardly answer:"))

    assert html.index("These hardly answer:") < html.index("<details>")
    assert 'class="card-passage"' not in html
