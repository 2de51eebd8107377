"""What a follow-up says, and whether it is one: a part of a question, or one that points back."""

from collections.abc import Sequence

from rag.tables.asking.matching import Matched
from rag.tables.asking.planner import DRAWINGS
from rag.tables.asking.words import (
    CHANGES,
    FIGURES,
    is_idle,
    said_in,
)
from rag.tables.plan import (
    TablePlan,
)

LONGEST = 12  # words of a follow-up that does not point back
LONGEST_PART = 7  # words of one that only names a part
ASKING = CHANGES["asking"][0]
QUESTIONS = CHANGES["questions"][0]
STARTING = CHANGES["starting"][0]
NO_CHANGES = {"back", "rows", "exists", "fragment", "leading", "asking", "questions", "starting"}
LEADING = frozenset(CHANGES["leading"][0])


class FollowUp:
    """What a follow-up says, and the plans that it follows."""

    def __init__(self, reading: Matched, plans: Sequence[TablePlan]) -> None:
        self.reading, self.plans, self.plan = reading, plans, plans[-1]
        known = {i for e in reading.of("column", "value") for i in range(e.start, e.end)}
        found = said_in(reading.words, *(CHANGES.keys() - NO_CHANGES))
        self.said = [
            (start, end, name)
            for start, end, name in found
            if not (known & set(range(start, end)))
            or (name in ("earlier", "later") and not set(range(start, end)) <= known)
        ]
        self.points = any(name == "pointing" for *_at, name in self.said)

    def says(self, *names: str) -> bool:
        return any(name in names for *_at, name in self.said)

    def opens(self) -> bool:
        starts = {at for at in range(len(self.reading.words)) if self._is_idle_to(at)}
        return any(at in starts for at, _end, name in self.said if name == "opening")

    def _is_idle_to(self, at: int) -> bool:
        return all(word in LEADING for word in self.reading.words[:at])

    def unused(self) -> list[str]:
        """Words that neither the table nor the way to ask for a change accounts for."""
        taken = {i for e in self.reading.used for i in range(e.start, e.end)}
        taken |= {i for start, end, _name in self.said for i in range(start, end)}
        words = self.reading.words
        return [w for i, w in enumerate(words) if i not in taken and not is_idle(w)]

    # ── Whether it is one ────────────────────────────────────────────────────────────────────

    def leans(self) -> bool:
        """Whether it is a part of a question, or points back."""
        count = len(self.reading.words)
        is_question = self.reading.words[0] in QUESTIONS
        is_part = bool(self.reading.of("value", "time", "number")) and not is_question
        is_short = count <= 3 or (is_part and count <= LONGEST_PART)
        changes = self.says("sort", "instead", "compare", "as_well", *DRAWINGS)
        return self.points or (count <= LONGEST and (self.opens() or changes or is_short))

    def stands_alone(self) -> bool:
        """A question with a figure and a way to put it together is a new one."""
        reading, plan = self.reading, self.plan
        if self.points or self.says("instead", "as_well", "compare"):
            return False
        figures = [e.name for e in reading.of("column") if reading.column(e).type in FIGURES]
        known = {each.column for each in plan.measures} | {each.by for each in plan.order}
        counts, ends = reading.of("count"), reading.of("adjective")
        groups, first = reading.of("group"), reading.uses[0] if reading.uses else None
        if counts and reading.words[0] in ("how", "wie"):
            return True
        is_more = bool(reading.filters or reading.of("value") or not plan.measures)
        is_question = reading.words[0] in ASKING
        if self.opens() and not is_question and reading.words[0] not in STARTING:
            return False
        if ends and set(figures) - known and (plan.measures or reading.of("value")):
            return True
        if is_question:
            keys = {key.column for key in plan.group}
            others = [e for e in reading.of("column") if e.name not in keys]
            return len(reading.words) > 4 and bool(others)
        asks = bool(reading.of("sum", "average", "median", "much") or (ends and figures))
        is_grouped = bool(groups) and first is not None and first.kind != "group"
        return bool(figures) and ((asks and is_more) or is_grouped)
