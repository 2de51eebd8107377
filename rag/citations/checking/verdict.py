"""The verdict of one statement, from its own cited sources alone (C6).

What words can decide is decided here: whether a source speaks of the subject, whether it gives
another figure, name or polarity, whether a figure follows from others. What they cannot is open.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag.citations.checking.case import Case, Said
from rag.citations.checking.computing import Sum, adds_up, compute, may_follow
from rag.citations.checking.copying import altered, is_carried
from rag.citations.checking.given import Given
from rag.citations.checking.operands import Operands
from rag.citations.checking.reading import Place, SourceText, read
from rag.citations.checking.rows import Row, Wrong, compare
from rag.citations.checking.weighing import Weighed
from rag.citations.checking.wording import wrong_wording
from rag.records import Verdict
from rag.seams import Embedder
from rag.text.amounts import Figure, agree, comparable, date_parts, number_shown
from rag.text.languages import all_words, any_of, told
from rag.text.words import language_of

COUNTED = 12  # so many things a reader counts for himself
_REFUSES = re.compile(rf"\W*(?:{any_of(all_words('refusals'))})\s?[,.:–—-]", re.IGNORECASE)
_PURPOSE = re.compile(r"\W*(?:to|um) (?!\d)", re.IGNORECASE)  # its figures are the reader's own
_THAN = frozenset(told("than").split("|"))
_HALF_DAY = 12  # hours
_LONGEST_QUOTE = 110  # characters of a source in a reason


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason, and how near the source is, from 0 to 1."""

    verdict: Verdict
    reason: str = ""
    near: float = 0.0
    judged_by: str = ""  # "" where words decided
    stated: str = ""  # of a contradiction, what the statement says
    given: str = ""  # … and what the source says there


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Why a statement is contradicted."""

    reason: str
    stated: str = ""
    given: str = ""


def judge(said: Said, sources: Sequence[SourceText], embedder: Embedder | None = None) -> Judgement:
    """The verdict over a statement that cites these sources: one may carry it, or all together.

    With an embedding model, a source is called silent by meaning, too, not by words alone.
    """
    return _Verdict(said, sources, embedder).judgement()


def nearest_windows(said: Said, source: SourceText) -> Iterator[str]:
    """The windows of a source that share most words with a statement, under their headings."""
    words = read(f"{said.around} {said.text}", source.lexicon, language_of(said.text)).words
    heading = source.source.document_title
    near = (each.window for each in source.nearest(words))
    return (" · ".join(filter(None, (heading, each.around, each.text))) for each in near)


class _Verdict(Case):
    """The first that is wrong, or how it is carried."""

    def judgement(self) -> Judgement:
        """The first that is wrong, else how it is carried."""
        if not (self.reading.words or self.reading.figures or self.reading.names):
            return Judgement(Verdict.OPEN)
        if self.said.row is not None:
            return self._of_row(self.said.row)
        if any(is_carried(self.reading, self.names, each) for each in self.sources):
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next(filter(None, self._what_is_wrong()), None)
        if wrong is not None:
            near = 0.3 * self.near
            return Judgement(
                Verdict.CONTRADICTED, wrong.reason, near, stated=wrong.stated, given=wrong.given
            )
        ways = self._ways()
        if ways:
            return Judgement(Verdict.COMPUTED, f"Recomputed: {'; '.join(ways)}.", self.near)
        if self.is_silent and not any(self._how(each.said.figure) for each in self.weighed):
            reason = "The cited source does not speak of this."
            return Judgement(Verdict.OFF_SUBJECT, reason, 0.2 * self.anywhere)
        return Judgement(Verdict.OPEN, near=self.near)

    def _of_row(self, row: Row) -> Judgement:
        """By the cells of the same row and column."""
        told = [compare(row, source) for source in self.sources]
        if any(each is True for each in told):
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next((each for each in told if isinstance(each, Wrong)), None)
        if wrong is not None:
            reason = f"The source gives {wrong.given}: “{wrong.place}”"
            return Judgement(Verdict.CONTRADICTED, reason, stated=wrong.stated, given=wrong.given)
        if self.is_silent:
            return Judgement(Verdict.OFF_SUBJECT, "The cited source does not speak of this.")
        return Judgement(Verdict.OPEN, near=self.near)

    def _what_is_wrong(self) -> Iterator[_Wrong | None]:
        refuses = _REFUSES.match(self.said.text)  # what it denies is what was asked
        repeated = None if refuses else altered(self.reading, self.sources)
        if repeated is not None:
            place, figure = repeated
            yield _gives(figure, place) if figure else _Wrong(f"The source says {_quoted(place)}")
        yield from map(self._wrong_figure, self.weighed)
        if not self.is_copy:
            return
        worded = None if refuses else wrong_wording(self)
        if worded is not None:
            limits, place = worded[0] == "limits", worded[1]
            yield _Wrong(f"The source {'limits this:' if limits else 'says'} {_quoted(place)}")

    # ── Figures ──

    def _wrong_figure(self, weighed: Weighed) -> _Wrong | None:
        figure = weighed.said.figure
        if weighed.carried is not None or self._is_operand(figure):
            return None
        if self._may_be_worked_out(figure) or _PURPOSE.match(self.said.text):
            return None
        if weighed.instead and self.is_copy:
            may_differ = not self.reading.raw.isdisjoint(_THAN) and self._may_follow(figure)
            return None if may_differ else self._told_instead(weighed.instead, figure)
        missing = self._missing(figure)
        return _Wrong(missing, figure.shown) if missing else None

    def _is_operand(self, figure: Figure) -> bool:
        """Whether another figure of the statement was worked out from this one."""
        return any(figure.shown in self._may_be_worked_out(each) for each in self._own(figure))

    def _may_follow(self, figure: Figure) -> bool:
        return may_follow(figure, self._own(figure) + self._operands.figures)

    def _told_instead(self, there: Given, said: Figure) -> _Wrong:
        name = there.names[0] if there.names else ""
        named = self._spelled(name) if any(map(str.isdigit, name)) else ""
        stated = self.reading.text[said.start : said.end]
        return _gives(there.figure, there.place, named, stated)

    def _spelled(self, name: str) -> str:
        """A name as the source spells it."""
        known = (each for source in self.sources for each in source.lexicon.names)
        return next((each for each in known if each.lower() == name), name)

    def _missing(self, figure: Figure) -> str:
        """A figure that no source gives anywhere, and none that a reader may have worked out.

        In a copy, or where the sources hold little else of the statement: in between, what is told
        in other words has figures of its own as often as not.
        """
        if not self.is_copy:
            return ""
        if (self.is_foreign and not figure.unit) or not self._is_new(figure) or self.is_silent:
            return ""
        if self.reading.is_negated or self._is_bounded(figure):
            return ""
        if not adds_up(self.said.text) and self._may_follow(figure):
            return ""
        return f"The source does not give {figure.shown}."

    def _is_bounded(self, figure: Figure) -> bool:
        """Whether a source says up to where, or from when on: within and beyond is told by it."""
        there = (each for source in self.sources for each in source.figures)
        return any(
            comparable(figure, each) and each.unit and (each.comparator or each.upper is not None)
            for each in there
        )

    def _is_new(self, figure: Figure) -> bool:
        """Whether a figure, and no small count, stands nowhere in the sources."""
        is_counted = not figure.unit and figure.kind == "amount" and figure.value <= COUNTED
        if is_counted or figure.kind == "ordinal" or figure.comparator == "~":
            return False
        digits = re.compile(rf"(?<![\d.,]){number_shown(figure.value)}(?!\d|[.,]\d)")
        if not figure.unit and any(digits.search(each.source.passage) for each in self.sources):
            return False  # `n800n` of what is no prose
        there = [f for source in self.sources for f in source.figures]
        return not any(agree(figure, each) or _is_its_end(figure, each) for each in there)

    # ── Sums ──

    @cached_property
    def _operands(self) -> Operands:
        return Operands(self)

    def _own(self, but: Figure) -> list[Figure]:
        return [each.said.figure for each in self.weighed if each.said.figure is not but]

    def _how(self, figure: Figure, *, is_proof: bool = False) -> str:
        """How a figure follows from others: any of the sources, or those that it names."""
        if (figure, is_proof) not in self._worked_out:
            own, there = self._own(figure), self._operands
            known = own + (there.named(figure) if is_proof else there.figures)
            how = compute(Sum(figure, self.said.text, own, known, there, is_proof))
            self._worked_out[figure, is_proof] = how
        return self._worked_out[figure, is_proof]

    def _may_be_worked_out(self, figure: Figure) -> str:
        return self._how(figure) or self._how(figure, is_proof=True)

    @cached_property
    def _worked_out(self) -> dict[tuple[Figure, bool], str]:
        return {}

    def _ways(self) -> list[str]:
        """How the figures follow that no source gives, from what the statement names."""
        figures = [each.said.figure for each in self.weighed]
        missing = [each for each in figures if self._is_new(each)]
        ways = list(dict.fromkeys(self._how(figure, is_proof=True) for figure in missing))
        counts = [each for each in figures if each not in missing and not each.unit]
        used = all(any(_uses(way, each) for way in ways) for each in counts)
        return [way for way in ways if way] if used else []


def _gives(figure: Figure, place: Place, name: str = "", stated: str = "") -> _Wrong:
    """A figure as its window spells it, and that window."""
    spelled = place.own.text[figure.start : figure.end] or figure.shown
    behind = f" for the {name}" if name else ""
    return _Wrong(f"The source gives {spelled}{behind}: {_quoted(place)}", stated, spelled)


def _quoted(place: Place) -> str:
    """A window in quotation marks, cut where it is long."""
    window = place.window
    label = f"{window.column}, " if window.kind == "cell" and window.column else ""
    text = " ".join(f"{label}{window.text}".split())
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1].rstrip() + "…"
    return f"“{cut}”"


def _uses(way: str, count: Figure) -> bool:
    """Whether a sum has a number as a factor, or so many terms: `both together`, `2 × €6`."""
    terms = way.count(" + ") + 1
    return number_shown(count.value) in way.split() or count.value == 1 or 2 < count.value == terms


def _is_its_end(figure: Figure, there: Figure) -> bool:
    """One end of a range, a part of a date, or what was rounded: `76 %` of `76.3 %`."""
    if figure.kind == there.kind == "date":
        return any(a and a == b for a, b in zip(date_parts(figure), date_parts(there), strict=True))
    if figure.kind == there.kind == "clock":  # `half past nine in the evening`
        return abs(figure.value - there.value) == _HALF_DAY
    if figure.kind != there.kind and "clock" in (figure.kind, there.kind):
        return False
    if figure.unit and there.unit and figure.dimension != there.dimension:
        return False
    ends = (there.value, there.higher.value)
    said = (figure.value, figure.higher.value)
    return any(round(end) == each or end == each for end in ends for each in said)
