"""The question that a client wrapped in its own instructions and context, by structure alone.

Clients put what they found themselves around a question: blocks in tags or fences, before it or
behind it. What stands in them is the model's to read; the question alone is searched, and a number
of theirs is none of ours.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rag.citations.markers import cited_numbers
from rag.language.words import content_words

LEAST_CONTEXT = 200  # characters of a block: a word in tags, a line of code is no context
HIGHEST_ID = 1_000
Edge = re.Match[str]
_EDGE = re.compile(  # of a block; a fence that nothing follows may begin or end one
    r"<(?P<ends>/?)(?P<tag>[A-Za-z_][\w-]*)(?:\s[^<>]*)?>"
    r"|^[ \t]*(?P<fence>```+|~~~+)(?P<label>[^\n]*)$",
    re.MULTILINE,
)
_ASKED = re.compile(r"(?:user_?)?(?:query|question|input|message)", re.IGNORECASE)  # a tag's name
_ID = re.compile(r"""\b(?:id|index|number)\s*=\s*["']?(\d{1,4})\b""")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LABEL = re.compile(r"[^\n]{1,60}[:：]\s*$|#{1,6} [^\n]*$|-{3,}$")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A question, and the highest number that stands in what a client put around it."""

    question: str
    highest: int = 0


def unwrapped(text: str) -> Wrapped:
    """The question alone; all of the text where nothing is wrapped around it, or nothing is asked.

    "What does it mean?" below a pasted log is a question about the log.
    """
    pairs = _pairs(text) if len(text) >= LEAST_CONTEXT else []
    outer = [(first, last) for _, first, last in _outermost(pairs)]
    blocks = [(a, b) for a, b in outer if b.end() - a.start() >= LEAST_CONTEXT]
    if not blocks:
        return Wrapped(text)
    context = "\n".join(text[first.start() : last.end()] for first, last in blocks)
    ids = [int(found) for found in _ID.findall(context)] + cited_numbers(context)
    highest = max((id_ for id_ in ids if id_ <= HIGHEST_ID), default=0)
    tagged = [text[a.end() : b.start()].strip() for name, a, b in pairs if _ASKED.fullmatch(name)]
    asked = [question for question in tagged if question]
    behind = _paragraphs(text[blocks[-1][1].end() :])
    before = _paragraphs(text[: blocks[0][0].start()])
    question = (asked or ["\n\n".join(behind)])[-1] or "\n\n".join(before)
    return Wrapped(question if content_words(question) else text, highest)


def _pairs(text: str) -> list[tuple[str, Edge, Edge]]:
    """Where tags or fences begin and end, by name, in their order."""
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


def _outermost(pairs: Iterable[tuple[str, Edge, Edge]]) -> list[tuple[str, Edge, Edge]]:
    """Those that begin in no other one."""
    results: list[tuple[str, Edge, Edge]] = []
    for pair in pairs:
        if not results or pair[1].start() >= results[-1][2].end():
            results.append(pair)
    return results


def _paragraphs(text: str) -> list[str]:
    """Without headings, and without labels of what follows."""
    results = (part.strip() for part in _PARAGRAPH.split(text))
    return [part for part in results if part and not _LABEL.fullmatch(part)]
