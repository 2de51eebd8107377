"""Read passages as evidence for a question: stretches with a figure, and what it is of.

Nothing else decides what is said (`rag/chat/decision.py`): a sentence of a text, a row of a
table and a cell that was looked up are read alike.
"""

import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rag.citations.markers import as_it_stands
from rag.errors import ModelError
from rag.language.amounts import CURRENCIES, DIMENSIONS, UNIT_SIGNS, Figure, agree, dates
from rag.language.figures import read_figures
from rag.language.names import Lexicon, typed_names
from rag.language.sentences import LineKind, Sentence, cells_of, plain, read_sentences
from rag.language.words import (
    Language,
    all_words,
    alternatives,
    content_words,
    is_function_word,
    language_of,
    opposites,
    stem,
    tokens,
)
from rag.records import Source
from rag.seams import ComputedFigure, Matrix
from rag.tables.vocabulary import CUES, expression_at, is_end, is_priced

EmbedTexts = Callable[[Sequence[str]], Matrix]
MarkedSpans = tuple[tuple[int, int], ...]
NO_NAMES = Lexicon(())

MOST = 2  # sentences of one passage
LEAST = 0.25  # of a unit that is marked
REMEMBERED = 4096  # vectors, of 1.5 KB each with the packaged model


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch `[start, end)` of a passage that makes a statement and can stand alone."""

    start: int
    end: int
    kind: LineKind
    text: str
    above: str = ""  # the lead-in or the header row that it stands below


def marked_in(
    question: str, passages: Sequence[str], embed: EmbedTexts, names: Lexicon = NO_NAMES
) -> tuple[list[MarkedSpans], float]:
    """Return the spans to mark in each passage, and the likeness of the nearest statement.

    Nothing is marked if no statement stands out, nor a statement that names another product.
    """
    question_words, named = _words(question), _names_in(question, names)
    units = [
        (place, unit)
        for place, passage in enumerate(passages)
        for unit in units_of(passage)
        if not _words(unit.text) <= question_words and _is_about(named, unit, names)
    ]
    texts = [_in_words(unit) for _, unit in units]
    most = max(1, len(question_words))
    shared = [WORDS * len(question_words & _words(text)) / most for text in texts]
    alike = _likeness_by_meaning([question], texts, embed)
    scored: list[list[tuple[float, Unit]]] = [[] for _ in passages]
    for (place, unit), share, likeness in zip(units, shared, alike or shared, strict=True):
        scored[place].append((likeness + share, unit))
    return [_marks(units_of_passage) for units_of_passage in scored], max(alike, default=0.0)


class StatementVectors:
    """A cache of the vectors of recent statements, since other questions meet the same ones.

    A text is known by its digest, so that no words of a deleted document stay. Threads may share
    it.
    """

    def __init__(self, embed: EmbedTexts, *, most: int = REMEMBERED) -> None:
        self._embed = embed
        self._most = most
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Matrix:
        codes = (text.encode("utf-8", "replace") for text in texts)
        digests = [blake2b(code, digest_size=16).digest() for code in codes]
        by_digest = dict(zip(digests, texts, strict=True))
        with self._lock:
            rows = {key: self._vectors[key] for key in by_digest if key in self._vectors}
        new = [key for key in by_digest if key not in rows]
        if new:  # outside of the lock: another question does not wait for the model
            vectors = self._embed([by_digest[key] for key in new])
            rows.update((key, row.copy()) for key, row in zip(new, vectors, strict=True))
        with self._lock:
            for key in by_digest:
                self._vectors[key] = rows[key]
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)
        return np.array([rows[key] for key in digests])


def _names_in(text: str, names: Lexicon) -> frozenset[str]:
    return frozenset(name.text.casefold() for name in names.find(text))


def _is_about(named: frozenset[str], unit: Unit, names: Lexicon) -> bool:
    """Whether a unit names none or one of the names: `Aero 5 Pro` is not `Aero 5`."""
    others = _names_in(unit.text, names) if named else frozenset()
    return not others or not named.isdisjoint(others)


def _in_words(unit: Unit) -> str:
    """Return the text of a unit; of a row or an entry together with its header."""
    return unit.text if unit.kind == "sentence" else f"{unit.above}: {unit.text}"


def _likeness_by_meaning(
    questions: Sequence[str], texts: Sequence[str], embed: EmbedTexts
) -> list[float]:
    """Return each text's mean cosine to the questions; [] if the model is unavailable."""
    if not texts:
        return []
    try:
        rows = embed([*questions, *texts])
    except ModelError:
        return []
    question_rows, text_rows = rows[: len(questions)], rows[len(questions) :]
    return [float(likeness) for likeness in (text_rows @ question_rows.T).mean(axis=1)]


