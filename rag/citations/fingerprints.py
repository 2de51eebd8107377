"""What an answer is known again by: its words with its numbers, whatever a client did to it.

Clients send answers back with other blanks and marks, with numbers spelled their way, with a
footer, without thinking, without their end. A fingerprint holds the letters and figures of an
answer and the numbers that it cites, each in its place, and nothing else.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from rag.citations.gate import canonical
from rag.citations.json_text import in_words
from rag.citations.markers import find_markers
from rag.citations.wrapping import unwrapped

ANYBODY = "\0anybody"  # of answers that were given before callers were told apart
ENOUGH_WORDS = 8  # content words and figures without which an answer alone tells no conversation
HEAD = 160  # letters, figures and numbers at the beginning that are enough
MOST_FOOTER_LINES = 4
MOST_CHARACTERS = 100_000  # of an answer that are looked at
_THOUGHTS = re.compile(
    r"<(think|thinking|thought|reasoning)>.*?</\1>|<details\b[^>]*\breasoning\b.*?</details>|"
    r"\A[^<]*</think(?:ing)?>",
    re.DOTALL | re.IGNORECASE,
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_FIGURE = re.compile(r"(?<![\w.,\[])\d[\d.,]*(?![\w\]])")
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One way to know an answer; a weak one counts only beside another."""

    key: str
    is_strong: bool
    has_question: bool = False  # it tells the question, too


def stored_keys(user: str, question: str, answer: str) -> frozenset[str]:
    """What an answer of ours is remembered by: whole, by its head, and with its question."""
    whole = "".join(_lines(_cleaned(answer)))
    if not whole:
        return frozenset()
    keys = {_key(user, "whole", whole), _key(user, "pair", whole, _asked(question))}
    return frozenset(keys | ({_key(user, "head", _head(whole))} if len(whole) > HEAD else set()))


def possible_fingerprints(user: str, question: str | None, answer: str) -> list[Fingerprint]:
    """What an answer that a client sends back may be known by.

    `question` is what stands before it, which tells as much as a second answer.
    """
    results: list[Fingerprint] = []
    asked = _asked(question or "")
    for whole, words in _readings(answer):
        is_strong = words >= ENOUGH_WORDS and "[" in whole
        for who in (user, ANYBODY):
            results.append(Fingerprint(_key(who, "whole", whole), is_strong))
            if asked:
                pair = _key(who, "pair", whole, asked)
                results.append(Fingerprint(pair, is_strong=True, has_question=True))
            if len(whole) >= HEAD:
                head = _head(whole)
                results.append(Fingerprint(_key(who, "head", head), "[" in head))
    return results


def _readings(answer: str) -> Iterator[tuple[str, int]]:
    """The letters of an answer and its words; then without what a client put below or above it."""
    from rag.language.words import content_words  # stemmers, which no page needs

    text = _cleaned(answer)
    lines = _lines(text)
    spoken = [len(content_words(line)) + len(_FIGURE.findall(line)) for line in text.split("\n")]
    filled = [place for place, line in enumerate(lines) if line]
    ends = [place + 1 for place in filled[: -MOST_FOOTER_LINES - 2 : -1]]
    stretches = [(0, end) for end in ends] + [(filled[1], len(lines)) for _ in filled[1:2]]
    for start, end in stretches:
        yield "".join(lines[start:end]), sum(spoken[start:end])


def _cleaned(answer: str) -> str:
    """With its citations spelled as ours are, and without what comes and goes."""
    text = _THOUGHTS.sub("", answer[:MOST_CHARACTERS])
    return _URL.sub("", _LINK.sub(r"\1", canonical(in_words(text))))


def _lines(text: str) -> list[str]:
    """Letters, figures and numbers of each line."""
    kept, at = list[str](), 0
    for marker in find_markers(text):
        kept += [_letters(text[at : marker.start]), *(f"[{number}]" for number in marker.numbers)]
        at = marker.end
    kept.append(_letters(text[at:]))
    return "".join(kept).split("\n")


def _letters(text: str) -> str:
    """Letters and figures in any case, and ends of lines."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if sign.isalnum() or sign == "\n")


def _asked(question: str) -> str:
    """Some clients put a template around the last question alone, and send it bare ever after."""
    return _letters(unwrapped(question).question)


def _head(whole: str) -> str:
    """The beginning, without a number that is cut."""
    head = whole[:HEAD]
    return head if head.rfind("[") <= head.rfind("]") else head[: head.rfind("[")]


def _key(user: str, kind: str, *told: str) -> str:
    return sha256("\0".join((user, kind, *told)).encode("utf-8", "replace")).hexdigest()
