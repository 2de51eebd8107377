"""The one decision over the evidence: a lead of quoted words, each with its number, or nothing.

Values are compared only in one unit, of one subject, with a word of the question that stands with
both. What is denied by other evidence is never said alone: the source leads that says itself that
it supersedes, else the newer one, else both stand side by side.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.chat.evidence import COMPUTED, LONGEST, LOOKED_UP, SourceEvidence, is_looked_up
from rag.citations.markers import neutralise
from rag.language.amounts import UNIT_SIGNS, Figure, agree, dates
from rag.language.figures import read_figures
from rag.language.languages import ENGLISH, Language, phrases
from rag.language.sentences import split_sentences
from rag.language.words import stem
from rag.records import Source

SURE = 0.9  # likeness from which evidence is said
NEAR, AHEAD = 0.7, 0.4  # or from which it is, so much nearer than all that says otherwise
BESIDE_ITSELF = 0.1  # nearer than so, another case of the same document may be meant
UNIT_WORDS = frozenset(map(stem, UNIT_SIGNS))  # "days" says nothing of what they are of
BESIDE = 0.35  # less of it, and evidence may still deny what is said
MOST_DENIALS = 2
_SUPERSEDES = re.compile(rf"\b(?:{phrases('prevails')}|{phrases('supersedes')})\b", re.IGNORECASE)
_QUOTES = str.maketrans('“”„"', "''''")


@dataclass(frozen=True, slots=True)
class Lead:
    """What is said first, as Markdown with its numbers."""

    text: str = ""
    said: tuple[SourceEvidence, ...] = ()  # what it quotes, what holds first

    @property
    def is_denied(self) -> bool:
        """Whether other evidence says otherwise."""
        return len(self.said) > 1


NOTHING = Lead()


def decide(
    evidence: Sequence[SourceEvidence],
    sources: Sequence[Source],
    language: Language = ENGLISH,
) -> Lead:
    """The lead in a language; nothing where no evidence is near enough to be said."""
    if not evidence or not _is_sure(evidence):
        return NOTHING
    best = evidence[0]
    least = best.likeness - BESIDE - LOOKED_UP * is_looked_up(best.source)
    is_computed = best.kind == COMPUTED
    others = [each for each in evidence if is_computed or each.likeness >= least]
    denials = _of_each_document([other for other in others if denies(best, other)])
    if not denials:
        return Lead(_quoted(best), (best,))
    first, *rest = _by_precedence([best, *denials], sources)
    words = language.speech["otherwise"]
    rest = rest[:MOST_DENIALS]
    told_after = "; ".join(map(_quoted, rest))
    return Lead(words.format(first=_quoted(first), others=told_after), (first, *rest))


def _is_sure(evidence: Sequence[SourceEvidence]) -> bool:
    """Whether the nearest may be said: near enough by itself, or by far the nearest."""
    best, *rest = evidence
    told = [best, *(each for each in rest if denies(best, each))]
    others = [each for each in rest if not any(_agree(one, each) for one in told)]
    ahead = best.likeness - max((each.likeness for each in others), default=0.0)
    cases = [e for e in others if _place(e) == _place(best)]
    case = max((e.likeness for e in cases if _is_alike(best, e)), default=0.0)
    if best.likeness >= SURE:
        return best.likeness - case >= BESIDE_ITSELF
    return best.likeness >= NEAR and ahead >= AHEAD


def _agree(one: SourceEvidence, other: SourceEvidence) -> bool:
    return any(agree(a, b) for a in one.values for b in other.values if a.kind == b.kind)


def _place(evidence: SourceEvidence) -> tuple[str, bool]:
    return evidence.source.document_id, evidence.kind == "row"


def _is_alike(one: SourceEvidence, other: SourceEvidence) -> bool:
    dimensions = {a.dimension for a in _amounts(one)}
    return any(a.dimension in dimensions for a in _amounts(other))


def denies(one: SourceEvidence, other: SourceEvidence) -> bool:
    """Whether two documents give other values for the same."""
    few, many = sorted((one.attribute, other.attribute), key=len)
    if one.subject != other.subject or not few <= many or not few - UNIT_WORDS:
        return False
    if one.source.document_id == other.source.document_id:
        return False  # one document gives a value for each of its cases, rows and columns
    is_computed = one.kind == COMPUTED
    if is_computed and (other.kind == "row" or not one.attribute <= other.attribute):
        return False  # a row is a part of what was computed, or another table's
    pairs = [
        (a, b)
        for a in _amounts(one)
        for b in _amounts(other)
        if (a.unit and b.unit) or (is_computed and a.unit == b.unit)
        if a.dimension == b.dimension
    ]
    return bool(pairs) and not any(agree(a, b) for a, b in pairs)


def _amounts(evidence: SourceEvidence) -> list[Figure]:
    return _holding(evidence.quote, evidence.values)


def _holding(text: str, figures: Sequence[Figure]) -> list[Figure]:
    """The amounts that a text says hold: not the 24 of "36 months instead of 24 months"."""
    amounts = [figure for figure in figures if figure.kind == "amount"]
    cue = _SUPERSEDES.search(text)
    before = [amount for amount in amounts if cue and amount.start < cue.start()]
    return before or amounts


def _of_each_document(denials: Sequence[SourceEvidence]) -> list[SourceEvidence]:
    """The nearest of each document; another one only where it says something else again."""
    results: list[SourceEvidence] = []
    for denial in denials:
        same = [e for e in results if not denies(e, denial)]
        if not same:
            results.append(denial)
    return results


def _by_precedence(
    evidences: Sequence[SourceEvidence], sources: Sequence[Source]
) -> list[SourceEvidence]:
    """What supersedes first, then what is newer; else as they are found."""
    superseding = [sentence for source in sources for sentence in _superseding(source)]
    ranked = sorted(
        enumerate(evidences),
        key=lambda pair: (-_supersedes(pair[1], superseding), -_newest(pair[1].source), pair[0]),
    )
    return [evidence for _, evidence in ranked]


def _superseding(source: Source) -> list[str]:
    """The sentences of a source that say what holds instead of another."""
    text = source.passage
    return [
        text[start:end]
        for start, end in split_sentences(text)
        if end - start <= LONGEST and _SUPERSEDES.search(text[start:end])
    ]


def _supersedes(evidence: SourceEvidence, sentences: Sequence[str]) -> bool:
    """Whether a sentence that supersedes gives this very value before what it takes the place of.

    "36 months instead of 24", "corrected to 250 W".
    """
    amounts = [amount for amount in _amounts(evidence) if amount.unit]
    figures = [
        f for sentence in sentences for f in _holding(sentence, list(read_figures(sentence)))
    ]
    return any(
        agree(a, b) for a in amounts for b in figures if b.unit and a.dimension == b.dimension
    )


def _newest(source: Source) -> float:
    text = f"{source.document_title} {' '.join(source.heading_path)} {source.passage}"
    return max((date.value for date in dates(text) if date.value > 1e6), default=0.0)


def _quoted(evidence: SourceEvidence) -> str:
    """`title: "words" [n]`; of a row what stands in the cell is marked."""
    source = evidence.source
    words, cell = (
        neutralise(" ".join(text.split())).translate(_QUOTES)
        for text in (evidence.quote, evidence.cell)
    )
    if cell and "*" not in cell and words.endswith(cell):
        words = f"{words.removesuffix(cell)}**{cell}**"
    title = neutralise(source.document_title or source.document_name)
    told = words if evidence.kind == COMPUTED else f'"{words}"'
    return f"{title}: {told} {source.marker}"
