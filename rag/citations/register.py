"""The register: every chunk that a session shows gets one number, for good (C1).

Clients send answers back changed: other blanks and marks, other spellings of numbers, a footer,
without thoughts, cut. A fingerprint holds only the letters, the figures and the cited numbers of an
answer, in their places.

Clients also put their own findings around a question, in tags or fences. The model reads those;
only the question is searched, and their numbers are not the session's.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rag.citations.gate import canonical, in_words
from rag.citations.markers import cited_numbers, find_markers
from rag.language.words import content_words
from rag.records import Hit, Source, SourceState


def assign_numbers(
    existing: Mapping[str, int], chunk_ids: Iterable[str], *, taken: int = 0
) -> dict[str, int]:
    """Extend a session's numbering with new chunks; a known chunk keeps its number.

    New numbers follow the highest one without a gap, in the order in which the chunks first
    appear. `taken` is the session's highest number, for callers that know a part of it only.
    """
    numbers = dict(existing)
    following = max([taken, *existing.values()]) + 1
    for chunk_id in chunk_ids:
        if chunk_id not in numbers:
            numbers[chunk_id] = following
            following += 1
    return numbers


def as_source(hit: Hit, number: int = 0) -> Source:
    """Return a hit as a source, with all that `[n]` needs when the document is deleted."""
    chunk = hit.chunk
    return Source(
        number=number,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        document_title=chunk.document_title,
        locator=chunk.locator,
        heading_path=chunk.heading_path,
        text=chunk.text,
        passage=hit.passage,
        content_hash=content_hash(hit.passage),
    )


def brought_source(number: int, text: str, name: str, **more: Any) -> Source:
    """Return an imported source, whose document is not in the library; `more` are other fields."""
    passage = more.get("passage") or text
    defaults = {"document_id": "", "document_title": name, "locator": "", "heading_path": ()}
    content = content_hash(passage)
    unnamed = f"imported:{number}:{content[:16]}"  # what says otherwise is another source
    identity = {"chunk_id": more.get("chunk_id") or unnamed, "passage": passage}
    return Source(
        number=number,
        text=text,
        document_name=name,
        content_hash=content,
        **defaults | more | identity,
    )


def content_hash(text: str) -> str:
    """Return the SHA-256 of a text in hex; lone surrogates count as question marks."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def source_state(*, has_document: bool, has_chunk: bool) -> SourceState:
    """Return the present state of a source: a chunk's id changes whenever its text does."""
    if has_chunk:
        return SourceState.CURRENT
    return SourceState.CHANGED if has_document else SourceState.DELETED