def _marks(scored: Sequence[tuple[float, Unit]]) -> MarkedSpans:
    ordered = sorted(scored, key=lambda pair: -pair[0])[:MOST]
    best = [unit for score, unit in ordered if score >= LEAST]
    chosen = best[:1] if "row" in (unit.kind for unit in best) else best
    return tuple(sorted((unit.start, unit.end) for unit in chosen))


def _words(text: str) -> frozenset[str]:
    lowered = (token.lowered for token in tokens(text))
    return frozenset(stem(word) for word in lowered if not is_function_word(word))


# A table's header, some of its rows, and behind a gap the header again.
_REPEATED = re.compile(r"^(\|.*\n\|[-:| ]+\n)((?:\|.*\n)+)\n+\1", re.MULTILINE)
_SIGN = re.compile(r"^(?:[-*+•◦‣–][ \t]+)?(?:\(?\d{1,3}[.)](?:[ \t]+|$))?")  # of an entry
_LEADS = re.compile(r"[:：]\s*$")
_ASKS = re.compile(r"[?？][\"'”’»)\]]*\s*$")


def units_of(passage: str) -> Iterator[Unit]:
    """Yield the statements of a passage in reading order."""
    above = ""
    for entry in _with_whole_entries(read_sentences(passage)):
        text = passage[entry.start : entry.end]
        if entry.kind == "head" or (entry.kind == "sentence" and _LEADS.search(text)):
            above = " ".join(text.split())
        elif entry.kind in ("sentence", "entry", "row"):
            content = _SIGN.sub("", text) if entry.kind == "entry" else text
            if not _ASKS.search(content):
                yield Unit(entry.end - len(content), entry.end, entry.kind, content, above)


def _with_whole_entries(sentences: Sequence[Sentence]) -> list[Sentence]:
    entries: list[Sentence] = []
    for sentence in sentences:
        if entries and sentence.kind == entries[-1].kind == "entry" and not sentence.begins:
            entries[-1] = replace(entries[-1], end=sentence.end)
        else:
            entries.append(sentence)
    return entries


def with_tables_joined(passage: str) -> str:
    """Remove the repeated headers of a long table, so that its parts become one."""
    joined = _REPEATED.sub(r"\1\2", passage)
    return joined if joined == passage else with_tables_joined(joined)


READ = 6  # sources, best first
MOST_CELLS = 12  # of tables, that are compared with a question
WORDS = 0.25  # what all words of the question count beside a likeness of 1; once more with headings
LOOKED_UP = 1.0  # of a cell that was looked up
RANK = 0.06  # what a place behind the first counts less
MONEY = set(CURRENCIES.values())
TIMES = {"time", "months"}
COMPUTED = "computed"
CERTAIN = 9.0  # likeness of what was computed for the question
EARLIER = 0.3  # what a mail only quotes counts less: it was said before
_QUESTION_WORDS = all_words("question_words")
LONGEST = 320  # characters of a stretch that is quoted
_CLAUSE_ENDS = re.compile(r"[,;:–—]\s")
_NUMBERING = re.compile(r"^\(?(?:\d{1,3}\.)*\d{1,3}[.)]?\s+(?=\D)")


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """A stretch of a source with figures: what it says, of what, and its likeness."""

    values: tuple[Figure, ...]
    subject: str  # the name that the question asks about, in small letters; "" where it names none
    attribute: frozenset[str]  # the question's words that stand with it
    kind: str  # sentence, entry, row, computed
    source: Source
    quote: str  # word for word; of a row its label, header and cell
    likeness: float  # to the question: by meaning and words
    cell: str = ""  # of a row: what stands in it, which the quote ends with
    is_of_another: bool = False  # it gives another date or day, or the opposite, of what is asked


