"""A card as the page shows it: passages with what matters marked, each with its number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rag.answers.markdown import cited
from rag.records import Answer, CardPart, Citation, Mention, ShownPassage
from rag.text.sentences import Span
from rag.web.answers_html import Register, answer_html
from rag.web.evidence import Marks, text_html


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
    places = _first_places(answer.citations)
    parts = tuple(_part(part, register, places) for part in answer.card.parts)
    return CardHtml(parts, answer.card.mentions)


def _first_places(citations: Sequence[Citation]) -> dict[int, int]:
    return {citation.number: citation.start for citation in reversed(citations)}


def _part(part: CardPart, register: Register, places: Mapping[int, int]) -> PartHtml:
    shown = [_passage(each, register, places) for each in part.passages]
    line = cited(part.line, part.passages[0].number) if part.line else ""
    quoted = answer_html(_plain(line), register) if line else Markup("")
    return PartHtml(part.asked, quoted, part.is_weak, shown[0], tuple(shown[1:]))


def _plain(line: str) -> str:
    """Words of a document are no Markdown."""
    return "".join(f"\\{sign}" if sign in "\\*_`<>#~|&" else sign for sign in line)


def _passage(shown: ShownPassage, register: Register, places: Mapping[int, int]) -> PassageHtml:
    said = tuple(Span(start, end) for start, end in shown.marked)
    marks = Marks(Span(0, 0), said) if said else None
    return PassageHtml(
        number=shown.number,
        url=register.url(shown.number, places.get(shown.number, 0)),
        heading=shown.heading,
        html=text_html(shown.text, marks, is_target=False),
        gist=shown.key,
    )