LEAST_CONTEXT = 200  # characters of a block: a word in tags, a line of code is no context
HIGHEST_ID = 1_000
Edge = re.Match[str]
_EDGE = re.compile(  # of a block; a fence that nothing follows may begin or end one
    r"<(?P<ends>/?)(?P<tag>[A-Za-z_][\w-]*)(?:\s[^<>]*)?>"
    r"|^[ \t]*(?P<fence>```+|~~~+)(?P<label>[^\n]*)$",
    re.MULTILINE,
)
_QUESTION_TAG = re.compile(r"(?:user_?)?(?:query|question|input|message)", re.IGNORECASE)
_ID = re.compile(r"""\b(?:id|index|number)\s*=\s*["']?(\d{1,4})\b""")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LABEL = re.compile(r"[^\n]{1,60}[:：]\s*$|#{1,6} [^\n]*$|-{3,}$")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A question, and the highest number in the text that a client put around it."""

    question: str
    highest: int = 0


def unwrapped(text: str) -> Wrapped:
    """Return the question alone; the whole text if nothing is around it or nothing is asked.

    "What does it mean?" below a pasted log is a question about the log.
    """
    pairs = _pair_edges(text) if len(text) >= LEAST_CONTEXT else []
    blocks: list[tuple[Edge, Edge]] = []  # those that begin in no other one
    for _, first, last in pairs:
        if not blocks or first.start() >= blocks[-1][1].end():
            blocks.append((first, last))
    blocks = [(a, b) for a, b in blocks if b.end() - a.start() >= LEAST_CONTEXT]
    if not blocks:
        return Wrapped(text)
    context = "\n".join(text[first.start() : last.end()] for first, last in blocks)
    ids = [*map(int, _ID.findall(context)), *cited_numbers(context)]
    highest = max((id_ for id_ in ids if id_ <= HIGHEST_ID), default=0)
    tagged = [
        text[a.end() : b.start()].strip() for tag, a, b in pairs if _QUESTION_TAG.fullmatch(tag)
    ]
    behind, before = text[blocks[-1][1].end() :], text[: blocks[0][0].start()]
    questions = [*filter(None, tagged)][-1:] or [_without_labels(behind) or _without_labels(before)]
    return Wrapped(questions[0] if content_words(questions[0]) else text, highest)


def _pair_edges(text: str) -> list[tuple[str, Edge, Edge]]:
    """Return the tags and fences by name, each with its begin and end, in order."""
    following: dict[str, Edge] = {}  # the next edge of a name, where that ends a block
    pairs: list[tuple[str, Edge, Edge]] = []
    for edge in reversed(list(_EDGE.finditer(text))):
        name = edge["tag"] or edge["fence"]
        end = following.pop(name, None)
        if end is not None and not edge["ends"]:
            pairs.append((name, edge, end))
        if edge["ends"] or (edge["fence"] and not edge["label"].strip()):
            following[name] = edge
    return pairs[::-1]


def _without_labels(text: str) -> str:
    """Return the text's paragraphs without headings and labels."""
    parts = (part.strip() for part in _PARAGRAPH.split(text))
    return "\n\n".join(part for part in parts if part and not _LABEL.fullmatch(part))


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
_NUMBERS = re.compile(r"\[\d+\]")  # of an answer in letters
_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One key by which an answer may be recognised; a weak one needs a second."""

    key: str
    is_strong: bool
    has_question: bool = False  # it tells the question, too


def stored_keys(user: str, question: str, answer: str) -> frozenset[str]:
    """Return the keys under which an answer is stored: whole, by its beginning, with its question.

    It also gets weak keys without numbers, since some clients remove them all.
    """
    whole = "".join(_lines(_cleaned(answer)))
    if not whole:
        return frozenset()
    keys = set[str]()
    for letters in (whole, _NUMBERS.sub("", whole)):
        keys.add(_key(user, "whole", letters))
        keys.add(_key(user, "pair", letters, _question_letters(question)))
    if len(whole) > HEAD:
        keys.add(_key(user, "head", _uncut_beginning(whole)))
    return frozenset(keys)


def possible_fingerprints(user: str, question: str | None, answer: str) -> list[Fingerprint]:
    """Return the fingerprints that a returned answer may have.

    `question` is the one before it, which counts as much as a second answer.
    """
    results: list[Fingerprint] = []
    letters = _question_letters(question or "")
    for whole, words in _forms_of_answer(answer):
        is_strong = words >= ENOUGH_WORDS and "[" in whole
        for who in (user, ANYBODY):
            results.append(Fingerprint(_key(who, "whole", whole), is_strong))
            if letters:
                pair = _key(who, "pair", whole, letters)
                results.append(Fingerprint(pair, is_strong=True, has_question=True))
            if len(whole) >= HEAD:
                head = _uncut_beginning(whole)
                results.append(Fingerprint(_key(who, "head", head), "[" in head))
    return results


def _forms_of_answer(answer: str) -> Iterator[tuple[str, int]]:
    """Yield an answer's letters and number of words, then those without a client's additions."""
    text = _cleaned(answer)
    lines = _lines(text)
    spoken = [len(content_words(line)) + len(_FIGURE.findall(line)) for line in text.split("\n")]
    filled = [place for place, line in enumerate(lines) if line]
    ends = [place + 1 for place in filled[: -MOST_FOOTER_LINES - 2 : -1]]
    stretches = [(0, end) for end in ends] + [(filled[1], len(lines)) for _ in filled[1:2]]
    for start, end in stretches:
        yield "".join(lines[start:end]), sum(spoken[start:end])


def _cleaned(answer: str) -> str:
    """Return an answer with citations as `[n]`, without the parts that clients add or drop."""
    text = _THOUGHTS.sub("", answer[:MOST_CHARACTERS])
    return _URL.sub("", _LINK.sub(r"\1", canonical(in_words(text))))


def _lines(text: str) -> list[str]:
    """Return letters, figures and numbers of each line."""
    pieces, position = list[str](), 0
    for marker in find_markers(text):
        pieces.append(_folded_letters(text[position : marker.start]))
        pieces += (f"[{number}]" for number in marker.numbers)
        position = marker.end
    pieces.append(_folded_letters(text[position:]))
    return "".join(pieces).split("\n")


def _folded_letters(text: str) -> str:
    """Return letters and figures in lower case, with line ends."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in folded if sign.isalnum() or sign == "\n")


def _question_letters(question: str) -> str:
    """Return a question's letters without a template, which some clients put on the last one."""
    return _folded_letters(unwrapped(question).question)


def _uncut_beginning(whole: str) -> str:
    """Return the beginning of a text, without a number that the cut parts."""
    head = whole[:HEAD]
    return head if head.rfind("[") <= head.rfind("]") else head[: head.rfind("[")]


def _key(user: str, kind: str, *texts: str) -> str:
    return sha256("\0".join((user, kind, *texts)).encode("utf-8", "replace")).hexdigest()
