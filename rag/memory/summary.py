"""What stands for the oldest turns: small, stable, in the words that were said.

First what the user said, then the paragraphs that later turns came back to and the newest, then one
line of all numbers and one of names. Everything else of the past is found by recall.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, islice, takewhile
from operator import itemgetter

from rag.citations.markers import cited_numbers, neutralise
from rag.language.names import Lexicon
from rag.memory.paragraphs import Paragraph
from rag.memory.past import Past, ShownParagraphs
from rag.memory.thread import Thread
from rag.records import Quotation, Summary, SummaryReport

# What the user said: of the room beyond so many tokens, where recall finds more in the same room.
SAID_SHARE, SAID_BEYOND = 0.06, 1_500
LISTS_SHARE = 0.1  # numbers and names
PARAGRAPHS_SHARE = 0.04  # paragraphs of earlier turns
MOST_LOOKED_AT = 200  # sentences of the user
WEIGHED_AT_ONCE = 60  # paragraphs: of these the best are quoted first
INTRODUCTION = (
    "Earlier turns are not all shown. What of them bears on the question stands before it, word "
    "for word; ask for anything else that was said.\n"
)
USER_SAID = "The user said:\n"
AGAINST = "(Checked: a source does not carry what is said of it here.)\n"
QUOTED = "From earlier turns, word for word, the newest first:\n"
NUMBERS, NAMES, THREAD = "Numbers given: ", "Names: ", "In a model's own words, unchecked: "
NO_THREAD = Thread()
SUPPORTED, OPEN, WARNED = range(3)
Weigh = Callable[[Sequence[Paragraph]], Sequence[int]]  # how the statements of each were judged
Documents = Callable[[Sequence[int]], Mapping[int, str]]  # the title of each number's document


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a summary may take, and the shares of its parts."""

    tokens: int  # at most
    history: int  # of which the shares are
    quoted: float = PARAGRAPHS_SHARE


