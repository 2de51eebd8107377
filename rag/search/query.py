"""A user's text as terms to look up: words, runs of unspaced letters, model codes."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from rag.language.lazy_patterns import re
from rag.language.words import language_of
from rag.search.lexical_schema import ALPHABETIC_UNSPACED, UNSPACED

MAX_CHARACTERS = 8000  # of a query; what follows is not looked at
MAX_TERMS = 64
REMEMBERED = 100  # queries: each is asked for its hits, and then how much of it they hold

_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*")


@dataclass(frozen=True, slots=True)
class Term:
    """Something to look up: these tokens, one directly after the other."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    is_letters: bool = False  # one run of unspaced letters


@lru_cache(REMEMBERED)
def terms_of(query: str) -> Sequence[Term]:
    """What to look up for any text a user may type; nothing when there is nothing."""
    words = _words(query)
    spoken = language_of(query)
    stop_words = spoken.words.get("idle_in_questions", spoken.function_words)
    telling = [word for word in words if not _is_stop_word(word, stop_words)] or words
    terms = dict.fromkeys(term for word in telling for term in _terms_of_word(word))
    return tuple(terms)[:MAX_TERMS]


def names_in(query: str) -> frozenset[str]:
    """Words that are written as names are, in lower case."""
    return frozenset(match[0].lower() for match in _NAME.finditer(query))


def words_of(text: str) -> list[str]:
    """The words of a text as they are looked up."""
    return [word.lower() for word in _words(text)]


def _words(query: str) -> list[str]:
    text = unicodedata.normalize("NFC", query[:MAX_CHARACTERS])
    return "".join(char if _is_of_word(char) else " " for char in text).split()


@cache
def _is_of_word(char: str) -> bool:
    """As the tokenizer of the index decides: letters, numbers, marks, private use."""
    category = unicodedata.category(char)
    return category[0] in "LNM" or category == "Co"


def _is_stop_word(word: str, stop_words: frozenset[str]) -> bool:
    """Capitals are no stop word: `IT`, `US`."""
    return word.lower() in stop_words and not (len(word) > 1 and word.isupper())


_UNSPACED = re.compile(UNSPACED)
_RUN = re.compile(f"{UNSPACED}+|[^{UNSPACED[1:]}+")


def _terms_of_word(word: str) -> Iterator[Term]:
    for run in _RUN.findall(word):
        if _UNSPACED.match(run):
            yield from _letter_terms(run)
        else:
            yield Term((run.lower(),))


def _letter_terms(run: str) -> Iterator[Term]:
    size = 3 if re.match(f"[{ALPHABETIC_UNSPACED}]", run) else 2
    if len(run) < size:
        yield Term((run,), is_prefix=True, is_letters=True)
    for start in range(len(run) - size + 1):
        yield Term((run[start : start + size],), is_letters=True)


_ACCENTS = re.compile(r"[\u0300-\u036f]+")


def plain(text: str) -> str:
    """Without capitals and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))
