"""reStructuredText to sections, through docutils: what a person reads of the built page.

No other file is read and nothing raw is let through; what docutils complains of stays as text.
"""

import re
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree

from rag.documents.cleaning import clean, decode
from rag.documents.formats import text as plain_text
from rag.documents.formats.markup.rst_directives import register
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.tables import Spanning, spread

SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "traceback": True,  # raised, where docutils would end the process
    "warning_stream": False,
    "syntax_highlight": "none",
    "smart_quotes": False,
    "line_length_limit": 1_000_000,
    "input_encoding": "unicode",
}
UNSEEN = (
    nodes.comment,
    nodes.target,
    nodes.substitution_definition,
    nodes.pending,
    nodes.raw,
    nodes.decoration,
    nodes.title,
    nodes.footnote_reference,
    nodes.label,
    nodes.colspec,
    nodes.transition,
)
# docutils reads a paragraph anew from each mark in it that closes nothing: the time grows with the
# square of the marks. Manuals have some hundred thousand of these units, a hostile line 10^8.
MOST_WORK = 30_000_000
MARK = re.compile(r"[`*|]|_(?!\w)")
PARAGRAPH = re.compile(r"\n[ \t]*\n")
DEEPEST = 200  # nesting: deeper markup is taken as its text


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a reStructuredText file."""
    text = clean(decode(data))
    if sum(len(MARK.findall(each)) ** 2 for each in PARAGRAPH.split(text)) > MOST_WORK:
        plain_text.read(data, outline, limits)
        return
    register(text)
    try:
        document = publish_doctree(text, settings_overrides=SETTINGS)
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        plain_text.read(data, outline, limits)  # markup that docutils itself stumbles over
        return
    _RstWalk(outline, _titles(document)).children(document, 0)


def _titles(document: Any) -> dict[str, str]:
    """The title of what each label stands before."""
    found: dict[str, str] = {}
    for node in document.findall(nodes.Structural):
        title = next(iter(node.findall(nodes.title)), None)
        for name in node.get("names", ()):
            if title is not None:
                found[name] = title.astext()
    return found


class _RstWalk:
    """Recursive descent."""

    def __init__(self, outline: Outline, titles: dict[str, str]) -> None:
        self.outline = outline
        self.titles = titles
        self.level = 0

    def children(self, node: Any, depth: int) -> None:
        for child in node.children:
            self.visit(child, depth + 1)

    def visit(self, node: Any, depth: int) -> None:
        if isinstance(node, UNSEEN):
            return
        if depth > DEEPEST:
            self.text(node.astext())
            return
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            handler(node, depth)
        elif isinstance(node, nodes.TextElement | nodes.Text):
            self.text(self.inline(node))
        else:
            self.children(node, depth)

    def text(self, text: str) -> None:
        words = " ".join(text.split())
        if words:
            self.outline.paragraph(words)

    def inline(self, node: Any) -> str:
        """What a reader sees of a line."""
        if isinstance(node, nodes.Text):
            return str(node.astext())
        if isinstance(node, nodes.image):
            return str(node.get("alt", ""))
        if isinstance(node, UNSEEN):
            return ""
        title = self.titles.get(node.get("label", ""))
        return title or "".join(map(self.inline, node.children))

    # ── Sections, and objects that are described like sections ───────────────────────────────

    def _section(self, node: Any, depth: int) -> None:
        self.level += 1
        title = next((each for each in node.children if isinstance(each, nodes.title)), None)
        if title is not None:
            self.outline.heading(self.level, self.inline(title) or title.astext())
        self.children(node, depth)
        self.level -= 1

    def _container(self, node: Any, depth: int) -> None:
        title = node.get("title", "")
        if not title or self.outline.is_in_entry:
            self.text(title)
            self.children(node, depth)
            return
        self.level += 1
        self.outline.heading(self.level, title)
        self.children(node, depth)
        self.level -= 1
        self.outline.end_heading(self.level)

    def _topic(self, node: Any, depth: int) -> None:
        for title in node.findall(nodes.title):
            self.text(self.inline(title) or title.astext())
        self.children(node, depth)

    _sidebar = _topic

    # ── Lists ────────────────────────────────────────────────────────────────────────────────

    def _bullet_list(self, node: Any, depth: int) -> None:
        self._entries(node, depth, ["-"] * len(node.children))

    def _enumerated_list(self, node: Any, depth: int) -> None:
        first = int(node.get("start", 1))
        self._entries(node, depth, [f"- {first + at}." for at in range(len(node.children))])

    def _entries(self, node: Any, depth: int, marks: Sequence[str]) -> None:
        for entry, mark in zip(node.children, marks, strict=True):
            self.outline.begin_entry(mark)
            self.children(entry, depth)
            self.outline.end_entry()

    def _definition_list_item(self, node: Any, depth: int) -> None:
        terms = [each for each in node.children if not isinstance(each, nodes.definition)]
        self._led(" : ".join(map(self.inline, terms)), node.children[-1], depth, "\n")

    def _field(self, node: Any, depth: int) -> None:
        if node.children[-1].children:  # `:orphan:` tells only the builder something
            self._led(self.inline(node.children[0]), node.children[-1], depth, ": ")

    def _option_list_item(self, node: Any, depth: int) -> None:
        self._led(node.children[0].astext(), node.children[-1], depth, "\n")

    def _led(self, lead: str, body: Any, depth: int, joint: str) -> None:
        """What is defined, with the beginning of what is said of it."""
        rest = list(body.children)
        first = rest.pop(0) if rest and isinstance(rest[0], nodes.paragraph) else None
        said = " ".join(self.inline(first).split()) if first is not None else ""
        if not self.outline.is_in_entry:
            self.outline.paragraph(lead + joint + said)
        else:
            self.text(f"{lead}: {said}" if said else lead)
        for each in rest:
            self.visit(each, depth + 1)

    # ── Blocks ───────────────────────────────────────────────────────────────────────────────

    def _literal_block(self, node: Any, _depth: int) -> None:
        self.outline.code(node.astext())

    _doctest_block = _literal_block

    def _line_block(self, node: Any, _depth: int) -> None:
        lines = [self.inline(line) for line in node.findall(nodes.line)]
        self.outline.paragraph("\n".join(lines))

    def _image(self, node: Any, _depth: int) -> None:
        self.text(node.get("alt", ""))

    def _system_message(self, node: Any, depth: int) -> None:
        """What a directive could not take: shown as it stands, rather than lost.

        A title is none of it: it is complained of for its line, and stands above.
        """
        titles = {each.astext() for each in node.parent.children if isinstance(each, nodes.title)}
        for block in node.findall(nodes.literal_block):
            lines = [line.strip() for line in block.astext().split("\n")]
            if titles.isdisjoint(lines) and not all(
                line.startswith(("..", ":")) for line in lines if line
            ):
                self._literal_block(block, depth)

    def _table(self, node: Any, _depth: int) -> None:
        for title in node.findall(nodes.title):
            self.text(title.astext())
        heads = [row for head in node.findall(nodes.thead) for row in head.children]
        body = [row for part in node.findall(nodes.tbody) for row in part.children]
        rows = spread(
            [list(map(self._cell, row.children)) for row in [*heads, *body]], heads=len(heads)
        )
        if heads:
            self.outline.table(rows)
            return
        for row in rows:
            self.outline.entry((": " if len(row) == 2 else "; ").join(filter(None, row)))

    def _cell(self, entry: Any) -> Spanning:
        text = " ".join(map(self.inline, entry.children))
        return text, 1 + entry.get("morecols", 0), 1 + entry.get("morerows", 0)
