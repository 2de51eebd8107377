"""Read HTML: the text that a person sees of a page. No link is ever fetched."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, takewhile
from typing import Any

from rag.documents.cleaning import decode, one_line, word_set
from rag.documents.limits import LoadLimits
from rag.documents.outline import NO_MARKS, Mark, Outline, Run, marks_of, written
from rag.documents.tables import Spanning, spread
from rag.errors import TooLarge

CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w:-]{2,40})", re.IGNORECASE)
DROPPED = word_set(
    "script style noscript template svg math canvas iframe object embed nav head select button "
    "textarea audio video map dialog"
)
DATES = ("article:modified_time", "article:published_time", "date", "dcterms.date")
DROPPED_ROLES = frozenset({"navigation", "search", "contentinfo", "alertdialog"})
BLOCKS = word_set(
    "p div section article main aside header footer ul ol li dl dt dd table pre blockquote figure "
    "figcaption form fieldset hr address details summary h1 h2 h3 h4 h5 h6 body html center "
    "caption thead tbody tfoot tr td th"
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
ENDS = "ends"  # the class of a section whose heading does not apply after its end
WIDEST = 200  # columns or rows that one cell may span
DEEPEST = 250  # nesting; deeper markup is read as plain text
# Beyond this depth the parser's time grows with the square of the depth.
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
    properties = properties_of(tree)
    outline.author = properties.get("author") or properties.get("article:author", "")
    outline.date = next((properties[key] for key in DATES if key in properties), "")
    outline.tags.extend(properties.get("keywords", "").split(","))
    if tree.body is not None:
        _HtmlWalk(outline).children(tree.body, 0)


def properties_of(tree: Any) -> dict[str, str]:
    """Return the page's metadata by name."""
    return {
        (meta.attributes.get("name") or meta.attributes.get("property") or "").lower(): content
        for meta in tree.css("meta")
        if (content := meta.attributes.get("content"))
    }


def read_fragment(markup: str, outline: Outline) -> None:
    """Add a piece of HTML from a Markdown file."""
    from selectolax.lexbor import LexborHTMLParser

    check_depth(markup, outline.name)
    tree = LexborHTMLParser(markup)
    if tree.body is not None:
        _HtmlWalk(outline).children(tree.body, 0)


def check_depth(markup: str, name: str) -> None:
    """Raise TooLarge for markup that is nested too deeply."""
    steps = (
        -1 if end else 1 for end, tag in TAG.findall(markup) if tag.lower() not in CLOSED_BY_OTHERS
    )
    deepest = max(accumulate(steps), default=0)
    if deepest > MOST_OPEN:
        raise TooLarge(
            f"{name}: its elements are nested {deepest:,} deep, at most {MOST_OPEN:,}. Save it "
            "again from the program that made it."
        )


MARKS = {
    **{"sup": marks_of(Mark.RAISED), "sub": marks_of(Mark.LOWERED), "del": marks_of(Mark.DELETED)},
    **dict.fromkeys(("s", "strike"), marks_of(Mark.STRUCK)),
}
STYLES = (
    (re.compile(r"vertical-align:super"), Mark.RAISED),
    (re.compile(r"vertical-align:sub(?!e)"), Mark.LOWERED),
    (re.compile(r"text-decoration[a-z-]*:[^;]*line-through"), Mark.STRUCK),
    (re.compile(r"font-size:0(?![.\d])"), Mark.HIDDEN),
)
UNSEEN = re.compile(r"display:none|visibility:(?:hidden|collapse)")
NOTE = re.compile(r"\d{1,3}|[*†‡]{1,3}")  # the text of a link to a footnote
UNSEEN_MARK = marks_of(Mark.HIDDEN)
GOES_ON = frozenset({"dt", "dd", "p", "div"})  # which may follow a term


