"""One summary, from its plan to its report; the application and the library both make it here."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rag.citations.markers import cited_numbers
from rag.records import Quotation, Summary, SummaryReport
from rag.summaries.compose import Composed, Heading, compose
from rag.summaries.past import Ask, Past
from rag.summaries.required import Line

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

    def of_summary(self, turns: int) -> int:
        """What it may fill: what the turns beside it leave, and a share at least."""
        return min(max(self.least, self.full - turns), self.most)


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
    ask: Ask | None = None,
    model: str = "",
    headings: Headings = lambda numbers: None,
) -> Summary:
    """Cover the turns before one of the ends, the first with which all fits.

    A model is asked once, if at all. `headings` tell where the index lists a number.
    """
    began, required = time.monotonic(), past.required
    choice = past.ask(ask, ends[0], room=min(room.shown, READ_TOKENS))
    for end in ends:
        past.cover(end)
        turns = past.tokens(end)
        composed = compose(
            required,
            past.count,
            room=room.of_summary(turns),
            most=room.most,
            stands=past.stands,
            headings=headings(tuple(required.numbers)),
        )
        if composed.tokens + turns <= room.budget:
            break
    text = composed.text
    listed = cited_numbers("\n".join(composed.lists))
    assert required.numbers.keys() >= set(listed), "a summary lists a number that no turn gave"
    report = replace(
        report_of(composed),
        tokens_before=past.tokens(past.first, past.covered),
        attempts=choice.calls,
        seconds=time.monotonic() - began,
        model=model if choice.lines else "extractive",
        problems=choice.problems,
    )
    return Summary(
        start=past.first,
        end=past.covered,
        text=text,
        required_numbers=tuple(required.numbers),
        required_names=tuple(required.names),
        report=report,
        tokens=composed.tokens,
        quotations=quotations_of(text, composed.lines),
    )


def report_of(composed: Composed) -> SummaryReport:
    """What became of all that the summary was required to keep."""
    numbers, names = composed.required.numbers, composed.required.names
    stated, stated_names = composed.stated_numbers, composed.stated_names
    kept, kept_names = stated.union(composed.numbers), composed.kept_names
    listed, listed_names = kept - stated, kept_names - stated_names
    return SummaryReport(
        citations_required=len(numbers),
        citations_kept=len(kept),
        names_required=len(names),
        names_kept=len(kept_names),
        stated_citations=tuple(n for n in numbers if n in stated),
        listed_citations=tuple(n for n in numbers if n in listed),
        archived_citations=tuple(n for n in numbers if n not in kept),
        stated_names=tuple(name for name in names if name in stated_names),
        listed_names=tuple(name for name in names if name in listed_names),
        archived_names=tuple(name for name in names if name not in kept_names),
        statements=len(composed.quoted),
        chosen=sum(line.place in composed.required.chosen for line in composed.quoted),
        tokens_after=composed.tokens,
    )


def quotations_of(text: str, lines: Iterable[Line]) -> tuple[Quotation, ...]:
    """Where each quoted line stands in the text, and the message that it is a span of."""
    found: list[Quotation] = []
    framed = f"\n{text}\n"
    at = 0
    for line in lines:
        at = framed.index(f"\n{line.text}\n", at)
        found.append(Quotation(at, at + len(line.text), line.message))
        at += len(line.text)
    return tuple(found)
