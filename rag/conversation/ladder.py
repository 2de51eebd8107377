"""The size ladder: fit cited statements, numbers and names into a token budget.

Rungs, each taken only when the one before does not fit:
0  full claims, and uncited prose where there is room
1  claims only, trimmed
2  claims shortened: figures with units, names and negations stay
3  for the claims that do not fit any more, name and number
4  numbers grouped by document, runs of them as one marker
5  the oldest numbers and names go to the archive, and the text says so
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag.citations.claims import marks
from rag.conversation.facts import GROUPED, Facts
from rag.conversation.lines import (
    BRIEF,
    EVIDENCE,
    FRAME_TOKENS,
    FULL,
    MARKER_TOKENS,
    TELEGRAM,
    TRIMMED,
    Composed,
    Limits,
    Line,
    kept_names,
    name_size,
    names_line,
    numbers_in,
)
from rag.conversation.lower_rungs import LowerRungs
from rag.conversation.shorten import closed
from rag.seams import TokenCounter

NOTHING = "Nothing was cited and no product named."

Chosen = dict[int, int]  # indices of lines, with the form in which each is quoted


@dataclass(slots=True)
class Ladder:
    """Composes one summary; `lines` and uncited `prose` have passed the check, oldest first."""

    facts: Facts
    lines: Sequence[Line]
    limits: Limits
    count: TokenCounter
    prose: Sequence[str] = ()
    documents: Mapping[int, str] = field(default_factory=dict)  # titles by number, where known
    _name_tokens: dict[str, int] = field(init=False)
    _covering: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._covering = self._cover()
        self._name_tokens = {name: name_size(name) for name in self.facts.names}

    def compose(self) -> Composed:
        """The fullest text that fits; what is required may take the hard limit."""
        composed = self._claims_for_all()
        if composed is not None and composed.tokens <= self.limits.hard:
            checked = self._checked(composed)
            if checked is not None:
                return checked
        covering = [self.lines[at] for at in self._covering]
        lower = LowerRungs(self.facts, covering, self.limits.hard, self.count, self.documents)
        return self._checked(lower.compose()) or self._admitted(lower.bare())

    def _checked(self, composed: Composed) -> Composed | None:
        """The summary, once its exact text was read back; None if it lost or invented anything."""
        read = self._read_back(composed)
        required = set(self.facts.numbers).difference(composed.archived_numbers)
        names = set(self.facts.names).difference(composed.archived_names)
        kept = required <= read.cited <= set(self.facts.numbers) and names <= read.named
        return read if kept else None

    def _read_back(self, composed: Composed) -> Composed:
        cited = numbers_in(composed.text)
        named = frozenset(kept_names(self.facts.names).kept(composed.text))
        return replace(composed, cited=cited, named=named)

    def _admitted(self, composed: Composed) -> Composed:
        """What even the plain lists do not keep, such as a name of odd characters, is reported."""
        read = self._read_back(composed)
        return replace(
            read,
            archived_numbers=tuple(n for n in self.facts.numbers if n not in read.cited),
            archived_names=tuple(name for name in self.facts.names if name not in read.named),
        )

    # ── Rungs 0 to 2: a claim for every number ───────────────────────────────────────────────

    def _claims_for_all(self) -> Composed | None:
        answers = [at for at, line in enumerate(self.lines) if not line.fact.is_asked]
        covering = self._covering
        everything = sorted({*answers, *covering})
        for form, chosen in self._fitting(everything, (FULL, TRIMMED, TELEGRAM), self.limits.soft):
            return self._composed(chosen, form)
        for form, chosen in self._fitting(covering, (FULL, TRIMMED, TELEGRAM), self.limits.soft):
            return self._composed(self._with_extras(chosen, answers), form)
        for _, chosen in self._fitting(covering, (TELEGRAM, BRIEF), self.limits.hard):
            return self._composed(chosen, 2)
        return None

    def _cover(self) -> list[int]:
        """Few lines that together cite every number: the newest of equals, answers first."""
        ranks = [line.rank for line in self.lines]
        ranked = sorted(range(len(ranks) - 1, -1, -1), key=ranks.__getitem__)
        cited: set[int] = set()
        chosen: list[int] = []
        for at in ranked:
            if not cited.issuperset(self.lines[at].numbers):
                cited.update(self.lines[at].numbers)
                chosen.append(at)
        return sorted(chosen)

    def _fitting(
        self, wanted: Sequence[int], forms: Sequence[int], limit: int
    ) -> Iterator[tuple[int, Chosen]]:
        """The forms in which all the wanted lines fit."""
        sizes = [self.lines[at].sizes for at in wanted]
        together = [sum(column) for column in zip(*sizes, strict=True)]
        for form in forms:
            chosen = dict.fromkeys(wanted, form)
            if (not together or together[form] <= limit) and self._size(chosen) <= limit:
                yield form, chosen

    def _size(self, chosen: Chosen) -> int:
        """An estimate of the text's tokens, a little too high."""
        cited: set[int] = set()
        named: set[str] = set()
        tokens = FRAME_TOKENS
        for at, form in chosen.items():
            line = self.lines[at]
            cited.update(line.numbers)
            named |= line.names
            tokens += line.size(form)
        bare = sum(number not in cited for number in self.facts.numbers)
        names = sum(size for name, size in self._name_tokens.items() if name not in named)
        return tokens + names + bare * MARKER_TOKENS

    def _with_extras(self, covering: Chosen, answers: Iterable[int]) -> Chosen:
        """Further statements, the shortest first, as far as the soft limit goes."""
        room = self.limits.soft - self._size(covering)
        extras = [at for at in answers if at not in covering]
        extras.sort(key=lambda at: self.lines[at].size(TELEGRAM) / len(self.lines[at].numbers))
        chosen = dict(covering)
        for at in extras:
            size = self.lines[at].size(TELEGRAM)
            if size > room:
                break
            room -= size
            chosen[at] = TELEGRAM
        return chosen

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
        for sentence in reversed(self.prose):
            size = len(sentence) // 3 + 2  # a little more than it will be
            if size > room:
                break
            room -= size
            kept.append(closed(sentence))
        return "\n".join(reversed(kept))

    def text(self, chosen: Chosen) -> str:
        """Evidence on top, then names and numbers without a statement, then the model's words."""
        ordered = [(self.lines[at], chosen[at]) for at in sorted(chosen)]
        body = [f"- {line.form(form)}" for line, form in ordered if not line.is_models]
        written = [line.form(form) for line, form in ordered if line.is_models]
        cited = {number for line, _ in ordered for number in line.numbers}
        bare = [number for number in self.facts.numbers if number not in cited]
        kept = kept_names(self.facts.names).kept("\n".join([*body, *written]))
        missing = [name for name in self.facts.names if name not in kept]
        blocks = [
            "\n".join([EVIDENCE, *body]) if body else "",
            names_line(missing),
            f"{GROUPED} {marks(bare)}." if bare else "",
            "\n" + "\n".join(written) if written else "",
        ]
        return "\n".join(filter(None, blocks)).strip() or NOTHING
