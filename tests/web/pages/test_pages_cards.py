"""Answer cards on the page."""

from rag.records import (
    Answer,
    Card,
    CardPart,
    Citation,
    DocumentLink,
    Mention,
    ShownPassage,
    Source,
    Verdict,
)
from rag.web.html.answers import Register
from rag.web.html.cards import card_html


def source(number):
    return Source(number, f"c{number}", "d1", "a.md", "A", "§ B", ("B",), "text", "text", "")


REGISTER = Register("/sessions/s1", {1: source(1), 2: source(2)}, answer=3)


def shown(*passages, line=""):
    card = Card(
        (CardPart("", passages, line),), (Mention("X", 2, (DocumentLink("d1", "a", "A"),)),)
    )
    citations = (Citation(1, 5, 8, Verdict.SUPPORTED), Citation(1, 20, 23, Verdict.SUPPORTED))
    return card_html(Answer("text", citations, card=card), REGISTER)


def test_what_matters_is_marked_in_its_passage():
    (part,) = shown(ShownPassage(1, "A › B", "First. <b>Then</b> that.", ((7, 24),))).parts

    assert "First. <mark" in part.first.html
    assert "&lt;b&gt;Then&lt;/b&gt;" in part.first.html


def test_the_number_leads_to_what_this_answer_marks():
    (part,) = shown(ShownPassage(1, "A", "text")).parts

    assert part.first.url == "/sessions/s1/sources/1?m=3#passage"


def test_the_line_above_is_text_and_carries_its_number():
    (part,) = shown(ShownPassage(1, "A", "text"), line="*Take* <i>5</i> days.").parts

    assert "<em>" not in part.line
    assert "<i>" not in part.line
    assert 'data-n="1"' in part.line


def test_a_row_is_marked_as_a_row():
    (part,) = shown(ShownPassage(1, "A", "| A | B |\n| - | - |\n| 1 | 2 |", ((22, 31),))).parts

    assert 'class="is-marked"' in part.first.html


def test_further_passages_are_one_line_until_they_are_opened():
    (part,) = shown(
        ShownPassage(1, "A", "text"), ShownPassage(2, "B", "One.\nTwo three.", ((5, 15),))
    ).parts

    assert part.others[0].gist == "Two three."


def test_an_answer_without_a_card_is_shown_as_text():
    assert card_html(Answer("text"), REGISTER) is None
