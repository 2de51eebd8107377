"""The size ladder: fit cited statements, numbers and names into a token budget.

Rungs, each taken only when the one before does not fit:
0  full claims, and uncited prose where there is room
1  claims only, trimmed
2  claims shortened: figures with units, names and negations stay
3  for the claims that do not fit any more, name and number
4  numbers grouped by document, runs of them as one marker
5  the oldest numbers and names go to the archive, and the text says so
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rag.citations.claims import marks
from rag.citations.markers import neutralise
from rag.conversation.facts import GROUPED, Fact, Facts
from rag.conversation.shorten import telegram, trim_sentence
from rag.names import Lexicon, find_names
from rag.seams import TokenCounter

LINE_TOKENS = 3  # the bullet and the line break around a line
MARKER_TOKENS = 2
LONGEST_RUN = 100  # numbers in one range marker; see rag.citations.grammar
PROSE_SHARE = 0.25  # of the soft limit at most goes to uncited prose

EVIDENCE = "Cited in earlier turns:"
NAMED = "Also named:"


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens of a summary: `soft` for what is nice to have, `hard` for what is required."""

    soft: int
    hard: int


@dataclass(frozen=True)
class Line:
    """One cited sentence that can stand in a summary, and how much it takes, shortened or not."""

    fact: Fact
    count: TokenCounter = field(compare=False)
    is_models: bool = False  # the model wrote it, and it passed the check

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return self.fact.numbers

    @cached_property
    def forms(self) -> tuple[str, str, str]:
        """Full, trimmed, telegram."""
        text = self.fact.text
        return text, trim_sentence(text), telegram(text)

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        full, trimmed, short = self.forms
        size = self.count(full) + LINE_TOKENS
        trimmed_size = size if trimmed == full else self.count(trimmed) + LINE_TOKENS
        short_size = trimmed_size if short == trimmed else self.count(short) + LINE_TOKENS
        return size, trimmed_size, short_size

    @cached_property
    def name(self) -> str:
        """The first name in it."""
        return next((name.text for name in find_names(self.fact.text)), "")


@dataclass(frozen=True, slots=True)
class Composed:
    """The text of a summary, and what had to be left to the archive."""

    text: str
    tokens: int
    rung: int
    archived_numbers: tuple[int, ...] = ()
    archived_names: tuple[str, ...] = ()


