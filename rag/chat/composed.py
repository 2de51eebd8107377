"""Answers that are put together by rules: cards, what stands above another, what is told beside."""

from collections.abc import Sequence
from dataclasses import replace

from rag.chat.disagreeing import disagreement, other_product
from rag.chat.drafting import Draft
from rag.citations.markers import find_markers
from rag.records import (
    Answer,
    Card,
    Citation,
    Judging,
    Notice,
    NoticeKind,
    SetAside,
    Source,
    Verdict,
)

SAID = "The model said:"


def quoted(draft: Draft, card: Card, shown: Sequence[Source]) -> Answer:
    """A card: what it says stands in its sources word for word, so nothing is left to check."""
    text = draft.preface + draft.text
    citations = all_cited(text, Verdict.SUPPORTED)
    notices = notices_beside(draft, text, shown)
    return Answer(
        text, citations, declined=card.is_weak, model=draft.model, card=card, notices=notices
    )


def set_aside(answer: Answer, text: str, card: Card, reason: str) -> Answer:
    """A card with what a model said below it, as a quotation."""
    lines = (f"> {line}".rstrip() for line in answer.text.splitlines())
    whole = "\n\n".join([text.rstrip(), f"**{SAID}** {reason}", "\n".join(lines)])
    of_card = all_cited(text, Verdict.SUPPORTED)
    below = all_cited(whole, Verdict.OPEN)[len(of_card) :]
    if len(below) == len(answer.citations):
        pairs = zip(answer.citations, below, strict=True)
        below = tuple(replace(each, start=at.start, end=at.end) for each, at in pairs)
    return replace(
        answer,
        text=whole,
        citations=(*of_card, *below),
        unsourced=(),
        figures=(),
        card=card,
        judging=Judging.OFF,
        set_aside=SetAside(answer.text, reason),
    )


def all_cited(text: str, verdict: Verdict) -> tuple[Citation, ...]:
    """Every number of a text that was made by rules, with the one verdict on it."""
    return tuple(
        Citation(number, marker.start, marker.end, verdict)
        for marker in find_markers(text)
        for number in marker.numbers
    )


def notices_beside(draft: Draft, text: str, sources: Sequence[Source]) -> tuple[Notice, ...]:
    """What people are told beside the answer: also where sources disagree, or it is off."""
    asked = draft.resolution.query if draft.resolution else ""
    told = (
        (NoticeKind.DISAGREEMENT, disagreement(asked, sources)),
        (NoticeKind.OTHER_PRODUCT, other_product(asked, text, sources)),
    )
    return (*draft.notices, *(Notice(kind, said) for kind, said in told if said))
