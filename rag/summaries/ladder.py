"""The size ladder: fit cited statements, numbers and names into a token budget.

Rungs, each taken only when the one before does not fit:
0  full claims, and uncited prose where there is room
1  claims only, trimmed
2  claims shortened: figures with units, names and negations stay
3  for the claims that do not fit any more, name and number
4  numbers grouped by document, runs of them as one marker
5  the oldest numbers and names go to the archive, and the text says so
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rag.citations.claims import marks
from rag.seams import TokenCounter
from rag.summaries.facts import GROUPED
from rag.summaries.lines import (
    BRIEF,
    EVIDENCE,
    FRAME_TOKENS,
    FULL,
    MARKER_TOKENS,
    TELEGRAM,
    TRIMMED,
    Composed,
    Limits,
    Required,
    name_size,
    names_line,
    numbers_in,
)
from rag.summaries.lower_rungs import LowerRungs, are_too_many
from rag.summaries.pool import Pool
from rag.summaries.shorten import closed

NOTHING = "Nothing was cited and no product named."

Chosen = dict[int, int]  # ages of lines, with the form in which each is quoted; oldest first


@dataclass(slots=True)
class Ladder:
    """Composes one summary of what is in a pool: lines and prose that have passed the check."""

    pool: Pool
    limits: Limits
    count: TokenCounter
    documents: Mapping[int, str] = field(default_factory=dict)  # titles by number, where known
    _required: Required = field(init=False)
    _covering: list[int] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._required = self.pool.required()

    def compose(self) -> Composed:
        """The fullest text that fits; what is required may take the hard limit."""
        if are_too_many(self._required, self.limits.hard):
            lower = self._lower()
            return self._checked(lower.bare()) or self._admitted(lower.bare())
        self._covering = self.pool.covering
        composed = self._claims_for_all()
        if composed is not None and composed.tokens <= self.limits.hard:
            checked = self._checked(composed)
            if checked is not None:
                return checked
        lower = self._lower()
        return self._checked(lower.compose()) or self._admitted(lower.bare())

    def _lower(self) -> LowerRungs:
        covering = [self.pool.lines[age] for age in self._covering]
        return LowerRungs(self._required, covering, self.limits.hard, self.count, self.documents)

    def _checked(self, composed: Composed) -> Composed | None:
        """The summary, once its exact text was read back; None if it lost or invented anything."""
        read = self._read_back(composed)
        every = set(self._required.numbers)
        names = set(self._required.names).difference(composed.archived_names)
        numbers = every.difference(composed.archived_numbers)
        return read if numbers <= read.cited <= every and names <= read.named else None

    def _read_back(self, composed: Composed) -> Composed:
        cited = numbers_in(composed.text)
        named = frozenset(self._required.reader.kept(composed.text))
        return replace(composed, cited=cited, named=named)

    def _admitted(self, composed: Composed) -> Composed:
        """What even the plain lists do not keep, such as a name of odd characters, is reported."""
        read = self._read_back(composed)
        return replace(
            read,
            archived_numbers=tuple(n for n in self._required.numbers if n not in read.cited),
            archived_names=tuple(n for n in self._required.names if n not in read.named),
        )

    # ── Rungs 0 to 2: a claim for every number ───────────────────────────────────────────────

    def _claims_for_all(self) -> Composed | None:
        soft, hard = self.limits.soft, self.limits.hard
        for form in (FULL, TRIMMED, TELEGRAM):
            chosen = self._fitting(self._all(), form, soft)
            if chosen is not None:
                return self._composed(chosen, form)
        for form in (FULL, TRIMMED, TELEGRAM):
            chosen = self._fitting(self._covering, form, soft)
            if chosen is not None:
                return self._composed(self._with_extras(chosen), form)
        for form in (TELEGRAM, BRIEF):
            chosen = self._fitting(self._covering, form, hard)
            if chosen is not None:
                return self._composed(chosen, 2)
        return None

    def _all(self) -> Iterator[int]:
        """The statements of answers, and those that cover the other numbers."""
        covering = set(self._covering)
        lines = self.pool.lines.items()
        return (age for age, line in lines if age in covering or not line.fact.is_asked)

    def _fitting(self, wanted: Iterable[int], form: int, limit: int) -> Chosen | None:
        """The wanted lines in this form, if they fit; of many, only the first are looked at."""
        chosen: Chosen = {}
        room = limit
        for age in wanted:
            room -= self.pool.lines[age].sizes[form]
            if room < 0:
                return None
            chosen[age] = form
        return chosen if self._size(chosen) <= limit else None

    def _size(self, chosen: Chosen) -> int:
        """An estimate of the text's tokens, a little too high."""
        cited: set[int] = set()
        named: set[str] = set()
        tokens = FRAME_TOKENS
        for age, form in chosen.items():
            line = self.pool.lines[age]
            cited.update(line.numbers)
            named |= line.names
            tokens += line.sizes[form]
        bare = sum(number not in cited for number in self._required.numbers)
        names = sum(name_size(name) for name in self._required.names if name not in named)
        return tokens + names + bare * MARKER_TOKENS

    def _with_extras(self, covering: Chosen) -> Chosen:
        """Further statements of answers, the shortest first, as far as the soft limit goes."""
        room = self.limits.soft - self._size(covering)
        lines = self.pool.lines
        extras = [age for age in self._all() if age not in covering]
        extras.sort(key=lambda age: lines[age].sizes[TELEGRAM] / len(lines[age].numbers))
        chosen = dict(covering)
        for age in extras:
            room -= lines[age].sizes[TELEGRAM]
            if room < 0:
                break
            chosen[age] = TELEGRAM
        return dict(sorted(chosen.items()))

    def _composed(self, chosen: Chosen, form: int) -> Composed:
        text = self.text(chosen)
        tokens = self.count(text)
        prose = self._prose(self.limits.soft - tokens) if form == FULL else ""
        if prose:
            text = f"{text}\n\n{prose}".strip()
            tokens = self.count(text)
        return Composed(text, tokens, form)

    def _prose(self, room: int) -> str:
        """The newest uncited sentences that fit, in their order."""
        kept: list[str] = []
        for sentence in reversed(self.pool.prose):
            size = len(sentence) // 3 + 2  # a little more than it will be
            if size > room:
                break
            room -= size
            kept.append(closed(sentence))
        return "\n".join(reversed(kept))

    def text(self, chosen: Chosen) -> str:
        """Evidence on top, then names and numbers without a statement, then the model's words."""
        quoted = [(self.pool.lines[age], form) for age, form in chosen.items()]
        body = [f"- {line.form(form)}" for line, form in quoted if not line.is_models]
        written = [line.form(form) for line, form in quoted if line.is_models]
        cited = {number for line, _ in quoted for number in line.numbers}
        bare = [number for number in self._required.numbers if number not in cited]
        missing = self._required.names_missing_in([*body, *written])
        blocks = [
            "\n".join([EVIDENCE, *body]) if body else "",
            names_line(missing),
            f"{GROUPED} {marks(bare)}." if bare else "",
            "\n" + "\n".join(written) if written else "",
        ]
        return "\n".join(filter(None, blocks)).strip() or NOTHING
