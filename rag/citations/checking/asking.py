"""Whose a statement is that names nothing: of the one thing that was asked about."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

from rag.citations.checking.naming import are_siblings
from rag.citations.checking.reading import SourceText, read
from rag.citations.leaning import leans
from rag.text.blocks import plain
from rag.text.names import Lexicon, find_names
from rag.text.words import is_function_word, language_of

# In front of a name that is only compared with, or one of many; behind the name of a family.
_BESIDE = r"\b(?:than|as|like|besides|except|which|all|every|each|als|wie|außer|welche[rsn]?|alle) "
_ARTICLE = r"(?:the |an? |other |de[rmn] |die |das |eine[rmn]? )*"
_FAMILY = r" (?:models?|family|series|line|range|variants?|modelle?|familie|serie|reihe)\b"


def may_name(question: str) -> bool:
    """Whether any of it is written as names of products are; else no source is read for it."""
    words = plain(question).split()
    return any(
        any(c.isdigit() or c in "+-" for c in word)
        or any(map(str.isupper, word[1:]))
        or (word[0].isupper() and before and not (word == "I" and is_function_word(before.lower())))
        for before, word in pairwise(["", *words])
    )


def product_names(text: str, lexicon: Lexicon) -> list[str]:
    """Those that tell one product from another."""
    every = read(text, lexicon, language_of(text)).names
    return [name for name in every if any(c.isdigit() or c in " +" for c in name)]


def possible_names(text: str, lexicon: Lexicon) -> set[str]:
    """All that `read` chooses the names of a text from, and little else."""
    said = plain(text)
    return {name.text.lower() for name in (*lexicon.find(said), *find_names(said))}


class Asked:
    """A question beside its answer, for statements that do not say whose their figures are."""

    def __init__(self, question: str, answer: str, sources: Iterable[SourceText]) -> None:
        self._question = question
        self._answer = answer
        self._sources = sources
        self._may_name = may_name(question)

    @cached_property
    def name(self) -> str:
        """The one thing; "" where there is none."""
        lexicon = Lexicon(name for source in self._sources for name in source.lexicon.names)
        names = product_names(self._question, lexicon)
        told = possible_names(self._answer, lexicon)
        is_one = len(names) == 1 and _is_about(names[0], self._question, told)
        return names[0] if is_one else ""

    def subject_of(self, text: str, lexicon: Lexicon) -> str:
        """What was asked about, where the text points back to it or says first what was asked."""
        if not self._may_name:
            return ""
        reading = read(text, lexicon, language_of(text))
        if reading.names:
            return ""
        before = text[: reading.figures[0].start] if reading.figures else text
        told = read(before, lexicon, language_of(text)).words
        asked = read(self._question, lexicon, language_of(self._question)).words
        return self.name if leans(text) or set(asked).issuperset(told) else ""


def _is_about(name: str, question: str, told: Iterable[str]) -> bool:
    """Whether a question is about the one thing, and the answer never turns to its siblings."""
    beside = rf"{_BESIDE}{_ARTICLE}{re.escape(name)}|{re.escape(name)}{_FAMILY}"
    is_beside = re.search(beside, question, re.IGNORECASE)
    return not is_beside and not any(are_siblings(name, other) for other in told)
