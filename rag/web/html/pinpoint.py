"""Where in a passage the very words stand that a statement cites it for."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from rag.citations.clauses import Clause
from rag.citations.markers import without_markers
from rag.citations.statements import Statement, read_statements
from rag.language.sentences import Span, split_sentences

TABLE_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-{3}[ \t:|-]*\|?[ \t]*")
MOST_PLACES = 3  # sentences or rows for one statement
FIRST_SHARE = 0.4  # of what the passage has of a statement, in the best place …
NEXT_SHARE = 0.3  # … and in each further one, of what is new in it
FEWEST_SHARED = 2  # words or figures, fewer may have met by chance


def clauses_citing(text: str, number: int, *, start: int | None = None) -> list[str]:
    """What an answer says on a source's behalf: all of it, or at the marker that begins there."""
    parts = [
        (part, statement)
        for statement in read_statements(text)
        for part in statement.parts
        if number in part.numbers
    ]
    if start is not None and parts:
        parts = [min(parts, key=lambda each: _distance(each[0], start))]
    return [_words(text, statement, part) for part, statement in parts]


def _words(text: str, statement: Statement, part: Clause) -> str:
    """What a part says; a cell says it with the label of its row and the head of its column."""
    own = without_markers(text[part.start : part.end])
    if statement.kind != "row":
        return own
    label, *_ = _cells_in(text[statement.start : statement.end])
    heads = (
        _cells_in(text[slice(*statement.lead_in)].rpartition("\n")[2]) if statement.lead_in else []
    )
    first = text[statement.start : part.start].strip().removeprefix("|").count("|")
    said = [] if first == 0 else [label]
    for index, cell in enumerate(_cells_in(own), start=first):
        said += [heads[index], cell] if 0 < index < len(heads) else [cell]
    return " · ".join(filter(None, said))


def _cells_in(row: str) -> list[str]:
    inner = without_markers(row).strip().removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in inner.split("|")]


def _distance(part: Clause, start: int) -> int:
    """From a part to a marker: one that closes it is nearer than one that stands before it."""
    return start - part.end if start >= part.end else max(0, part.start - start)


def places_of(
    passage: str, clauses: Iterable[str], *, fewest: int = FEWEST_SHARED
) -> tuple[Span, ...]:
    """The sentences and table rows that say it, in order; none where that cannot be told.

    `fewest` words or figures of a clause have to be in the passage.
    """
    spans = _stating(passage)
    results = [_features(passage[span.start : span.end]) for span in spans]
    chosen = {at for clause in clauses for at in _best(_features(clause), results, fewest)}
    return tuple(spans[at] for at in sorted(chosen))


def _stating(passage: str) -> list[Span]:
    """Its sentences and rows, without heads of tables and the rules below them."""
    spans = split_sentences(passage)
    is_rule = [bool(TABLE_RULE.fullmatch(passage, span.start, span.end)) for span in spans]
    is_head = [*is_rule, False][1:]
    return [
        span
        for span, rule, head in zip(spans, is_rule, is_head, strict=True)
        if not rule and not (head and passage.startswith("|", span.start))
    ]


def _features(text: str) -> frozenset[str]:
    """Stems of words and, told apart from them, figures."""
    from rag.language.figures import read_figures
    from rag.language.synonyms import canonical
    from rag.language.words import terms

    figures = {f"={figure.shown}" for figure in read_figures(text)}
    return frozenset(map(canonical, terms(text))) | figures


def _best(said: frozenset[str], places: Sequence[frozenset[str]], fewest: int) -> list[int]:
    """The places that together say most of it, the best first; rare words tell more."""
    frequency = Counter(feature for place in places for feature in place & said)
    weights = {each: math.log(1 + len(places) / count) for each, count in frequency.items()}
    total = sum(weights.values())
    chosen: list[int] = []
    open_words = set(weights) if len(weights) >= fewest else set()
    while open_words and len(chosen) < MOST_PLACES:
        gains = [sum(weights[each] for each in sorted(place & open_words)) for place in places]
        at = max(range(len(places)), key=lambda at: (gains[at], -len(places[at]), -at))
        if gains[at] < (NEXT_SHARE if chosen else FIRST_SHARE) * total:
            break
        chosen.append(at)
        open_words -= places[at]
    return chosen
