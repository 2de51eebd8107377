"""Few statements that together cite every number, known at once however many there are."""

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from rag.summaries.lines import Line

_Class = tuple[bool, bool]  # how early its lines are quoted: see `Line.rank`


@dataclass(slots=True)
class Cover:
    """The cover of a growing set of lines: the newest of equals, those of the lowest rank first.

    A line that cites several numbers is taken before those that cite one, and is taken only if it
    cites something new. So for the lines with one number only the newest of each number matters,
    and nobody has to go through all of them. Lines are known by their age: later ones have more.
    """

    _several: dict[_Class, list[tuple[int, int, tuple[int, ...]]]] = field(default_factory=dict)
    _alone: dict[_Class, dict[int, list[int]]] = field(default_factory=dict)

    def copy(self) -> "Cover":
        several = {kind: list(lines) for kind, lines in self._several.items()}
        alone = {
            kind: {number: list(ages) for number, ages in by_number.items()}
            for kind, by_number in self._alone.items()
        }
        return Cover(several, alone)

    def add(self, age: int, line: Line) -> None:
        kind = line.rank[:2]
        if len(line.numbers) == 1:
            by_number = self._alone.setdefault(kind, {})
            insort(by_number.setdefault(line.numbers[0], []), age)
        else:
            insort(self._several.setdefault(kind, []), (len(line.numbers), age, line.numbers))

    def remove(self, age: int, line: Line) -> None:
        kind = line.rank[:2]
        if len(line.numbers) == 1:
            self._alone[kind][line.numbers[0]].remove(age)
        else:
            several = self._several[kind]
            del several[bisect_left(several, (len(line.numbers), age, line.numbers))]

    def ages(self) -> list[int]:
        """The chosen lines, oldest first."""
        cited: set[int] = set()
        chosen: list[int] = []
        for kind in sorted({*self._several, *self._alone}):
            for _, age, numbers in reversed(self._several.get(kind, ())):
                if not cited.issuperset(numbers):
                    cited.update(numbers)
                    chosen.append(age)
            newest = {
                number: ages[-1]
                for number, ages in self._alone.get(kind, {}).items()
                if ages and number not in cited
            }
            cited.update(newest)
            chosen += newest.values()
        chosen.sort()
        return chosen
