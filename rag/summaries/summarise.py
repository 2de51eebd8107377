"""One summary, from its plan to its report; the application and the library both make it here."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag.records import Quotation, SummaryReport
from rag.summaries.check import checked
from rag.summaries.choose import NOTHING_CHOSEN
from rag.summaries.compose import Composed, Heading, Limits
from rag.summaries.past import Ask, Past
from rag.summaries.required import Choice

HEADROOM = 0.2  # of the budget: left to the turns to come, so that a summary stays for a while
READ_TOKENS = 12_000  # of statements shown to a model at once, at most
Headings = Callable[[Sequence[int]], Mapping[int, Heading] | None]


@dataclass(frozen=True, slots=True)
class Room:
    """How much history fits, summary and turns together, in tokens."""

    budget: int
    high: int  # above it, old turns are summarised
    low: int  # and about as much is left
    least: int  # what the summary may take whatever the turns take
    most: int  # what it may take for its numbers and names
    keep_turns: int  # never summarised as long as they fit
    max_turns: int | None = None  # above it, old turns are summarised as well
    fewer_turns: int | None = None  # and at most so many are left
    shown: int = READ_TOKENS  # statements that a model sees at once

    @property
    def full(self) -> int:
        """What summary and turns may take together when it is made."""
        return self.high - int(HEADROOM * self.budget)

    def limits(self, turns: int) -> Limits:
        """What a summary may fill: what the turns beside it leave, and a share at least."""
        return Limits(min(max(self.least, self.full - turns), self.most), self.most)


@dataclass(frozen=True, slots=True)
class Made:
    """A summary, and what was chosen for it."""

    composed: Composed
    choice: Choice
    report: SummaryReport


def planned_ends(past: Past, summary: int, room: Room, *, force: bool = False) -> list[int]:
    """Where the next summary may end, as planned first, then turn by turn; none if it is not due.

    `summary` are the tokens of the last one. High and low water lie apart, so that this is rarely
    due; `force` makes it so.
    """
    ends, turns = past.ends(), past.turns_from(past.covered)
    is_over = summary + past.tokens(past.covered) > room.high
    is_many = room.max_turns is not None and turns > room.max_turns
    if not (force or is_over or is_many):
        return []
    most = room.keep_turns if force else turns
    if is_many and not force and room.fewer_turns is not None:
        most = room.fewer_turns

    def is_low(end: int) -> bool:
        left, kept = past.tokens(end), past.turns_from(end)
        together = left + min(summary + past.tokens(past.covered, end), room.least)
        few = not is_over or together <= room.low or kept <= room.keep_turns
        return few and kept <= most and together <= room.full

    first = next((at for at, end in enumerate(ends) if is_low(end)), len(ends) - 1)
    is_new = ends[first] > past.covered
    return ends[first:] if is_new or is_over else []


def summarise(
    past: Past,
    ends: Sequence[int],
    room: Room,
    *,
    ask: Ask | None,
    model: str,
    headings: Headings = lambda numbers: None,
) -> Made:
    """Cover the turns before one of the ends, the first with which all fits.

    A model is asked once, if at all. `headings` tell where the index lists a number.
    """
    began, choice = time.monotonic(), NOTHING_CHOSEN
    if past.is_time_to_ask(ends[0]):
        choice = past.ask(ask, ends[0], room=min(room.shown, READ_TOKENS))
    for end in ends:
        past.cover(end)
        past.required.choose(choice)
        turns = past.tokens(end)
        composed = compose_checked(past, room.limits(turns), headings)
        if composed.tokens + turns <= room.budget:
            break
    return Made(composed, choice, report_of(past, composed, choice, began=began, model=model))


def compose_checked(past: Past, limits: Limits, headings: Headings) -> Composed:
    """The best summary of what is covered, every line of which was found in the raw turns."""
    required = past.required
    about = headings(tuple(required.numbers))
    return checked(required, limits, past.count, past.texts.__getitem__, about)


def report_of(
    past: Past, composed: Composed, choice: Choice, *, began: float, model: str
) -> SummaryReport:
    """What the summary was required to keep, and what became of it."""
    required = past.required
    return SummaryReport(
        citations_required=len(required.numbers),
        citations_kept=len(composed.stated) + len(composed.listed),
        names_required=len(required.names),
        names_kept=len(composed.stated_names) + len(composed.listed_names),
        stated_citations=composed.stated,
        listed_citations=composed.listed,
        archived_citations=composed.archived,
        stated_names=composed.stated_names,
        listed_names=composed.listed_names,
        archived_names=composed.archived_names,
        statements=len(composed.quoted),
        chosen=sum(line.place in required.chosen for line in composed.quoted),
        tokens_before=past.tokens(past.first, past.covered),
        tokens_after=composed.tokens,
        attempts=choice.calls,
        seconds=time.monotonic() - began,
        model=model if choice.lines else "extractive",
        problems=choice.problems,
    )


def quotations_of(composed: Composed) -> tuple[Quotation, ...]:
    """Where each quoted line stands in the text, and the message that it is a span of."""
    found: list[Quotation] = []
    text = f"\n{composed.text}\n"
    at = 0
    for line in composed.quoted:
        at = text.index(f"\n{line.text}\n", at)
        found.append(Quotation(at, at + len(line.text), line.message))
        at += len(line.text)
    return tuple(found)
