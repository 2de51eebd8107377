"""A card as the page shows it: passages with what matters marked, each with its number."""

import re
from dataclasses import dataclass

from markupsafe import Markup

from rag.answers.markdown import cited
from rag.records import Answer, Card, CardPart, Mention, ShownPassage
from rag.text.sentences import Span
from rag.web.html.answers import Register, answer_html
from rag.web.html.evidence import Marks, text_html

_CELLS = re.compile(r"\s*(?<!\\)\|\s*")  # between those of a table's row


@dataclass(frozen=True, slots=True)
class PassageHtml:
    """One passage, open or to be opened."""

    number: int
    url: str
    heading: str
    html: Markup
    gist: str  # the one line of it while it is closed


@dataclass(frozen=True, slots=True)
class PartHtml:
    """What is shown for one question; the first passage stands open."""

    asked: str
    line: Markup
    is_weak: bool
    first: PassageHtml
    others: tuple[PassageHtml, ...]


@dataclass(frozen=True, slots=True)
class CardHtml:
    """A whole answer."""

    parts: tuple[PartHtml, ...]
    mentions: tuple[Mention, ...]


def card_html(answer: Answer | None, register: Register) -> CardHtml | None:
    """The card of an answer that has one."""
    if answer is None or answer.card is None:
        return None
    parts = tuple(_part(part, register) for part in answer.card.parts)
    return CardHtml(parts, answer.card.mentions)


def marked_in(card: Card, number: int) -> list[str]:
    """The sentences and rows of one source that a card marks."""
    passages = (each for part in card.parts for each in part.passages if each.number == number)
    return [each.text[start:end] for each in passages for start, end in each.marked]


def _part(part: CardPart, register: Register) -> PartHtml:
    shown = [_passage(each, register) for each in part.passages]
    line = cited(part.line, part.passages[0].number) if part.line else ""
    quoted = answer_html(_plain(line), register) if line else Markup("")
    return PartHtml(part.asked, quoted, part.is_weak, shown[0], tuple(shown[1:]))


def _plain(line: str) -> str:
    """Words of a document are no Markdown."""
    return "".join(f"\\{sign}" if sign in "\\*_`<>#~|&" else sign for sign in line)


def _passage(shown: ShownPassage, register: Register) -> PassageHtml:
    said = tuple(Span(start, end) for start, end in shown.marked)
    marks = Marks(Span(0, 0), said) if said else None
    return PassageHtml(
        number=shown.number,
        url=register.url(shown.number),
        heading=shown.heading,
        html=text_html(shown.text, marks, is_target=False),
        gist=_CELLS.sub(" · ", shown.key.strip("| ")),
    )
