"""The verdict of one statement, from its own cited sources alone (C6).

What words can decide is decided here: whether a source speaks of the subject, whether it gives
another figure, name or polarity, whether a figure follows from others. What they cannot is open.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag.citations.comparing import (
    COUNTED,
    Clause,
    Spot,
    Weighed,
    are_siblings,
    clauses,
    coverage,
    is_of_name,
    is_turned,
    label_words,
    name_words,
    names_agree,
    overlap,
    quoted,
    same_name,
    says_all,
    shape,
    spots,
    weigh_figure,
)
from rag.citations.computing import compute, is_computation, what_it_gives
from rag.citations.reading import Reading, SourceText, held, read, share
from rag.records import Verdict
from rag.text.amounts import Figure, comparable
from rag.text.languages import ENGLISH
from rag.text.related import opposites
from rag.text.words import language_of

_SUPPORTED_FROM = 0.75  # of a statement's words in one window; less where figures agree too
_SILENT_BELOW = 0.46  # of its words in all of the source: it does not speak of this
_FEW_SILENT_BELOW = 0.34  # … where it has few
_ENOUGH_WORDS = 4
_FEWER_SYNONYMS = 0.1  # what it is less in languages whose near words nobody listed
_SAME_CLAUSE = 0.75  # of a clause's words in one of the source, to compare what they say of it
_SAME_SUBJECT = 0.4  # … to miss a figure there


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason, and how near the source is, from 0 to 1."""

    verdict: Verdict
    reason: str = ""
    near: float = 0.0
    judged_by: str = ""  # "" where words decided


@dataclass(frozen=True, slots=True)
class Said:
    """A statement to be judged: its own words, and those that it cannot be understood without."""

    text: str
    around: str = ""  # a list's lead-in, the label and header of a cell


def judge(said: Said, sources: Sequence[SourceText]) -> Judgement:
    """The verdict over a statement that cites these sources: one may carry it, or all together."""
    best = max((_Case(said, [source]).judgement() for source in sources), key=_rank)
    if len(sources) == 1 or best.verdict is Verdict.SUPPORTED:
        return best
    return max((_Case(said, sources).judgement(), best), key=_rank)


def nearest_windows(said: Said, source: SourceText) -> Iterator[str]:
    """The windows of a source that share most words with a statement, under their headings."""
    language = language_of(said.text)
    words = read(f"{said.around} {said.text}", source.lexicon, language).words
    places = [each for each in source.places if each.window.kind != "cell"]
    nearest = sorted(places, key=lambda each: -share(words, each.words))[:_WINDOWS]
    heading = source.source.document_title
    return (" · ".join(filter(None, (heading, p.window.around, p.window.text))) for p in nearest)


_WINDOWS = 3  # of one source that a judge is shown
_ORDER = (
    Verdict.OFF_SUBJECT,
    Verdict.CONTRADICTED,
    Verdict.OPEN,
    Verdict.COMPUTED,
    Verdict.SUPPORTED,
)


def _rank(judgement: Judgement) -> tuple[int, float]:
    return _ORDER.index(judgement.verdict), judgement.near


