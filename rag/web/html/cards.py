"""Passages of a card as the page shows them; `card.html` puts them together."""

from markupsafe import Markup

from rag.records import Card, ShownPassage
from rag.text.sentences import Span
from rag.web.html.evidence import NOWHERE, Marks, text_html


def passage_html(shown: ShownPassage) -> Markup:
    """A passage with what is nearest to the question marked."""
    said = tuple(Span(start, end) for start, end in shown.marked)
    return text_html(shown.text, Marks(NOWHERE, said), is_target=False)


def marked_in(card: Card, number: int) -> list[str]:
    """The sentences and rows of one source that a card marks."""
    passages = (each for each in card.passages if each.number == number)
    return [each.text[start:end] for each in passages for start, end in each.marked]
