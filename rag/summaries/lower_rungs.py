"""The lower rungs of the size ladder, where numbers stand beside names or in groups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag.citations.claims import marks
from rag.citations.markers import neutralise
from rag.seams import TokenCounter
from rag.summaries.facts import GROUPED
from rag.summaries.lines import (
    BRIEF,
    EVIDENCE,
    FRAME_TOKENS,
    MARKER_TOKENS,
    Composed,
    Line,
    Required,
    names_line,
)

LONGEST_RUN = 100  # numbers in one range marker; see rag.citations.grammar
SHORTEST_RUN = 4
CLEARLY = 1.1  # times the limit, by an estimate that is rather too low


def are_too_many(required: Required, limit: int) -> bool:
    """Whether numbers and names cannot be written one by one, even without any claim."""
    numbers = MARKER_TOKENS * len(required.numbers)
    return numbers + required.name_tokens > CLEARLY * limit


@dataclass(slots=True)
class LowerRungs:
    """Composes a summary in which not every number has its claim."""

    required: Required
    covering: Sequence[Line]  # lines that together cite every number, oldest first
    limit: int  # tokens
    count: TokenCounter
    documents: Mapping[int, str] = field(default_factory=dict)
    _name_of: dict[int, str] = field(init=False)

    def __post_init__(self) -> None:
        self._name_of = {n: line.name for line in self.covering for n in line.numbers if line.name}

    def compose(self) -> Composed:
        """The highest rung that fits."""
        composed = self._with_claims()
        return composed if composed.tokens <= self.limit else self.bare()

    def bare(self) -> Composed:
        """Numbers and names alone, or as many of them as fit."""
        many = are_too_many(self.required, self.limit)
        if many and self.required.name_tokens > CLEARLY * self.limit:
            return self._archive()
        for in_runs in (True,) if many else (False, True):
            grouped = self._grouped(self.required.numbers, self.required.names, in_runs=in_runs)
            if grouped.tokens <= self.limit:
                return grouped
        return self._archive()

    # ── Rung 3 ───────────────────────────────────────────────────────────────────────────────

    def _with_claims(self) -> Composed:
        """Name and number for all, and the claims beside them that fit, the shortest first."""
        ranked = sorted(self.covering, key=lambda line: line.size(BRIEF) / len(line.numbers))
        fitting = self._fitting(ranked)
        while fitting > 0:
            tried = self._by_names(ranked[:fitting])
            if tried.tokens <= self.limit:
                return tried
            fitting = _fewer(ranked, fitting, tried.tokens - self.limit)
        return self._by_names(())

    def _fitting(self, ranked: Sequence[Line]) -> int:
        """How many claims probably fit beside all the names and numbers."""
        names = set(self._name_of.values()) | set(self.required.names)
        room = self.limit - MARKER_TOKENS * len(self.required.numbers) - FRAME_TOKENS
        room -= sum(len(name) // 4 + 3 for name in names)
        for fitting, line in enumerate(ranked):
            room -= line.size(BRIEF) - MARKER_TOKENS * len(line.numbers)
            if room < 0:
                return fitting
        return len(ranked)

    def _by_names(self, lines: Sequence[Line]) -> Composed:
        chosen = set(map(id, lines))
        body = [f"- {line.form(BRIEF)}" for line in self.covering if id(line) in chosen]
        cited = {number for line in lines for number in line.numbers}
        rest = [number for number in self.required.numbers if number not in cited]
        body += self._name_lines(rest)
        return self._text(body, [number for number in rest if number not in self._name_of])

    def _name_lines(self, numbers: Iterable[int]) -> list[str]:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            if number in self._name_of:
                groups.setdefault(self._name_of[number], []).append(number)
        return [f"- {neutralise(name)} {marks(own)}." for name, own in groups.items()]

    def _text(self, body: Sequence[str], loose: Sequence[int]) -> Composed:
        blocks = [
            "\n".join([EVIDENCE, *body]) if body else "",
            names_line(self.required.names_missing_in(body)),
            self._groups(loose, in_runs=False),
        ]
        text = "\n".join(filter(None, blocks))
        return Composed(text, self.count(text), 3)

    # ── Rungs 4 and 5 ────────────────────────────────────────────────────────────────────────

    def _grouped(
        self, numbers: Sequence[int], names: Sequence[str], *, in_runs: bool = True
    ) -> Composed:
        missing = names_line(names)
        text = "\n".join(filter(None, [missing, self._groups(numbers, in_runs=in_runs)]))
        return Composed(text, self.count(text), 4)

    def _groups(self, numbers: Sequence[int], *, in_runs: bool) -> str:
        if not numbers:
            return ""
        groups: dict[str, list[int]] = {} if self.documents else {"": list(numbers)}
        for number in numbers if self.documents else ():
            groups.setdefault(self.documents.get(number, ""), []).append(number)
        listed = [
            f"{neutralise(title)}: {_listed(own, in_runs)}" if title else _listed(own, in_runs)
            for title, own in groups.items()
        ]
        return f"{GROUPED} {'; '.join(listed)}."

    def _archive(self) -> Composed:
        """The newest numbers and names that fit, and a line about the others."""
        kept = self._expected()
        best = self._archived(kept)
        while best.tokens > self.limit and kept > 0:
            kept = min(kept - 1, kept * self.limit // best.tokens)
            best = self._archived(kept)
        return best

    def _expected(self) -> int:
        """About how many of the newest numbers and names fit."""
        numbers, names = self.required.numbers, self.required.names
        room = self.limit - 3 * FRAME_TOKENS
        for kept in range(max(len(numbers), len(names))):
            if kept < len(names):
                room -= self.count(f" {names[-1 - kept]};")
            if kept < len(numbers):
                is_in_run = kept > 0 and numbers[-1 - kept] == numbers[-kept] - 1
                room -= 0 if is_in_run else MARKER_TOKENS
            if room < 0:
                return kept
        return max(len(numbers), len(names))

    def _archived(self, kept: int) -> Composed:
        numbers, names = self.required.numbers, self.required.names
        moved = numbers[: max(0, len(numbers) - kept)]
        moved_names = names[: max(0, len(names) - kept)]
        stays = self._grouped(numbers[len(moved) :], names[len(moved_names) :])
        text = "\n".join(filter(None, [stays.text, archive_line(moved, moved_names)]))
        return Composed(text, self.count(text), 5, moved, moved_names)


def _fewer(ranked: Sequence[Line], fitting: int, excess: int) -> int:
    """How many claims are left when some go that take about this many tokens."""
    while fitting > 0 and excess >= 0:
        fitting -= 1
        line = ranked[fitting]
        excess -= line.size(BRIEF) - MARKER_TOKENS * len(line.numbers)
    return fitting


def archive_line(numbers: Sequence[int], names: Sequence[str]) -> str:
    """What is no longer in the text, and how to find it; "" for nothing."""
    said = []
    if numbers:
        said.append(f"{len(numbers)} citations between {min(numbers)} and {max(numbers)}")
    if names:
        said.append(f"{len(names)} names")
    if not said:
        return ""
    return (
        f"Moved to the archive, where a search of the conversation finds them: {', '.join(said)}."
    )


def _listed(numbers: Sequence[int], in_runs: bool) -> str:
    return runs(numbers) if in_runs else marks(numbers)


def runs(numbers: Iterable[int]) -> str:
    """Numbers as markers, runs of four and more as one range: `[1-40][42][50]`."""
    text: list[str] = []
    for run in _consecutive(sorted(set(numbers))):
        for at in range(0, len(run), LONGEST_RUN):
            part = run[at : at + LONGEST_RUN]
            long = len(part) >= SHORTEST_RUN
            text.append(f"[{part[0]}-{part[-1]}]" if long else marks(part))
    return "".join(text)


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
