"""The names that a text talks about."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile

from rag.followups.names import NO_NAMES, Names
from rag.text.languages.language import words as word_set
from rag.text.words import QUESTION_WORDS, STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['’.&+/-][^\W_]+)*|[^\w\s]")
ARTICLES = frozenset({"the", "a", "an"})
LOCATIVES = word_set("in at on from near around within during since under into")
PLURALS = word_set("people children men women police mice feet teeth media data")
REMEMBERED = 2048  # texts whose mentions are kept: each question reads the turns before it again
LOOK_BACK = 8


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a punctuation mark with its place."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower().replace("’", "'")

    @property
    def is_word(self) -> bool:
        return self.text[0].isalnum()

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()


@dataclass(frozen=True, slots=True)
class Mention:
    """A name, written with capitals or in the lexicon."""

    text: str
    start: int
    is_located: bool = False  # behind a preposition of place or time: seldom the topic
    has_article: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_plural(self) -> bool:
        last = self.text.split()[-1].lower().strip("'\"”’")
        if last in PLURALS:
            return True
        return len(last) > 3 and last.endswith("s") and not last.endswith(("ss", "us", "is", "'s"))

    @property
    def may_be_person(self) -> bool:
        """One to three capitalised words, no acronym and no code among them."""
        words = self.text.split()
        is_written_so = all(w[0].isupper() and w.replace(".", "").isalpha() for w in words)
        has_acronym = any(len(word) > 1 and word.isupper() for word in words)
        return len(words) <= 3 and is_written_so and not has_acronym


def tokens(text: str) -> list[Token]:
    """Words and punctuation marks in order."""
    return [Token(found.group(), found.start(), found.end()) for found in WORD.finditer(text)]


@lru_cache(maxsize=REMEMBERED)
def mentions(text: str, lexicon: Names = NO_NAMES) -> tuple[Mention, ...]:
    """What the text talks about, in the order of reading."""
    found = tokens(text)
    spans = [_name(known.text, known.start, found) for known in lexicon.find(text)]
    spans += [span for span in _capitalised(text, found) if not _overlaps(span, spans)]
    return tuple(sorted(spans, key=lambda mention: mention.start))


def _overlaps(mention: Mention, others: Sequence[Mention]) -> bool:
    return any(
        mention.start < other.start + len(other.text)
        and other.start < mention.start + len(mention.text)
        for other in others
    )


def _name(text: str, start: int, found: Sequence[Token]) -> Mention:
    end = bisect_right(found, start, key=lambda token: token.end)
    before = [token.lower for token in found[max(0, end - LOOK_BACK) : end]]
    has_article = before[-1:] != [] and before[-1] in ARTICLES
    words = [word for word in before if word not in ARTICLES]
    return Mention(text, start, words[-1:] != [] and words[-1] in LOCATIVES, has_article)


def _capitalised(text: str, found: Sequence[Token]) -> Iterator[Mention]:
    """Runs such as "Aero 5 Pro"."""
    run: list[Token] = []
    for token in [*found, Token(".", len(text), len(text))]:
        if run and (token.is_capital or token.text[0].isdigit()):
            run.append(token)
            continue
        yield from _named(text, found, run)
        run = [token] if token.is_capital else []


def _named(text: str, found: Sequence[Token], run: Sequence[Token]) -> Iterator[Mention]:
    kept = list(dropwhile(_is_no_name, run))
    if kept and kept[0].is_capital:
        words = re.sub(r"['’]s?$", "", text[kept[0].start : kept[-1].end])
        yield _name(words, kept[0].start, found)


def _is_no_name(token: Token) -> bool:
    is_acronym = len(token.text) > 1 and token.text.isupper()
    return not is_acronym and token.lower.split("'")[0] in STOP_WORDS | QUESTION_WORDS
