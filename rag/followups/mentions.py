"""The names that a text talks about."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile

from rag.followups.names import NO_NAMES, Names
from rag.text.languages import words as word_set
from rag.text.words import QUESTION_WORDS, STOP_WORDS, Token, tokens

JOINT = re.compile(r"\s+|[.&+/-]")  # between the words of one name
QUOTED = frozenset(">|*-#")  # begin lines of cards: single words there have capitals as they open
ARTICLES = word_set("the a an der die das den dem ein eine einen einem einer")
LOCATIVES = word_set(
    "in at on from near around within during since under into auf bei beim im am aus seit"
)
PLURALS = word_set("people children men women police mice feet teeth media data")
REMEMBERED = 2048  # texts whose mentions are kept: each question reads the turns before it again
LOOK_BACK = 8


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


@lru_cache(maxsize=REMEMBERED)
def mentions(text: str, lexicon: Names = NO_NAMES) -> tuple[Mention, ...]:
    """What the text talks about, in the order of reading."""
    found = list(tokens(text))
    spans = [_name(known.text, known.start, found) for known in lexicon.find(text)]
    taken = {at for span in spans for at in range(span.start, span.end)}
    spans += [s for s in _capitalised(text, found) if taken.isdisjoint(range(s.start, s.end))]
    return tuple(sorted(spans, key=lambda mention: mention.start))


def _name(text: str, start: int, found: Sequence[Token]) -> Mention:
    end = bisect_right(found, start, key=lambda token: token.end)
    before = [token.lowered for token in found[max(0, end - LOOK_BACK) : end]]
    has_article = before[-1:] != [] and before[-1] in ARTICLES
    words = [word for word in before if word not in ARTICLES]
    return Mention(text, start, words[-1:] != [] and words[-1] in LOCATIVES, has_article)


def _capitalised(text: str, found: Sequence[Token]) -> Iterator[Mention]:
    """Runs such as "Aero 5 Pro"."""
    run: list[Token] = []
    for token in found:
        is_beside = bool(run) and bool(JOINT.fullmatch(text, run[-1].end, token.start))
        if is_beside and (_has_capital(token) or token.text[0].isdigit()):
            run.append(token)
            continue
        yield from _named(text, found, run)
        run = [token] if _has_capital(token) else []
    yield from _named(text, found, run)


def _has_capital(token: Token) -> bool:
    """As `Aero`, and `macOS`."""
    return any(map(str.isupper, token.text))


def _named(text: str, found: Sequence[Token], run: Sequence[Token]) -> Iterator[Mention]:
    kept = list(dropwhile(_is_no_name, run))
    if not kept or not _has_capital(kept[0]):
        return
    start = kept[0].start
    line = text.rfind("\n", 0, start) + 1
    if len(kept) > 1 or text[line] not in QUOTED:
        yield _name(re.sub(r"['’]s?$", "", text[start : kept[-1].end]), start, found)


def _is_no_name(token: Token) -> bool:
    is_acronym = len(token.text) > 1 and token.text.isupper()
    return not is_acronym and token.lowered.split("'")[0] in STOP_WORDS | QUESTION_WORDS
