"""The names of products in a question or an answer."""

from itertools import pairwise

from rag.citations.checking.reading import read
from rag.text.blocks import plain
from rag.text.names import Lexicon, find_names
from rag.text.words import is_function_word, language_of


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
