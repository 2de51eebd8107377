"""Required facts: what raw turns oblige a summary to keep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from rag.citations.claims import (
    FEW_WORDS,
    LONGEST_TOPIC,
    Claim,
    is_anaphoric,
    is_reply,
    needs_topic,
    statements,
    with_topic,
    without_markers,
)
from rag.citations.features import Features, core, features, wording
from rag.citations.markers import keep_markers, neutralise
from rag.records import Role
from rag.text.names import Lexicon, distinct_names, find_names

# Begins the lines of our own summaries that list numbers and state nothing.
GROUPED = "Cited as well, in the archive (search the conversation for the statement):"


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the raw turns."""

    role: str
    text: str


@dataclass(frozen=True)
class Fact:
    """A sentence of the raw turns with the numbers that it cites, fit to be quoted alone."""

    claims: tuple[Claim, ...]
    is_asked: bool = False  # not from an answer: somebody merely wrote the number

    @cached_property
    def text(self) -> str:
        """The sentence on one line with its markers, its topic in front where it names nothing."""
        first = self.claims[0]
        if first.topic and first.topic.casefold() not in first.sentence.casefold():
            return f"{first.topic}: {first.sentence}"
        return first.sentence

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(n for claim in self.claims for n in claim.numbers))

    @cached_property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """The same for the same statement made twice."""
        return wording(self.text), self.numbers


@dataclass(frozen=True)
class Facts:
    """What a run of raw messages requires: its cited statements, its numbers and its names."""

    facts: tuple[Fact, ...] = ()
    names: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()  # sentences that cite nothing; not kept in the store
    bare: tuple[int, ...] = ()  # numbers that no sentence states anything for
    asked: tuple[str, ...] = ()  # questions, shortened: told where there is room; not stored

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Every number, in the order of appearance."""
        cited = (n for fact in self.facts for n in fact.numbers)
        return tuple(dict.fromkeys((*cited, *self.bare)))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for fact in self.facts for claim in fact.claims)

    @cached_property
    def seen(self) -> Features:
        """The figures, names and words of all sentences together: what may occur in a summary."""
        texts = [*self.plain, *(without_markers(fact.text) for fact in self.facts)]
        every = [features(text) for text in texts]
        return Features(
            frozenset().union(*(each.figures for each in every)),
            frozenset(self.names).union(*(each.names for each in every)),
            frozenset().union(*(each.words for each in every)),
            negations=0,
        )


def union(several: Iterable[Facts]) -> Facts:
    """What several runs require together, each statement once, oldest first."""
    parts = list(several)
    facts = {fact.key: fact for part in parts for fact in part.facts}
    return Facts(
        tuple(facts.values()),
        tuple(dict.fromkeys(name for part in parts for name in part.names)),
        tuple(sentence for part in parts for sentence in part.plain),
        tuple(dict.fromkeys(number for part in parts for number in part.bare)),
        tuple(question for part in parts for question in part.asked),
    )


def facts_of(messages: Sequence[Said], lexicon: Lexicon | None = None) -> Facts:
    """Read the facts out of raw messages, oldest first."""
    question = ""
    parts: list[Facts] = []
    for said in messages:
        parts.append(message_facts(said, lexicon, question=question))
        if said.role == Role.USER:
            question = said.text
    return union(parts)


def message_facts(said: Said, lexicon: Lexicon | None = None, *, question: str = "") -> Facts:
    """What one message requires; the question before it says what a bare `240 g [3]` is about."""
    is_answer = said.role == Role.ASSISTANT
    topic = _Topic(question if is_answer else "")
    facts: list[Fact] = []
    plain: list[str] = []
    bare: dict[int, None] = {}
    for statement in statements(said.text):
        if statement.claims:
            bare.update(dict.fromkeys(statement.numbers))
            if statement.text.startswith(GROUPED):
                continue
            stated = tuple(topic.complete(claim) for claim in statement.claims if claim.text)
            facts += [Fact(group, is_asked=not is_answer) for group in _by_sentence(stated)]
        else:
            plain.append(statement.text)
        topic.hear(statement.text)
    stated_numbers = {number for fact in facts for number in fact.numbers}
    names = distinct_names([said.text], lexicon)
    asked = _asked(said.text) if said.role == Role.USER else ""
    return Facts(
        tuple(facts),
        tuple(names),
        tuple(plain),
        tuple(number for number in bare if number not in stated_numbers),
        (asked,) if asked else (),
    )


def _asked(text: str) -> str:
    first_line = unmarked(text.strip().partition("\n")[0][:LONGEST_TOPIC]).strip()
    return f"The user said: {first_line}" if first_line else ""


def _by_sentence(stated: Sequence[Claim]) -> list[tuple[Claim, ...]]:
    groups: dict[str, list[Claim]] = {}
    for claim in stated:
        groups.setdefault(claim.sentence, []).append(claim)
    return [tuple(group) for group in groups.values()]


SUBJECT_CHARACTERS = 25  # from the beginning of a sentence


@dataclass(slots=True)
class _Topic:
    """What an answer is talking about: the name that a sentence begins with, or the question's."""

    question: str
    name: str = ""
    asked: str = field(init=False)
    asked_name: str = field(init=False)

    def __post_init__(self) -> None:
        first_line = self.question.strip().partition("\n")[0]
        asked = unmarked(first_line).rstrip(" ?!.:")[:LONGEST_TOPIC]
        self.asked = asked if len(features(asked).words | features(asked).names) > 1 else ""
        names = dict.fromkeys(name.text for name in find_names(self.question[:2_000]))
        self.asked_name = self.name = next(iter(names)) if len(names) == 1 else ""

    def hear(self, sentence: str) -> None:
        """A sentence is about the name that it begins with, and so are those that say `it`."""
        names = find_names(core(without_markers(sentence)))
        first = [name.text for name in names if name.start < SUBJECT_CHARACTERS]
        if names:
            self.name = first[0] if len(first) == 1 else ""
        elif not is_anaphoric(sentence):
            self.name = self.asked_name

    def complete(self, claim: Claim) -> Claim:
        if claim.topic:
            return claim if not features(claim.text).names else replace(claim, topic="")
        if not needs_topic(without_markers(claim.sentence)):
            return claim
        words = features(claim.text).words
        replies = is_reply(claim.text) and len(words) <= FEW_WORDS
        says_little = len(words) < 2 and not is_anaphoric(claim.text)
        return with_topic(claim, ((replies or says_little) and self.asked) or self.name)


def unmarked(text: str) -> str:
    """A text without its markers, and without anything that could become one."""
    return neutralise(keep_markers(text, lambda number: False).text)


# ── In the store ─────────────────────────────────────────────────────────────────────────────


def to_json(facts: Facts) -> dict[str, Any]:
    """Everything but the plain sentences."""
    return {
        "claims": [
            [[c.text, list(c.numbers), c.sentence, c.topic] for c in fact.claims]
            for fact in facts.facts
        ],
        "asked": [fact.is_asked for fact in facts.facts],
        "names": list(facts.names),
        "bare": list(facts.bare),
    }


def from_json(stored: Mapping[str, Any]) -> Facts:
    """The facts as `to_json` wrote them, without the plain sentences."""
    asked = stored["asked"]
    facts = tuple(
        Fact(
            tuple(Claim(text, tuple(numbers), 0, 0, s, topic) for text, numbers, s, topic in group),
            is_asked=asked[index],
        )
        for index, group in enumerate(stored["claims"])
    )
    return Facts(facts, tuple(stored["names"]), (), tuple(stored["bare"]))
