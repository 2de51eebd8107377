"""Check that each citation's source carries its sentence, and cite what a writer left uncited (C6).

The weights are those of a logistic regression over swapped citations, altered figures and experts'
judgments, each set counting the same, rounded; what a changed figure costs was raised by hand.
`python -m benchmarks.attribution` shows what they achieve.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag.citations.evidence import Evidence, Library
from rag.citations.glued import find_glued, set_off
from rag.citations.markers import find_markers
from rag.citations.stating import Cited, Sentence, read_sentences
from rag.errors import ModelUnavailable
from rag.records import Citation, Source, Unsourced, Verdict
from rag.seams import Embedder

SUPPORTED_FROM = 0.5
ATTRIBUTED_FROM = 0.8  # to add a citation takes more than to let one stand
_PART = 0.25  # of a joint statement's words that each of its sources must have


@dataclass(frozen=True, slots=True)
class Checked:
    """Every citation of a text with its support, and the sentences that no citation carries."""

    citations: tuple[Citation, ...]
    unsourced: tuple[Unsourced, ...]


@dataclass(frozen=True, slots=True)
class Attributed:
    """A text with citations added, and the added ones, by offsets into that text."""

    text: str
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class _Weights:
    """Of each kind of evidence, in log-odds."""

    base: float
    here: float
    anywhere: float
    rival: float
    missing_figures: float
    missing_names: float
    negation: float
    cosine: float = 0.0


_BY_WORDS = _Weights(
    base=0.0,
    here=0.3,
    anywhere=2.2,
    rival=-7.7,
    missing_figures=-4.5,
    missing_names=-0.7,
    negation=-0.8,
)
_WITH_MEANING = _Weights(
    base=-1.0,
    here=0.3,
    anywhere=1.5,
    rival=-8.0,
    missing_figures=-4.5,
    missing_names=-0.6,
    negation=-0.8,
    cosine=2.2,
)


class SupportChecker:
    """Compares sentences with their sources; by words alone if there is no embedder."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def check(self, text: str, sources: Mapping[int, Source]) -> Checked:
        """Judge each citation. A number without a source among `sources` is unsupported."""
        sentences = read_sentences(text)
        library = Library(sources)
        scores = self._scores(sentences, library)
        citations: list[Citation] = []
        unsourced: list[Unsourced] = []
        for sentence in sentences:
            judged = [
                _judged(number, cited, sentence, scores)
                for cited in sentence.cited
                for number in cited.marker.numbers
            ]
            citations.extend(judged)
            if sentence.states and not any(c.verdict is Verdict.SUPPORTED for c in judged):
                unsourced.append(Unsourced(sentence.span.start, sentence.span.end))
        return Checked(tuple(citations), tuple(unsourced))

    def set_off(self, text: str, sources: Mapping[int, Source]) -> str:
        """With a blank before brackets such as `five days[3]`, where that source carries it.

        Then they are markers. Other brackets stay text: they may be an index.
        """
        glued = find_glued(text, sources)
        if not glued:
            return text
        checked = self.check(set_off(text, glued), sources)
        meant = [c.start for c in checked.citations if c.verdict is Verdict.SUPPORTED]
        moved = range(1, len(glued) + 1)  # each stands one blank farther on than the one before
        kept = [
            place
            for place, by in zip(glued, moved, strict=True)
            if any(place.start + by <= start < place.end + by for start in meant)
        ]
        return set_off(text, kept)

    def attribute(self, text: str, sources: Mapping[int, Source]) -> Attributed:
        """Add `[n]` to sentences that state something without a marker, where a source fits well.

        Markers that are there stay as they are.
        """
        sentences = [s for s in read_sentences(text) if s.states and not s.cited]
        library = Library(sources)
        found = [library.evidence(sentence.text) for sentence in sentences]
        likely = [
            {n: e for n, e in evidence.items() if _probability(e) >= SUPPORTED_FROM}
            for evidence in found
        ]
        pairs = [
            (s.text, e) for s, some in zip(sentences, likely, strict=True) for e in some.values()
        ]
        probabilities = iter(self._probabilities(pairs))
        placed: list[tuple[Sentence, int, float]] = []
        for sentence, some in zip(sentences, likely, strict=True):
            scored = {number: next(probabilities) for number in some}
            number = max(scored, key=lambda n: (scored[n], -n), default=0)
            if number and scored[number] >= ATTRIBUTED_FROM and not some[number].missing_figures:
                placed.append((sentence, number, scored[number]))
        return _written(text, placed)

    def _scores(
        self, sentences: Sequence[Sentence], library: Library
    ) -> dict[tuple[int, str, tuple[int, ...]], float]:
        """The probability that a source carries a clause, by number, clause and its numbers."""
        keys: list[tuple[int, str, tuple[int, ...]]] = []
        evidence: list[Evidence] = []
        for cited in (c for s in sentences if s.states for c in s.cited):
            alone = library.evidence(cited.clause)
            numbers = [n for n in cited.numbers if n in library]
            for number in numbers:
                keys.append((number, cited.clause, (number,)))
                evidence.append(alone[number])
            if len(numbers) > 1:
                together = library.together(cited.clause, numbers)
                parts = [n for n in numbers if alone[n].here >= _PART * together.here]
                keys += [(n, cited.clause, cited.numbers) for n in parts]
                evidence += [together] * len(parts)
        pairs = [(key[1], e) for key, e in zip(keys, evidence, strict=True)]
        return dict(zip(keys, self._probabilities(pairs), strict=True))

    def _probabilities(self, pairs: Sequence[tuple[str, Evidence]]) -> list[float]:
        return [_probability(evidence) for evidence in self._with_cosines(pairs)]

    def _with_cosines(self, pairs: Sequence[tuple[str, Evidence]]) -> list[Evidence]:
        """The evidence with the meaning compared too, all texts embedded in one call."""
        plain = [evidence for _, evidence in pairs]
        texts = list(dict.fromkeys(t for said, e in pairs for t in (said, *e.windows)))
        if self._embedder is None or not texts:
            return plain
        try:
            vectors = dict(zip(texts, self._embedder.embed(texts), strict=True))
        except ModelUnavailable:
            return plain  # words alone can tell, only less well
        return [
            replace(
                e, cosine=max((float(vectors[said] @ vectors[w]) for w in e.windows), default=0.0)
            )
            for said, e in pairs
        ]