def summarise(
    past: Past,
    end: int,
    room: Room,
    *,
    documents: Documents = lambda numbers: {},
    thread: Thread = NO_THREAD,
    weigh: Weigh = lambda paragraphs: [OPEN] * len(paragraphs),
) -> Summary:
    """Cover the turns before `end`, and put together what stands for them."""
    began = time.monotonic()
    past.cover(end)
    numbers, names = tuple(past.numbers), tuple(past.names)
    lists = _lists(past, min(room.tokens // 3, int(LISTS_SHARE * room.history)), documents)
    left, text = room.tokens - past.count(lists), ""
    for line in (INTRODUCTION, f"{THREAD}{thread.text}\n" if thread.text else ""):
        if past.count(line) <= left:
            left -= past.count(line)
            text += line
    said = int(SAID_SHARE * max(0, room.history - SAID_BEYOND))
    users = _of_user(past, min(left, said))
    left -= past.count(USER_SAID) + sum(past.count(f"- {each}\n") for _, each in users)
    most = min(left, int(room.quoted * room.history)) - past.count(QUOTED)
    quoted, against = _quoted(past, most, weigh)
    text, quotations = _composed(text, users, quoted, against)
    report = replace(
        _report(past, text, numbers, names),
        paragraphs=len(quoted.chosen),
        said=len(users),
        tokens_before=past.tokens(past.first, past.covered),
        tokens_after=past.count(f"{(text + lists).rstrip()}\n"),
        seconds=time.monotonic() - began,
        model=thread.model if THREAD in text else "extractive",
        problems=thread.problems,
    )
    return Summary(
        start=past.first,
        end=past.covered,
        text=(text + lists).rstrip("\n"),
        required_numbers=numbers,
        required_names=names,
        report=report,
        tokens=report.tokens_after,
        quotations=tuple(quotations),
    )


def _composed(
    text: str, users: Sequence[tuple[int, str]], quoted: ShownParagraphs, against: set[int]
) -> tuple[str, list[Quotation]]:
    """The text with what was said, and where in it which message is quoted."""
    quotations: list[Quotation] = []
    text += USER_SAID if users else ""
    for message, sentence in users:
        quotations.append(Quotation(len(text) + 2, len(text) + 2 + len(sentence), message))
        text += f"- {sentence}\n"
    text += QUOTED if quoted.chosen else ""
    for message, block in quoted.blocks():
        quotations.append(Quotation(len(text), len(text) + len(block.rstrip()), message))
        text += block + AGAINST * (message in against)
    return text, quotations


def _of_user(past: Past, room: int) -> list[tuple[int, str]]:
    """His own sentences that ask nothing, the newest first, each once, as many as fit."""
    messages = reversed(range(past.first, past.covered))
    newest = ((text, at) for at in messages for text in past.said[at].stated)
    found: dict[str, int] = {}
    for text, at in islice(newest, MOST_LOOKED_AT):
        found.setdefault(text, at)
    once = [(at, text) for text, at in found.items()]
    return once[: _fitting(past, room - past.count(USER_SAID), (f"- {s}\n" for _, s in once))]


def _fitting(past: Past, room: int, texts: Iterable[str]) -> int:
    """How many of them fit, from the first on."""
    taken = accumulate(map(past.count, texts))
    return sum(1 for _ in takewhile(lambda tokens: tokens <= room, taken))


# ── Paragraphs ───────────────────────────────────────────────────────────────────────────────


def _quoted(past: Past, room: int, weigh: Weigh) -> tuple[ShownParagraphs, set[int]]:
    """Paragraphs of the turns, and the messages of those that were warned of.

    What its sources carry is taken first, what was warned of last, and with a remark.
    """
    quoted, against = ShownParagraphs(past, room), set[int]()
    found = _worth_quoting(past)
    while not quoted.is_full and (some := list(islice(found, WEIGHED_AT_ONCE))):
        paragraphs = [past.index.paragraphs[at] for at in some]
        for weight, at in sorted(zip(weigh(paragraphs), some, strict=True), key=itemgetter(0)):
            remark = past.count(AGAINST) if weight == WARNED else 0
            quoted.left -= remark
            if not quoted.take(at):
                quoted.left += remark
            elif remark:
                against.add(past.index.paragraphs[at].message)
    return quoted, against


def _worth_quoting(past: Past) -> Iterator[int]:
    """Those that later turns came back to by their numbers, and the newest, in turn."""
    last = past.index.until(past.covered)
    newest = reversed(range(past.index.until(past.first), last))
    for number, times in past.uses.most_common(40):
        held = past.holding.get(number, ())[: bisect_left(past.holding.get(number, ()), last)]
        if times > 1 and held:
            yield held[-1]
            yield from islice(newest, 1)
    yield from newest


# ── Numbers and names ────────────────────────────────────────────────────────────────────────


def _lists(past: Past, room: int, documents: Documents) -> str:
    """One line of numbers, and one of as many names as fit.

    Numbers with many gaps may take three times their room: each is to be found.
    """
    titles, names = documents(tuple(past.numbers)), list(past.names)
    told = f"{NAMES}{', '.join(names)}\n" if names else ""
    numbers = _by_document(past.numbers, titles) if titles else ""
    if numbers and past.count(numbers + told) <= room:  # titles take nothing away from names
        return numbers + told
    numbers = _in_ranges(past, 3 * room)
    left = room - past.count(f"{numbers}{NAMES}\n")
    kept = names[: _fitting(past, left, (f", {name}" for name in names))]
    return numbers + (f"{NAMES}{', '.join(kept)}\n" if kept else "")


def _by_document(numbers: Iterable[int], titles: Mapping[int, str]) -> str:
    of_title: dict[str, list[int]] = {}
    for number in numbers:
        of_title.setdefault(neutralise(titles.get(number, "")), []).append(number)
    listed = (f"{title} {ranges_of(own)}".strip() for title, own in of_title.items())
    return f"{NUMBERS}{'; '.join(listed)}.\n"


def _in_ranges(past: Past, room: int) -> str:
    """The longest that fit, and how many numbers there are more."""
    runs = sorted(_runs(past.numbers), key=len, reverse=True)
    left = room - past.count(f"{NUMBERS}, and 100,000 more.\n")
    fit = _fitting(past, left, (f", {ranges_of(run)}" for run in runs))
    more = sum(map(len, runs[fit:]))
    listed = ranges_of(number for run in runs[:fit] for number in run)
    return f"{NUMBERS}{listed}{f', and {more:,} more' if more else ''}.\n" if fit else ""


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers that follow each other."""
    pairs = groupby(enumerate(sorted(numbers)), key=lambda each: each[1] - each[0])
    return [[number for _, number in run] for _, run in pairs]


def ranges_of(numbers: Iterable[int]) -> str:
    """`[1]–[57], [60]`: numbers that follow each other as one range of any length."""
    return ", ".join(
        f"[{run[0]}]" if len(run) == 1 else f"[{run[0]}]–[{run[-1]}]" for run in _runs(numbers)
    )


# ── Report ───────────────────────────────────────────────────────────────────────────────────


def _report(past: Past, quoted: str, numbers: Sequence[int], names: Sequence[str]) -> SummaryReport:
    """What became of each number and name: stated, else recallable, else listed alone."""
    stated = set(cited_numbers(quoted))
    held = {number for number in numbers if past.holding.get(number)}
    stated_names = Lexicon(names).kept(quoted) if names else set()
    return SummaryReport(
        citations_required=len(numbers),
        citations_kept=len(stated.intersection(numbers)),
        names_required=len(names),
        names_kept=len(stated_names),
        stated_citations=tuple(n for n in numbers if n in stated),
        recallable_citations=tuple(n for n in numbers if n in held - stated),
        listed_citations=tuple(n for n in numbers if n not in held | stated),
        stated_names=tuple(name for name in names if name in stated_names),
        recallable_names=tuple(name for name in names if name not in stated_names),
    )
