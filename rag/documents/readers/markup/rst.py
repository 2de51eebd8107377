"""reStructuredText to sections, through the page that docutils builds: what a person reads of it.

No other file is read and nothing raw is let through; what docutils complains of stays as text.
"""

import re
from typing import Any

from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import html
from rag.documents.readers import text as plain_text
from rag.documents.readers.markup.rst_directives import register

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
    "output_encoding": "unicode",
    "initial_header_level": 1,
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "LaTeX",
}
UNSEEN = (
    nodes.comment,
    nodes.target,
    nodes.substitution_definition,
    nodes.pending,
    nodes.raw,
    nodes.decoration,
    nodes.footnote_reference,
    nodes.label,
    nodes.transition,
)
# docutils reads a paragraph anew from each mark in it that closes nothing: the time grows with the
# square of the marks. Manuals have some hundred thousand of these units, a hostile line 10^8.
MOST_WORK = 30_000_000
MARK = re.compile(r"[`*|]|_(?!\w)")
PARAGRAPH = re.compile(r"\n[ \t]*\n")
OPTIONS = re.compile(r"(?:[ \t]*(?:(?:\.\.|:).*)?(?:\n|$))*")  # of directives, and nothing else


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a reStructuredText file."""
    text = clean(decode(data))
    if sum(len(MARK.findall(part)) ** 2 for part in PARAGRAPH.split(text)) > MOST_WORK:
        plain_text.read(data, outline, limits)
        return
    register(text)
    try:
        document = publish_doctree(text, settings_overrides=SETTINGS)
        _make_readable(document)
        page = publish_from_doctree(document, writer="html5", settings_overrides=SETTINGS)
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        plain_text.read(data, outline, limits)  # markup that docutils itself stumbles over
        return
    html.read_fragment(page, outline)


def _make_readable(document: Any) -> None:
    """What only a browser's styles or a builder would show of the page is written into it."""
    titles = _titles(document)
    for node in list(document.findall(nodes.inline)):
        if node.get("label", "") in titles:
            node.children = [nodes.Text(titles[node["label"]])]
    for node in list(document.findall(lambda each: isinstance(each, UNSEEN))):
        node.parent.remove(node)
    for kind, rewrite in REWRITTEN:
        for node in list(document.findall(kind)):
            node.parent.replace(node, rewrite(node))


def _titles(document: Any) -> dict[str, str]:
    """The title of what each label stands before."""
    results: dict[str, str] = {}
    for node in document.findall(nodes.Structural):
        title = next(iter(node.findall(nodes.title)), None)
        for name in node.get("names", ()):
            if title is not None:
                results[name] = title.astext()
    return results


def _described(node: Any) -> list[Any]:
    """An object that is described: a section that ends, unlike those of an HTML page."""
    if not node.get("title"):
        return list(node.children)
    title = nodes.title("", node["title"])
    return [nodes.section("", title, *node.children, classes=[html.ENDS])]


def _classifier(node: Any) -> list[Any]:
    node.parent[0] += [nodes.Text(" : "), *node.children]
    return []


def _term(node: Any) -> list[Any]:
    """In a list's entry, where term and meaning stand on one line, the first ends in a colon."""
    above = node if node.astext()[-1:].isalnum() else None
    while above is not None and not isinstance(above, nodes.list_item):
        above = above.parent
    return [node] if above is None else [nodes.term("", "", *node.children, nodes.Text(":"))]


def _field(node: Any) -> list[Any]:
    name, body = node.children
    if not body.children:  # `:orphan:` tells only the builder something
        return []
    lead = nodes.Text(f"{name.astext()}: ")
    if isinstance(body[0], nodes.paragraph):
        body[0].insert(0, lead)
    else:
        body.insert(0, nodes.paragraph("", "", lead))
    return list(body.children)


def _lines(node: Any) -> list[Any]:
    broken = nodes.paragraph()
    for line in node.findall(nodes.line):
        broken += [*line.children, nodes.raw("", "<br>", format="html")]
    return [broken]


def _complaint(node: Any) -> list[Any]:
    """What a directive could not take: shown as it stands, rather than lost.

    A title is none of it: it is complained of for its line, and stands above.
    """
    titles = {child.astext() for child in node.parent.children if isinstance(child, nodes.title)}
    texts = {block: block.astext() for block in node.findall(nodes.literal_block)}
    return [
        block
        for block, text in texts.items()
        if titles.isdisjoint(map(str.strip, text.split("\n"))) and not OPTIONS.fullmatch(text)
    ]


def _picture(node: Any) -> list[Any]:
    words = nodes.Text(node.get("alt", ""))
    return [words if isinstance(node.parent, nodes.TextElement) else nodes.paragraph("", "", words)]


def _table(node: Any) -> list[Any]:
    """Each cell in one line; where there is no header, no row is one."""
    for cell in node.findall(nodes.entry):
        cell.children = [nodes.Text(" ".join(cell.astext().split()))]
    if any(True for _head in node.findall(nodes.thead)):
        return [node]
    entries = nodes.bullet_list()
    for row in node.findall(nodes.row):
        cells = [cell.astext() for cell in row.children]
        said = (": " if len(cells) == 2 else "; ").join(filter(None, cells))
        entries += nodes.list_item("", nodes.paragraph("", said))
    return [*(nodes.paragraph("", title.astext()) for title in node.findall(nodes.title)), entries]


REWRITTEN = (
    (nodes.container, _described),
    (nodes.classifier, _classifier),
    (nodes.term, _term),
    (nodes.field, _field),
    (nodes.citation_reference, lambda node: node.children),
    (nodes.line_block, _lines),
    (nodes.system_message, _complaint),
    (nodes.image, _picture),
    (nodes.table, _table),
)