class _Case:
    """One statement beside the sources that are to carry it together."""

    def __init__(self, said: Said, sources: Sequence[SourceText]) -> None:
        self.said = said
        self.sources = sources
        self.language = language_of(said.text)
        self.is_foreign = all(source.language is not self.language for source in sources)
        lexicon = sources[0].lexicon
        self.reading = read(said.text, lexicon, self.language)
        around = read(said.around, lexicon, self.language)
        self.names = self.reading.names or around.names
        self.clauses = clauses(said.text, lexicon, self.language)
        self.weighed = [
            (clause, weigh_figure(figure, clause.reading, self._names_of(clause), sources))
            for clause in self.clauses
            for figure in clause.reading.figures
        ]
        self.near = max(coverage(self.reading, source) for source in sources)
        words = frozenset[str]().union(*(source.words for source in sources))
        self.anywhere = share(self.reading.words, words, sources[0].language)

    def _names_of(self, clause: Clause) -> Sequence[str]:
        return clause.reading.names or self.names

    def judgement(self) -> Judgement:
        """The first that is wrong, else how it is carried."""
        if not (self.reading.words or self.reading.figures or self.reading.names):
            return Judgement(Verdict.OPEN)
        wrong = next((reason for reason in self._what_is_wrong() if reason), None)
        if wrong is not None:
            return Judgement(Verdict.CONTRADICTED, wrong, 0.3 * self.near)
        ways = self._ways()
        if ways:
            return Judgement(Verdict.COMPUTED, f"Recomputed: {'; '.join(ways)}.", self.near)
        if self._is_silent():
            reason = "The cited source does not speak of this."
            return Judgement(Verdict.OFF_SUBJECT, reason, 0.2 * self.anywhere)
        return Judgement(Verdict.SUPPORTED if self._is_carried() else Verdict.OPEN, near=self.near)

    def _what_is_wrong(self) -> Iterator[str]:
        yield self._wrong_name()
        yield from map(self._wrong_figure, self.weighed)
        yield self._wrong_code()
        if not self.is_foreign:
            yield from map(self._wrong_subject, self.clauses)
            yield from map(self._wrong_row, self.clauses)
            yield from map(self._wrong_polarity, self._clauses_and_whole())
            yield from map(self._without_limit, self.clauses)

    def _clauses_and_whole(self) -> list[Clause]:
        whole = Clause(self.said.text, self.reading)
        return [*self.clauses, whole] if len(self.clauses) > 1 else [whole]

    # ── Subject ──

    def _wrong_name(self) -> str:
        """Another product of the family: the source has that one's name and not this one's."""
        there = [name for source in self.sources for name in source.names]
        for name in self.names:
            if any(same_name(name, other) for other in there):
                continue
            sibling = next((other for other in there if are_siblings(name, other)), None)
            if sibling is not None:
                return f"The source speaks of the {self._spelled(sibling)}, not of this."
        return ""

    def _wrong_subject(self, clause: Clause) -> str:
        """The source says this of another of the family, and nothing like it of this one."""
        names = self._names_of(clause)
        said = [word for word in clause.reading.words if not is_of_name(word, names)]
        if not names or not said:
            return ""
        found = [(self._near(said, spot), spot) for spot in self._spots() if spot.names]
        best = max(found, key=lambda each: each[0], default=None)
        if best and best[1].clause.reading.is_negated != clause.reading.is_negated:
            return ""
        own = [near for near, spot in found if names_agree(names, spot.names) >= 0]
        enough = _SAME_CLAUSE if len(said) > 1 else 1.0
        if best is None or best[0] < enough or best[0] < max(own, default=0.0) + 0.25:
            return ""
        return f"The source says this of the {self._spelled(best[1].names[0])}: {quoted(best[1])}"

    def _wrong_row(self, clause: Clause) -> str:
        """The label of one row with what another row says."""
        cells = [spot for spot in self._spots() if spot.place.window.kind == "cell"]
        for spot in cells:
            label = label_words(spot)
            if not label or not label <= frozenset(self.reading.words):
                continue
            rest = [word for word in self.reading.words if word not in label]
            own = frozenset(spot.clause.reading.words) - label
            if not rest or any(held(word, own | spot.words - label) for word in rest):
                continue
            other = next((each for each in cells if says_all(each, rest, spot)), None)
            if other is not None:
                return f"The source says {quoted(spot)}"
        return ""

    def _is_silent(self) -> bool:
        """None or nearly none of its words, names and figures are in the source."""
        if any(weighed.carried for _, weighed in self.weighed):
            return False
        codes = frozenset[str]().union(*(source.codes for source in self.sources))
        if self.reading.codes & codes:
            return False
        if self.is_foreign:
            return len(self.weighed) >= 2
        count = len(self.reading.words)
        if count >= _ENOUGH_WORDS:
            allowance = 0.0 if self.language is ENGLISH else _FEWER_SYNONYMS
            told = min(self.anywhere, (self.anywhere + self.near) / 2)
            return told < _SILENT_BELOW - allowance
        return count >= 2 and self.anywhere < _FEW_SILENT_BELOW

    # ── Figures ──

    def _wrong_figure(self, found: tuple[Clause, Weighed]) -> str:
        clause, weighed = found
        figure = weighed.figure
        if weighed.carried is not None:
            return f"The source says {quoted(weighed.carried)}" if weighed.is_opposed else ""
        if self._how(figure) or self._is_given(figure) or self._is_of_a_name(figure):
            return ""
        if weighed.instead is not None:
            return self._told_instead(*weighed.instead)
        if is_computation(clause.text) and figure.unit:
            gives = what_it_gives(clause.text, self._operands(figure), figure)
            return f"The figures of the source give {gives}." if gives else ""
        return self._missing(figure)

    def _told_instead(self, there: Figure, spot: Spot) -> str:
        name = spot.names[0] if spot.names else ""
        of = f" for the {self._spelled(name)}" if name and any(map(str.isdigit, name)) else ""
        return f"The source gives {there.shown}{of}: {quoted(spot)}"

    def _missing(self, figure: Figure) -> str:
        """A figure with a unit that the source, which speaks of the same, does not give at all."""
        is_counted = not figure.unit and figure.kind == "amount" and figure.value <= COUNTED
        there = [f for source in self.sources for f in source.figures if comparable(figure, f)]
        if is_counted or figure.comparator == "~":
            return ""
        if self.is_foreign:
            return f"The source does not give {figure.shown}." if there and figure.unit else ""
        is_near = self.near >= _SAME_SUBJECT
        return f"The source does not give {figure.shown}." if is_near else ""

    def _is_of_a_name(self, figure: Figure) -> bool:
        """`the 1200`, where the source speaks of an `e-strand 1200`."""
        plain = str(int(figure.value)) if figure.value == int(figure.value) else ""
        names = (name for source in self.sources for name in source.names)
        return not figure.unit and any(plain in name_words(name) for name in names)

    def _wrong_code(self) -> str:
        """Another code of the same shape: IPX7 where the source has IPX4."""
        there = {code for source in self.sources for code in source.codes}
        for code in self.reading.codes - there:
            alike = sorted(other for other in there if shape(other) == shape(code))
            if any(map(str.isdigit, code)) and alike:
                return f"The source gives {', '.join(each.upper() for each in alike[:3])}."
        return ""

    def _operands(self, but: Figure) -> list[Figure]:
        """The figures of the sources that one may follow from, the nearest first."""
        found: list[tuple[float, Figure]] = []
        for spot in self._spots():
            near = share(self.reading.words, spot.words)
            near += 0.3 * (names_agree(self.names, spot.names) > 0)
            found += [(near, figure) for figure in spot.clause.reading.figures]
        return self._own(but) + [f for _, f in sorted(found, key=lambda each: -each[0])]

    def _own(self, but: Figure) -> list[Figure]:
        return [weighed.figure for _, weighed in self.weighed if weighed.figure is not but]

    def _how(self, figure: Figure) -> str:
        return compute(figure, self.said.text, self._own(figure), self._operands(figure))

    def _ways(self) -> list[str]:
        """How the figures follow that no source gives."""
        missing = [each.figure for _, each in self.weighed if each.carried is None]
        return list(dict.fromkeys(filter(None, map(self._how, missing))))

    def _is_given(self, figure: Figure) -> bool:
        """Whether another figure of the statement was worked out from this one."""
        missing = [w.figure for _, w in self.weighed if w.carried is None]
        others = [f for f in missing if f is not figure and f.dimension == figure.dimension]
        return any(figure.shown in self._how(other) for other in others)

    # ── Polarity and limits ──

    def _wrong_polarity(self, clause: Clause) -> str:
        said = clause.reading
        told = [word for word in said.words if not is_of_name(word, self._names_of(clause))]
        found = self._nearest(clause)
        if found is None or len(told) < 2:
            return ""
        near, spot = found
        if near < _SAME_CLAUSE or spot.clause.reading.has_exception != said.has_exception:
            return ""
        aligned = [
            piece.reading
            for piece in spot.pieces
            if overlap(piece.reading.words, said.words) >= 0.5
        ]
        if not self._names_all(clause, aligned):
            return ""
        if self._is_without(said, aligned) and aligned:
            return f"The source says {quoted(spot)}"
        differs = said.is_negated != self._denies(aligned, spot, told)
        if aligned and differs != any(is_turned(said, there) for there in aligned):
            return f"The source says {quoted(spot)}"
        return ""

    def _is_without(self, said: Reading, aligned: Sequence[Reading]) -> bool:
        """Whether one is without what the other has."""
        has = frozenset[str]().union(*(each.words for each in aligned))
        lacks = frozenset[str]().union(*(each.denied for each in aligned))
        turned = (lacks & set(said.words)) - said.denied
        return not said.is_negated and bool(turned or (said.denied & has) - lacks)

    def _names_all(self, clause: Clause, aligned: Sequence[Reading]) -> bool:
        """Whether all that the clause names is named there, or above it."""
        there = [name for reading in aligned for name in reading.names]
        there += [name for source in self.sources for name in source.context.names]
        return all(any(same_name(name, each) for each in there) for name in clause.reading.names)

    def _denies(self, aligned: Sequence[Reading], spot: Spot, told: Sequence[str]) -> bool:
        """Whether the clause denies, or what stands over it: `What is not covered`."""
        if any(there.is_negated for there in aligned):
            return True
        own = frozenset(spot.clause.reading.words)
        over = [source.heading for source in self.sources] + [spot.place.around]
        return any(
            head.is_negated and any(w in told and w not in own for w in head.words) for head in over
        )

    def _without_limit(self, clause: Clause) -> str:
        """`any`, `always`, `without limit` where the source sets one."""
        if not clause.reading.is_universal or clause.reading.is_limited:
            return ""
        found = self._nearest(clause)
        if found is None or found[0] < 0.5:
            return ""
        there = found[1].clause.reading
        sets_limit = there.is_limited and not there.is_universal
        return f"The source sets a limit: {quoted(found[1])}" if sets_limit else ""

    def _nearest(self, clause: Clause) -> tuple[float, Spot] | None:
        """The clause of the sources that shares most words with one of the statement."""
        best: tuple[float, float, Spot] | None = None
        said = frozenset(self.reading.words)
        for spot in self._spots():
            near = self._near_or_turned(clause.reading.words, spot)
            agreed = names_agree(self._names_of(clause), spot.names)
            score = near + 0.3 * agreed + 0.3 * share(spot.clause.reading.words, said)
            if best is None or score > best[0]:
                best = (score, near, spot)
        return None if best is None else (best[1], best[2])

    # ── Support ──

    def _is_carried(self) -> bool:
        figures = [weighed.carried is not None for _, weighed in self.weighed]
        if self.is_foreign or not all(figures):
            return False
        return self.near >= _SUPPORTED_FROM - (0.15 if figures else 0.0)

    def _spots(self) -> Iterator[Spot]:
        return (spot for source in self.sources for spot in spots(source))

    def _near_or_turned(self, said: Sequence[str], spot: Spot) -> float:
        """The share of words that are there, or whose opposite is."""
        table = opposites()
        turned = [w for w in said if not table.get(w, frozenset()).isdisjoint(spot.words)]
        rest = [word for word in said if word not in turned]
        if not rest:
            return 0.0
        return (self._near(rest, spot) * len(rest) + len(turned)) / len(said)

    def _near(self, said: Sequence[str], spot: Spot) -> float:
        return share(said, spot.told, self.language)

    def _spelled(self, name: str) -> str:
        """A name as the source spells it."""
        known = (each for source in self.sources for each in source.lexicon.names)
        return next((each for each in known if each.lower() == name), name)
