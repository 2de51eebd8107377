"""Answers that are put together by rules: cards, what stands above another, what is told beside."""

import re
from collections.abc import Sequence
from dataclasses import replace

from rag.chat.decision import NOTHING, decide
from rag.chat.draft import Draft
from rag.chat.evidence import EvidenceReader
from rag.citations.comparison.names import are_siblings, same_name
from rag.citations.comparison.parser import read, read_source
from rag.citations.markers import find_markers
from rag.language.figures import read_figures
from rag.language.names import Lexicon
from rag.language.words import language_of
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
from rag.seams import Embedder

SAID = "The model said:"


def quoted(draft: Draft, card: Card, shown: Sequence[Source]) -> Answer:
    """A card: what it says stands in its sources word for word, so nothing is left to check."""
    text = draft.preface + draft.text
    citations = tuple(
        replace(each, verdict=Verdict.OPEN) if each.number in card.denied else each
        for each in all_cited(text, Verdict.SUPPORTED)
    )
    notices = (*draft.notices, *_of_sibling(draft, text, shown))
    return Answer(
        text, citations, declined=card.is_weak, model=draft.model, card=card, notices=notices
    )


def set_aside(answer: Answer, text: str, card: Card, reason: str) -> Answer:
    """A card with what a model said below it, as a quotation."""
    whole = text.rstrip() + quotation(answer.text, reason)
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


def quotation(text: str, reason: str) -> str:
    """What a model said, to stand below the passages."""
    lines = (f"> {line}".rstrip() for line in text.splitlines())
    return "\n\n".join(["", f"**{SAID}** {reason}", "\n".join(lines)])


def all_cited(text: str, verdict: Verdict) -> tuple[Citation, ...]:
    """Every number of a text that was made by rules, with the one verdict on it."""
    return tuple(
        Citation(number, marker.start, marker.end, verdict)
        for marker in find_markers(text)
        for number in marker.numbers
    )


def notices_beside(
    draft: Draft, text: str, sources: Sequence[Source], embedder: Embedder | None
) -> tuple[Notice, ...]:
    """What people are told beside a model's answer: also where sources disagree, or it is off."""
    asked = draft.resolution.query if draft.resolution else ""
    lead = NOTHING
    if embedder is not None:
        names = {
            n for source in sources for n in read_source(source).lexicon.names if _tells_apart(n)
        }
        lead = decide(EvidenceReader(asked, sorted(names)).read(sources, embedder.embed), sources)
    told = [Notice(NoticeKind.DISAGREEMENT, lead.text)] if lead.is_denied else []
    return (*draft.notices, *told, *_of_sibling(draft, text, sources))


def _of_sibling(draft: Draft, text: str, sources: Sequence[Source]) -> list[Notice]:
    asked = draft.resolution.query if draft.resolution else ""
    said = other_product(asked, text, sources)
    return [Notice(NoticeKind.OTHER_PRODUCT, said)] if said else []


def other_product(question: str, answer: str, sources: Sequence[Source]) -> str:
    """What to say of an answer that names only a sibling of the product that was asked about."""
    named = (word for word in question.split()[1:] if word.strip(".,?!") != "I")
    if not any(any(map(str.isupper, word)) for word in named) and not re.search(r"\d", question):
        return ""  # it names nothing, and no source is read for it
    lexicon = Lexicon(n for source in sources for n in read_source(source).lexicon.names)
    asked, told = (_product_names(each, lexicon) for each in (question, answer))
    if len(asked) != 1 or any(same_name(asked[0], name) for name in told):
        return ""
    sibling = next((name for name in told if are_siblings(asked[0], name)), None)
    if sibling is None or read_figures(answer[: answer.lower().find(sibling)]):
        return ""  # something was said before, of what `it` stands for
    spelled = {name.lower(): name for name in lexicon.names}
    about = spelled.get(asked[0], asked[0])
    return f"You asked about the {about}; this speaks of the {spelled.get(sibling, sibling)}."


def _product_names(text: str, lexicon: Lexicon) -> list[str]:
    """Those that tell one product from another."""
    return [name for name in read(text, lexicon, language_of(text)).names if _tells_apart(name)]


def _tells_apart(name: str) -> bool:
    return any(each.isdigit() or each in " +" for each in name)
