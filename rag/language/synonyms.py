"""Words that mean about the same: a closed list of synonyms, and near words as a model saw them.

The near words were written by `python -m benchmarks.related`; nothing is embedded here.
"""

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
    results: dict[str, set[str]] = {}
    for word, one in _canonical().items():
        results.setdefault(one, {one}).add(word)
    return {one: frozenset(group) for one, group in results.items()}


def alike(word: str) -> frozenset[str]:
    """The stems of words that mean the same or about the same, itself not among them."""
    one = canonical(word)
    near = (each for other in {one, *related(one)} for each in _groups().get(other, {other}))
    return frozenset(near) - {word}


def canonical(word: str) -> str:
    """The stem that stands for all stems of its group of synonyms."""
    return _canonical().get(word, word)


@cache
def _near() -> dict[str, frozenset[str]]:
    """Both ways, in the stems that stand for their groups."""
    results: dict[str, set[str]] = {}
    lines = files("rag.language.languages").joinpath("en_related.txt").read_text(encoding="utf-8")
    for line in lines.splitlines():
        one, *others = map(canonical, line.split())
        results.setdefault(one, set()).update(others)
        for other in others:
            results.setdefault(other, set()).add(one)
    return {one: frozenset(others - {one} - alternatives(one)) for one, others in results.items()}


def alternatives(word: str) -> frozenset[str]:
    """The words of which this one excludes each: other days, other colours; and their stems."""
    return _alternatives().get(word, frozenset())


@cache
def _alternatives() -> dict[str, frozenset[str]]:
    results: dict[str, frozenset[str]] = {}
    for language in LANGUAGES:
        for group in language.groups["alternatives"]:
            every = frozenset(group) | {stem(each, language.code) for each in group}
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
    results: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for pair in language.groups["opposites"]:
            both = [{word, canonical(stem(word, language.code))} for word in pair]
            for words, others in (both, both[::-1]):
                for word in words:
                    results.setdefault(word, set()).update(others)
    return {one: frozenset(others) for one, others in results.items()}
