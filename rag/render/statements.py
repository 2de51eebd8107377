"""The statements that cite a source, where the source supports them, and which words decide."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from rag.citations.markers import find_markers, without_markers
from rag.citations.statements import Clause, Statement, read_statements
from rag.language.sentences import Span, plain, split_sentences
from rag.records import CheckedFigure, Citation, FigureStatus, Message, Verdict

if TYPE_CHECKING:
    from rag.language.amounts import Figure

VERDICTS = {
    Verdict.SUPPORTED: "The source says so.",
    Verdict.COMPUTED: "Recomputed from figures of the sources.",
    Verdict.CONTRADICTED: "The source says something else.",
    Verdict.OFF_SUBJECT: "The source does not speak of this.",
    Verdict.OPEN: "Not checked.",
}
_SIGNS = re.compile(r"[\\`*_|<>~]")  # Markdown characters


@dataclass(frozen=True, slots=True)
class StatementWarning:
    """The warning about one statement."""

    end: int  # offset after its last word or marker
    reasons: tuple[tuple[int, str], ...]  # each wrong source number, with the reason

    def __str__(self) -> str:
        """Return the reasons on one line, with the numbers if there are several."""
        if len(self.reasons) == 1:
            return self.reasons[0][1]
        alike: dict[str, str] = {}
        for number, why in self.reasons:
            alike[why] = f"{alike.get(why, '')}[{number}]"
        return " ".join(f"{numbers} {why}" for why, numbers in alike.items())


def verdict_in_words(citation: Citation) -> str:
    """Return the reason of a verdict or its meaning.

    A judge's reason is attributed to the judge.
    """
    reason = " ".join((citation.reason or VERDICTS[citation.verdict]).split())
    return f"{citation.judged_by} says: {reason}" if citation.judged_by else reason


def warnings_in(text: str, citations: Sequence[Citation]) -> list[StatementWarning]:
    """Return the statements that a cited source does not support, in order."""
    by_end: defaultdict[int, dict[tuple[int, str], None]] = defaultdict(dict)
    for citation in citations:
        if citation.verdict.is_warning:
            by_end[_end_of(text, citation)][citation.number, verdict_in_words(citation)] = None
    return [StatementWarning(end, tuple(reasons)) for end, reasons in sorted(by_end.items())]


def with_warnings(message: Message) -> str:
    """Return a message as Markdown, with a warning after each unsupported statement."""
    text, answer = message.content, message.answer
    if answer is None:
        return text
    notes = [(warning.end, f"⚠ {warning}") for warning in warnings_in(text, answer.citations)]
    notes += [(statement_end(text, u.start, u.end), "no source") for u in answer.unsourced]
    notes += [(figure.end, missing_in_words(figure)) for figure in unfound_in(answer.figures)]
    for end, note in sorted(notes, reverse=True):
        escaped = _SIGNS.sub(r"\\\g<0>", note)
        text = f"{text[:end]} *({escaped})*{text[end:]}"
    return text


def missing_in_words(mark: CheckedFigure) -> str:
    """Return the note after a figure that was not found: "not in source 1"."""
    *others, last = map(str, mark.cited)
    if not others:
        return f"not in source {last}"
    return f"not in sources {', '.join(others)} and {last}"


def unfound_in(figures: Sequence[CheckedFigure]) -> list[CheckedFigure]:
    """Return the figures that neither are in their sources nor follow from others."""
    return [figure for figure in figures if figure.status is FigureStatus.UNFOUND]


def _end_of(text: str, citation: Citation) -> int:
    for statement in read_statements(text):
        if statement.start <= citation.start < statement.end:
            return max(citation.end, statement_end(text, statement.start, statement.end))
    return citation.end


def statement_end(text: str, start: int, end: int) -> int:
    """Return the end of a statement's last word, in a row within its cell."""
    return start + len(text[start:end].rstrip(" \t|\n"))


