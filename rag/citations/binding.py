"""Binding: whether a summary's sentence makes a claim for which the turns cited that number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from rag.citations.claims import Claim, Statement, statements, without_markers
from rag.citations.features import Features, features, figures_within, wording

if TYPE_CHECKING:  # numpy takes longer to load than all of this package
    import numpy as np
    from numpy.typing import NDArray

Embed: TypeAlias = Callable[[Sequence[str]], "NDArray[np.float32]"]

# Chosen with `python -m benchmarks.binding` (by words: precision 0.997, recall 0.986); figures,
# names and negations must agree besides.
SHARED_WORDS = 0.7  # of the content words of the shorter of the two statements
SHARED_WORDS_SEMANTIC = 0.25  # with an embedder, where the vectors agree as well
SIMILARITY = 0.8  # cosine of MiniLM sentence vectors: the lowest that costs no precision
CLEARLY_BETTER = 0.15  # so much more does another claim share: then the sentence is that one


@dataclass(frozen=True, slots=True)
class _Known:
    """A claim with its features, and with those of what stands around it."""

    claim: Claim
    own: Features
    around: Features  # the sentence up to the marker, and the topic
    wording: str


@dataclass(slots=True)
class Evidence:
    """What the raw turns cite each number for; asked whether a sentence is bound to a number.

    `plain` are sentences of the turns without a marker: a number that moved there is misplaced.
    """

    claims: Iterable[Claim]
    plain: Iterable[str] = ()
    embed: Embed | None = None
    similarity: float = SIMILARITY
    _by_number: dict[int, list[_Known]] = field(init=False)
    _worded: dict[str, set[int]] = field(init=False)
    _known: list[_Known] = field(init=False)

    def __post_init__(self) -> None:
        self._by_number = defaultdict(list)
        self._worded = defaultdict(set)
        self._known = []
        for text in self.plain:
            self._worded[wording(text)].update(())
        for claim in self.claims:
            self._add(claim)

    def _add(self, claim: Claim) -> None:
        known = _known(claim)
        self._known.append(known)
        self._worded[known.wording].update(claim.numbers)
        for number in claim.numbers:
            self._by_number[number].append(known)

    @property
    def numbers(self) -> set[int]:
        return set(self._by_number)

    def bound(self, statement: Statement) -> set[int]:
        """The numbers of a statement that stand beside a claim of their own."""
        return {
            number
            for claim in statement.claims
            for number in claim.numbers
            if self.binds(claim, number)
        }

    def binds(self, found: Claim, number: int) -> bool:
        """Whether a claim of a summary is one for which the turns cited this number."""
        candidates = self._by_number.get(number)
        if not candidates:
            return False
        same_words = self._worded.get(wording(found.text))
        if same_words is not None and found.text:
            return number in same_words
        seen = features(found.text)
        if seen.is_empty:
            return False
        group = [known for n in found.numbers for known in self._by_number.get(n, ())]
        best = max((self._agreement(seen, known, group) for known in candidates), default=0.0)
        if best:
            return not self._says_another(seen, number, best)
        return self.embed is not None and self._means_the_same(found, seen, candidates)

    def _agreement(self, seen: Features, known: _Known, group: Sequence[_Known]) -> float:
        """The share of words in common, from 0 to 1; 0 where the two do not agree."""
        shared = max(_share_of_part(seen, known), _share_of_whole(seen, known, group))
        return shared if shared >= SHARED_WORDS else 0.0

    def _says_another(self, seen: Features, number: int, best: float) -> bool:
        if best + CLEARLY_BETTER > 1:
            return False
        others = (known for known in self._known if number not in known.claim.numbers)
        return any(
            self._agreement(seen, known, [known]) >= best + CLEARLY_BETTER for known in others
        )

    def _means_the_same(self, found: Claim, seen: Features, candidates: Sequence[_Known]) -> bool:
        near = [
            known for known in candidates if _share_of_part(seen, known) >= SHARED_WORDS_SEMANTIC
        ]
        if not near or self.embed is None:
            return False
        vectors = self.embed([found.text, *(known.claim.text for known in near)])
        return bool((vectors[1:] @ vectors[0]).max() >= self.similarity)


@lru_cache(maxsize=4096)
def _known(claim: Claim) -> _Known:
    around = features(_before_marker(claim))
    return _Known(claim, features(claim.text), around, wording(claim.text))


def read_ahead(claims: Iterable[Claim]) -> None:
    """Look at claims when they are made, so that they are known when a summary is checked."""
    for claim in claims:
        _known(claim)


def _before_marker(claim: Claim) -> str:
    """The topic and the sentence up to the clause's end: where its subject is."""
    sentence = claim.sentence
    at = sentence.find(claim.text)
    before = sentence[: at + len(claim.text)] if at >= 0 else claim.text
    return f"{claim.topic}: {without_markers(before)}"


def _share_of_part(seen: Features, known: _Known) -> float:
    """How far the sentence is a part of the claim, perhaps shortened."""
    own, around = known.own, known.around
    names = own.names or around.names
    agrees = (
        seen.negations == own.negations
        and figures_within(seen.figures, own.figures)
        and (not own.figures or bool(seen.figures))
        and _names_within(seen.names, names)
    )
    if not agrees:
        return 0.0
    words = own.words | around.words
    if not seen.words:
        return 1.0 if seen.figures else 0.0
    if not (seen.figures or seen.words & own.words):
        return 0.0
    return len(seen.words & words) / len(seen.words)


def _share_of_whole(seen: Features, known: _Known, group: Sequence[_Known]) -> float:
    """How far the sentence contains the claim, the rest being claims of its other numbers."""
    own = known.own
    if len(own.words) + 2 * len(own.figures) < 3 or own.negations != seen.negations:
        return 0.0
    others = frozenset[str]().union(*(other.own.figures for other in group))
    names = frozenset[str]().union(*(other.around.names for other in group))
    agrees = (
        figures_within(own.figures, seen.figures)
        and figures_within(seen.figures, others)
        and _names_within(seen.names, names)
        and (not own.names or _names_within(own.names, seen.names))
    )
    if not agrees:
        return 0.0
    if not own.words:
        return 1.0
    return len(seen.words & own.words) / len(own.words)


def _names_within(some: frozenset[str], all_: frozenset[str]) -> bool:
    """Exactly these names, or words of them: `Aero` may stand for `Aero 5`, `Aero 6` may not."""
    missing = some - all_
    return not missing or (
        bool(all_)
        and all(
            any(f" {other} ".startswith(f" {name} ") for other in all_)
            and not any(character.isdigit() for character in name)
            for name in missing
        )
    )


def binds(sentence: str, number: int, claims: Iterable[Claim], embed: Embed | None = None) -> bool:
    """Whether `[number]` in this sentence, or after it, stands beside a claim of its own."""
    evidence = Evidence(claims, embed=embed)
    found = statements(sentence)
    cited = [claim for each in found for claim in each.claims if number in claim.numbers]
    if not cited:
        cited = [Claim(each.text, (number,), 0, len(sentence)) for each in found]
    return any(evidence.binds(claim, number) for claim in cited)
