"""Sift a model's summary: keep what the raw turns bear out, take out what they do not."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rag.citations.binding import Evidence
from rag.citations.claims import Claim, Statement, without_markers
from rag.citations.features import figures_within, wording
from rag.citations.markers import keep_markers
from rag.summaries.facts import Fact, Facts
from rag.summaries.verify import is_known, seen_in, stated_in

_SPEAKER = re.compile(
    r"^[ \t]*(?:[-*] )?(?:assistant|user|system|tool|missing|wrong): ", re.MULTILINE | re.IGNORECASE
)
SHARED_VOCABULARY = 0.6  # of a sentence's words occur in the turns; error pages have fewer


@dataclass(frozen=True, slots=True)
class Sifted:
    """What a model's text is good for."""

    facts: tuple[Fact, ...]  # sentences whose markers are all bound
    prose: tuple[str, ...]  # uncited, and nothing in them is foreign to the turns
    removed: int  # markers taken out because they were invented or misplaced

    @property
    def numbers(self) -> set[int]:
        return {number for fact in self.facts for number in fact.numbers}


def sift(texts: Iterable[str], facts: Facts, evidence: Evidence) -> Sifted:
    """Go through the sentences of one or more replies; a sentence said twice counts once."""
    cited: dict[str, Fact] = {}
    prose: dict[str, str] = {}
    stated = {wording(claim.text) for claim in facts.claims}
    removed = 0
    for statement in (each for text in texts for each in stated_in(without_speakers(text))):
        if not _is_borne_out(statement, facts):
            removed += len(statement.numbers)
            continue
        own = evidence.bound(statement)
        removed += sum(number not in own for number in statement.numbers)
        plain = without_markers(statement.text).strip()
        if own:
            fact = _with_only(statement, own, plain)
            cited.setdefault(wording(plain), fact)
        elif plain and wording(plain) not in stated:
            prose.setdefault(wording(plain), plain)
    return Sifted(tuple(cited.values()), tuple(prose.values()), removed)


def without_speakers(text: str) -> str:
    """A reply without `assistant:` and the like at the beginning of its lines."""
    return _SPEAKER.sub("", text)


def _with_only(statement: Statement, numbers: set[int], plain: str) -> Fact:
    if set(statement.numbers) == numbers:
        text = statement.text
    else:
        text = keep_markers(statement.text, numbers.__contains__).text
    ordered = tuple(number for number in statement.numbers if number in numbers)
    return Fact((Claim(plain, ordered, 0, 0, text),))


def _is_borne_out(statement: Statement, facts: Facts) -> bool:
    """Whether every figure and name, and most of the words, occur in the turns."""
    seen = seen_in(statement)
    known = facts.seen
    if not figures_within(seen.figures, known.figures):
        return False
    if not all(is_known(name, known.names) for name in seen.names):
        return False
    shared = len(seen.words & known.words)
    return shared >= SHARED_VOCABULARY * len(seen.words) and not seen.is_empty
