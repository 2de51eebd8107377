"""The verdict of one statement, from its own cited sources alone (C6).

What words can decide is decided here: whether a source speaks of the subject, whether it gives
another figure, name or polarity, whether a figure follows from others. What they cannot is open.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag.citations.comparison.arithmetic import Computation
from rag.citations.comparison.case import Case, ComparedStatement
from rag.citations.comparison.copies import altered, is_carried
from rag.citations.comparison.figures import WeighedFigure
from rag.citations.comparison.negation import wrong_wording
from rag.citations.comparison.parser import Place, SourceText, read
from rag.citations.comparison.rows import Row, RowDifference, compare
from rag.language.amounts import Figure
from rag.language.languages import all_words, any_of
from rag.language.words import language_of
from rag.records import Verdict
from rag.seams import Embedder

_REFUSES = re.compile(rf"\W*(?:{any_of(all_words('refusals'))})\s?[,.:–—-]", re.IGNORECASE)
_NEAREST = 3  # windows that a judge is shown
_LONGEST_QUOTE = 110  # characters of a source in a reason


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason, and how near the source is, from 0 to 1; a warning is far."""

    verdict: Verdict
    reason: str = ""
    near: float = 0.0
    judged_by: str = ""  # "" where words decided
    stated: str = ""  # of a contradiction, what the statement says
    given: str = ""  # … and what the source says there


_SILENT = Judgement(Verdict.OFF_SUBJECT, "The cited source does not speak of this.")


def judge(
    statement: ComparedStatement, sources: Sequence[SourceText], embedder: Embedder | None = None
) -> Judgement:
    """The verdict over a statement that cites these sources: one may carry it, or all together.

    With an embedding model, a source is called silent by meaning, too, not by words alone.
    """
    return _Deciding(statement, sources, embedder).judgement()


def carries(statement: ComparedStatement, source: SourceText) -> bool:
    """Whether a source says this in its own words; that is what `judge` calls supported."""
    case = Case(statement, [source])
    return case.says_something and is_carried(case.reading, case.names, source)


def nearest_windows(statement: ComparedStatement, source: SourceText) -> Iterator[str]:
    """The windows of a source that share most words with a statement, under their headings."""
    words = read(
        f"{statement.around} {statement.text}", source.lexicon, language_of(statement.text)
    ).words
    heading = source.source.document_title
    near = (each.window for each in source.nearest(words)[:_NEAREST])
    return (" · ".join(filter(None, (heading, each.around, each.text))) for each in near)


class _Deciding(Case):
    """The first that is wrong, or how it is carried."""

    @cached_property
    def _worked_out(self) -> Computation:
        return Computation(self)

    def judgement(self) -> Judgement:
        """The first that is wrong, else how it is carried."""
        if not self.says_something:
            return Judgement(Verdict.OPEN)
        if self.said.row is not None:
            return self._of_row(self.said.row)
        if any(is_carried(self.reading, self.names, source) for source in self.sources):
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next(filter(None, self._what_is_wrong()), None)
        if wrong is not None:
            return wrong
        ways = self._worked_out.ways()
        if ways:
            return Judgement(Verdict.COMPUTED, f"Recomputed: {'; '.join(ways)}.", self.near)
        if self.is_silent and not any(
            self._worked_out.how(each.said.figure) for each in self.weighed
        ):
            return _SILENT
        return Judgement(Verdict.OPEN, near=self.near)

    def _of_row(self, row: Row) -> Judgement:
        """By the cells of the same row and column."""
        told = [compare(row, source) for source in self.sources]
        if any(each is True for each in told):
            return Judgement(Verdict.SUPPORTED, near=1.0)
        wrong = next((each for each in told if isinstance(each, RowDifference)), None)
        if wrong is not None:
            return _contradicted(
                f"The source gives {wrong.given}: “{wrong.place}”", wrong.stated, wrong.given
            )
        return _SILENT if self.is_silent else Judgement(Verdict.OPEN, near=self.near)

    def _what_is_wrong(self) -> Iterator[Judgement | None]:
        refuses = _REFUSES.match(self.said.text)  # what it denies is what was asked
        repeated = None if refuses else altered(self.reading, self.sources)
        if repeated is not None:
            place, figure = repeated
            says = f"The source says {_quoted(place)}"
            yield _gives(figure, place) if figure else _contradicted(says)
        if not self.is_copy:
            return
        yield from map(self._wrong_figure, self.weighed)
        worded = None if refuses else wrong_wording(self)
        if worded is not None:
            limits, place = worded[0] == "limits", worded[1]
            yield _contradicted(
                f"The source {'limits this:' if limits else 'says'} {_quoted(place)}"
            )

    def _wrong_figure(self, weighed: WeighedFigure) -> Judgement | None:
        figure, instead = weighed.said.figure, weighed.instead
        if weighed.carried is not None or instead is None or self._worked_out.is_used(figure):
            return None
        stated = self.reading.text[figure.start : figure.end]
        return _gives(instead.figure, instead.place, stated)


def _contradicted(reason: str, stated: str = "", given: str = "") -> Judgement:
    return Judgement(Verdict.CONTRADICTED, reason, stated=stated, given=given)


def _gives(figure: Figure, place: Place, stated: str = "") -> Judgement:
    """A figure as its window spells it, and that window."""
    spelled = place.own.text[figure.start : figure.end] or figure.shown
    return _contradicted(f"The source gives {spelled}: {_quoted(place)}", stated, spelled)


def _quoted(place: Place) -> str:
    """A window in quotation marks, cut where it is long."""
    window = place.window
    label = f"{window.column}, " if window.kind == "cell" and window.column else ""
    text = " ".join(f"{label}{window.text}".split())
    cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1].rstrip() + "…"
    return f"“{cut}”"
