"""What a text talks about: names, and noun phrases behind a word that opens one."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag.followups.names import NO_NAMES, Names
from rag.text.languages.language import words as word_set
from rag.text.words import QUESTION_WORDS, STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:['’.&+/-][^\W_]+)*|[^\w\s]")
QUOTED = re.compile(r"[“\"]([^“”\"]{2,60})[”\"]")
ARTICLES = frozenset({"the", "a", "an"})
LOCATIVES = word_set("in at on from near around within during since under into")
# A noun phrase follows these.
OPENERS = word_set(
    "the a an my our your his her its their this that these those some any and or"
) | word_set("of about for with to in on at from by between into using without")
JOINERS = word_set("of the de da del la le van von der den &")
NO_NAMES_ALONE = word_set(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday mr mrs ms dr tell show explain "
    "describe list compare speaking"
)
PLURALS = word_set("people children men women police mice feet teeth media data")
REMEMBERED = 2048  # texts whose mentions are kept: each question reads the turns before it again
PHRASE_WORDS = 4
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
    """Something a text talks about."""

    text: str
    start: int
    is_name: bool  # written with capitals, quoted, or in the lexicon
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
        return self.is_name and len(words) <= 3 and is_written_so and not has_acronym


def tokens(text: str) -> list[Token]:
    """Words and punctuation marks in order."""
    return [Token(found.group(), found.start(), found.end()) for found in WORD.finditer(text)]


@lru_cache(maxsize=REMEMBERED)
def mentions(text: str, lexicon: Names = NO_NAMES) -> tuple[Mention, ...]:
    """What the text talks about, in the order of reading."""
    found = tokens(text)
    spans = [*_quoted(text), *(_name(n.text, n.start, found) for n in lexicon.find(text))]
    spans += [span for span in _capitalised(text, found) if not _overlaps(span, spans)]
    spans += [span for span in _phrases(found) if not _overlaps(span, spans)]
    return tuple(sorted(spans, key=lambda mention: mention.start))


def content_words(text: str) -> list[str]:
    """Words that carry meaning, in lower case, each once."""
    words = (token.lower.removesuffix("'s") for token in tokens(text) if token.is_word)
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS and len(word) > 1))


def _overlaps(mention: Mention, others: Sequence[Mention]) -> bool:
    return any(
        mention.start < other.start + len(other.text)
        and other.start < mention.start + len(mention.text)
        for other in others
    )


def _quoted(text: str) -> Iterator[Mention]:
    for found in QUOTED.finditer(text):
        inner = found[1].strip(" ,.")
        if inner:
            yield Mention(inner, found.start(1), is_name=True)


def _name(text: str, start: int, found: Sequence[Token]) -> Mention:
    before = _before(found, start)
    has_article = bool(before) and before[-1].lower in ARTICLES
    return Mention(text, start, True, _is_located(before), has_article)


def _before(found: Sequence[Token], start: int) -> Sequence[Token]:
    end = bisect_right(found, start, key=lambda token: token.end)
    return found[max(0, end - LOOK_BACK) : end]


def _is_located(before: Sequence[Token]) -> bool:
    words = [token.lower for token in before if token.lower not in ARTICLES]
    return bool(words) and words[-1] in LOCATIVES


def _capitalised(text: str, found: Sequence[Token]) -> Iterator[Mention]:
    """Runs such as "Great Wall of China" or "Aero 5 Pro"."""
    run: list[Token] = []
    for at, token in enumerate([*found, Token(".", len(text), len(text))]):
        if run and (token.is_capital or token.text[0].isdigit() or _joins(token, found[at + 1 :])):
            run.append(token)
            continue
        yield from _named(text, found, run)
        run = [token] if token.is_capital else []


def _joins(token: Token, following: Sequence[Token]) -> bool:
    ahead = [other for other in following[:2] if other.lower not in JOINERS]
    return token.lower in JOINERS and bool(ahead) and ahead[0].is_capital


def _named(text: str, found: Sequence[Token], run: Sequence[Token]) -> Iterator[Mention]:
    kept = list(run)
    while kept and not _is_acronym(kept[0]) and _is_no_name(kept[0]):
        kept.pop(0)
    if not kept or not kept[0].is_capital or (len(kept) == 1 and _is_opener(text, kept[0])):
        return
    words = re.sub(r"['’]s?$", "", text[kept[0].start : kept[-1].end])
    yield _name(words, kept[0].start, found)


def _is_acronym(token: Token) -> bool:
    return len(token.text) > 1 and token.text.isupper()


def _is_no_name(token: Token) -> bool:
    word = token.lower.split("'")[0]
    return word in STOP_WORDS | QUESTION_WORDS | NO_NAMES_ALONE | JOINERS


def _is_opener(text: str, token: Token) -> bool:
    """A capital at a sentence's start tells nothing, unless it is a code or stands elsewhere."""
    before = text[: token.start].rstrip(" \"“'(-*#")
    starts = not before or before[-1] in ".!?:\n"
    if not starts or _is_acronym(token) or token.lower.endswith("'s"):
        return False
    return re.search(rf"[a-z,] {re.escape(token.text)}\b", text) is None


def _phrases(found: Sequence[Token]) -> Iterator[Mention]:
    """Plain words behind an opener: "orange trees" in "types of orange trees"."""
    at = 0
    while at < len(found):
        run: list[Token] = []
        if found[at].lower in OPENERS:
            for token in found[at + 1 : at + 1 + PHRASE_WORDS]:
                if not _is_plain(token):
                    break
                run.append(token)
        if run and not run[-1].lower.endswith(("ed", "ly")):
            text = " ".join(token.text.removesuffix("'s").removesuffix("’s") for token in run)
            article = found[at].lower in ARTICLES
            before = found[max(0, at - LOOK_BACK) : at + 1]
            yield Mention(text, run[0].start, False, _is_located(before), article)
        at += len(run) + 1


def _is_plain(token: Token) -> bool:
    return token.text.isalpha() and token.text.islower() and token.lower not in STOP_WORDS