@dataclass(slots=True)
class Ladder:
    """Composes one summary; `lines` and uncited `prose` have passed the check, oldest first."""

    facts: Facts
    lines: Sequence[Line]
    limits: Limits
    count: TokenCounter
    prose: Sequence[str] = ()
    documents: Mapping[int, str] = field(default_factory=dict)  # titles by number, where known

    def compose(self) -> Composed:
        """The fullest text that fits; what is required may take the hard limit."""
        for form in (1, 2):
            chosen = self._cover(form)
            if self._size(chosen, form) <= (self.limits.soft if form == 1 else self.limits.hard):
                return self._with_extras(chosen, form)
        return self._lower_rungs(chosen)

    # ── Rungs 0 to 2: a claim for every number ───────────────────────────────────────────────

    def _cover(self, form: int) -> list[Line]:
        """Few lines that together cite every number: the newest of equals, answers first."""
        open_numbers = set(self.facts.numbers)
        chosen: list[Line] = []
        ranked = sorted(
            enumerate(self.lines),
            key=lambda at: (at[1].fact.is_asked, not at[1].is_models, -len(at[1].numbers), -at[0]),
        )
        for _, line in ranked:
            if not open_numbers.isdisjoint(line.numbers):
                open_numbers.difference_update(line.numbers)
                chosen.append(line)
        return chosen

    def _size(self, chosen: Iterable[Line], form: int) -> int:
        """An estimate of the text's tokens, a little too high."""
        chosen = list(chosen)
        cited = {number for line in chosen for number in line.numbers}
        bare = sum(number not in cited for number in self.facts.numbers)
        named = Lexicon(self.facts.names).kept("\n".join(line.forms[form] for line in chosen))
        names = sum(self.count(name) + 2 for name in self.facts.names if name not in named)
        return sum(line.sizes[form] for line in chosen) + names + bare * MARKER_TOKENS + 30

    def _with_extras(self, chosen: list[Line], form: int) -> Composed:
        """Further statements, then uncited prose, as far as the soft limit goes."""
        prose_room = int(self.limits.soft * PROSE_SHARE) if self.prose else 0
        room = self.limits.soft - self._size(chosen, form)
        taken = set(map(id, chosen))
        extras = [line for line in self.lines if id(line) not in taken and not line.fact.is_asked]
        wanted = sum(line.sizes[1] for line in extras)
        if wanted > room:
            form = 2
            room = self.limits.soft - self._size(chosen, form)
        room -= min(prose_room, max(0, room) // 2)
        for line in sorted(extras, key=lambda line: line.sizes[form] / len(line.numbers)):
            if line.sizes[form] <= room:
                room -= line.sizes[form]
                chosen.append(line)
        return self._fitted(chosen, form)

    def _fitted(self, chosen: list[Line], form: int) -> Composed:
        in_order = self._in_order(chosen)
        text = self._text(in_order, form)
        tokens = self.count(text)
        if tokens > self.limits.hard:
            return self._lower_rungs(chosen)
        prose = self._prose(self.limits.soft - tokens)
        if prose:
            text = f"{text}\n\n{prose}".strip()
            tokens = self.count(text)
        return Composed(text, tokens, 0 if (form == 1 and prose) or not self.lines else form)

    def _prose(self, room: int) -> str:
        kept: list[str] = []
        for sentence in self.prose:
            size = self.count(sentence) + 1
            if size <= room - 2:
                room -= size
                kept.append(sentence)
        return " ".join(kept)

    def _in_order(self, chosen: Iterable[Line]) -> list[Line]:
        taken = set(map(id, chosen))
        return [line for line in self.lines if id(line) in taken]

    def _text(self, chosen: Sequence[Line], form: int) -> str:
        body = [f"- {line.forms[form]}" for line in chosen if not line.is_models]
        written = " ".join(line.forms[form] for line in chosen if line.is_models)
        cited = {number for line in chosen for number in line.numbers}
        bare = [number for number in self.facts.numbers if number not in cited]
        blocks = ["\n".join([EVIDENCE, *body])] if body else []
        kept = Lexicon(self.facts.names).kept("\n".join([*body, written]))
        missing = [name for name in self.facts.names if name not in kept]
        if missing:
            blocks.append(names_line(missing))
        if bare:
            blocks.append(f"{GROUPED} {marks(bare)}.")
        if written:
            blocks.append(f"\n{written}")
        return "\n".join(blocks).strip()

    # ── Rungs 3 to 5: numbers and names ──────────────────────────────────────────────────────

    def _lower_rungs(self, covering: list[Line]) -> Composed:
        """Claims for as many numbers as fit, the newest first; the others beside a name only."""
        bare = _Bare(self)
        if bare.size(self.facts.numbers, 3) <= self.limits.hard:
            return self._mixed(covering, bare)
        grouped = bare.compose(self.facts.numbers, self.facts.names, 4)
        if grouped.tokens <= self.limits.hard:
            return grouped
        return bare.archive()

    def _mixed(self, covering: list[Line], bare: "_Bare") -> Composed:
        newest_first = list(reversed(self._in_order(covering)))
        few, many = 0, len(newest_first)
        best = bare.compose(self.facts.numbers, self.facts.names, 3)
        while few < many:
            middle = (few + many + 1) // 2
            tried = bare.compose(
                self.facts.numbers, self.facts.names, 3, lines=newest_first[:middle]
            )
            if tried.tokens <= self.limits.hard:
                few, best = middle, tried
            else:
                many = middle - 1
        return best if best.tokens <= self.limits.hard else bare.archive()


def names_line(names: Iterable[str]) -> str:
    """Names that no statement holds."""
    return f"{NAMED} {'; '.join(names)}."


class _Bare:
    """The lower rungs, where numbers stand beside names or in groups."""

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder
        self.count = ladder.count
        self.name_of: dict[int, str] = {}
        for line in ladder.lines:
            for number in line.numbers:
                self.name_of[number] = line.name or self.name_of.get(number, "")

    def size(self, numbers: Sequence[int], rung: int) -> int:
        return self.compose(numbers, self.ladder.facts.names, rung).tokens

    def compose(
        self,
        numbers: Sequence[int],
        names: Sequence[str],
        rung: int,
        *,
        lines: Sequence[Line] = (),
    ) -> Composed:
        ordered = self.ladder._in_order(lines)
        body = [f"- {line.forms[2]}" for line in ordered]
        cited = {number for line in ordered for number in line.numbers}
        rest = [number for number in numbers if number not in cited]
        body += self._by_name(rest) if rung == 3 else []
        blocks = ["\n".join([EVIDENCE, *body])] if body else []
        kept = Lexicon(names).kept("\n".join(body))
        missing = [name for name in names if name not in kept]
        blocks += [names_line(missing)] if missing else []
        blocks += self._grouped(rest if rung > 3 else [n for n in rest if not self.name_of.get(n)])
        text = "\n".join(blocks)
        return Composed(text, self.count(text), rung)

    def _by_name(self, numbers: Iterable[int]) -> list[str]:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self.name_of.get(number, ""), []).append(number)
        return [f"- {name} {marks(own)}" for name, own in groups.items() if name]

    def _grouped(self, numbers: Sequence[int]) -> list[str]:
        if not numbers:
            return []
        groups: dict[str, list[int]] = {}
        for number in numbers:
            groups.setdefault(self.ladder.documents.get(number, ""), []).append(number)
        named = [f"{neutralise(title)}: {runs(own)}" for title, own in groups.items() if title]
        loose = [runs(groups[""])] if "" in groups else []
        return [f"{GROUPED} {'; '.join([*named, *loose])}."]

    def archive(self) -> Composed:
        """The newest numbers and names that fit, and a line about the others."""
        facts = self.ladder.facts
        few, many = 0, max(len(facts.numbers), len(facts.names))
        best = self._archived(0)
        while few < many:
            middle = (few + many + 1) // 2
            tried = self._archived(middle)
            if tried.tokens <= self.ladder.limits.hard:
                few, best = middle, tried
            else:
                many = middle - 1
        return best

    def _archived(self, kept: int) -> Composed:
        facts = self.ladder.facts
        moved = facts.numbers[: max(0, len(facts.numbers) - kept)]
        moved_names = facts.names[: max(0, len(facts.names) - kept)]
        stays = self.compose(facts.numbers[len(moved) :], facts.names[len(moved_names) :], 4)
        text = "\n".join(filter(None, [stays.text, archive_line(moved, moved_names)]))
        return Composed(text, self.count(text), 5, moved, moved_names)


def archive_line(numbers: Sequence[int], names: Sequence[str]) -> str:
    """What is no longer in the text, and how to find it."""
    if not numbers and not names:
        return ""
    said = []
    if numbers:
        said.append(f"{len(numbers)} citations between {min(numbers)} and {max(numbers)}")
    if names:
        said.append(f"{len(names)} names from {names[0]} to {names[-1]}")
    return (
        f"Moved to the archive, where a search of the conversation finds them: {', '.join(said)}."
    )


def runs(numbers: Iterable[int]) -> str:
    """Numbers as markers, runs of four and more as one range: `[1-40][42][50]`."""
    text: list[str] = []
    for run in _consecutive(sorted(set(numbers))):
        if len(run) < 4:
            text.append(marks(run))
            continue
        for at in range(0, len(run), LONGEST_RUN):
            part = run[at : at + LONGEST_RUN]
            text.append(f"[{part[0]}-{part[-1]}]" if len(part) > 1 else marks(part))
    return "".join(text)


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