LONGEST_SAID = 300  # characters of a statement above its evidence
FEW_WORDS = 3  # that differ: more words are no clear difference
LIKE = 0.5  # the least similarity of two sentences that differ in a few words
NAMES = {
    Verdict.SUPPORTED: "Supported",
    Verdict.COMPUTED: "Recomputed",
    Verdict.CONTRADICTED: "Contradicted",
    Verdict.OFF_SUBJECT: "No such statement here",
}
_WORD = re.compile(r"\w+(?:[.,’']\w+)*")
TABLE_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-{3}[ \t:|-]*\|?[ \t]*")
MOST_PLACES = 3  # sentences or rows for one statement
FIRST_SHARE = 0.4  # of the shared words, in the best place …
NEXT_SHARE = 0.3  # … and in each further place, of words not found before
FEWEST_SHARED = 2  # words or figures; fewer may be a coincidence
Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class CitedStatement:
    """A statement with one of its source numbers."""

    text: str  # the words that carry the number
    citation: Citation | None = None  # None where nothing was checked, as in a card's quotation

    @property
    def verdict(self) -> Verdict:
        return self.citation.verdict if self.citation else Verdict.OPEN

    @property
    def sought(self) -> str:
        """The words to find in the source; for a contradiction, what the source says instead."""
        cited = self.citation
        is_told = cited is not None and cited.stated and cited.given
        return self.text.replace(cited.stated, cited.given) if cited and is_told else self.text

    @property
    def name(self) -> str:
        """The verdict in a word or two; "" if there is none."""
        return NAMES.get(self.verdict, "")

    @property
    def reason(self) -> str:
        """The explanation beyond the verdict's name."""
        if self.citation is None or self.verdict in (Verdict.OPEN, Verdict.SUPPORTED):
            return ""
        has_own = self.verdict is not Verdict.OFF_SUBJECT or self.citation.judged_by
        return verdict_in_words(self.citation) if has_own else ""


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement as it is shown above its evidence."""

    stated: CitedStatement
    words: Markup  # the statement, with deciding words emphasised
    differs: tuple[str, str] = ("", "")  # (in the statement, in the source), if short


def statements_in(
    message: Message, number: int, start: int | None = None
) -> tuple[CitedStatement, ...]:
    """Return an answer's statements that cite a source: at one marker, or at all."""
    text, answer = message.content, message.answer
    starts = [marker.start for marker in find_markers(text) if number in marker.numbers]
    if start is not None and starts:
        starts = [min(starts, key=lambda other: abs(other - start))]
    citations = answer.citations if answer is not None else ()
    checked = {citation.start: citation for citation in citations if citation.number == number}
    clauses = [
        (part, statement)
        for statement in read_statements(text)
        for part in statement.parts
        if number in part.numbers
    ]
    results: list[CitedStatement] = []
    for place in starts if clauses else ():
        part, statement = min(clauses, key=lambda clause: _distance(clause[0], place))
        words = " ".join(_words(text, statement, part).split())
        results.append(CitedStatement(plain(words), checked.get(place)))
    return tuple(results)


def compare_statement(stated: CitedStatement, quotes: Sequence[str]) -> StatementView:
    """Prepare a statement to be shown beside the matching sentences of its source."""
    results = ((*deciding(stated, quote), quote) for quote in quotes)
    ours, theirs, quote = next((result for result in results if result[0]), ((), (), ""))
    citation = stated.citation
    differs = (citation.stated, citation.given) if citation is not None else ("", "")
    is_told = all(differs) or stated.verdict is not Verdict.CONTRADICTED
    if not is_told and len(ours) == len(theirs) == 1:
        differs = (stated.text[slice(*ours[0])], quote[slice(*theirs[0])])
    shown = stated.text
    if len(shown) > LONGEST_SAID:
        shown = f"{shown[: LONGEST_SAID - 1].rstrip()}…"
    return StatementView(stated, strong(shown, ours), differs)


def strong(text: str, spans: Iterable[Span]) -> Markup:
    """Emphasise the deciding words of a text."""
    parts, position = [], 0
    for span in sorted(spans):
        if position <= span.start < span.end <= len(text):
            parts += [
                escape(text[position : span.start]),
                Markup("<strong>{}</strong>").format(text[span.start : span.end]),
            ]
            position = span.end
    return Markup("").join([*parts, escape(text[position:])])


# ── What decides ────────────────────────────────────────────────────────────────────────────


def deciding(stated: CitedStatement, quote: str) -> tuple[Spans, Spans]:
    """Return the spans in a statement and in a source's sentence that decided the verdict.

    For a contradiction, what differs; else the figures that both have; none if nothing was checked.
    """
    citation = stated.citation
    if citation is None or stated.verdict in (Verdict.OPEN, Verdict.OFF_SUBJECT):
        return (), ()
    if stated.verdict is not Verdict.CONTRADICTED:
        return _same_figures(stated.text, quote)
    if citation.stated and citation.given:
        return _span_of(stated.text, citation.stated), _span_of(quote, citation.given)
    ours, theirs = _other_figures(stated.text, quote)
    return (ours, theirs) if ours and theirs else _few_words(stated.text, quote)


def _span_of(text: str, words: str) -> Spans:
    position = text.casefold().find(words.casefold())
    return (Span(position, position + len(words)),) if position >= 0 else ()


def _same_figures(text: str, quote: str) -> tuple[Spans, Spans]:
    ours, theirs = _figures(text), _figures(quote)
    both = {our.phrase for our in ours} & {their.phrase for their in theirs}
    results = (_spans(f for f in figures if f.phrase in both) for figures in (ours, theirs))
    return next(results), next(results)


