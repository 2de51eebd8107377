"""Answer cards on the page."""

from flask import get_template_attribute

from rag.answers.markdown import gist
from rag.records import Card, CardPart, DocumentLink, Mention, ShownPassage, Source
from rag.web.html.answers import Register
from rag.web.html.cards import line_html, passage_html


def source(number):
    return Source(number, f"c{number}", "d1", "a.md", "A", "§ B", ("B",), "text", "text", "")


REGISTER = Register("/sessions/s1", {1: source(1), 2: source(2)}, answer=3)
MENTIONS = (Mention("X", 2, (DocumentLink("d1", "a", "A"),)),)


def part(*passages, line=""):
    return CardPart("", passages, line)


def test_what_matters_is_marked_in_its_passage():
    html = passage_html(ShownPassage(1, "A › B", "First. <b>Then</b> that.", ((7, 24),)))

    assert "First. <mark" in html
    assert "&lt;b&gt;Then&lt;/b&gt;" in html


def test_a_row_is_marked_as_a_row():
    html = passage_html(ShownPassage(1, "A", "| A | B |\n| - | - |\n| 1 | 2 |", ((22, 31),)))

    assert 'class="is-marked"' in html


def test_the_line_above_is_text_and_carries_its_number():
    line = line_html(part(ShownPassage(1, "A", "text"), line="*Take* <i>5</i> days."), REGISTER)

    assert "<em>" not in line
    assert "<i>" not in line
    assert 'data-n="1"' in line


def test_further_passages_are_one_line_until_they_are_opened():
    assert gist(ShownPassage(2, "B", "One.\nTwo three.", ((5, 15),))) == "Two three."


def test_the_number_leads_to_what_this_answer_marks(app):
    card = Card((part(ShownPassage(1, "A", "text"), ShownPassage(2, "B", "more")),), MENTIONS)
    with app.test_request_context():
        shown = get_template_attribute("card.html", "card_block")(card, REGISTER)

    assert 'href="/sessions/s1/sources/1?m=3#passage"' in shown
    assert 'href="/sessions/s1/sources/2?m=3#passage"' in shown
    assert "2 documents mention X" in shown
