"""Passages of a card as the page shows them; `card.html` puts them together."""

import re
from dataclasses import replace

from markupsafe import Markup

from rag.citations.markers import find_markers
from rag.language.sentences import Span
from rag.records import Card, ShownPassage
from rag.web.html.evidence import NOWHERE, Marks, text_html

FOLDED = 400  # characters, at least, far from what is marked: what is folded saves a look


def parts_of(shown: ShownPassage) -> tuple[ShownPassage, ShownPassage, ShownPassage]:
    """What stands before and after what is marked and the blocks beside it, to be folded.

    Both are empty where they are short, or nothing is marked.
    """
    text, start, end = shown.text, 0, len(shown.text)
    if shown.marked:
        blocks = [0, *(found.end() for found in re.finditer(r"\n\n", text))]
        first, last = min(shown.marked)[0], max(until for _, until in shown.marked)
        start = [block for block in blocks if block <= first][-2:][0]
        end = ([block for block in blocks if block >= last][1:] or [end])[0]
    start = start if start >= FOLDED else 0
    end = end if len(text) - end >= FOLDED else len(text)
    marked = tuple((each - start, until - start) for each, until in shown.marked)
    before, after = (replace(shown, text=part, marked=()) for part in (text[:start], text[end:]))
    return before, replace(shown, text=text[start:end], marked=marked), after


def passage_html(shown: ShownPassage) -> Markup:
    """A passage with what is nearest to the question marked."""
    said = tuple(Span(start, end) for start, end in shown.marked)
    return text_html(shown.text, Marks(NOWHERE, said), is_target=False)


def lead_of(card: Card) -> list[tuple[str, int]]:
    """The words of a card's lead, each stretch with the number behind it; 0 behind the last."""
    parts, at = list[tuple[str, int]](), 0
    for marker in find_markers(card.lead):
        parts.append((card.lead[at : marker.start], marker.numbers[0]))
        at = marker.end
    return [*parts, (card.lead[at:], 0)]


def marked_in(card: Card, number: int) -> list[str]:
    """The sentences and rows of one source that a card marks."""
    passages = (passage for passage in card.passages if passage.number == number)
    return [passage.text[start:end] for passage in passages for start, end in passage.marked]
