"""Markdown to sections: one for each heading."""

import re
from typing import Any

from rag.documents.cleaning import clean, decode
from rag.documents.formats.front_matter import split_front_matter
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline

TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]{0,2000}>", re.DOTALL)
MAX_NESTING = 40


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a Markdown file, its front matter included."""
    from markdown_it import MarkdownIt

    text = clean(decode(data))
    front, body = split_front_matter(text)
    outline.title = front.title
    outline.products.extend(front.products)
    for fact in front.facts:
        outline.entry(fact)
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(
        ["table", "strikethrough"]
    )
    _MarkdownWalk(outline).all(parser.parse(body))
    if outline.is_empty and body != text:
        outline.paragraph(front.title or outline.stem)  # pages of which only the title is written


class _MarkdownWalk:
    """Walks markdown-it's flat stream of tokens."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.lists: list[int | None] = []  # next number of each open list; None for bullets
        self.heading_level = 0
        self.rows: list[list[str]] | None = None

    def all(self, tokens: list[Any]) -> None:
        for token in tokens:
            handler = getattr(self, f"_{token.type}", None)
            if handler:
                handler(token)

    def _heading_open(self, token: Any) -> None:
        self.heading_level = int(token.tag[1:])

    def _heading_close(self, _token: Any) -> None:
        self.heading_level = 0

    def _bullet_list_open(self, _token: Any) -> None:
        self.lists.append(None)

    def _ordered_list_open(self, token: Any) -> None:
        self.lists.append(int(token.attrGet("start") or 1))

    def _bullet_list_close(self, _token: Any) -> None:
        self.lists.pop()

    _ordered_list_close = _bullet_list_close

    def _list_item_open(self, _token: Any) -> None:
        number = self.lists[-1]
        self.outline.begin_entry("-" if number is None else f"- {number}.")
        self.lists[-1] = None if number is None else number + 1

    def _list_item_close(self, _token: Any) -> None:
        self.outline.end_entry()

    def _table_open(self, _token: Any) -> None:
        self.rows = []

    def _tr_open(self, _token: Any) -> None:
        if self.rows is not None:
            self.rows.append([])

    def _table_close(self, _token: Any) -> None:
        self.outline.table(self.rows or [])
        self.rows = None

    def _inline(self, token: Any) -> None:
        text = inline_text(token)
        if self.rows is not None:
            self.rows[-1].append(text)
        elif self.heading_level:
            self.outline.heading(self.heading_level, text)
        else:
            self.outline.paragraph(text)

    def _fence(self, token: Any) -> None:
        self.outline.code(token.content)

    _code_block = _fence

    def _html_block(self, token: Any) -> None:
        from rag.documents.formats.html import read_fragment

        read_fragment(token.content, self.outline)


def inline_text(token: Any) -> str:
    """What a reader sees of a line: no emphasis marks, link targets or tags."""
    return TAG.sub("", "".join(_visible(child) for child in token.children or []))


def _visible(child: Any) -> str:
    if child.type == "image":
        return str(child.content)  # the alternative text
    if child.type == "softbreak":
        return " "
    if child.type == "hardbreak" or (child.type == "html_inline" and child.content[:3] == "<br"):
        return "\n"
    if child.type == "html_inline":
        return ""
    return str(child.content)
