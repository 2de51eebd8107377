"""The verdict of every citation of an answer, and the statements that no source supports.

A figure is an amount, date, share, duration or version. It is looked for in all sources that its
statement cites (with titles and headings), in the question and in earlier words of the user; then
among the results of one operation on figures that the statement names. A figure found nowhere is
marked, whatever the verdict: nothing here decides what a statement means.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, islice

from rag.citations.comparison.case import ComparedStatement, row_said
from rag.citations.comparison.parser import (
    Reading,
    SourceText,
    is_about,
    read_alone,
    read_source,
    share,
)
from rag.citations.comparison.verdict import Judgement, carries, nearest_windows
from rag.citations.comparison.verdict import judge as judge_by_words
from rag.citations.gate import canonical
from rag.citations.markers import find_markers, without_markers
from rag.citations.register import as_source, brought_source
from rag.citations.statements import Clause, Statement, read_statements
from rag.language.amounts import DIMENSIONS, Figure, agree, date_parts
from rag.language.figures import read_figures
from rag.language.lazy_patterns import regex
from rag.language.words import language_of
from rag.records import (
    CheckedFigure,
    Citation,
    FigureStatus,
    Hit,
    Readable,
    Source,
    Unsourced,
    Verdict,
)
from rag.runtime.budget import paced
from rag.seams import Embedder, Retriever
from rag.seams.models import Judge, OpenStatement

COUNTED = 12  # so many things a writer or a reader counts himself
MOST_OPERANDS = 12  # figures of one statement that are combined
_EMPHASIS = frozenset("*_`~\\")
_VERSION = regex.compile(r"(?<![\w.])v?(\d+(?:\.\d+){2,})(?![\w.]*\d)")
_ROUNDING = regex.compile(r"\d[.,](\d+)(?!.*\d)")
_OF_YEARS = regex.compile(r"\b\d{4}[-–/]$")  # 2018–19
_CODE = regex.compile(r"(`+)[^`\n]+\1")


def check_figures(
    text: str,
    statements: Iterable[Statement],
    sources: Mapping[int, Source],
    *,
    user: Iterable[str] = (),
    recomputed: Sequence[tuple[int, int]] = (),
) -> tuple[CheckedFigure, ...]:
    """Return the figures of the statements that cite something, in order.

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
    """The figures and versions of some texts, read when one is first looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts

    @cached_property
    def text(self) -> str:
        return "\n".join(self._texts)

    @cached_property
    def all(self) -> tuple[Figure, ...]:
        language = language_of(self.text)
        lines = (line for line in self.text.splitlines() if any(map(str.isalnum, line)))
        return tuple(figure for line in lines for figure in read_figures(line, language))

    def have(self, figure: Figure, spelled: str) -> bool:
        """Whether a figure is among them: the same, rounded, in another unit or spelling.

        The year of a date must be given as well: a day without one fits any.
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
        """Whether a code or version is among them letter by letter."""
        return bool(regex.search(rf"(?<![\w.,]){regex.escape(spelled)}(?![\w]|[.,]\d)", self.text))


def _words_of(source: Source) -> str:
    """Return a passage with its titles and headings, without the markup of tables."""
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
    """Yield figures and their spelling, at their place in the whole text; no small counts."""
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
    """Return a stretch without markers, code and emphasis, and where each character stood."""
    markers = [marker for marker in find_markers(text) if start <= marker.start < end]
    code = _CODE.finditer(text, start, end)
    spans = [*((marker.start, marker.end) for marker in markers), *(match.span() for match in code)]
    left_out = {index for span in spans for index in range(*span)}
    positions = [
        index
        for index in range(start, end)
        if index not in left_out and text[index] not in _EMPHASIS
    ]
    return "".join(" " if text[index] in "|\n" else text[index] for index in positions), positions


def _is_claimed(figure: Figure) -> bool:
    if figure.kind not in ("amount", "date", "clock"):
        return False
    is_count = figure.kind == "amount" and not figure.unit and figure.upper is None
    return not (is_count and abs(figure.value) <= COUNTED and figure.value % 1 == 0)


# ── The same figure otherwise ────────────────────────────────────────────────────────────────


def is_rounded(figure: Figure, other: Figure, spelled: str) -> bool:
    """Whether a figure is another one rounded to its last written place.

    That is .1 of `2.5 kg` and 1 of `1,200`. Amounts of one dimension alone are compared, each in
    its own unit.
    """
    if figure.kind != "amount" or other.kind != "amount":
        return False
    if figure.dimension != other.dimension and figure.unit and other.unit:
        return False
    factor = DIMENSIONS.get(figure.unit, ("", 1.0))[1] if figure.unit and other.unit else 1.0
    decimals = _ROUNDING.search(spelled)
    is_grouped = decimals is not None and len(decimals[1]) == 3
    last_place = 10.0 ** -len(decimals[1]) if decimals and not is_grouped else 1.0
    half = last_place * figure.scale / 2
    return any(
        abs(abs(figure.value) - abs(end) / factor) <= half * (1 + 1e-9)
        for end in (other.values if figure.unit and other.unit else other.ends)
    )


