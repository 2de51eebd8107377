"""Judges of what words cannot decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rag.records import Verdict


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """A statement that a source may carry, and the windows of the source nearest to it."""

    text: str
    evidence: tuple[str, ...]
    number: int = 0  # of the source


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What a judge thinks: supported, contradicted, off_subject, or open where it carries a part;
    with its reason."""

    verdict: Verdict
    reason: str = ""


class Judge(Protocol):
    """Called once for all that words do not make certain in an answer, when its text stands."""

    @property
    def name(self) -> str:
        """Shown beside its verdicts."""

    def judge(self, statements: Sequence[OpenStatement]) -> Sequence[JudgeVerdict | None]:
        """One judged for each statement; None where it has none.

        Raises:
            RagError: it has none at all, because it failed; the message says why.
        """
