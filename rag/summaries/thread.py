"""The thread of a summary: sentences about what the user wants, in the user's own words.

A sentence stays only if each of its words that says something stands in the user's messages of
the turns that it names, or is one of the few words that report what a user does. So a model can
neither bring in a figure, a name or a negation of its own, nor repeat what the sources say.
"""

import re
from collections.abc import Sequence
from typing import Any

from rag.citations.markers import cited_numbers
from rag.summaries.required import on_one_line

THREAD_WORDS = 80  # of all sentences together
LONGEST_SENTENCE = 300  # characters
COMMON_BEGINNING = 5  # letters that forms of one word share
_WORD = re.compile(r"[-−+]?\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[$€£¥%°]")
# What reports a user's doing, and the small words of a sentence. No word that negates or limits.
_REPORTING = frozenset(
    """
    a about after also an and are as asked asking asks at be been before between both by can choice
    choose chooses chose compare compared compares comparing decide decided decides decision else
    first for from had has have he her him his how i in into is it its later left list looking
    looks may me more my need needs of on one open or other our out plan planned planning plans
    prefer preferred prefers question rule ruled rules said says she should so still than that the
    their them then these they this those to two undecided us use user user's users want wanted
    wants was we were what whether which who whose will wish wishes with would yet you your
    der die das und oder fragt will möchte sucht hat ist den dem ein eine einen nutzer benutzer mit
    für von zu im in ob
    """.split()  # noqa: SIM905 - a list of words reads better so
)


def thread_sentences(given: Any, turns: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sentences that stay, and what was wrong with the others; turns count from 1."""
    kept: list[str] = []
    problems: list[str] = []
    for entry in given if isinstance(given, list) else []:
        text, named = _entry(entry, len(turns))
        if not text:
            continue
        own = "\n".join(turns[turn - 1] for turn in named)
        if is_users_own(text, own):
            kept.append(text)
        else:
            problems.append("a sentence of the thread is not in the user's words")
    return tuple(kept), tuple(dict.fromkeys(problems))


def is_users_own(text: str, own: str) -> bool:
    """Whether all that a sentence says are words of these messages, or report on their writer."""
    if not own.strip() or cited_numbers(text) or re.search(r"[\[\]【】［］]", text):
        return False
    said = [word.casefold() for word in _WORD.findall(own)]
    whole = frozenset(said)
    beginnings = frozenset(word[:COMMON_BEGINNING] for word in said if word.isalpha())
    words = [word.casefold() for word in _WORD.findall(text)]
    return any(word not in _REPORTING for word in words) and all(
        word in _REPORTING or word in whole or _is_form_of_one(word, beginnings) for word in words
    )


def _is_form_of_one(word: str, beginnings: frozenset[str]) -> bool:
    long_enough = len(word) > COMMON_BEGINNING and word.isalpha()
    return long_enough and word[:COMMON_BEGINNING] in beginnings


def newest_sentences(thread: Sequence[str]) -> list[str]:
    """The newest that together have at most `THREAD_WORDS` words, oldest first."""
    kept: list[str] = []
    left = THREAD_WORDS
    for sentence in reversed(list(dict.fromkeys(thread))):
        left -= len(sentence.split())
        if left < 0:
            break
        kept.insert(0, sentence)
    return kept


def _entry(entry: Any, turns: int) -> tuple[str, list[int]]:
    """Text and turns of one entry; "" for what cannot be read."""
    if not isinstance(entry, dict):
        return "", []
    text, named = entry.get("text"), entry.get("turns")
    if not isinstance(text, str) or not isinstance(named, list) or len(text) > LONGEST_SENTENCE:
        return "", []
    known = [turn for turn in named if type(turn) is int and 1 <= turn <= turns]
    return on_one_line(text), known