def follows(figure: Figure, operands: Sequence[Figure], spelled: str) -> bool:
    """Whether one operation on two operands gives the figure, or the sum of all of its kind."""
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
    """Yield the results of each operation, in the base unit of the figure."""
    a, b = one.base, other.base
    if one.dimension == other.dimension == figure.dimension and figure.unit != "%":
        yield from (a + b, abs(a - b))
    if not (one.unit and other.unit) and figure.dimension in (one.dimension, other.dimension):
        yield a * b  # so many of so much
    if one.dimension == other.dimension and a and b and figure.unit in ("%", ""):
        times = 100 if figure.unit == "%" else 1
        yield from (times * a / b, times * b / a)
        yield from (times * abs(a - b) / b, times * abs(a - b) / a)


_REPEATED_FROM = 0.5  # of a closing's words that were cited above, or stand in what was cited
_CARRIED_FROM = 0.75  # of the words of a statement without a number, in one window
_NO_SOURCE = Judgement(Verdict.OFF_SUBJECT, "There is no such source.")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text with canonical citations, their verdicts, and the unsupported statements."""

    text: str
    citations: tuple[Citation, ...]
    unsourced: tuple[Unsourced, ...]
    sources: Mapping[int, Source]  # what the numbers stand for
    figures: tuple[CheckedFigure, ...] = ()  # of statements that cite something


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """Words of an answer, with a verdict for each number that they carry."""

    statement: Statement
    clause: Clause
    compared: ComparedStatement
    verdicts: Mapping[int, Judgement]

    @property
    def is_label(self) -> bool:
        """Whether the part is the label of a row or column."""
        return self.statement.kind == "row" and self.compared.row is None


def check(
    text: str,
    sources: Mapping[int, Source],
    judge: Judge | None = None,
    *,
    embedder: Embedder | None = None,
    user: Iterable[str] = (),
) -> CheckedText:
    """Judge each statement for each of its numbers; one that `sources` lacks carries nothing.

    What words do not make certain, `judge` is asked for, warnings too; it takes its time. With an
    embedding model, a source is called silent by meaning, not by words. `user` is the question and
    what was said before it by the same person, whose figures need no source.
    """
    texts = {number: read_source(source) for number, source in sources.items()}
    statements = read_statements(text)
    judged = judge_parts(text, statements, texts, embedder)
    if judge is not None:
        judged = _with_judge(judged, texts, judge)
    free = (statement for statement in statements if statement.states and not statement.parts)
    above = _Above(text, judged, texts)
    citations = tuple(_citations(text, judged))
    starts = [citation.start for citation in citations]
    unsourced = (
        Unsourced(statement.start, statement.end)
        for statement in free
        if not any(statement.start <= start < statement.end for start in starts)
        and not above.repeats(statement)
        and not _is_carried(bare(text, statement), texts)
    )
    recomputed = [
        (part.clause.start, part.clause.end)
        for part in judged
        if any(judgement.verdict is Verdict.COMPUTED for judgement in part.verdicts.values())
    ]
    figures = check_figures(text, statements, sources, user=user, recomputed=recomputed)
    return CheckedText(text, citations, tuple(unsourced), sources, figures)


def judge_parts(
    text: str,
    statements: Sequence[Statement],
    sources: Mapping[int, SourceText],
    embedder: Embedder | None = None,
) -> list[JudgedPart]:
    """Return the verdicts of each part that cites something."""
    results: list[JudgedPart] = []
    for statement in paced(statements, weight=16):
        for part in statement.parts:
            compared = _clause_to_compare(text, statement, part)
            cited = {number: sources[number] for number in part.numbers if number in sources}
            verdicts = dict.fromkeys(part.numbers, Judgement(Verdict.OPEN))
            if statement.states:
                verdicts = dict.fromkeys(part.numbers, _NO_SOURCE)
                verdicts |= _for_each(compared, cited, embedder)
            results.append(JudgedPart(statement, part, compared, verdicts))
    return results


def _for_each(
    statement: ComparedStatement, cited: Mapping[int, SourceText], embedder: Embedder | None
) -> dict[int, Judgement]:
    """The verdict for each number, from its source alone; the others tell what it need not carry.

    Two sources may carry a part each: what one of them lacks is no contradiction where another
    gives it. Where one alone carries all, nothing is put together, and the others have to as well.
    """
    alone = {n: judge_by_words(statement, [source], embedder) for n, source in cited.items()}
    is_certain = any(judgement.verdict.is_certain for judgement in alone.values())
    if len(cited) < 2 or is_certain:
        return alone
    together = judge_by_words(statement, list(cited.values()), embedder)
    if together.verdict is Verdict.COMPUTED:
        return {n: together if not e.verdict.is_warning else e for n, e in alone.items()}
    if together.verdict is Verdict.CONTRADICTED:
        return alone
    compatible = {n: e for n, e in alone.items() if e.verdict is not Verdict.CONTRADICTED}
    return dict.fromkeys(cited, Judgement(Verdict.OPEN)) | compatible


def _with_judge(
    judged: list[JudgedPart], sources: Mapping[int, SourceText], judge: Judge
) -> list[JudgedPart]:
    """Replace open verdicts by those of a judge, shown as the judge's.

    If both warn, what the comparison says of the source stays.
    """
    undecided: dict[tuple[int, int], OpenStatement] = {}
    for index, part in enumerate(judged):
        text = " ".join(f"{part.compared.around} {part.compared.text}".split())
        for number, judgement in part.verdicts.items():
            if part.statement.states and number in sources and not judgement.verdict.is_certain:
                windows = tuple(nearest_windows(part.compared, sources[number]))
                undecided[index, number] = OpenStatement(text, windows, number)
    if not undecided:
        return judged
    verdicts = [dict(part.verdicts) for part in judged]
    answers = judge.judge([*undecided.values()])
    for (index, number), answer in zip(undecided, answers, strict=True):
        by_words = verdicts[index][number].verdict
        if answer is not None and not (by_words.is_warning and answer.verdict is by_words):
            verdicts[index][number] = Judgement(answer.verdict, answer.reason, 0.5, judge.name)
    return [
        replace(part, verdicts=by_number) for part, by_number in zip(judged, verdicts, strict=True)
    ]


def _clause_to_compare(text: str, statement: Statement, part: Clause) -> ComparedStatement:
    """Return the words of a part, with those that it is not understood without."""
    words = without_markers(text[part.start : part.end])
    lead = text[slice(*statement.lead_in)] if statement.lead_in else ""
    if statement.kind != "row":
        return ComparedStatement(words, without_markers(lead).strip(" #*:"))
    line, first = text[statement.start : statement.end], statement.start
    row = row_said(lead, line, part.start - first, part.end - first)
    cells = " ".join(words.replace("|", " ").split()) or without_markers(line)
    return ComparedStatement(cells, without_markers(lead).strip(), row)


def bare(text: str, statement: Statement) -> str:
    """Return a statement without its markers."""
    return without_markers(text[statement.start : statement.end])


# ── Citations ────────────────────────────────────────────────────────────────────────────────


def _citations(text: str, judged: Sequence[JudgedPart]) -> Iterator[Citation]:
    """Yield each number of each marker: a warning if any of its parts has one, else the weakest.

    A row's label and a column's header count only with the cells that the marker stands for.
    """
    at_markers: dict[tuple[int, int], list[Judgement]] = defaultdict(list)
    for part in sorted(judged, key=lambda part: part.is_label):
        for marker in part.clause.markers:
            for number in marker.numbers:
                judgements = at_markers[marker.start, number]
                if not (judgements and part.is_label):
                    judgements.append(part.verdicts[number])
    for marker in paced(find_markers(text)):
        for number in marker.numbers:
            judgements = at_markers.get((marker.start, number)) or [Judgement(Verdict.OPEN)]
            decisive = min(
                judgements, key=lambda e: (not e.verdict.is_warning, e.verdict.is_certain)
            )
            yield Citation(
                number,
                marker.start,
                marker.end,
                decisive.verdict,
                decisive.reason,
                judged_by=decisive.judged_by,
                stated=decisive.stated,
                given=decisive.source_value,
            )


# ── Statements without a number ──────────────────────────────────────────────────────────────


class _Above:
    """The words and figures of an answer's cited parts, and of their sources."""

    def __init__(
        self, text: str, judged: Sequence[JudgedPart], sources: Mapping[int, SourceText]
    ) -> None:
        self.text = text
        cited = {number for part in judged for number in part.clause.numbers}
        self._cited: list[Reading | SourceText] = [
            *(sources[number] for number in sorted(cited & sources.keys())),
            *(
                read_alone(f"{part.compared.around} {part.compared.text}")
                for part in judged
                if not all(judgement.verdict.is_warning for judgement in part.verdicts.values())
            ),
        ]

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word for cited in self._cited for word in cited.words)

    @cached_property
    def figures(self) -> list[Figure]:
        return [figure for cited in self._cited for figure in cited.figures]

    def repeats(self, statement: Statement) -> bool:
        """Whether most words and all figures of a statement were cited before."""
        reading = read_alone(bare(self.text, statement))
        figures = all(
            any(agree(figure, there) for there in self.figures)
            for figure in reading.figures
            if figure.unit or figure.value > COUNTED
        )
        return figures and share(reading.words, self.words) >= _REPEATED_FROM


