"""The question that a client wrapped in its own instructions and context, by structure alone.

Clients put what they found themselves around a question: blocks in tags or fences, before it or
behind it. What stands in them is the model's to read; the question alone is searched, and a number
of theirs is none of ours.
"""

import re
from dataclasses import dataclass

from rag.citations.markers import cited_numbers

LEAST_CONTEXT = 200  # characters of a block: a word in tags, a line of code is no context
HIGHEST_ID = 1_000
_BLOCK = re.compile(
    r"<(?P<tag>[A-Za-z_][\w-]*)(?:\s[^<>]*)?>(?:(?!<(?P=tag)[\s>]).)*?</(?P=tag)>"
    r"|^[ \t]*(?P<fence>```+|~~~+)[^\n]*\n.*?^[ \t]*(?P=fence)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_ASKED = re.compile(
    r"<(?P<tag>(?:user_?)?(?:query|question|input|message))>\s*(?P<text>.*?)\s*</(?P=tag)>",
    re.DOTALL | re.IGNORECASE,
)
_ID = re.compile(r"""\b(?:id|index|number)\s*=\s*["']?(\d{1,4})\b""")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LABEL = re.compile(r"[^\n]{1,60}[:：]\s*$|#{1,6} [^\n]*$|-{3,}$")


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A question, and the highest number that stands in what a client put around it."""

    question: str
    highest: int = 0


def unwrapped(text: str) -> Wrapped:
    """The question alone; all of the text where nothing is wrapped around it."""
    blocks = _blocks(text)
    if not blocks:
        return Wrapped(text)
    context = "\n".join(text[start:end] for start, end in blocks)
    ids = [int(found) for found in _ID.findall(context)] + cited_numbers(context)
    highest = max((id_ for id_ in ids if id_ <= HIGHEST_ID), default=0)
    asked = [found["text"] for found in _ASKED.finditer(text) if found["text"]]
    behind = _paragraphs(text[blocks[-1][1] :])
    before = _paragraphs(text[: blocks[0][0]])
    question = (asked or ["\n\n".join(behind)])[-1] or "\n\n".join(before)
    return Wrapped(question, highest) if question else Wrapped(text)


def _blocks(text: str) -> list[tuple[int, int]]:
    """Where what is long stands in tags or fences."""
    if len(text) < LEAST_CONTEXT:
        return []
    results = ((each.start(), each.end()) for each in _BLOCK.finditer(text))
    return [(start, end) for start, end in results if end - start >= LEAST_CONTEXT]


def _paragraphs(text: str) -> list[str]:
    """Without headings, and without labels of what follows."""
    results = (part.strip() for part in _PARAGRAPH.split(text))
    return [part for part in results if part and not _LABEL.fullmatch(part)]
