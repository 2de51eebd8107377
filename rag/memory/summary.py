"""What stands for the oldest turns: small, stable, in the words that were said.

First what the user said, then the paragraphs that later turns came back to and the newest, then one
line of all numbers and one of names. Everything else of the past is found by recall.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, islice, takewhile
from operator import itemgetter

from rag.citations.markers import cited_numbers
from rag.memory.paragraphs import Paragraph
from rag.memory.past import Past, Shown
from rag.memory.thread import Thread
from rag.records import Quotation, Summary, SummaryReport
from rag.text.names import Lexicon

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
Weight = Callable[[Paragraph], int]  # how its statements were judged
Documents = Callable[[Sequence[int]], Mapping[int, str]]  # the title of each number's document


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a summary may take, and the shares of its parts."""

    tokens: int  # at most
    history: int  # of which the shares are
    quoted: float = PARAGRAPHS_SHARE

    def part(self, share: float) -> int:
        """What a part may take."""
        return min(self.tokens, int(share * self.history))


def summarise(
    past: Past,
    end: int,
    room: Room,
    *,
    documents: Documents = lambda numbers: {},
    thread: Thread = NO_THREAD,
    weight: Weight = lambda paragraph: OPEN,
) -> Summary:
    """Cover the turns before `end`, and put together what stands for them."""
    began = time.monotonic()
    past.cover(end, past.since)
    covered = range(past.since, past.covered)
    numbers, names = past.numbers, past.names
    left = room.tokens
    lists = _lists(past, numbers, names, min(left // 3, room.part(LISTS_SHARE)), documents)
    left -= past.count(lists)
    opening = INTRODUCTION if past.count(INTRODUCTION) <= left else ""
    left -= past.count(opening)
    told = f"{THREAD}{thread.text}\n" if thread.text else ""
    told = told if past.count(told) <= min(left, room.part(LISTS_SHARE)) else ""
    left -= past.count(told)
    users, quoted = _said_of(past, covered, room, left, weight)
    against = {
        message
        for message, places in quoted.chosen.items()
        if any(weight(past.index.paragraphs[at]) == WARNED for at in places)
    }
    text, quotations = _composed(opening + told, users, quoted, against)
    report = replace(
        _report(past, text, tuple(numbers), tuple(names)),
        paragraphs=sum(map(len, quoted.chosen.values())),
        said=len(users),
        tokens_before=past.tokens(past.first, past.covered),
        tokens_after=past.count(f"{(text + lists).rstrip()}\n"),
        seconds=time.monotonic() - began,
        model=thread.model if told else "extractive",
        problems=thread.problems,
    )
    return Summary(
        start=past.first,
        end=past.covered,
        text=(text + lists).rstrip("\n"),
        required_numbers=tuple(numbers),
        required_names=tuple(names),
        report=report,
        tokens=report.tokens_after,
        quotations=tuple(quotations),
    )


def _said_of(
    past: Past, covered: range, room: Room, left: int, weight: Weight
) -> tuple[list[tuple[int, str]], Shown]:
    """What the user said, and paragraphs of the turns, as far as each has room.

    What its sources carry is taken first, what was warned of last, and with a remark.
    """
    said = int(SAID_SHARE * max(0, room.history - SAID_BEYOND))
    users = _of_user(past, covered, min(left, room.tokens, said))
    if users:
        left -= past.count(USER_SAID) + sum(past.count(f"- {text}\n") for _, text in users)
    quoted = Shown(past, min(left, room.part(room.quoted)) - past.count(QUOTED))
    found = _worth_quoting(past, covered)
    while not quoted.is_full and (some := list(islice(found, WEIGHED_AT_ONCE))):
        weights = {at: weight(past.index.paragraphs[at]) for at in some}
        for at in sorted(some, key=weights.__getitem__):
            remark = past.count(AGAINST) if weights[at] == WARNED else 0
            left = quoted.left - remark
            quoted.left = left
            quoted.take(at)
            if quoted.left == left:  # it was not taken
                quoted.left += remark
    return users, quoted


def _composed(
    opening: str, users: Sequence[tuple[int, str]], quoted: Shown, against: Set[int]
) -> tuple[str, list[Quotation]]:
    """The text, and where in it which message is quoted."""
    text, quotations = opening, list[Quotation]()
    if users:
        text += USER_SAID
        for message, sentence in users:
            text += "- "
            quotations.append(Quotation(len(text), len(text) + len(sentence), message))
            text += f"{sentence}\n"
    if quoted.chosen:
        text += QUOTED
        for message, block in quoted.blocks():
            quotations.append(Quotation(len(text), len(text) + len(block.rstrip()), message))
            text += block + AGAINST * (message in against)
    return text, quotations


# ── What the user said ───────────────────────────────────────────────────────────────────────


def _of_user(past: Past, covered: range, room: int) -> list[tuple[int, str]]:
    """His own sentences that ask nothing, the newest first, each once."""
    stated = past.stating[: bisect_left(past.stating, (covered.stop, ""))]
    newest = stated[: -MOST_LOOKED_AT - 1 : -1]
    found = {sentence: message for message, sentence in newest[::-1] if message >= covered.start}
    once = [(message, sentence) for sentence, message in found.items()]
    once.sort(key=itemgetter(0), reverse=True)
    return once[: _fitting(past, room - past.count(USER_SAID), (f"- {s}\n" for _, s in once))]


def _fitting(past: Past, room: int, texts: Iterable[str]) -> int:
    """How many of them fit, from the first on."""
    taken = accumulate(map(past.count, texts))
    return sum(1 for _ in takewhile(lambda tokens: tokens <= room, taken))


# ── Paragraphs ───────────────────────────────────────────────────────────────────────────────


def _worth_quoting(past: Past, covered: range) -> Iterator[int]:
    """Those that later turns came back to by their numbers, and the newest, in turn."""
    last = past.index.until(covered.stop)
    newest = reversed(range(past.index.until(covered.start), last))
    for number, times in past.uses.most_common(40):
        held = past.holding.get(number, ())[: bisect_left(past.holding.get(number, ()), last)]
        if times > 1 and held:
            yield held[-1]
            yield from islice(newest, 1)
    yield from newest


# ── Numbers and names ────────────────────────────────────────────────────────────────────────


def _lists(
    past: Past, numbers: Iterable[int], names: Iterable[str], room: int, documents: Documents
) -> str:
    """One line of numbers, by document where that fits, and one of as many names as fit.

    Numbers with many gaps may take three times their room: each is to be found.
    """
    text = _numbers(past, numbers, 3 * room)
    left = room - past.count(text) - past.count(NAMES) - 1
    kept = list(names)[: _fitting(past, left, (f", {name}" for name in names))]
    left -= past.count(", ".join(kept))
    longer = _by_document(documents(tuple(numbers))) if text and left > 0 else ""
    if longer and past.count(f" {longer}\n") <= left:
        text = f"{text.rstrip()} {longer}\n"
    return text + (f"{NAMES}{', '.join(kept)}\n" if kept else "")


def _numbers(past: Past, numbers: Iterable[int], room: int) -> str:
    """All of them, or the longest ranges that fit and how many there are more."""
    numbers = list(numbers)
    whole = f"{NUMBERS}{ranges_of(numbers)}.\n" if numbers else ""
    if past.count(whole) <= room:
        return whole
    left = room - past.count(f"{NUMBERS}.\n, and 100,000 more")
    runs = sorted(_runs(numbers), key=len, reverse=True)
    fit = _fitting(past, left, (f", {ranges_of(run)}" for run in runs))
    kept = [number for run in runs[:fit] for number in run]
    more = len(numbers) - len(kept)
    return f"{NUMBERS}{ranges_of(kept)}, and {more:,} more.\n" if kept else ""


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers that follow each other."""
    pairs = groupby(enumerate(sorted(numbers)), key=lambda each: each[1] - each[0])
    return [[number for _, number in run] for _, run in pairs]


def ranges_of(numbers: Iterable[int]) -> str:
    """`[1]–[57], [60]`: numbers that follow each other as one range of any length."""
    spans = _runs(numbers)
    return ", ".join(
        f"[{span[0]}]" if len(span) == 1 else f"[{span[0]}]–[{span[-1]}]" for span in spans
    )


def _by_document(titles: Mapping[int, str]) -> str:
    of_title: dict[str, list[int]] = {}
    for number, title in titles.items():
        of_title.setdefault(title, []).append(number)
    listed = "; ".join(f"{title} {ranges_of(own)}" for title, own in of_title.items())
    return f"Documents: {listed}." if listed else ""


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
