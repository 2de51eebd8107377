"""All cited statements, numbers and names that summaries have to keep, each once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.citations.claims import without_markers
from rag.citations.features import wording
from rag.conversation.facts import Fact, Facts, from_json, to_json
from rag.conversation.lines import Line
from rag.conversation.repair import Sifted
from rag.seams import TokenCounter

LINES_PER_NUMBER = 8  # statements remembered for a number: the first ones and the newest
LONGEST_PROSE = 200  # uncited sentences remembered


@dataclass(slots=True)
class Pool:
    """The cited statements, numbers and names of all that is summarised, each once."""

    lines: dict[Any, Line] = field(default_factory=dict)
    numbers: dict[int, list[Any]] = field(default_factory=dict)  # with the keys of their lines
    worded: dict[str, Any] = field(default_factory=dict)  # keys of lines by their bare wording
    names: dict[str, None] = field(default_factory=dict)
    prose: dict[str, None] = field(default_factory=dict)

    def copy(self) -> "Pool":
        numbers = {number: list(keys) for number, keys in self.numbers.items()}
        return Pool(
            dict(self.lines), numbers, dict(self.worded), dict(self.names), dict(self.prose)
        )

    def add(self, facts: Facts, lines: Iterable[Line]) -> None:
        """Take in the facts of some messages."""
        for line in lines:
            if line.fact.key not in self.lines:
                self.keep(line)
        for number in facts.bare:
            self.numbers.setdefault(number, [])
        self.names.update(dict.fromkeys(facts.names))
        self.tell(facts.asked)

    def take(self, line: Line) -> None:
        """Take in a sentence of the model; in the same words it stands in for the raw one."""
        key = self.worded.get(_plain_wording(line.fact))
        known = self.lines.get(key) if key is not None else None
        if known is not None and set(line.numbers) <= set(known.numbers):
            self.lines[key] = known.as_models()
        elif line.fact.key not in self.lines:
            self.keep(line)

    def keep(self, line: Line) -> None:
        """Remember a statement, and forget one where its numbers have many."""
        self.lines[line.fact.key] = line
        self.worded[_plain_wording(line.fact)] = line.fact.key
        for number in line.numbers:
            keys = self.numbers.setdefault(number, [])
            keys.append(line.fact.key)
            if len(keys) > LINES_PER_NUMBER:
                self._drop(keys[LINES_PER_NUMBER // 2])

    def _drop(self, key: Any) -> None:
        """Forget a statement that every one of its numbers can spare."""
        line = self.lines.get(key)
        if line is None or any(len(self.numbers[n]) <= LINES_PER_NUMBER for n in line.numbers):
            return
        del self.lines[key]
        for number in line.numbers:
            self.numbers[number].remove(key)

    def take_all(self, sifted: Sifted, count: TokenCounter) -> None:
        """Take in what a model's reply was good for."""
        for fact in sifted.facts:
            self.take(Line(fact, count, is_models=True))
        self.tell(sifted.prose)

    def tell(self, sentences: Iterable[str]) -> None:
        """Remember uncited sentences, the newest ones."""
        self.prose.update(dict.fromkeys(sentences))
        for oldest in list(self.prose)[: max(0, len(self.prose) - LONGEST_PROSE)]:
            del self.prose[oldest]

    @property
    def models_numbers(self) -> set[int]:
        """The numbers for which a sentence of the model stands."""
        return {n for line in self.lines.values() if line.is_models for n in line.numbers}

    def facts(self) -> Facts:
        """What a summary of all this has to keep."""
        return Facts(
            tuple(line.fact for line in self.lines.values()),
            tuple(self.names),
            bare=tuple(self.numbers),
        )


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
            if fact.key not in pool.lines:
                pool.keep(Line(fact, count, is_models=by_model))
        pool.tell(stored["prose"])
    return pool


def _plain_wording(fact: Fact) -> str:
    return wording(without_markers(fact.claims[0].sentence))
