"""Parts of a card as the page shows them; `card.html` puts them together."""

from markupsafe import Markup

from rag.answers.markdown import cited
from rag.records import Card, CardPart, ShownPassage
from rag.text.sentences import Span
from rag.web.html.answers import Register, answer_html
from rag.web.html.evidence import NOWHERE, Marks, text_html


def line_html(part: CardPart, register: Register) -> Markup:
    """The quoted line above the passages, with its number; words of a document are no Markdown."""
    line = cited(part.line, part.passages[0].number)
    plain = "".join(f"\\{sign}" if sign in "\\*_`<>#~|&" else sign for sign in line)
    return answer_html(plain, register)


def passage_html(shown: ShownPassage) -> Markup:
    """A passage with what matters marked."""
    said = tuple(Span(start, end) for start, end in shown.marked)
    return text_html(shown.text, Marks(NOWHERE, said), is_target=False)


def marked_in(card: Card, number: int) -> list[str]:
    """The sentences and rows of one source that a card marks."""
    passages = (each for part in card.parts for each in part.passages if each.number == number)
    return [each.text[start:end] for each in passages for start, end in each.marked]
