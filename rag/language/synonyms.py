"""Words that mean about the same: a closed list of synonyms, and near words as a model saw them.

The near words were written by `python -m benchmarks.related`; nothing is embedded here.
"""

from collections import defaultdict
from functools import cache
from importlib.resources import files

from rag.language.languages import LANGUAGES
from rag.language.words import stem


@cache
def _canonical() -> dict[str, str]:
    return {
        stem(word, language.code): stem(group[0], language.code)
        for language in LANGUAGES
        for group in language.groups["synonyms"]
        for word in group
        if " " not in word
    }


@cache
def _groups() -> dict[str, frozenset[str]]:
    results = defaultdict[str, set[str]](set)
    for word, one in _canonical().items():
        results[one] |= {one, word}
    return {one: frozenset(group) for one, group in results.items()}


def alike(word: str) -> frozenset[str]:
    """The stems of words that mean the same or about the same, itself not among them."""
    one = canonical(word)
    near = (like for other in {one, *related(one)} for like in _groups().get(other, {other}))
    return frozenset(near) - {word}


def canonical(word: str) -> str:
    """The stem that stands for all stems of its group of synonyms."""
    return _canonical().get(word, word)


@cache
def _near() -> dict[str, frozenset[str]]:
    """Both ways, in the stems that stand for their groups."""
    results = defaultdict[str, set[str]](set)
    lines = files("rag.language.languages").joinpath("en_related.txt").read_text(encoding="utf-8")
    for line in lines.splitlines():
        one, *others = map(canonical, line.split())
        results[one].update(others)
        for other in others:
            results[other].add(one)
    return {one: frozenset(others - {one} - alternatives(one)) for one, others in results.items()}


def alternatives(word: str) -> frozenset[str]:
    """The words of which this one excludes each: other days, other colours; and their stems."""
    return _alternatives().get(word, frozenset())


@cache
def _alternatives() -> dict[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for language in LANGUAGES:
        for group in language.groups["alternatives"]:
            every = frozenset(group) | {stem(word, language.code) for word in group}
            for word in group:
                for form in (word, stem(word, language.code)):
                    # `April` is a month in more than one language
                    results[form] = results.get(form, frozenset()) | every - {word}
    return results


def related(word: str) -> frozenset[str]:
    """The words that mean about the same."""
    return _near().get(word, frozenset())


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Stems to the stems that say the opposite."""
    results = defaultdict[str, set[str]](set)
    for language in LANGUAGES:
        for pair in language.groups["opposites"]:
            one, other = ({word, canonical(stem(word, language.code))} for word in pair)
            for word in one:
                results[word] |= other
            for word in other:
                results[word] |= one
    return {one: frozenset(others) for one, others in results.items()}
