"""Answers to comparisons: what the sources say of each thing, side by side."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rag.answers.comparing import Comparison
from rag.answers.evidence import Scored
from rag.answers.passages import LISTS, Kind, Piece, row_text
from rag.answers.questions import read_question
from rag.answers.sides import Sides, place_of
from rag.answers.views import View
from rag.answers.words import terms
from rag.citations.markers import neutralise
from rag.seams import Embedder

_MOST_JOINT = 2
_MOST_TABLE_ROWS = 5
_MOST_COLUMNS = 6
_MOST_ROWS = 2  # of each side in one table
_CANDIDATES = 12  # facts of each side that are looked at
_MOST_BEHIND = 0.6  # of the best one's score
_COMPARING_BONUS = 0.3
_NEAR_REPEAT = 0.6  # share of the shorter one's terms that are in the other
_ALIKE = 0.8  # how much it counts that two facts are about the same


@dataclass(frozen=True, slots=True)
class Told:
    """What is quoted of one side, or of several at once."""

    pieces: tuple[Piece, ...]
    label: str = ""  # where the first piece does not name what it is about


@dataclass(frozen=True, slots=True)
class Compared:
    """An answer to a comparison: what is quoted, in order, and of whom nothing is."""

    joint: tuple[Piece, ...]
    told: tuple[Told, ...]
    silent: tuple[str, ...] = ()  # known, but not with regard to what is asked
    unknown: tuple[str, ...] = ()


def compare(
    comparison: Comparison,
    pieces: Sequence[Piece],
    *,
    measure: re.Pattern[str] | None,
    relevance: Mapping[int, float],
    embedder: Embedder | None,
    lexicon: Sequence[str] = (),
) -> Compared | None:
    """The facts of each side that answer the question; None where there are none.

    `measure`: what gives the figure that the whole question asks for, if it asks for one.
    """
    sides = Sides(comparison, pieces, lexicon)
    views = {
        place: View(
            comparison,
            replace(read_question(comparison.alone(side)), measure=measure),
            [piece for piece in pieces if place in sides.about(piece).sides],
        )
        for place, side in enumerate(sides.all)
        if sides.known(place)
    }
    if any(not sides.is_unheard_of(at) for at in range(len(sides.all)) if at not in views):
        return None  # it may be there by another name, which is for the whole question to find
    for view in views.values():
        view.weigh(relevance, embedder, lexicon)
    return _Table(sides, views).written() if views else None


class _Table:
    """The views of all sides, from which the answer is chosen."""

    def __init__(self, sides: Sides, views: Mapping[int, View]) -> None:
        self._sides = sides
        self._views = views
        self._is_open = not any(view.wanted for view in views.values())  # asks how they differ

    def written(self) -> Compared | None:
        joint_rows = self._joint_rows()
        rows = self._rows() if self._is_open or not joint_rows else {}
        is_told = bool(rows) or bool(joint_rows)
        statements = self._joint_statements(has_rows=is_told)
        facts = self._facts(rows, is_told=is_told)
        told: list[Told] = []
        silent: list[str] = []
        for place in self._views:
            pieces = (*rows.get(place, ()), *facts.get(place, ()))
            if pieces:
                told.append(Told(pieces, self._label(place, pieces[0])))
            elif not statements and not joint_rows:
                silent.append(self._sides.spelling(place))
        if not (told or statements or joint_rows) or (self._is_open and silent):
            return None
        unknown = [side.name for at, side in enumerate(self._sides.all) if at not in self._views]
        told = [*(Told((piece,)) for piece in joint_rows), *told]
        return Compared(tuple(statements), tuple(told), tuple(silent), tuple(unknown))

    def _label(self, place: int, piece: Piece) -> str:
        return "" if place in self._sides.named_in(piece.text) else self._sides.spelling(place)

    # ── What tells of several at once ────────────────────────────────────────────────────────

    def _joint_statements(self, *, has_rows: bool) -> list[Piece]:
        best = max((v.scored[0].score for v in self._views.values() if v.scored), default=0.0)
        worth: dict[Piece, float] = {}
        for view in self._views.values():
            for found in view.asked():
                about = self._sides.about(found.piece)
                if not about.is_joint or found.piece.kind in {Kind.ROW, *LISTS}:
                    continue
                if has_rows and self._is_open and not about.compares:
                    continue  # names both for another reason, such as whom a manual is for
                score = found.score + _COMPARING_BONUS * about.compares
                worth[found.piece] = max(score, worth.get(found.piece, score))
        order = sorted(worth, key=lambda piece: -worth[piece])
        return [piece for piece in order[:_MOST_JOINT] if worth[piece] >= best - _MOST_BEHIND]

    def _joint_rows(self) -> list[Piece]:
        """Rows of a table whose columns are the sides, cut to these."""
        found: dict[tuple[str, ...], list[Piece]] = {}
        seen: set[tuple[int, int]] = set()
        for view in self._views.values():
            for piece in view.pieces:
                columns = [at for _, at in self._sides.about(piece).columns]
                if len(columns) < 2 or place_of(piece) in seen:
                    continue
                seen.add(place_of(piece))
                cells = [piece.cells[at] for at in columns]
                is_asked = any(
                    view.asks_by_name(piece.cells[0], cell)
                    or view.asks_by_measure(piece.cells[0], cell)
                    for cell in cells
                )
                if is_asked and (not self._is_open or len(set(cells)) > 1):
                    found.setdefault(piece.header, []).append(_cut(piece, [0, *columns]))
        rows = max(found.values(), key=len, default=[])
        return rows[:_MOST_TABLE_ROWS]

    # ── Rows of one table ────────────────────────────────────────────────────────────────────

    def _rows(self) -> dict[int, list[Piece]]:
        """The rows of each side in one table, in the columns that are asked for or differ."""
        tables: dict[tuple[str, ...], dict[int, list[Piece]]] = {}
        for place, view in self._views.items():
            for piece in sorted(view.pieces, key=view.score, reverse=True):
                is_whole = piece.kind is Kind.ROW and len(piece.header) == len(piece.cells) > 1
                if is_whole and self._is_named_row(place, piece):
                    rows = tables.setdefault(piece.header, {}).setdefault(place, [])
                    if len(rows) < (_MOST_ROWS if self._is_open else 1):
                        rows.append(piece)
        told = [self._told_rows(rows) for rows in tables.values() if len(rows) > 1]
        best = max(told, key=self._worth, default={})
        properties = self._properties()
        if self._is_open:
            both = {at: [*properties.get(at, ()), *best.get(at, ())] for at in self._views}
            return {at: pieces for at, pieces in both.items() if pieces}
        return max(properties, best, key=self._worth)

    def _is_named_row(self, place: int, piece: Piece) -> bool:
        """Whether a row is about a side and says so itself."""
        is_named = any(place in self._sides.named_in(cell) for cell in piece.cells)
        return is_named and self._sides.about(piece).sides == {place}

    def _properties(self) -> dict[int, list[Piece]]:
        """What tables of each side alone call by the same words: `Weight` in two manuals."""
        cells = {place: self._cells(place) for place in self._views}
        every = [label for own in cells.values() for label in own]
        labels = [
            label
            for label in dict.fromkeys(every)
            if every.count(label) > 1 and self._is_worth_telling(label, cells)
        ]
        told: dict[int, list[Piece]] = {}
        for place, own in cells.items():
            shared = [own[label] for label in labels if label in own][:_MOST_COLUMNS]
            for number in dict.fromkeys(piece.number for piece, _ in shared):
                same = [(piece, at) for piece, at in shared if piece.number == number]
                text = row_text(
                    ["", *(piece.cells[0] for piece, _ in same)],
                    [self._sides.spelling(place), *(piece.cells[at] for piece, at in same)],
                )
                told.setdefault(place, []).append(replace(same[0][0], text=neutralise(text)))
        return told if len(told) > 1 else {}

    def _cells(self, place: int) -> dict[frozenset[str], tuple[Piece, int]]:
        """The cells of tables with one value in each row, by the terms of what stands beside."""
        found: dict[frozenset[str], tuple[Piece, int]] = {}
        for piece in self._views[place].pieces:
            about = self._sides.about(piece)
            if piece.kind is Kind.ROW and about.sides == {place}:
                columns = [at for _, at in about.columns] or [1] * (len(piece.cells) == 2)
                if len(columns) == 1 and terms(piece.cells[0]):
                    found.setdefault(terms(piece.cells[0]), (piece, columns[0]))
        return found

    def _is_worth_telling(
        self,
        label: frozenset[str],
        cells: Mapping[int, Mapping[frozenset[str], tuple[Piece, int]]],
    ) -> bool:
        own = {place: found[label] for place, found in cells.items() if label in found}
        values = {piece.cells[at] for piece, at in own.values()}
        if self._is_open:
            return len(values) > 1
        return any(
            self._views[place].asks_by_name(piece.cells[0], piece.cells[at])
            or self._views[place].asks_by_measure(piece.cells[0], piece.cells[at])
            for place, (piece, at) in own.items()
        )

    def _worth(self, rows: Mapping[int, Sequence[Piece]]) -> tuple[int, float]:
        scores = [self._views[place].score(pieces[0]) for place, pieces in rows.items() if pieces]
        return len(scores), sum(scores)

    def _told_rows(self, rows: Mapping[int, Sequence[Piece]]) -> dict[int, list[Piece]]:
        every = [(place, piece) for place, pieces in rows.items() for piece in pieces]
        header = every[0][1].header
        subject = max(self._subject(place, piece) for place, piece in every)
        columns = [
            at
            for at in range(subject + 1, len(header))
            if not self._is_open or len({piece.cells[at] for _, piece in every}) > 1
        ]
        columns = self._asked_columns(header, every, columns)
        if not columns:
            return {}
        kept = [subject, *columns[:_MOST_COLUMNS]]
        return {place: [_cut(piece, kept) for piece in pieces] for place, pieces in rows.items()}

    def _asked_columns(
        self, header: Sequence[str], rows: Sequence[tuple[int, Piece]], columns: Sequence[int]
    ) -> list[int]:
        """Those whose names are asked for, else those that hold the measure that is."""
        for asks in (View.asks_by_name, View.asks_by_measure):
            found = [
                at
                for at in columns
                if any(asks(self._views[place], header[at], row.cells[at]) for place, row in rows)
            ]
            if found:
                return found
        return []

    def _subject(self, place: int, piece: Piece) -> int:
        """The column that names the side; a code may stand before it."""
        named = (at for at, cell in enumerate(piece.cells) if place in self._sides.named_in(cell))
        return next(named, 0)

    # ── Statements ───────────────────────────────────────────────────────────────────────────

    def _facts(
        self, rows: Mapping[int, Sequence[Piece]], *, is_told: bool
    ) -> dict[int, list[Piece]]:
        """Statements of each side; of two sides those that are about the same."""
        has_rows = bool(rows)
        choices = {
            place: [found for found in view.asked() if self._is_own(found, place, has_rows)]
            for place, view in self._views.items()
        }
        if any(choices.values()):
            for place, view in self._views.items():
                near = [found for found in view.near() if self._is_own(found, place, has_rows)]
                choices[place] = choices[place] or near
        choices = {place: found[:_CANDIDATES] for place, found in choices.items() if found}
        facts: dict[int, list[Piece]] = {place: [] for place in choices}
        highest = None
        for is_more in range(self._most_facts(is_told)):
            worth, best = max(self._rounds(choices), key=lambda each: each[0], default=(0.0, {}))
            highest = worth if highest is None else highest
            if not best or worth < highest - _MOST_BEHIND:
                break
            if is_more and self._is_open and len(best) < len(self._views):
                break  # a fact that nothing of the other sides stands beside
            for place, found in best.items():
                facts[place].append(found.piece)
                choices[place] = [
                    other for other in choices[place] if not self._repeats(other, found)
                ]
        return facts

    def _most_facts(self, is_told: bool) -> int:
        if self._is_open:
            return 2 if is_told else 3
        is_measured = any(view.question.measure is not None for view in self._views.values())
        return (not is_measured) + (not is_told)

    def _is_own(self, found: Scored, place: int, has_rows: bool) -> bool:
        about = self._sides.about(found.piece)
        is_row = found.piece.kind is Kind.ROW
        return about.sides == {place} and not about.columns and not (is_row and has_rows)

    def _rounds(
        self, choices: Mapping[int, Sequence[Scored]]
    ) -> Iterator[tuple[float, dict[int, Scored]]]:
        """One statement of each side, with what they are worth together."""
        places = [place for place, found in choices.items() if found]
        for first in choices[places[0]] if places else ():
            best = {places[0]: first}
            worth = first.score
            for place in places[1:]:
                rated = [
                    (each.score + _ALIKE * _likeness(first, each), each) for each in choices[place]
                ]
                if self._is_open:
                    rated = [(rate, each) for rate, each in rated if not self._agree(first, each)]
                if rated:
                    rate, best[place] = max(rated, key=lambda pair: pair[0])
                    worth += rate
            yield worth / len(places), best

    def _repeats(self, one: Scored, other: Scored) -> bool:
        """Whether two facts of one side say nearly the same."""
        mine, theirs = self._terms(one), self._terms(other)
        return len(mine & theirs) >= _NEAR_REPEAT * min(len(mine), len(theirs))

    def _agree(self, one: Scored, other: Scored) -> bool:
        """Whether they say the same of both: no difference."""
        return self._terms(one) == self._terms(other)

    def _terms(self, found: Scored) -> frozenset[str]:
        """Of what it says, names apart."""
        names = frozenset[str]().union(*(terms(side.name) for side in self._sides.all))
        return terms(found.piece.text) - names


def _cut(piece: Piece, columns: Sequence[int]) -> Piece:
    text = row_text([piece.header[at] for at in columns], [piece.cells[at] for at in columns])
    return replace(piece, text=neutralise(text))


def _likeness(one: Scored, other: Scored) -> float:
    if one.vector.size:
        return float(one.vector @ other.vector)
    mine, theirs = terms(one.piece.text), terms(other.piece.text)
    return len(mine & theirs) / max(1, len(mine | theirs))
