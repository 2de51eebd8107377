"""A user's text as terms to look up: words, runs of unspaced letters, model codes."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from rag.language.languages import all_meanings, phrases
from rag.language.lazy_patterns import re
from rag.language.words import language_of
from rag.search.lexical_schema import ALPHABETIC_UNSPACED, UNSPACED

MAX_CHARACTERS = 8000  # of a query; what follows is not looked at
MAX_TERMS = 64
REMEMBERED = 100  # queries: each is asked for its hits, and then how much of it they hold
PHRASE_WEIGHT = 0.4
CODE_WEIGHT = 3.0

_WRITTEN = re.compile(r"[^\W_]+(?:[-_.][^\W_]+)*")
_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*")

# People ask with a verb or an adjective, tables and lists answer under a noun.
RESTATED_WEIGHT = 0.8
RESTATED: dict[str, str] = all_meanings("restated")
_ASKS_A_PRICE = re.compile(rf"\b(?:{phrases('asks_a_price')})\b", re.IGNORECASE)
_PRICE = RESTATED["cost"]


@dataclass(frozen=True, slots=True)
class Term:
    """Something to look up: these tokens, one directly after the other.

    `counts` is False for other spellings and for phrases: they help to rank, but their absence
    says nothing about a chunk.
    """

    tokens: tuple[str, ...]
    weight: float = 1.0
    is_prefix: bool = False
    is_letters: bool = False  # one run of unspaced letters
    counts: bool = True


@lru_cache(REMEMBERED)
def terms_of(query: str) -> Sequence[Term]:
    """What to look up for any text a user may type; nothing when there is nothing."""
    words = _words(query)
    spoken = language_of(query)
    stop_words = spoken.words.get("idle_in_questions", spoken.function_words)
    telling = [word for word in words if not _is_stop_word(word, stop_words)] or words
    ordinary = dict.fromkeys(term for word in telling for term in _terms_of_word(word))
    pairs = _phrases(words, stop_words)
    results: dict[tuple[str, ...], Term] = {}
    for term in (*_exact(query), *ordinary, *_codes(words), *pairs, *_restated(words)):
        results.setdefault(term.tokens, term)
    return tuple(results.values())[:MAX_TERMS]


def names_in(query: str) -> frozenset[str]:
    """Words that are written as names are, in lower case."""
    return frozenset(found[0].lower() for found in _NAME.finditer(query))


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
            yield from _respelled(run.lower())


def _letter_terms(run: str) -> Iterator[Term]:
    size = 3 if re.match(f"[{ALPHABETIC_UNSPACED}]", run) else 2
    if len(run) < size:
        yield Term((run,), is_prefix=True, is_letters=True)
    for start in range(len(run) - size + 1):
        yield Term((run[start : start + size],), is_letters=True)


def _respelled(word: str) -> Iterator[Term]:
    """`wh1000xm4` may be written `WH-1000XM4`: cut once between letters and digits."""
    if len(word) > 2:
        for border in re.finditer(r"(?<=[^\W\d])(?=\d)|(?<=\d)(?=[^\W\d])", word):
            cut = border.start()
            yield Term((word[:cut], word[cut:]), counts=False)


def _phrases(words: list[str], stop_words: frozenset[str]) -> Iterator[Term]:
    """Two words side by side, as in `channel list`."""
    for first, second in pairwise(words):
        pair = (first.lower(), second.lower())
        if (
            not _is_stop_word(first, stop_words)
            and not _is_stop_word(second, stop_words)
            and not _UNSPACED.search("".join(pair))
        ):
            yield Term(pair, weight=PHRASE_WEIGHT, counts=False)


def _restated(words: list[str]) -> Iterator[Term]:
    """`cost` is `price` in a price list: looked up beside the word that was used."""
    restated = [RESTATED.get(word.lower()) for word in words]
    if _ASKS_A_PRICE.search(" ".join(words)):
        restated.append(_PRICE)
    for other in filter(None, restated):
        yield Term((other,), weight=RESTATED_WEIGHT, counts=False)


def _exact(query: str) -> Iterator[Term]:
    """`E18`, `XR-500`: who types one wants what has it, whatever else the question says."""
    for found in _WRITTEN.findall(query[:MAX_CHARACTERS]):
        tokens = tuple(word.lower() for word in _words(found))
        # A letter first, a digit somewhere: no quantity (`10GB`) and no ordinal.
        is_code = found[0].isalpha() and _has_digit(found) and not _UNSPACED.search(found)
        if tokens and len(found) > 2 and is_code:
            yield Term(tokens, weight=CODE_WEIGHT, counts=len(tokens) == 1)


def _codes(words: list[str]) -> Iterator[Term]:
    """Neighbours with a digit in one of them belong together: `AX-5400`, `Aero 5 Pro`."""
    lower = [word.lower() for word in words]
    for first, second in pairwise(lower):
        if _has_digit(first) or _has_digit(second):
            yield Term((first, second), counts=False)
            yield Term((first + second,), counts=False)
    for triple in zip(lower, lower[1:], lower[2:], strict=False):
        if _has_digit(triple[1]):
            yield Term(triple, counts=False)


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)
