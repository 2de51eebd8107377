"""All cited statements, numbers and names that summaries have to keep, each once."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rag.seams import TokenCounter
from rag.summaries.cover import Cover
from rag.summaries.facts import Facts, from_json, to_json
from rag.summaries.kept_names import KeptNames
from rag.summaries.lines import Line, Required
from rag.summaries.repair import Sifted

LINES_PER_NUMBER = 8  # statements remembered for a number: the first ones and the newest
# With so many numbers a summary has room for one statement of each at most.
MANY_NUMBERS, LINES_OF_MANY = 100, 3
LONGEST_PROSE = 200  # uncited sentences remembered


@dataclass(slots=True)
class Pool:
    """The cited statements, numbers and names of all that is summarised, each once.

    Statements are known by their age: what came later has more.
    """

    lines: dict[int, Line] = field(default_factory=dict)  # oldest first
    numbers: dict[int, list[int]] = field(default_factory=dict)  # with the ages of their lines
    names: dict[str, None] = field(default_factory=dict)
    prose: dict[str, None] = field(default_factory=dict)
    _ages: dict[Any, int] = field(default_factory=dict)  # by the keys of facts
    _worded: dict[str, int] | None = None  # the same by their bare wording, once it is asked for
    _cover: Cover = field(default_factory=Cover)
    _by_model: Counter[int] = field(default_factory=Counter)  # numbers, by the model's lines
    _reader: KeptNames = field(default_factory=KeptNames)
    _next: int = 0

    def copy(self) -> "Pool":
        numbers = {number: list(ages) for number, ages in self.numbers.items()}
        return Pool(
            dict(self.lines),
            numbers,
            dict(self.names),
            dict(self.prose),
            dict(self._ages),
            None,
            self._cover.copy(),
            self._by_model.copy(),
            _next=self._next,
        )

    def add(self, facts: Facts, lines: Iterable[Line]) -> None:
        """Take in the facts of some messages."""
        for line in lines:
            self.keep(line)
        for number in facts.bare:
            self.numbers.setdefault(number, [])
        self.names.update(dict.fromkeys(facts.names))
        self.tell(facts.asked)

    def take(self, line: Line) -> None:
        """Take in a sentence of the model; in the same words it stands in for the raw one."""
        if self._worded is None:
            self._worded = {each.wording: age for age, each in self.lines.items()}
        age = self._worded.get(line.wording)
        if age is not None and set(line.numbers) <= set(self.lines[age].numbers):
            self._put(self.lines[age].as_models(), age)
        else:
            self.keep(line)

    def keep(self, line: Line) -> None:
        """Remember a statement that is new, and forget one where its numbers have many."""
        if line.fact.key in self._ages:
            return
        age, self._next = self._next, self._next + 1
        self._put(line, age)
        self._ages[line.fact.key] = age
        if self._worded is not None:
            self._worded[line.wording] = age
        for number in line.numbers:
            ages = self.numbers.setdefault(number, [])
            ages.append(age)
            self._thin(ages)

    def _put(self, line: Line, age: int) -> None:
        if age in self.lines:
            self._unlist(age)
        self.lines[age] = line  # in its old place, which is that of its age
        self._cover.add(age, line)
        if line.is_models:
            self._by_model.update(line.numbers)

    def _unlist(self, age: int) -> None:
        line = self.lines[age]
        self._cover.remove(age, line)
        if line.is_models:
            self._by_model.subtract(line.numbers)

    def _thin(self, ages: list[int]) -> None:
        """Forget statements of a number until it has few, or the others need them."""
        most = LINES_PER_NUMBER if len(self.numbers) <= MANY_NUMBERS else LINES_OF_MANY
        while len(ages) > most:
            before = len(ages)
            self._drop(ages[most // 2], most)
            if len(ages) == before:
                break

    def _drop(self, age: int, most: int) -> None:
        """Forget a statement that every one of its numbers can spare."""
        line = self.lines[age]
        if any(len(self.numbers[n]) <= most for n in line.numbers):
            return
        self._unlist(age)
        del self.lines[age], self._ages[line.fact.key]
        if self._worded is not None and self._worded.get(line.wording) == age:
            del self._worded[line.wording]
        for number in line.numbers:
            self.numbers[number].remove(age)

    def take_all(self, sifted: Sifted, count: TokenCounter) -> None:
        """Take in what a model's reply was good for."""
        for fact in sifted.facts:
            self.take(Line(fact, count, is_models=True))
        self.tell(sifted.prose)

    def tell(self, sentences: Iterable[str]) -> None:
        """Remember uncited sentences, the newest ones."""
        self.prose.update(dict.fromkeys(sentences))
        many = len(self.prose) - LONGEST_PROSE
        for oldest in list(islice(self.prose, max(0, many))):
            del self.prose[oldest]

    def is_models(self, number: int) -> bool:
        """Whether a sentence of the model stands for the number."""
        return self._by_model[number] > 0

    @property
    def has_models_lines(self) -> bool:
        """Whether a sentence of the model stands for any number at all."""
        return self._by_model.total() > 0

    @property
    def covering(self) -> list[int]:
        """Few lines that together cite every number that a line cites: their ages, in order."""
        return self._cover.ages()

    def required(self) -> Required:
        """What a summary of all this has to hold."""
        self._reader.learn(self.names)
        return Required(tuple(self.numbers), tuple(self.names), self._reader)


def to_stored(pool: Pool) -> dict[str, Any]:
    """What a later fold needs, as JSON: raw claims and names, and sentences that were checked."""
    lines = list(pool.lines.values())
    facts = Facts(tuple(line.fact for line in lines), tuple(pool.names), bare=tuple(pool.numbers))
    by_model = [line.is_models for line in lines]
    return {**to_json(facts), "by_model": by_model, "prose": list(pool.prose)}


def from_stored(several: Sequence[Mapping[str, Any]], count: TokenCounter) -> Pool:
    """The union of what some summaries keep, oldest first."""
    pool = Pool()
    for stored in several:
        facts = from_json(stored)
        pool.add(Facts((), facts.names, bare=facts.bare), ())
        for fact, by_model in zip(facts.facts, stored["by_model"], strict=True):
            pool.keep(Line(fact, count, is_models=by_model))
        pool.tell(stored["prose"])
    return pool
