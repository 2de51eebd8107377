"""Check a summary, exactly as it would be stored, against what the raw turns require."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rag.citations.binding import Evidence
from rag.citations.claims import Statement, statements, without_markers
from rag.citations.features import Features, features
from rag.summaries.facts import Facts
from rag.text.names import Lexicon


@dataclass(frozen=True, slots=True)
class SummaryCheck:
    """What a summary lost, invented or moved, compared with the turns that it stands for."""

    lost: tuple[int, ...]
    invented: tuple[int, ...]
    misplaced: tuple[int, ...]  # real numbers, in a sentence that they were never cited for
    unbound: tuple[int, ...]  # required numbers without any sentence of their own
    lost_names: tuple[str, ...]
    unknown_names: tuple[str, ...]  # perhaps an altered name
    tokens: int
    limit: int

    @property
    def is_oversized(self) -> bool:
        return self.tokens > self.limit

    @property
    def passed(self) -> bool:
        wrong = self.invented or self.misplaced or self.unknown_names
        return not (self.lost or wrong or self.lost_names or self.is_oversized)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one short sentence each."""
        found = (
            ("lost citations", _marks(self.lost)),
            ("invented citations", _marks(self.invented)),
            ("misplaced citations", _marks(self.misplaced)),
            ("lost names", "; ".join(self.lost_names)),
            ("unknown names", "; ".join(self.unknown_names)),
        )
        said = [f"{what}: {which}" for what, which in found if which]
        if self.is_oversized:
            said.append(f"{self.tokens} tokens instead of {self.limit}")
        return tuple(said)


def _marks(numbers: tuple[int, ...]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def check_summary(
    text: str, facts: Facts, evidence: Evidence, *, tokens: int = 0, limit: int = 0
) -> SummaryCheck:
    """Compare; no limit means that the size is not checked."""
    stated = stated_in(text)
    present = list(dict.fromkeys(n for statement in stated for n in statement.numbers))
    required = set(facts.numbers)
    bound, misplaced = bindings(stated, evidence)
    kept = Lexicon(facts.names).kept(text)
    named = dict.fromkeys(n for statement in stated for n in sorted(seen_in(statement).names))
    known = facts.seen.names
    return SummaryCheck(
        lost=tuple(n for n in facts.numbers if n not in set(present)),
        invented=tuple(n for n in present if n not in required),
        misplaced=tuple(n for n in misplaced if n in required),
        unbound=tuple(n for n in facts.numbers if n not in bound),
        lost_names=tuple(name for name in facts.names if name not in kept),
        unknown_names=tuple(name for name in named if not is_known(name, known)),
        tokens=tokens,
        limit=limit or tokens,
    )


@lru_cache(maxsize=8)
def stated_in(text: str) -> tuple[Statement, ...]:
    """The statements of a model's reply, which is first checked and then sifted."""
    return tuple(statements(text))


def seen_in(statement: Statement) -> Features:
    """What a statement is made of, its markers left out."""
    return features(without_markers(statement.text))


def bindings(found: Iterable[Statement], evidence: Evidence) -> tuple[set[int], list[int]]:
    """The numbers with a claim of their own, and those that stand at least once beside another."""
    bound: set[int] = set()
    misplaced: dict[int, None] = {}
    for statement in found:
        own = evidence.bound(statement)
        bound |= own
        misplaced.update(dict.fromkeys(n for n in statement.numbers if n not in own))
    return bound, list(misplaced)


def is_known(name: str, known: frozenset[str]) -> bool:
    """Whether a name occurs in the turns: itself, or as the words that a longer one begins with."""
    return name in known or any(f" {other} ".find(f" {name} ") >= 0 for other in known)
