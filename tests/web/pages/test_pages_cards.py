"""Answer cards on the page."""

from flask import get_template_attribute

from rag.answers.markdown import gist
from rag.records import Card, DocumentLink, Mention, ShownPassage
from rag.web.html.answers import Register
from rag.web.html.cards import passage_html
from tests.made import made_source

REGISTER = Register("/sessions/s1", {n: made_source(n) for n in range(1, 6)}, answer=3)
MENTIONS = (Mention("X", 2, (DocumentLink("d1", "a", "A"),)),)
PASSAGES = tuple(ShownPassage(n, f"Title {n}", f"Text {n}.") for n in range(1, 6))


def shown(app, card):
    with app.test_request_context():
        return str(get_template_attribute("card.html", "card_block")(card, REGISTER))


def test_what_is_nearest_is_marked_in_its_passage():
    html = passage_html(ShownPassage(1, "A › B", "First. <b>Then</b> that.", ((7, 24),)))

    assert "First. <mark" in html
    assert "&lt;b&gt;Then&lt;/b&gt;" in html


def test_a_row_is_marked_as_a_row():
    html = passage_html(ShownPassage(1, "A", "| A | B |\n| - | - |\n| 1 | 2 |", ((22, 31),)))

    assert 'class="is-marked"' in html


def test_folded_passages_are_one_line_until_they_are_opened():
    assert gist(ShownPassage(2, "B", "One.\nTwo three.")) == "One. Two three."


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
