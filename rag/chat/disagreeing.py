"""Sources that give different values for the same, and answers about another product than asked."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product

from rag.citations.checking.given import Given, given_by
from rag.citations.checking.naming import are_siblings, names_agree, same_name
from rag.citations.checking.reading import SourceText, read, read_alone, read_source, share
from rag.language.amounts import UNIT_SIGNS, Figure, agree
from rag.language.blocks import plain
from rag.language.dates import dates
from rag.language.figures import read_figures
from rag.language.languages import all_words, told
from rag.language.names import Lexicon
from rag.language.words import language_of, stem, tokens
from rag.records import Source

# The plainer words come first.
_HOLDS = tuple(
    re.compile(rf"\b(?:{told(field)})\b", re.IGNORECASE) for field in ("prevails", "supersedes")
)
_ATTRIBUTE = 0.5  # of the question's words beside the name
_FEW = 3  # words
_MEASURES = all_words("any_measure")  # stems that ask for any figure
_HOW = re.compile(rf"\b(?:{told('how')}) (\w+)", re.IGNORECASE)  # `how warm` asks for one as well


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What two sources have to speak of, to be compared."""

    name: str  # "" where none is named
    words: tuple[str, ...]  # beside the name

    @property
    def least(self) -> float:
        """The share of the words that stands with a figure: all of a few, else all but one."""
        if self.name:
            return _ATTRIBUTE
        return 1.0 if len(self.words) <= _FEW else 1 - 1 / len(self.words)


@dataclass(frozen=True, slots=True)
class _Value:
    """A figure that a source gives for what was asked."""

    figure: Figure
    source: Source
    names: tuple[str, ...]
    near: float  # the share of the question's words that stand with it


def disagreement(question: str, sources: Sequence[Source]) -> str:
    """The values with their sources and dates, and which holds as a source says; "" for none."""
    measuring = [source for source in sources if _measures(source)]
    if len({source.document_id for source in measuring}) < 2:
        return ""
    known = [read_source(each) for each in measuring]
    asked = _asked(question, known)
    if asked is None:
        return ""
    apart = _apart([value for each in known for value in _values(asked, each)])
    if not apart:
        return ""
    listed = "; ".join(_described(value) for value in apart)
    every = (read_source(each) for each in sources)
    about = [each for each in every if _speaks_of(asked, each)]
    told = (_what_holds(each, holds) for holds in _HOLDS for each in about)
    holds = next((each for each in told if each), "")
    return f"The sources disagree: {listed}.{holds}"


def _asked(question: str, sources: Sequence[SourceText]) -> _Wanted | None:
    """None where too little is asked to tell what it is about, or of several things."""
    lexicon = Lexicon(name for source in sources for name in source.lexicon.names)
    names = _product_names(question, lexicon)
    reading = read(question, lexicon, language_of(question))
    own = {word for name in names for word in name.split()}
    own |= {stem(each.lower(), reading.language.code) for each in _HOW.findall(question)}
    words = tuple(each for each in reading.words if each not in own | _MEASURES)
    fewest = 1 if names else 2
    if len(names) > 1 or len(words) < fewest:
        return None
    return _Wanted(names[0] if names else "", words)


def _speaks_of(asked: _Wanted, source: SourceText) -> bool:
    if asked.name:
        return any(same_name(asked.name, each) for each in source.names)
    return share(asked.words, source.words) >= asked.least


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
    named = (word for word in question.split()[1:] if word.strip(".,?!") != "I")
    if not any(any(map(str.isupper, word)) for word in named) and not re.search(r"\d", question):
        return ""  # it names nothing, and no source is read for it
    lexicon = Lexicon(n for source in sources for n in read_source(source).lexicon.names)
    asked, told = (_product_names(each, lexicon) for each in (question, answer))
    if len(asked) != 1 or any(same_name(asked[0], name) for name in told):
        return ""
    sibling = next((name for name in told if are_siblings(asked[0], name)), None)
    if sibling is None or read_figures(answer[: answer.lower().find(sibling)]):
        return ""  # something was said before, of what `it` stands for
    spelled = {name.lower(): name for name in lexicon.names}
    about = spelled.get(asked[0], asked[0])
    return f"You asked about the {about}; this speaks of the {spelled.get(sibling, sibling)}."


def _product_names(text: str, lexicon: Lexicon) -> list[str]:
    """Those that tell one product from another."""
    return [name for name in read(text, lexicon, language_of(text)).names if _tells_apart(name)]


def _values(asked: _Wanted, source: SourceText) -> Iterator[_Value]:
    """The figures of the places that name what was asked about, and what was asked of it."""
    for given in given_by(source):
        if given.figure.kind != "amount":
            continue
        place = given.place
        named = (*given.names, *place.own.names, *place.around.names)
        words = place.words | frozenset(_parts(place.window.column))
        near = share(asked.words, words)
        is_named = not asked.name or any(same_name(asked.name, each) for each in named)
        if is_named and near >= asked.least:
            names = tuple(each for each in named if _tells_apart(each))
            yield _Value(_with_unit_of_column(given), source.source, names, near)


def _tells_apart(name: str) -> bool:
    return any(each.isdigit() or each in " +" for each in name)


def _parts(column: str) -> list[str]:
    """The words of a column's header, also of `warranty_months`."""
    return list(read_alone(column.replace("_", " ")).words)


def _with_unit_of_column(given: Given) -> Figure:
    if given.figure.unit:
        return given.figure
    column = given.place.window.column.replace("_", " ")
    lowered = (token.lowered for token in tokens(column))
    unit = next((UNIT_SIGNS[word] for word in lowered if word in UNIT_SIGNS), "")
    return replace(given.figure, unit=unit)


def _apart(values: Sequence[_Value]) -> list[_Value]:
    """One value of each of two documents that give nothing alike for the same thing.

    Of each the nearest to what was asked, in figures that measure the same.
    """
    by_document: dict[tuple[str, str], list[_Value]] = {}
    for value in values:
        if value.figure.unit:
            place = (value.source.document_id, value.figure.dimension)
            by_document.setdefault(place, []).append(value)
    for place, found in by_document.items():
        best = max(each.near for each in found)
        by_document[place] = [each for each in found if each.near == best]
    for one, other in combinations(by_document, 2):
        pairs = list(product(by_document[one], by_document[other]))
        is_same = one[0] != other[0] and one[1] == other[1]
        if is_same and all(_are_apart(*pair) for pair in pairs):
            return list(pairs[0])
    return []


def _are_apart(one: _Value, other: _Value) -> bool:
    """Other values, of the same thing: no names, or one that both have."""
    names = bool(one.names) or bool(other.names)
    is_same = not names or names_agree(one.names, other.names) > 0
    return is_same and not agree(one.figure, other.figure)


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
