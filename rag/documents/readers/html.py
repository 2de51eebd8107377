"""HTML to sections: what a person reads of a page. Nothing it links to is ever fetched."""

import re
from itertools import accumulate, takewhile
from typing import Any

from rag.documents.cleaning import decode, one_line, word_set
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.tables import Spanning, spread
from rag.errors import TooLarge

CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w:-]{2,40})", re.IGNORECASE)
DROPPED = word_set(
    "script style noscript template svg math canvas iframe object embed nav head select button "
    "input textarea audio video map dialog"
)
DROPPED_ROLES = frozenset({"navigation", "search", "contentinfo", "alertdialog"})
BLOCKS = word_set(
    "p div section article main aside header footer ul ol li dl dt dd table pre blockquote figure "
    "figcaption form fieldset hr address details summary h1 h2 h3 h4 h5 h6 body html center "
    "caption thead tbody tfoot tr td th"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
ENDS = "ends"  # the class of a section whose heading holds for nothing behind it
WIDEST = 200  # columns or rows that one cell reaches over
DEEPEST = 250  # nesting: deeper markup is taken as its text
# Deeper than this the parser itself takes a time that grows with the square of the depth.
MOST_OPEN = 5_000
TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
CLOSED_BY_OTHERS = word_set(
    "p li dt dd td th tr thead tbody tfoot option optgroup colgroup rb rt rp html head body "
    "area base br col embed hr img input link meta param source track wbr"
)


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a page in any encoding."""
    from selectolax.lexbor import LexborHTMLParser

    declared = CHARSET.search(data[:4096])
    encoding = declared.group(1).decode("ascii") if declared else None
    markup = decode(data, declared=encoding)
    check_depth(markup, outline.name)
    tree = LexborHTMLParser(markup)
    title = tree.css_first("title")
    outline.fallback_title = one_line(title.text()) if title else ""
    if tree.body is not None:
        _HtmlWalk(outline).children(tree.body, 0)


def read_fragment(markup: str, outline: Outline) -> None:
    """Add a piece of HTML that stands in a Markdown file."""
    from selectolax.lexbor import LexborHTMLParser

    check_depth(markup, outline.name)
    tree = LexborHTMLParser(markup)
    if tree.body is not None:
        _HtmlWalk(outline).children(tree.body, 0)


def check_depth(markup: str, name: str) -> None:
    """Raises TooLarge."""
    steps = (
        -1 if end else 1 for end, tag in TAG.findall(markup) if tag.lower() not in CLOSED_BY_OTHERS
    )
    deepest = max(accumulate(steps), default=0)
    if deepest > MOST_OPEN:
        raise TooLarge(
            f"{name}: its elements are nested {deepest:,} deep, at most {MOST_OPEN:,}. Save it "
            "again from the program that made it."
        )


GOES_ON = frozenset({"dt", "dd", "p", "div"})  # behind a term


class _HtmlWalk:
    """Recursive descent; runs of inline markup are gathered into one paragraph."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.inline: list[str] = []
        self.is_term = False  # what is gathered ends with a term to be defined

    def flush(self) -> None:
        text = "".join(self.inline)
        self.inline, self.is_term = [], False
        if text.strip():
            self.outline.paragraph(text)

    def children(self, element: Any, depth: int) -> None:
        child = element.child
        while child is not None:
            self.visit(child, depth)
            child = child.next
        if element.tag == "dt":  # its definition goes on in the same paragraph
            self.inline.append("\n")
            self.is_term = True
        elif element.tag in BLOCKS:
            self.flush()

    def visit(self, element: Any, depth: int) -> None:
        tag = element.tag
        if tag == "-text":
            self.inline.append(re.sub(r"\s+", " ", element.text_content or ""))
            self.is_term &= not self.inline[-1].strip()
        elif tag == "br":
            self.inline.append("\n")
        elif tag == "img":
            self.inline.append(f" {element.attributes.get('alt') or ''} ")
        elif _is_dropped(element):
            return
        elif depth > DEEPEST or tag not in BLOCKS:
            self._inline(element, depth)
        else:
            if not (self.is_term and tag in GOES_ON):
                self.flush()
            self._block(element, depth)

    def _inline(self, element: Any, depth: int) -> None:
        if depth > DEEPEST:
            self.inline.append(element.text(deep=True, separator=" "))
        else:
            self.children(element, depth + 1)

    def _block(self, element: Any, depth: int) -> None:
        tag = element.tag
        if tag in HEADINGS:
            self.outline.heading(HEADINGS[tag], element.text(deep=True, separator=""))
        elif tag in {"ul", "ol"}:
            self._list(element, depth)
        elif tag == "table" and _is_grid(element):
            for caption in element.css("caption"):
                self.outline.paragraph(caption.text(deep=True, separator=" "))
            self.outline.table(_rows(element))
        elif tag == "pre":
            self.outline.code(element.text(deep=True, separator=""))
        else:
            self.children(element, depth + 1)
            if element.attributes.get("class") == ENDS and not self.outline.is_in_entry:
                heading = element.css_first(", ".join(HEADINGS))
                self.outline.end_heading(HEADINGS[heading.tag] - 1 if heading else 0)

    def _list(self, element: Any, depth: int) -> None:
        start = element.attributes.get("start") or ""
        number = int(start[:9]) if start.isdecimal() else 1
        for child in element.iter(include_text=False):
            if child.tag != "li":
                self.visit(child, depth + 1)
                continue
            self.outline.begin_entry(f"- {number}." if element.tag == "ol" else "-")
            self.children(child, depth + 1)
            self.outline.end_entry()
            number += 1


def _is_dropped(element: Any) -> bool:
    attributes = element.attributes
    return (
        element.tag in DROPPED
        or element.tag.startswith(("-", "!", "_"))
        or (attributes.get("role") or "").lower() in DROPPED_ROLES
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or "display:none" in (attributes.get("style") or "").replace(" ", "").lower()
    )


def _is_grid(table: Any) -> bool:
    """A table of facts; one that holds headings or other tables only arranges the page."""
    return table.css_first("table table, h1, h2, h3") is None and len(table.css("tr")) > 1


def _rows(table: Any) -> list[list[str]]:
    rows = [row.css("th, td") for row in table.css("tr")]
    heads = sum(1 for _row in takewhile(lambda row: all(cell.tag == "th" for cell in row), rows))
    return spread([list(map(_cell, row)) for row in rows], heads=heads)


def _cell(cell: Any) -> Spanning:
    spans = (cell.attributes.get(name) or "" for name in ("colspan", "rowspan"))
    columns, deep = (
        min(max(1, int(span[:4])), WIDEST) if span.isdecimal() else 1 for span in spans
    )
    return one_line(cell.text(deep=True, separator=" ")), columns, deep
