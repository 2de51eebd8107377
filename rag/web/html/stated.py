"""What an answer says on a source's behalf, what came of comparing them, and which words decide."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from rag.citations.markers import find_markers
from rag.language.blocks import plain
from rag.language.sentences import Span
from rag.records import Citation, Message, Verdict
from rag.render.warned import verdict_in_words
from rag.web.html.pinpoint import clauses_citing

if TYPE_CHECKING:  # reading figures is loaded where there are some to read
    from rag.language.amounts import Figure

LONGEST_SAID = 300  # characters of a statement above its evidence
FEW_WORDS = 3  # that differ: more of them decide nothing by themselves
LIKE = 0.5  # how alike two sentences are of which a few words differ
NAMES = {
    Verdict.SUPPORTED: "Supported",
    Verdict.COMPUTED: "Recomputed",
    Verdict.CONTRADICTED: "Contradicted",
    Verdict.OFF_SUBJECT: "No such statement here",
}
_WORD = re.compile(r"\w+(?:[.,’']\w+)*")
Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement at one of its numbers."""

    said: str  # the words that carry the number
    citation: Citation | None = None  # None where nothing was compared: a card quotes

    @property
    def verdict(self) -> Verdict:
        return self.citation.verdict if self.citation else Verdict.OPEN

    @property
    def sought(self) -> str:
        """What is looked for in its source: what that says instead, where it contradicts."""
        cited = self.citation
        is_told = cited is not None and cited.stated and cited.given
        return self.said.replace(cited.stated, cited.given) if cited and is_told else self.said

    @property
    def name(self) -> str:
        """The verdict in a word or two; "" where nothing is known."""
        return NAMES.get(self.verdict, "")

    @property
    def reason(self) -> str:
        """What there is to add to its name."""
        if self.citation is None or self.verdict in (Verdict.OPEN, Verdict.SUPPORTED):
            return ""
        has_own = self.verdict is not Verdict.OFF_SUBJECT or self.citation.judged_by
        return verdict_in_words(self.citation) if has_own else ""


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement as it stands above its evidence."""

    stated: Stated
    words: Markup  # the statement, what decides strong
    differs: tuple[str, str] = ("", "")  # what it says and what its source says, if that is short


def stated_in(message: Message, number: int, start: int | None = None) -> tuple[Stated, ...]:
    """What an answer cites a source for: at the marker that begins there, or wherever it does."""
    text, answer = message.content, message.answer
    starts = [each.start for each in find_markers(text) if number in each.numbers]
    if start is not None and starts:
        starts = [min(starts, key=lambda each: abs(each - start))]
    citations = answer.citations if answer is not None else ()
    checked = {each.start: each for each in citations if each.number == number}
    return tuple(
        Stated(plain(" ".join(clause.split())), checked.get(each))
        for each in starts
        for clause in clauses_citing(text, number, start=each)
    )


def shown_statement(stated: Stated, quotes: Sequence[str]) -> ShownStatement:
    """As it is read beside the sentences of its source that speak of the same."""
    found = ((*deciding(stated, quote), quote) for quote in quotes)
    ours, theirs, quote = next((each for each in found if each[0]), ((), (), ""))
    citation = stated.citation
    differs = (citation.stated, citation.given) if citation is not None else ("", "")
    is_told = all(differs) or stated.verdict is not Verdict.CONTRADICTED
    if not is_told and len(ours) == len(theirs) == 1:
        differs = (stated.said[slice(*ours[0])], quote[slice(*theirs[0])])
    return ShownStatement(stated, strong(_cut(stated.said), ours), differs)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SAID else f"{text[: LONGEST_SAID - 1].rstrip()}…"


def strong(text: str, spans: Iterable[Span]) -> Markup:
    """A text with the words that decide strong."""
    parts, at = [], 0
    for span in sorted(spans):
        if at <= span.start < span.end <= len(text):
            parts += [
                escape(text[at : span.start]),
                Markup("<strong>{}</strong>").format(text[span.start : span.end]),
            ]
            at = span.end
    return Markup("").join([*parts, escape(text[at:])])


# ── What decides ─────────────────────────────────────────────────────────────────────────────


def deciding(stated: Stated, quote: str) -> tuple[Spans, Spans]:
    """Words of a statement, and words of a sentence of its source, by which the verdict was found.

    Of a contradiction what differs, else the figures that both have; none where nothing is checked.
    """
    citation = stated.citation
    if citation is None or stated.verdict in (Verdict.OPEN, Verdict.OFF_SUBJECT):
        return (), ()
    if stated.verdict is not Verdict.CONTRADICTED:
        return _same_figures(stated.said, quote)
    if citation.stated and citation.given:
        return _found(stated.said, citation.stated), _found(quote, citation.given)
    ours, theirs = _other_figures(stated.said, quote)
    return (ours, theirs) if ours and theirs else _few_words(stated.said, quote)


def _found(text: str, words: str) -> Spans:
    at = text.casefold().find(words.casefold())
    return (Span(at, at + len(words)),) if at >= 0 else ()


def _same_figures(said: str, quote: str) -> tuple[Spans, Spans]:
    ours, theirs = _figures(said), _figures(quote)
    both = {each.shown for each in ours} & {each.shown for each in theirs}
    return _spans(f for f in ours if f.shown in both), _spans(f for f in theirs if f.shown in both)


def _other_figures(said: str, quote: str) -> tuple[Spans, Spans]:
    """Those of one kind of which each side has others: of 410 m² and 64 devices, 120 m² is one."""
    ours, theirs = _figures(said), _figures(quote)
    both = {each.shown for each in ours} & {each.shown for each in theirs}
    kinds = {each.dimension for each in ours} & {each.dimension for each in theirs}
    kinds = kinds - {""} or kinds  # a number alone may be a part of a name
    found = (
        _spans(f for f in figures if f.shown not in both and f.dimension in kinds)
        for figures in (ours, theirs)
    )
    return next(found), next(found)


def _figures(text: str) -> Sequence["Figure"]:
    from rag.language.figures import read_figures

    return read_figures(text)


def _spans(figures: Iterable["Figure"]) -> Spans:
    return tuple(Span(each.start, each.end) for each in figures)


def _few_words(said: str, quote: str) -> tuple[Spans, Spans]:
    """What differs between two sentences that are else alike."""
    ours, theirs = list(_WORD.finditer(said)), list(_WORD.finditer(quote))
    compared = SequenceMatcher(
        None, [each[0].casefold() for each in ours], [each[0].casefold() for each in theirs], False
    )
    changed = [each for each in compared.get_opcodes() if each[0] != "equal"]
    here = tuple(Span(*each.span()) for _, a, b, _, _ in changed for each in ours[a:b])
    there = tuple(Span(*each.span()) for _, _, _, a, b in changed for each in theirs[a:b])
    are_alike = compared.ratio() >= LIKE and max(len(here), len(there)) <= FEW_WORDS
    return (here, there) if are_alike else ((), ())