def _other_figures(text: str, quote: str) -> tuple[Spans, Spans]:
    """Return figures of one dimension that differ: beside 410 m² and 64 devices, 120 m² differs."""
    ours, theirs = _figures(text), _figures(quote)
    both = {our.phrase for our in ours} & {their.phrase for their in theirs}
    kinds = {our.dimension for our in ours} & {their.dimension for their in theirs}
    kinds = kinds - {""} or kinds  # a number without a unit may be part of a name
    results = (
        _spans(f for f in figures if f.phrase not in both and f.dimension in kinds)
        for figures in (ours, theirs)
    )
    return next(results), next(results)


def _figures(text: str) -> Sequence["Figure"]:
    from rag.language.figures import read_figures

    return read_figures(text)


def _spans(figures: Iterable["Figure"]) -> Spans:
    return tuple(Span(figure.start, figure.end) for figure in figures)


def _few_words(text: str, quote: str) -> tuple[Spans, Spans]:
    """Return what differs between two sentences that are otherwise alike."""
    ours, theirs = list(_WORD.finditer(text)), list(_WORD.finditer(quote))
    compared = SequenceMatcher(
        None, [our[0].casefold() for our in ours], [their[0].casefold() for their in theirs], False
    )
    changed = [opcode for opcode in compared.get_opcodes() if opcode[0] != "equal"]
    spans = tuple(Span(*our.span()) for _, a, b, _, _ in changed for our in ours[a:b])
    there = tuple(Span(*their.span()) for _, _, _, a, b in changed for their in theirs[a:b])
    are_alike = compared.ratio() >= LIKE and max(len(spans), len(there)) <= FEW_WORDS
    return (spans, there) if are_alike else ((), ())


# ── Where its source says so ──────────────────────────────────────────────────────────────────────


def _words(text: str, statement: Statement, part: Clause) -> str:
    """Return a clause's words; a cell with its row's label and column's header."""
    words = without_markers(text[part.start : part.end])
    if statement.kind != "row":
        return words
    label, *_ = _cells_in(text[statement.start : statement.end])
    lead = text[slice(*statement.lead_in)] if statement.lead_in else ""
    heads = _cells_in(lead.rpartition("\n")[2])
    first = text[statement.start : part.start].strip().removeprefix("|").count("|")
    cells = [] if first == 0 else [label]
    for index, cell in enumerate(_cells_in(words), start=first):
        cells += [heads[index], cell] if 0 < index < len(heads) else [cell]
    return " · ".join(filter(None, cells))


def _cells_in(row: str) -> list[str]:
    inner = without_markers(row).strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


def _distance(part: Clause, start: int) -> int:
    """Return a clause's distance to a marker: one that the marker closes is nearest."""
    return start - part.end if start >= part.end else max(0, part.start - start)


def places_of(
    passage: str, clauses: Iterable[str], *, fewest: int = FEWEST_SHARED
) -> tuple[Span, ...]:
    """Return the sentences and table rows that state the clauses, in order; none if unclear.

    At least `fewest` words or figures of a clause have to be in the passage.
    """
    spans = _stating(passage)
    features = [_features(passage[slice(*span)]) for span in spans]
    chosen = {place for clause in clauses for place in _best(_features(clause), features, fewest)}
    return tuple(spans[place] for place in sorted(chosen))


def _stating(passage: str) -> list[Span]:
    """Return the sentences and rows, without table headers and rules."""
    spans = split_sentences(passage)
    is_rule = [bool(TABLE_RULE.fullmatch(passage, span.start, span.end)) for span in spans]
    is_head = [*is_rule, False][1:]
    return [
        span
        for span, rule, head in zip(spans, is_rule, is_head, strict=True)
        if not rule and not (head and passage.startswith("|", span.start))
    ]


def _features(text: str) -> frozenset[str]:
    """Return stems of words, and figures distinguished from them."""
    from rag.language.figures import read_figures
    from rag.language.words import canonical, terms

    figures = {f"={figure.phrase}" for figure in read_figures(text)}
    return frozenset(map(canonical, terms(text))) | figures


def _best(clause: frozenset[str], places: Sequence[frozenset[str]], fewest: int) -> list[int]:
    """Return the places that together cover most of a clause, best first; rare words count more."""
    frequency = Counter(feature for place in places for feature in place & clause)
    weights = {word: math.log(1 + len(places) / count) for word, count in frequency.items()}
    total = sum(weights.values())
    chosen: list[int] = []
    open_words = set(weights) if len(weights) >= fewest else set()
    while open_words and len(chosen) < MOST_PLACES:
        gains = [sum(weights[word] for word in sorted(place & open_words)) for place in places]
        best = max(range(len(places)), key=lambda p: (gains[p], -len(places[p]), -p))
        if gains[best] < (NEXT_SHARE if chosen else FIRST_SHARE) * total:
            break
        chosen.append(best)
        open_words -= places[best]
    return chosen