def _probability(evidence: Evidence) -> float:
    weights = _BY_WORDS if evidence.cosine is None else _WITH_MEANING
    odds = (
        weights.base
        + weights.here * evidence.here
        + weights.anywhere * evidence.anywhere
        + weights.rival * evidence.rival
        + weights.missing_figures * evidence.missing_figures
        + weights.missing_names * evidence.missing_names
        + weights.negation * evidence.negation
        + weights.cosine * (evidence.cosine or 0.0)
    )
    return 1 / (1 + math.exp(-odds))


def _judged(
    number: int,
    cited: Cited,
    sentence: Sentence,
    scores: Mapping[tuple[int, str, tuple[int, ...]], float],
) -> Citation:
    citation = Citation(number, cited.marker.start, cited.marker.end)
    if not sentence.states:
        return citation
    alone = scores.get((number, cited.clause, (number,)), 0.0)
    score = max(alone, scores.get((number, cited.clause, cited.numbers), 0.0))
    verdict = Verdict.SUPPORTED if score >= SUPPORTED_FROM else Verdict.OFF_SUBJECT
    return replace(citation, verdict=verdict)


# ── Writing markers ──────────────────────────────────────────────────────────────────────────

_STOP = re.compile(r"(?:[.!…;,]+|[。！；]+)?[\"'”’»」』]*(?:\s*\|)?$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def _written(text: str, placed: Sequence[tuple[Sentence, int, float]]) -> Attributed:
    """The text with these citations, less those that would be no markers where they stand."""
    attributed = _inserted(text, placed)
    starts = {marker.start for marker in find_markers(attributed.text)}
    stands = [citation.start in starts for citation in attributed.citations]
    if all(stands):
        return attributed
    return _written(text, [place for place, ok in zip(placed, stands, strict=True) if ok])


def _inserted(text: str, placed: Sequence[tuple[Sentence, int, float]]) -> Attributed:
    kept: list[str] = []
    citations: list[Citation] = []
    at = length = 0
    for sentence, number, _ in placed:
        before, marker = _place(text, sentence, number)
        kept += [text[at:before], marker]
        length += before - at + len(marker)
        at = before
        start = length - len(marker.lstrip())
        citations.append(Citation(number, start, length, Verdict.SUPPORTED, attributed=True))
    return Attributed("".join(kept) + text[at:], tuple(citations))


def _place(text: str, sentence: Sentence, number: int) -> tuple[int, str]:
    """Where the marker goes, before the full stop, and with a blank where words have blanks."""
    span = sentence.span
    found = _STOP.search(text, max(span.start, span.end - 20), span.end)
    place = found.start() if found else span.end
    place = span.start + len(text[span.start : place].rstrip())
    blank = "" if _UNSPACED.match(text[place - 1 : place]) else " "
    return place, f"{blank}[{number}]"
