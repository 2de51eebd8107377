"""Whether each figure of a cited statement stands in what the statement cites.

A figure is an amount, date, share, duration or version. It is looked for in all sources that its
statement cites (with their titles and headings), in the question and in what the user said before;
then among what follows by one operation from figures that the statement itself names. What is found
nowhere is marked at the figure, whatever a verdict says of the statement: nothing here decides what
a statement means.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

from rag.citations.comparison.figures import is_about
from rag.citations.comparison.parser import SourceText
from rag.citations.markers import find_markers
from rag.citations.statements import Statement
from rag.language.amounts import DIMENSIONS, Figure, agree, date_parts
from rag.language.figures import read_figures
from rag.language.languages import Language
from rag.language.lazy_patterns import regex
from rag.language.words import language_of
from rag.records import CheckedFigure, FigureStatus, Source
from rag.runtime.budget import paced

COUNTED = 12  # so many things a writer counts himself
MOST_OPERANDS = 12  # figures of one statement that are combined
_EMPHASIS = frozenset("*_`~\\")
_VERSION = regex.compile(r"(?<![\w.])v?(\d+(?:\.\d+){2,})(?![\w.]*\d)")
_ROUNDING = regex.compile(r"\d[.,](\d+)(?!.*\d)")
_OF_YEARS = regex.compile(r"\b\d{4}[-–/]$")  # 2018–19
_CODE = regex.compile(r"(`+)[^`\n]+\1")
_SHARE = "%"


def check_figures(
    text: str,
    statements: Iterable[Statement],
    sources: Mapping[int, Source],
    *,
    user: Iterable[str] = (),
    recomputed: Sequence[tuple[int, int]] = (),
) -> tuple[CheckedFigure, ...]:
    """Each figure of the statements that cite something, in order.

    `user` is the question and what the same person said before; figures in the spans `recomputed`
    follow from the sources if they do not stand there.
    """
    read: dict[int, _Figures] = {}
    figures = _Figures(user)
    marks: list[CheckedFigure] = []
    for statement in paced(statements, weight=4):
        numbers = [number for number in statement.numbers if number in sources]
        if not numbers or not statement.states or statement.kind == "code":
            continue
        for number in numbers:
            read.setdefault(number, _Figures([_words_of(sources[number])]))
        cited = {number: read[number] for number in numbers}
        marks += _of_statement(text, statement, cited, figures, recomputed)
    return tuple(marks)


class _Figures:
    """The figures of some texts, and their versions; read when one is first looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts

    @cached_property
    def text(self) -> str:
        return "\n".join(self._texts)

    @cached_property
    def all(self) -> tuple[Figure, ...]:
        lines = (line for line in self.text.splitlines() if any(map(str.isalnum, line)))
        return tuple(figure for line in lines for figure in read_figures(line, self._language))

    @cached_property
    def _language(self) -> Language:
        return language_of(self.text)

    def have(self, figure: Figure, spelled: str) -> bool:
        """Whether it stands there: the same, rounded, in another unit or another spelling.

        The year of a date must be named as well: a day without one fits any.
        """
        year = date_parts(figure)[0] if figure.kind == "date" else 0
        years = (date_parts(date)[0] for date in self.all if year and date.kind == "date")
        if year and year not in years and not self.hold(str(year)):
            return False
        ends = [replace(figure, value=end, upper=None) for end in figure.ends]
        return all(
            any(is_about(end, other) or is_rounded(end, other, spelled) for other in self.all)
            for end in ends
        ) or self.hold(spelled)

    def hold(self, spelled: str) -> bool:
        """Whether it stands there letter by letter, as codes and versions do."""
        return bool(regex.search(rf"(?<![\w.,]){regex.escape(spelled)}(?![\w]|[.,]\d)", self.text))


def _words_of(source: Source) -> str:
    """The passage with everything that stands over it, without the markup of tables."""
    above = (source.document_title, source.document_name, source.locator, *source.heading_path)
    return "\n".join((*above, SourceText(source).text)).replace("|", " \n ")


def _of_statement(
    text: str,
    statement: Statement,
    cited: Mapping[int, _Figures],
    user: _Figures,
    recomputed: Sequence[tuple[int, int]],
) -> Iterator[CheckedFigure]:
    figures = list(_figures_of(text, statement))
    places = {
        figure: [number for number, there in cited.items() if there.have(figure, spelled)]
        for figure, spelled in figures
    }
    operands = [figure for figure, _ in figures if places[figure]][:MOST_OPERANDS]
    operands += [figure for figure, spelled in figures if user.have(figure, spelled)]
    for figure, spelled in figures:
        numbers = places[figure]
        if numbers or user.have(figure, spelled):
            status = FigureStatus.FOUND
        elif follows(figure, operands, spelled) or any(
            start <= figure.start < end for start, end in recomputed
        ):
            status = FigureStatus.DERIVED
        else:
            status = FigureStatus.UNFOUND
        yield CheckedFigure(
            figure.start, figure.end, status, numbers[0] if numbers else None, tuple(cited)
        )