class _HtmlWalk:
    """Recursive descent; runs of inline markup are collected into one paragraph."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.inline: list[Run] = []
        self.marks = NO_MARKS
        self.is_term = False  # whether the collected text ends with a term to be defined

    def flush(self) -> None:
        self.outline.count_unseen(self.inline)
        text = written(self.inline)
        self.inline, self.is_term = [], False
        if text.strip():
            self.outline.paragraph(text)

    def children(self, element: Any, depth: int) -> None:
        child = element.child
        while child is not None:
            self.visit(child, depth)
            child = child.next
        if element.tag == "dt":  # its definition follows in the same paragraph
            self._add("\n")
            self.is_term = True
        elif element.tag in BLOCKS:
            self.flush()

    def visit(self, element: Any, depth: int) -> None:
        if self._leaf(element):
            return
        around, self.marks = self.marks, self.marks | _marks(element)
        if depth > DEEPEST:
            self._add(element.text(deep=True, separator=" "))
        elif element.tag not in BLOCKS:
            self.children(element, depth + 1)
        else:
            if not (self.is_term and element.tag in GOES_ON):
                self.flush()
            self._block(element, depth)
        self.marks = around

    def _leaf(self, element: Any) -> bool:
        """Take an element without content, or one that is not read; return whether it was taken."""
        if element.tag == "-text":
            self._add(re.sub(r"\s+", " ", element.text_content or ""))
            self.is_term &= not self.inline[-1].text.strip()
        elif element.tag == "br":
            self._add("\n")
        elif element.tag in SIGNS:
            self._add(SIGNS[element.tag](element.attributes))
        elif _is_unseen(element):
            self.count_unseen(element)
        else:
            return _is_dropped(element)
        return True

    def count_unseen(self, element: Any) -> None:
        if element.tag not in DROPPED:
            self.outline.count_unseen([Run(element.text(separator=" "), UNSEEN_MARK)])

    def _add(self, text: str) -> None:
        self.inline.append(Run(text, self.marks))

    def _block(self, element: Any, depth: int) -> None:
        if element.tag in HEADINGS:
            self.outline.heading(HEADINGS[element.tag], _text(element, ""))
        elif element.tag in {"ul", "ol"}:
            self._list(element, depth)
        elif element.tag == "table" and _is_grid(element):
            self._table(element)
        elif element.tag == "pre":
            self.outline.code(element.text(deep=True, separator=""))
        else:
            self.children(element, depth + 1)
            if element.attributes.get("class") == ENDS and not self.outline.is_in_entry:
                heading = element.css_first(", ".join(HEADINGS))
                self.outline.end_heading(HEADINGS[heading.tag] - 1 if heading else 0)

    def _table(self, element: Any) -> None:
        for caption in element.css("caption"):
            self.outline.paragraph(_text(caption))
        for part in filter(_is_unseen, element.css("[hidden], [style]")):
            self.count_unseen(part)
        rows = [row.css("th, td") for row in element.css("tr") if not _is_dropped(row)]
        heads = list(takewhile(lambda row: all(cell.tag == "th" for cell in row), rows))
        self.outline.table(spread([list(map(_cell, row)) for row in rows], heads=len(heads)))

    def _list(self, element: Any, depth: int) -> None:
        number = _attribute_number(element, "start", 1)
        for child in element.iter(include_text=False):
            if child.tag != "li" or _is_unseen(child):
                self.visit(child, depth + 1)
                continue
            number = _attribute_number(child, "value", number)
            self.outline.begin_entry(f"- {number}." if element.tag == "ol" else "-")
            self.children(child, depth + 1)
            self.outline.end_entry()
            number += 1


def _attribute_number(element: Any, name: str, otherwise: int) -> int:
    value = element.attributes.get(name) or ""
    return int(value[:9]) if value.isdecimal() else otherwise


def _box(attributes: Mapping[str, Any]) -> str:
    """Return the state of a check box; "" for other fields."""
    is_box = (attributes.get("type") or "").lower() in ("checkbox", "radio")
    return ("☑ " if "checked" in attributes else "☐ ") if is_box else ""


SIGNS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "img": lambda attributes: f" {attributes.get('alt') or ''} ",
    "input": _box,
}


def _is_dropped(element: Any) -> bool:
    attributes = element.attributes
    return (
        element.tag in DROPPED
        or element.tag.startswith(("-", "!", "_"))
        or (attributes.get("role") or "").lower() in DROPPED_ROLES
        or attributes.get("aria-hidden") == "true"
        or _is_unseen(element)
    )


def _style(element: Any) -> str:
    return (element.attributes.get("style") or "").replace(" ", "").lower()


def _is_unseen(element: Any) -> bool:
    return "hidden" in element.attributes or bool(UNSEEN.search(_style(element)))


def _is_note(link: Any) -> bool:
    """Return whether a link is a footnote number directly after a word: `450` and 1."""
    before = link.prev.text_content or "" if link.prev is not None else ""
    is_below = "#" in (link.attributes.get("href") or "")
    return is_below and before[-1:].isalnum() and bool(NOTE.fullmatch(link.text().strip()))


def _is_grid(table: Any) -> bool:
    """Return whether a table holds data; one with headings or tables inside is only layout."""
    parts = table.iter(include_text=False)  # a selector finds the table itself, too
    is_simple = all(part.css_first("table, h1, h2, h3") is None for part in parts)
    return is_simple and len(table.css("tr")) > 1


def _cell(cell: Any) -> Spanning:
    spans = (_attribute_number(cell, name, 1) for name in ("colspan", "rowspan"))
    columns, deep = (min(max(1, span), WIDEST) for span in spans)
    return _text(cell), columns, deep


def _marks(element: Any) -> frozenset[Mark]:
    is_note = element.tag == "a" and _is_note(element)
    marks = MARKS["sup"] if is_note else MARKS.get(element.tag, NO_MARKS)
    if style := _style(element):
        marks |= {mark for shape, mark in STYLES if shape.search(style)}
    return marks


def _text(element: Any, between: str = " ") -> str:
    """Return a heading or cell on one line, with blanks between elements except raised text."""
    return one_line(written(_runs(element, NO_MARKS, between, 0)))


def _runs(element: Any, marks: frozenset[Mark], between: str, depth: int) -> Iterator[Run]:
    marks |= _marks(element)
    child = element.child
    while child is not None:
        if child.tag == "-text":
            yield Run(re.sub(r"\s+", " ", child.text_content or ""), marks)
        elif child.tag == "br":
            yield Run("\n", marks)
        elif child.tag in SIGNS and between:
            yield Run(SIGNS[child.tag](child.attributes), marks)
        elif depth > DEEPEST:
            yield Run(child.text(deep=True, separator=" "), marks)
        elif not _is_dropped(child):
            edge = Run(between * (child.tag in BLOCKS), marks)
            yield from (edge, *_runs(child, marks, between, depth + 1), edge)
        child = child.next
