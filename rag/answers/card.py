"""The card of an answer: the best passages as they stand, and a line above where it is sure."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag.answers.choosing import WEAK, Chosen, chosen_in, in_order, is_sure
from rag.answers.parts import Part, parts_of
from rag.answers.quoting import line_of
from rag.answers.signs import Asked, Passage
from rag.citations.markers import neutralise
from rag.records import Card, CardPart, Mention, ShownPassage
from rag.seams import WriteRequest
from rag.text.names import Lexicon

MOST_SHOWN = 4  # for one question: the first passage, and three below it
MOST_MENTIONS = 3
Mentions = Callable[[str], Mention | None]


def card_of(request: WriteRequest, lexicon: Sequence[str], mentions: Mentions) -> Card:
    """The card; without parts where nothing was found."""
    passages = [Passage.of(source, request.relevance) for source in request.sources]
    if not passages:
        return Card()
    passages = [each for each in passages if each.relevance >= WEAK] or passages
    known = Lexicon(lexicon)
    parts = [
        _part(part, Asked.of(part.alone, known, is_part=bool(part.asked)), passages)
        for part in parts_of(request.question, lexicon)
    ]
    firsts = {part.passages[0].number for part in parts}
    if len(parts) > 1 and len(firsts) == 1:  # one passage answers them all
        parts = [_joined(parts)]
    named = dict.fromkeys(name.text for name in known.find(request.question))
    told = (mentions(name) for name in list(named)[:MOST_MENTIONS])
    return Card(_without_repeats(parts), tuple(each for each in told if each is not None))


def _part(part: Part, asked: Asked, passages: Sequence[Passage]) -> CardPart:
    ordered = in_order(asked, passages)
    shown = ordered[:MOST_SHOWN]
    chosen = chosen_in(asked, shown)
    key = chosen[0].key
    is_weak = all(passage.relevance < WEAK for passage in shown)
    is_said = not is_weak and key is not None and is_sure(asked, ordered, chosen[0])
    line = line_of(key) if key and is_said else ""
    return CardPart(
        asked=neutralise(part.asked),
        passages=tuple(map(_shown, chosen)),
        line=line if asked.is_served_by(line) else "",  # of a wide row it may leave out the answer
        is_weak=is_weak,
    )


def _shown(chosen: Chosen) -> ShownPassage:
    passage = chosen.passage
    return ShownPassage(
        number=passage.source.number,
        heading=neutralise(passage.headings),
        text=passage.text,
        marked=tuple((unit.start, unit.end) for unit in chosen.marked),
    )


def _joined(parts: Sequence[CardPart]) -> CardPart:
    """One part for all: what matters to any of them is marked in the passage."""
    marked = sorted({span for part in parts for span in part.passages[0].marked})
    first = replace(parts[0].passages[0], marked=tuple(marked))
    others = {each.number: each for part in parts for each in part.passages[1:]}
    lines = dict.fromkeys(part.line for part in parts)
    return CardPart(
        asked="",
        passages=(first, *list(others.values())[: MOST_SHOWN - 1]),
        line=" ".join(lines) if all(lines) else "",
        is_weak=all(part.is_weak for part in parts),
    )


def _without_repeats(parts: Sequence[CardPart]) -> tuple[CardPart, ...]:
    """Below the first ones no passage is listed twice."""
    had = {part.passages[0].number for part in parts}
    told = []
    for part in parts:
        others = [each for each in part.passages[1:] if each.number not in had]
        had.update(each.number for each in others)
        told.append(replace(part, passages=(part.passages[0], *others)))
    return tuple(told)