def _is_carried(text: str, sources: Mapping[int, SourceText]) -> bool:
    """Whether a source holds most of a text, and nothing against it."""
    judged = (judge_by_words(ComparedStatement(text), [source]) for source in sources.values())
    return any(
        not judgement.verdict.is_warning and judgement.near >= _CARRIED_FROM for judgement in judged
    )


_STOP = re.compile(r"(?:[.!…;,]+|[。！；]+)?[\"'”’»」』]*(?:\s*\|)?$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class AttributedText:
    """A text with citations added, and the added ones, by offsets into that text."""

    text: str
    citations: tuple[Citation, ...]


def attribute(text: str, sources: Mapping[int, Source]) -> AttributedText:
    """Add `[n]` to unmarked statements that a source supports, as the verdict would be.

    Markers that are there stay as they are.
    """
    texts = {number: read_source(source) for number, source in sources.items()}
    placed: list[tuple[Statement, int]] = []
    for statement in read_statements(text):
        if statement.states and not statement.parts:
            lead = text[slice(*statement.lead_in)] if statement.lead_in else ""
            compared = ComparedStatement(bare(text, statement), lead.strip(" #*:\n"))
            carrying = (number for number, source in texts.items() if carries(compared, source))
            placed += [(statement, number) for number in islice(carrying, 1)]
    while placed:
        attributed = _inserted(text, placed)
        starts = {marker.start for marker in find_markers(attributed.text)}
        numbered = zip(placed, attributed.citations, strict=True)
        legible = [place for place, citation in numbered if citation.start in starts]
        if len(legible) == len(placed):
            return attributed
        placed = legible
    return AttributedText(text, ())


def _inserted(text: str, placed: Sequence[tuple[Statement, int]]) -> AttributedText:
    """Insert a marker at the end of each statement, before its full stop."""
    pieces: list[str] = []
    citations: list[Citation] = []
    position = length = 0
    for statement, number in placed:
        stop = _STOP.search(text, max(statement.start, statement.end - 20), statement.end)
        words = text[statement.start : stop.start() if stop else statement.end].rstrip()
        place = statement.start + len(words)
        marker = f"[{number}]" if _UNSPACED.match(text[place - 1 : place]) else f" [{number}]"
        pieces += [text[position:place], marker]
        length += place - position + len(marker)
        position = place
        start = length - len(marker.lstrip())
        citations.append(Citation(number, start, length, Verdict.SUPPORTED, attributed=True))
    return AttributedText("".join(pieces) + text[position:], tuple(citations))


LOOKED_UP = 40  # statements of one text for which the library is searched
LONGEST_LOOKED_UP = 600  # characters of one that are searched for
HITS_OF_A_CLAIM = 3


def check_text(
    text: str,
    sources: Mapping[int, Source],
    *,
    embedder: Embedder | None = None,
    judge: Judge | None = None,
) -> CheckedText:
    """Return the verdict of each number of a text, from its own source alone."""
    return check(canonical(text), sources, judge, embedder=embedder)


def cite_text(
    text: str, retriever: Retriever, readable: Readable, *, embedder: Embedder | None = None
) -> CheckedText:
    """Check a text as `check_text` does, numbering what the library has on each statement."""
    unmarked = without_markers(canonical(text))
    hits: dict[str, Hit] = {}
    statements = [statement for statement in read_statements(unmarked) if statement.states]
    for statement in statements[:LOOKED_UP]:
        claim = unmarked[statement.start : statement.end][:LONGEST_LOOKED_UP]
        for hit in retriever.search(claim, readable, limit=HITS_OF_A_CLAIM):
            hits.setdefault(hit.chunk.id, hit)
    sources = {number: as_source(hit, number) for number, hit in enumerate(hits.values(), start=1)}
    return check_text(attribute(unmarked, sources).text, sources, embedder=embedder)


def sources_from_texts(texts: Iterable[tuple[int, str, str]]) -> dict[int, Source]:
    """Return imported texts as sources by number, from numbers, texts and titles."""
    return {
        number: brought_source(
            number,
            text,
            title or f"source {number}",
            document_title=title or f"Source {number}",
            chunk_id=f"given:{number}",
        )
        for number, text, title in texts
    }
