"""What stands for the oldest turns: small, stable, in the words that were said.

First what the user said, then the paragraphs that later turns came back to and the newest, then one
line of all numbers and one of names. Everything else of the past is found by recall.
"""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, groupby

from rag.citations.markers import cited_numbers
from rag.memory.past import Past, Shown
from rag.records import Quotation, Summary, SummaryReport
from rag.text.names import Lexicon

# What the user said: of the room beyond so many tokens, where recall finds more in the same room.
SAID_SHARE, SAID_BEYOND = 0.06, 1_500
LISTS_SHARE = 0.1  # numbers and names
PARAGRAPHS_SHARE = 0.04  # paragraphs of earlier turns
MOST_LOOKED_AT = 200  # sentences of the user
INTRODUCTION = (
    "Earlier turns are not all shown. What of them bears on the question stands before it, word "
    "for word; ask for anything else that was said.\n"
)
USER_SAID = "The user said:\n"
QUOTED = "From earlier turns, word for word, the newest first:\n"
NUMBERS, NAMES, THREAD = "Numbers given: ", "Names: ", "In a model's own words, unchecked: "
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


@dataclass(frozen=True, slots=True)
class Thread:
    """What a model wrote besides, or why it is not taken."""

    text: str = ""
    model: str = ""
    problems: tuple[str, ...] = ()


NO_THREAD = Thread()


def summarise(
    past: Past,
    end: int,
    room: Room,
    *,
    documents: Documents = lambda numbers: {},
    thread: Thread = NO_THREAD,
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
    users, quoted = _said_of(past, covered, room, left)
    text, quotations = _composed(opening + told, users, quoted, lists)
    tokens_after = past.count(f"{text}\n")
    report = replace(
        _report(past, text.removesuffix(lists.rstrip("\n")), tuple(numbers), tuple(names)),
        paragraphs=len(quoted.paragraphs),
        said=len(users),
        tokens_before=past.tokens(past.first, past.covered),
        tokens_after=tokens_after,
        seconds=time.monotonic() - began,
        model=thread.model if told else "extractive",
        problems=thread.problems,
    )
    return Summary(
        start=past.first,
        end=past.covered,
        text=text,
        required_numbers=tuple(numbers),
        required_names=tuple(names),
        report=report,
        tokens=tokens_after,
        quotations=tuple(quotations),
    )


def _said_of(
    past: Past, covered: range, room: Room, left: int
) -> tuple[list[tuple[int, str]], Shown]:
    """What the user said, and paragraphs of the turns, as far as each has room."""
    said = int(SAID_SHARE * max(0, room.history - SAID_BEYOND))
    users = _of_user(past, covered, min(left, room.tokens, said))
    if users:
        left -= past.count(USER_SAID) + sum(past.count(f"- {text}\n") for _, text in users)
    quoted = Shown(past, min(left, room.part(room.quoted)) - past.count(QUOTED))
    for at in _worth_quoting(past, covered):
        if quoted.is_full:
            break
        quoted.take(at)
    return users, quoted


def _composed(
    opening: str, users: Sequence[tuple[int, str]], quoted: Shown, lists: str
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
            text += block
    return (text + lists).rstrip("\n"), quotations


# ── What the user said ───────────────────────────────────────────────────────────────────────


def _of_user(past: Past, covered: range, room: int) -> list[tuple[int, str]]:
    """His own sentences that ask nothing, the newest first, each once."""
    found: dict[str, int] = {}
    left = room - past.count(USER_SAID)
    stated = past.stating[: bisect_left(past.stating, (covered.stop, ""))]
    for message, sentence in stated[: -MOST_LOOKED_AT - 1 : -1]:
        if left < Shown.FULL or message < covered.start:
            break
        cost = past.count(f"- {sentence}\n")
        if sentence not in found and cost <= left:
            found[sentence] = message
            left -= cost
    return [(message, sentence) for sentence, message in found.items()]


# ── Paragraphs ───────────────────────────────────────────────────────────────────────────────


def _worth_quoting(past: Past, covered: range) -> Iterator[int]:
    """Those that later turns came back to by their numbers, and the newest, in turn."""
    last = past.index.until(covered.stop)
    used = (
        next((at for at in reversed(past.holding.get(number, ())) if at < last), None)
        for number, times in past.uses.most_common(40)
        if times > 1
    )
    newest = reversed(range(past.index.until(covered.start), last))
    yield from dict.fromkeys(
        at
        for pair in zip(chain(used, _nothing()), newest, strict=False)
        for at in pair
        if at is not None
    )


def _nothing() -> Iterator[None]:
    return (None for _ in count())


# ── Numbers and names ────────────────────────────────────────────────────────────────────────


def _lists(
    past: Past, numbers: Iterable[int], names: Iterable[str], room: int, documents: Documents
) -> str:
    """One line of numbers, by document where that fits, and one of as many names as fit.

    Numbers with many gaps may take three times their room: each is to be found.
    """
    text = _numbers(past, numbers, 3 * room)
    left = room - past.count(text) - past.count(NAMES) - 1
    kept: list[str] = []
    for name in names:
        left -= past.count(f", {name}")
        if left < 0:
            break
        kept.append(name)
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
    kept: list[int] = []
    for run in sorted(_runs(numbers), key=len, reverse=True):
        left -= past.count(f", {ranges_of(run)}")
        if left < 0:
            break
        kept += run
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
