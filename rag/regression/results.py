"""What came of a replayed conversation, turn by turn."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rag.records import Event, Failed, Finished


def ending(events: Iterable[Event]) -> Finished | Failed:
    """The event that a turn ended with; what a judge says afterwards is read, but not it."""
    return [event for event in events if isinstance(event, Finished | Failed)][-1]


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation of one turn."""

    turn: int  # from 1
    expectation: str
    held: bool
    got: str = ""  # what there was instead


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A source as an answer cites it."""

    number: int
    document: str
    place: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One turn, with what it gave."""

    number: int  # from 1
    action: str
    said: str  # the question, or what was done
    answer: str = ""
    resolved: str = ""  # the question as it was searched for, where that is another
    cited: tuple[CitedSource, ...] = ()
    summary: str = ""
    recalled: tuple[str, ...] = ()  # what a model would be sent for each probe, beside the summary
    tokens: int = 0  # of what a model would be sent after this turn
    checks: tuple[Check, ...] = ()

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.held)


@dataclass(frozen=True, slots=True)
class Replay:
    """How one conversation went."""

    title: str
    file: str
    turns: tuple[PlayedTurn, ...] = ()
    error: str = ""  # of the file: nothing, or not all, could be replayed
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What the conversation is called by."""
        return Path(self.file).name.split(".")[0]

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(check for turn in self.turns for check in turn.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.held)

    @property
    def passed(self) -> bool:
        return not self.error and not self.failures

    @property
    def outcome(self) -> tuple[object, ...]:
        """What two runs of the same must have in common."""
        return self.error, self.turns
