"""Replay scripted conversations and say which expectations held."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from rag.citations.markers import cited_numbers
from rag.evaluation.ending import ending
from rag.evaluation.script import Script, ScriptedTurn
from rag.records import ChatMessage, Event, Failed, Finished, Source
from rag.seams import SessionHandle


class Answers(Protocol):
    """What is being tested."""

    def ask(self, session: SessionHandle, question: str) -> Iterator[Event]: ...
    def compact(self, session: SessionHandle) -> object: ...
    def context_messages(self, session: SessionHandle) -> tuple[ChatMessage, ...]: ...


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation of one turn."""

    turn: int  # from 1
    expectation: str
    held: bool
    got: str = ""  # what there was instead


@dataclass(frozen=True, slots=True)
class Replay:
    """How one conversation went."""

    title: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.held for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.held)


@dataclass(slots=True)
class _State:
    """What earlier turns left: the sources each cited, by turn."""

    cited: dict[int, tuple[Source, ...]] = field(default_factory=dict)


def replay(script: Script, assistant: Answers, session: SessionHandle) -> Replay:
    """Run a script in a fresh session, to its end whatever fails on the way."""
    state = _State()
    checks: list[Check] = []
    for number, turn in enumerate(script.turns, start=1):
        if turn.ask is None:
            checks += _compress(number, turn, assistant, session, state)
        else:
            checks += _ask(number, turn, assistant, session, state)
    return Replay(script.title, tuple(checks))


def _ask(
    number: int, turn: ScriptedTurn, assistant: Answers, session: SessionHandle, state: _State
) -> Iterator[Check]:
    assert turn.ask is not None
    last = ending(assistant.ask(session, turn.ask))
    if isinstance(last, Failed):
        yield Check(number, "is answered", False, last.message)
        return
    state.cited[number] = last.sources
    for expectation, held, got in _expectations(turn, last, state):
        yield Check(number, expectation, held, got)


def _expectations(
    turn: ScriptedTurn, turned: Finished, state: _State
) -> Iterator[tuple[str, bool, str]]:
    text = turned.message.content
    documents = [source.document_name for source in turned.sources]
    yield "is answered", bool(text.strip()), ""
    for name in turn.cites:
        yield f"cites {name}", name in documents, ", ".join(documents)
    for words in turn.says:
        yield f"says {words!r}", _holds(text, words), text
    for words in turn.says_not:
        yield f"does not say {words!r}", not _holds(text, words), text
    if turn.resolves_to is not None:
        query = turned.message.resolved_query or ""
        wanted = turn.resolves_to
        yield f"resolves to {wanted!r}", _words(wanted) <= _words(query), query
    if turn.declines is not None:
        declined = turned.message.answer is not None and turned.message.answer.declined
        word = "declines" if turn.declines else "answers"
        yield word, declined == turn.declines, text
    if turn.same_number_as is not None:
        same = turn.same_number_as
        before = _numbers(state.cited.get(same.turn, ()), same.source)
        now = _numbers(turned.sources, same.source)
        expected = f"cites {same.source} under the number of turn {same.turn}"
        yield expected, bool(before & now), f"{sorted(before)} then, {sorted(now)} now"


def _compress(
    number: int, turn: ScriptedTurn, assistant: Answers, session: SessionHandle, state: _State
) -> Iterator[Check]:
    assistant.compact(session)
    seen = {
        cited
        for message in assistant.context_messages(session)
        for cited in cited_numbers(message.content)
    }
    for earlier in turn.keeps_sources_of:
        wanted = {source.number for source in state.cited.get(earlier, ())}
        got = f"{sorted(seen)} of {sorted(wanted)}"
        yield Check(number, f"keeps the sources of turn {earlier}", wanted <= seen, got)


def _numbers(sources: tuple[Source, ...], name: str) -> set[int]:
    return {source.number for source in sources if source.document_name == name}


def _holds(text: str, words: str) -> bool:
    """Whether the text has the words in a row, ignoring case, blanks and markers."""
    plain = re.sub(r"\s*\[[\d, –-]+\]", "", text)
    return " ".join(words.lower().split()) in " ".join(plain.lower().split())


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