# ── The figures of a statement ───────────────────────────────────────────────────────────────


def _figures_of(text: str, statement: Statement) -> Iterator[tuple[Figure, str]]:
    """Each with its spelling, at its place in the whole text; small counts are none."""
    plain, places = _plain(text, statement.start, statement.end)
    taken: list[tuple[int, int]] = []
    for match in _VERSION.finditer(plain):
        taken.append(match.span())
        start, end = places[match.start()], places[match.end() - 1] + 1
        yield Figure(0.0, unit=match[1], kind="version", start=start, end=end), match[1]
    for figure in read_figures(plain, language_of(plain)):
        is_taken = any(start < figure.end and figure.start < end for start, end in taken)
        is_years_end = _OF_YEARS.search(plain[: figure.start]) and figure.end - figure.start == 2
        if is_taken or is_years_end or not _is_claimed(figure):
            continue
        spelled = plain[figure.start : figure.end].strip()
        start, end = places[figure.start], places[max(figure.start, figure.end - 1)] + 1
        yield replace(figure, start=start, end=end), spelled


def _plain(text: str, start: int, end: int) -> tuple[str, list[int]]:
    """A stretch without markers, code and signs of emphasis, and where each character stood."""
    markers = [marker for marker in find_markers(text) if start <= marker.start < end]
    code = _CODE.finditer(text, start, end)
    spans = [*((marker.start, marker.end) for marker in markers), *(match.span() for match in code)]
    left_out = {index for span in spans for index in range(*span)}
    kept = [
        index
        for index in range(start, end)
        if index not in left_out and text[index] not in _EMPHASIS
    ]
    return "".join(" " if text[index] in "|\n" else text[index] for index in kept), kept


def _is_claimed(figure: Figure) -> bool:
    if figure.kind not in ("amount", "date", "clock"):
        return False
    is_count = figure.kind == "amount" and not figure.unit and figure.upper is None
    return not (is_count and abs(figure.value) <= COUNTED and figure.value % 1 == 0)


# ── The same figure otherwise ────────────────────────────────────────────────────────────────


def is_rounded(figure: Figure, other: Figure, spelled: str) -> bool:
    """Whether a figure is another one rounded to the last place that is written of it.

    Amounts of one dimension alone are compared, each in its own unit.
    """
    if figure.kind != "amount" or other.kind != "amount":
        return False
    if figure.dimension != other.dimension and figure.unit and other.unit:
        return False
    factor = DIMENSIONS.get(figure.unit, ("", 1.0))[1] if figure.unit and other.unit else 1.0
    half = _last_place(spelled) * figure.scale / 2
    return any(
        abs(abs(figure.value) - abs(end) / factor) <= half * (1 + 1e-9)
        for end in (other.values if figure.unit and other.unit else other.ends)
    )


def _last_place(spelled: str) -> float:
    """What one of the last written digit is worth: .1 of `2.5 kg`, 1 of `1,200`."""
    decimals = _ROUNDING.search(spelled)
    is_grouped = decimals is not None and len(decimals[1]) == 3
    return 10.0 ** -len(decimals[1]) if decimals and not is_grouped else 1.0


def follows(figure: Figure, operands: Sequence[Figure], spelled: str) -> bool:
    """Whether one operation over two of the operands gives it, or the sum of all of its kind."""
    others = [
        replace(operand, value=end, upper=None)
        for operand in operands
        if operand.start != figure.start and operand.kind == figure.kind == "amount"
        for end in operand.ends
    ]
    alike = [other.base for other in others if other.dimension == figure.dimension]
    values = [sum(alike)] if len(alike) > 2 else []
    for one, other in combinations(others, 2):
        values += _combined(one, other, figure)
    factor = DIMENSIONS.get(figure.unit, ("", 1.0))[1]
    bare = replace(figure, unit="")
    results = (Figure(value / factor) for value in values)
    return any(agree(bare, result) or is_rounded(bare, result, spelled) for result in results)


def _combined(one: Figure, other: Figure, figure: Figure) -> Iterator[float]:
    """In the base unit of what is wanted."""
    a, b = one.base, other.base
    if one.dimension == other.dimension == figure.dimension and figure.unit != _SHARE:
        yield from (a + b, abs(a - b))
    if not (one.unit and other.unit) and figure.dimension in (one.dimension, other.dimension):
        yield a * b  # so many of so much
    if one.dimension == other.dimension and a and b and (figure.unit == _SHARE or not figure.unit):
        times = 100 if figure.unit == _SHARE else 1
        yield from (times * a / b, times * b / a)
        yield from (times * abs(a - b) / b, times * abs(a - b) / a)