class EvidenceReader:
    """Reads the evidence for one question from its sources."""

    def __init__(
        self,
        question: str,
        lexicon: Iterable[str] = (),
        language: Language | None = None,
        *,
        earlier: str = "",
    ) -> None:
        """`earlier` is the question that this one goes on from, and which stands before it."""
        self._lexicon = typed_names(tuple(lexicon))
        self._language = language or language_of(question)
        self._question = question
        self._names = tuple(dict.fromkeys(self.names(question)))
        self._subject = self._names[0] if self._names else ""
        name_words = {word for name in self._names for word in self._words(name)}
        self._last = question.removeprefix(f"{earlier} ") if earlier else question
        texts = (self._last, question)
        words = ([w for w in dict.fromkeys(self._content(t)) if w not in name_words] for t in texts)
        self._terms = tuple(next(filter(None, words), ()))  # stems of what it asks beside the names
        self._dates = next(filter(None, (list(dates(text)) for text in texts)), [])
        self._measured = _measured_words(question)
        self._dimensions = _dimensions(self._last)
        self._ends = {token.lowered for token in tokens(self._last) if is_end(token.lowered)}

    def names(self, text: str) -> list[str]:
        """Return the product names in a text, in any case, in small letters."""
        return [name.text.casefold() for name in self._lexicon.find(text)]

    def read(self, sources: Sequence[Source], embed: EmbedTexts) -> list[SourceEvidence]:
        """Return the evidence, nearest first; none if the question names several products."""
        if len(self._names) > 1 or not self._question.strip():
            return []
        read = [
            (rank, source, unit)
            for rank, source in enumerate(sources[:READ])
            for unit in self._units(source)
        ]
        results = self._worth_comparing(read)
        questions = list(dict.fromkeys([self._last, self._question]))
        texts = [unit.text for _, _, unit in results]
        alike = _likeness_by_meaning(questions, texts, embed) or [0.0] * len(texts)
        made = [
            self._evidence(rank, source, unit, near)
            for (rank, source, unit), near in zip(results, alike, strict=True)
        ]
        return sorted(made, key=lambda evidence: (-evidence.likeness, evidence.is_of_another))

    def claimed(self, claim: ComputedFigure) -> SourceEvidence | None:
        """Return a computed value as evidence; None if it is not a figure."""
        values = tuple(read_figures(claim.value))
        about = frozenset(self._content(claim.about)) & frozenset(self._terms)
        if not values or len(self._names) > 1:
            return None
        return SourceEvidence(
            values, self._subject, about, COMPUTED, claim.source, claim.text, CERTAIN
        )

    def _worth_comparing(self, units: list["_RankedUnit"]) -> list["_RankedUnit"]:
        """Keep the cells that share most words with the question: comparing each one costs time."""
        rows = [ranked for ranked in units if ranked[2].kind == "row"]
        if len(rows) <= MOST_CELLS:
            return units
        shares = {
            id(unit): is_looked_up(source)
            + _share(self._terms, frozenset(self._content(unit.text)))
            for _, source, unit in rows
        }
        rows.sort(key=lambda ranked: -shares[id(ranked[2])])
        chosen = {id(unit) for *_, unit in rows[:MOST_CELLS]}
        return [ranked for ranked in units if ranked[2].kind != "row" or id(ranked[2]) in chosen]

    def _evidence(
        self, rank: int, source: Source, unit: "_QuotedUnit", near: float
    ) -> SourceEvidence:
        terms = self._terms
        statement_words = frozenset(self._content(unit.text))
        words_with_headings = statement_words.union(self._content(_headings(source)))
        return SourceEvidence(
            values=unit.values,
            subject=self._subject,
            attribute=frozenset(terms) & statement_words,
            kind=unit.kind,
            source=source,
            quote=unit.quote,
            likeness=near
            + WORDS * (_share(terms, statement_words) + _share(terms, words_with_headings))
            - RANK * rank
            + LOOKED_UP * is_looked_up(source)
            - EARLIER * source.locator.endswith("quoted"),  # in a mail, an earlier one
            cell=unit.cell,
            is_of_another=self._is_of_another(
                f"{_headings(source)} {unit.text}", words_with_headings
            ),
        )

    def _is_of_another(self, text: str, words: frozenset[str]) -> bool:
        """Whether a text gives another date than the question, another day, month or colour, or the
        opposite. Where it gives several they may be a range.
        """
        text_dates = list(dates(text)) if self._dates else []
        if text_dates and not any(agree(a, b) for a in self._dates for b in text_dates):
            return True
        missing, others = {*self._terms} - words, words.difference(self._terms)
        return any(len(others & alternatives(word)) == 1 for word in missing) or any(
            others & opposites().get(word, frozenset()) for word in missing - self._measured
        )

    def _units(self, source: Source) -> Iterator["_QuotedUnit"]:
        """Yield the units of a source that hold a figure of what is asked for."""
        text = with_tables_joined(as_it_stands(source.passage))
        headed = self.names(_headings(source))
        tables: dict[str, list[Unit]] = defaultdict(list)
        for unit in units_of(text):
            if unit.kind == "row":
                tables[unit.above].append(unit)
            elif len(unit.text) <= LONGEST:
                content = " ".join(unit.text.split())
                values = self._figures_of_it(_NUMBERING.sub("", content), headed)
                quote = content if unit.kind == "sentence" else f"{unit.above}: {content}"
                if values:
                    yield _QuotedUnit(quote, content, values, unit.kind)
        for above, rows in tables.items():
            grid = [cells_of(above), *(cells_of(row.text) for row in rows)]
            for cell in self._cells(grid[0], grid[1:], headed):
                if cell.values or is_looked_up(source):
                    yield cell

    def _holds(self, names: Sequence[str]) -> bool:
        """Whether the name asked about is one of these names, or stands in brackets in one."""
        return any(self._subject == name or f"({self._subject})" in name for name in names)

    def _figures_of_it(self, text: str, headed: Sequence[str]) -> tuple[Figure, ...]:
        """Return the figures of a sentence that belong to the product asked about.

        `Aero 5` is not `Aero 5 Mini`; a figure without a unit counts only if the question asks for
        what it counts.
        """
        places = self._lexicon.find(text)
        names: list[str] = []
        counted, done = "", 0
        results = []
        for figure in self._figures(text):
            counted = _counted(text, figure) or counted  # "one has 5 ports, the other 8"
            # A figure belongs to the names before it since the last figure, or to those of the last
            # figure; else to those behind it in its clause; else to none: "14 hours, longer than
            # the Heron".
            names = [n.text.casefold() for n in places if done <= n.start < figure.start] or names
            comma = _CLAUSE_ENDS.search(text, figure.end)
            end = comma.start() if comma else len(text)
            behind = [n.text.casefold() for n in places if figure.end <= n.start < end]
            is_of_it = not self._names or self._holds(names or behind or headed)
            if is_of_it and self._is_asked(figure, counted):
                results.append(figure)
            done = figure.end
        return tuple(results)

    def _is_asked(self, figure: Figure, counted: str) -> bool:
        if figure.kind != "amount" or figure.unit:
            return True
        if counted[:1].isupper() and not self._language.capitalises_nouns:
            return False
        return not set(self._words(counted)).isdisjoint(self._terms)

    def _figures(self, text: str) -> tuple[Figure, ...]:
        places = self._lexicon.find(text)
        return tuple(
            figure
            for figure in read_figures(text)
            if figure.kind != "ordinal"
            and (not self._dimensions or not figure.unit or figure.dimension in self._dimensions)
            and not any(n.start <= figure.start and figure.end <= n.end for n in places)
        )

    # ── Tables ───────────────────────────────────────────────────────────────────────────────

    def _cells(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], headed: Sequence[str]
    ) -> Iterator["_QuotedUnit"]:
        """Yield the cells that the question may ask for, each with its row label and header."""
        column = self._column_of_subject(header, rows)
        if self._names and column is None and not self._holds(headed):
            return
        for row in filter(None, rows):
            label, places = self._label_and_places(header, row, column)
            for place in places:
                cell, head = row[place], header[place] if place < len(header) else ""
                if cell and len(cell) <= LONGEST and self._may_be_end(f"{label} {head}"):
                    text = f"{label} {head.replace('_', ' ')}: {cell}"
                    quote = " · ".join(filter(None, (label, f"{head}: {cell}" if head else cell)))
                    values = tuple(_with_unit(value, head) for value in self._figures(cell))
                    yield _QuotedUnit(text, quote, values, "row", cell)

    def _may_be_end(self, label: str) -> bool:
        """Whether one row may answer: for "the most votes" all rows count, unless the row says so
        or a product is named.
        """
        if not self._ends or self._names:
            return True
        words = tokens(label.replace("_", " "))
        return not self._ends.isdisjoint(word.lowered for word in words)

    def _column_of_subject(
        self, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> int | tuple[int] | None:
        """Return the column whose cells name the rows, or, in a tuple, the column whose header is
        the name; None if there is neither.
        """
        if not self._names:
            return None
        for place, head in enumerate(header):
            if self._holds(self.names(head)):
                return (place,)
        for place in range(len(header)):
            cells = [row[place] for row in rows if place < len(row)]
            is_key = len(set(cells)) == len(cells)
            if is_key and any(self._holds(self.names(cell)) for cell in cells):
                return place
        return None

    def _label_and_places(
        self, header: Sequence[str], row: Sequence[str], column: int | tuple[int] | None
    ) -> tuple[str, list[int]]:
        """Return the label of a row and the places of the cells that may be asked for."""
        if isinstance(column, tuple):
            # "idle power" is no "power".
            is_asked = {*self._content(row[0])} <= {*self._terms}
            return row[0], [column[0]] if is_asked and column[0] < len(row) else []
        if column is not None:
            if column >= len(row) or not self._holds(self.names(row[column])):
                return "", []
            others = [place for place in range(len(row)) if place != column]
            return row[column], self._nearest(header, others)
        return row[0], self._nearest(header, list(range(1, len(row))))

    def _nearest(self, header: Sequence[str], places: Sequence[int]) -> list[int]:
        """Return the columns whose headers share most words with the question; all if none does."""
        words = {*self._terms}
        shared = {
            place: len(words.intersection(self._content(header[place].replace("_", " "))))
            for place in places
            if place < len(header)
        }
        most = max(shared.values(), default=0)
        return [place for place in places if shared.get(place, 0) == most]

    # ── Words ────────────────────────────────────────────────────────────────────────────────

    def _content(self, text: str) -> list[str]:
        return list(content_words(text, self._language))

    def _words(self, name: str) -> Iterator[str]:
        for token in tokens(name):
            yield token.lowered
            yield stem(token.lowered, self._language.code)


@dataclass(frozen=True, slots=True)
class _QuotedUnit:
    """A unit as it is compared with the question, and as it is quoted."""

    text: str
    quote: str
    values: tuple[Figure, ...]
    kind: str
    cell: str = ""


_RankedUnit = tuple[int, Source, _QuotedUnit]  # by the rank of its source


def is_looked_up(source: Source) -> bool:
    """Whether a source is a table cell that was looked up by the words of the question."""
    return source.chunk_id.startswith("table:")


def _dimensions(question: str) -> frozenset[str]:
    """Return the dimensions of the unit or price that is asked for; empty if any may be."""
    words = [token.lowered for token in tokens(question)]
    cues = ((position, *expression_at(words, position, CUES)) for position in range(len(words)))
    counted = [position + length for position, length, kind in cues if kind == "count"]
    counted_words = {words[position] for position in counted if position < len(words)}
    units = {UNIT_SIGNS[word] for word in counted_words if word in UNIT_SIGNS}
    units |= MONEY if any(map(is_priced, words)) else set()
    dimensions = {DIMENSIONS.get(unit, (unit, 1.0))[0] for unit in units}
    return frozenset(dimensions | (TIMES if dimensions & TIMES else set()))


def _measured_words(question: str) -> frozenset[str]:
    """Return the stems behind a question word, which have no opposite there: "how old"."""
    pairs = pairwise(token.lowered for token in tokens(question))
    return frozenset(stem(word) for before, word in pairs if before in _QUESTION_WORDS)


def _counted(text: str, figure: Figure) -> str:
    """Return the word right behind a figure; "" if there is none."""
    rest = text[figure.end :]
    return next((t.text for t in tokens(rest) if not rest[: t.start].strip()), "")


def _headings(source: Source) -> str:
    return plain(" · ".join(dict.fromkeys((source.document_title, *source.heading_path))))


def _share(words: Sequence[str], there: frozenset[str]) -> float:
    return sum(map(there.__contains__, words)) / len(words) if words else 0.0


def _with_unit(figure: Figure, head: str) -> Figure:
    """Give a bare amount the unit in its column's header: `warranty_months`."""
    if figure.unit or figure.kind != "amount":
        return figure
    words = re.findall(r"[^\W_]+", head.casefold())
    sign = next((UNIT_SIGNS[word] for word in words if word in UNIT_SIGNS), "")
    return replace(figure, unit=sign)
