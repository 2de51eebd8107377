"""Sources that give different values for the same, and answers about another product than asked."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rag.citations.checking.asking import may_name, possible_names, product_names
from rag.citations.checking.given import Given, given_by
from rag.citations.checking.naming import are_siblings, may_name_siblings, same_name
from rag.citations.checking.reading import SourceText, read, read_source, share
from rag.records import Source
from rag.text.amounts import UNIT_SIGNS, Figure
from rag.text.blocks import plain
from rag.text.dates import dates
from rag.text.figures import read_figures
from rag.text.languages import told
from rag.text.names import Lexicon
from rag.text.words import language_of, tokens

# The plainer words come first.
_HOLDS = tuple(
    re.compile(rf"\b(?:{told(field)})\b", re.IGNORECASE) for field in ("prevails", "supersedes")
)
_MOST_VALUES = 4
_ATTRIBUTE = 0.5  # of the question's words beside the name


@dataclass(frozen=True, slots=True)
class _Value:
    """A figure that a source gives for what was asked."""

    figure: Figure
    source: Source


def disagreement(question: str, sources: Sequence[Source]) -> str:
    """The values with their sources and dates, and which holds as a source says; "" for none."""
    if not may_name(question):
        return ""
    measuring = [source for source in sources if _measures(source)]
    if len({source.document_id for source in measuring}) < 2:
        return ""
    values = [value for each in measuring for value in _values(question, read_source(each))]
    apart = _apart(values)
    if not apart:
        return ""
    listed = "; ".join(_described(value) for value in apart[:_MOST_VALUES])
    told = (_what_holds(read_source(each), holds) for holds in _HOLDS for each in sources)
    holds = next((each for each in told if each), "")
    return f"The sources disagree: {listed}.{holds}"


@lru_cache(maxsize=256)
def _measures(source: Source) -> bool:
    """Whether it gives an amount with a unit, or one that a column's header may name.

    Told from the text as it stands: reading its places takes ten times as long.
    """
    text = source.passage if source.text in source.passage else f"{source.passage}\n{source.text}"
    figures = read_figures(plain(text))
    return any(each.kind == "amount" and (each.unit or "|" in text) for each in figures)


def other_product(question: str, answer: str, sources: Sequence[Source]) -> str:
    """What to say of an answer that names only a sibling of the product that was asked about."""
    if not may_name(question) or not may_name_siblings(plain(question), plain(answer)):
        return ""  # mostly, and no source is read for it
    lexicon = Lexicon(n for source in sources for n in read_source(source).lexicon.names)
    asked = product_names(question, lexicon)
    if len(asked) != 1:
        return ""
    if not any(are_siblings(asked[0], name) for name in possible_names(answer, lexicon)):
        return ""
    told = product_names(answer, lexicon)
    if any(same_name(asked[0], name) for name in told):
        return ""
    sibling = next((name for name in told if are_siblings(asked[0], name)), None)
    if sibling is None or _says_a_figure(answer[: answer.lower().find(sibling)]):
        return ""
    spelled = {name.lower(): name for name in lexicon.names}
    about = spelled.get(asked[0], asked[0])
    return f"You asked about the {about}; this speaks of the {spelled.get(sibling, sibling)}."


def _says_a_figure(before: str) -> bool:
    """Whether something was said already, of what `it` stands for."""
    return bool(read_figures(before))


def _values(question: str, source: SourceText) -> Iterator[_Value]:
    """The figures of the places that name what was asked about, and what was asked of it."""
    names = product_names(question, source.lexicon)
    if len(names) != 1:
        return
    asked = read(question, source.lexicon, language_of(question))
    wanted = [word for word in asked.words if word not in names[0].split()]
    wanted = [word for word in wanted if word not in ("long", "much", "mani", "year", "tell")]
    for given in given_by(source):
        if given.figure.kind == "amount" and wanted and _is_about(names[0], wanted, given):
            yield _Value(_with_unit_of_column(given), source.source)


def _is_about(name: str, wanted: Sequence[str], given: Given) -> bool:
    place = given.place
    named = [*given.names, *place.own.names, *place.around.names]
    is_named = any(same_name(name, each) for each in named)
    words = place.words | frozenset(_parts(place.window.column))
    return is_named and share(wanted, words) >= _ATTRIBUTE


def _parts(column: str) -> list[str]:
    """The words of a column's header, also of `warranty_months`."""
    return list(read(column.replace("_", " "), Lexicon(()), language_of(column)).words)


def _with_unit_of_column(given: Given) -> Figure:
    if given.figure.unit:
        return given.figure
    column = given.place.window.column.replace("_", " ")
    lowered = (token.lowered for token in tokens(column))
    unit = next((UNIT_SIGNS[word] for word in lowered if word in UNIT_SIGNS), "")
    return replace(given.figure, unit=unit)


def _apart(values: Sequence[_Value]) -> list[_Value]:
    """One value of each document, where two documents of one kind of value share none."""
    by_document: dict[tuple[str, str], dict[float, _Value]] = {}
    for value in values:
        if value.figure.unit:
            place = (value.source.document_id, value.figure.dimension)
            by_document.setdefault(place, {}).setdefault(value.figure.base, value)
    for (one, dimension), first in by_document.items():
        for (other, another), second in by_document.items():
            is_pair = one != other and dimension == another
            if is_pair and not set(first) & set(second):
                return [next(iter(first.values())), next(iter(second.values()))]
    return []


def _described(value: _Value) -> str:
    source = value.source
    found = [day for day in dates(f"{source.document_title} {source.passage}") if day.value > 1e6]
    day = f", {found[0].shown}" if found else ""
    return f"{value.figure.shown} ({source.document_title}{day} [{source.number}])"


def _what_holds(source: SourceText, holds: re.Pattern[str]) -> str:
    """The sentence of a source that says which of two values holds."""
    for place in source.places:
        if holds.search(place.window.text) and place.window.kind == "sentence":
            said = " ".join(place.window.text.split())
            return f" {source.source.document_title} [{source.source.number}] says: “{said}”"
    return ""
