"""Read reStructuredText, through the HTML page that docutils makes of it; and AsciiDoc.

No other file is read and no raw markup is used; text that docutils rejects is kept as it is.
"""

import csv
import re
from collections.abc import Callable, Container, Iterator
from itertools import takewhile
from typing import Any

from docutils import nodes, utils
from docutils.core import publish_doctree, publish_from_doctree
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.directives.tables import CSVTable, ListTable, RSTTable
from docutils.parsers.rst.languages import en as english

from rag.documents.cleaning import clean, decode, word_set
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import html
from rag.documents.readers import text as plain_text

DIRECTIVE = re.compile(r"^[ \t>*#.\d-]*\.\. (?:\|[^|\n]+\| )?([\w:+.-]+?) ?::(?=[ \t\n]|$)", re.M)
TEXT_BEFORE_TARGET = re.compile(r"(.+?)\s*<[^<>]+>", re.DOTALL)
ROLE = re.compile(r":([\w:+.-]+):`|`:([\w:+.-]+):")
CODE = word_set(
    "code code-block sourcecode highlight-block prompt ipython doctest testcode testoutput "
    "console terminal math"
)
# Directives that control pages, include other files, or draw.
HIDDEN = word_set(
    "toctree include literalinclude index meta highlight contents sectnum section-numbering raw "
    "default-role title autosummary currentmodule module rst-class tabularcolumns sectionauthor "
    "codeauthor header footer target-notes restructuredtext-test-directive graphviz digraph graph "
    "mermaid uml plantuml inheritance-diagram bibliography testsetup testcleanup cssclass"
)
SINCE = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}
NOTES = word_set("attention caution danger error hint important note tip warning seealso todo")
OBJECTS = word_set(
    "function class method classmethod staticmethod attribute property data exception decorator "
    "describe object option cmdoption program envvar confval setting type macro struct enum "
    "enumerator var member namespace directive event command"
)
PICTURES = word_set("image figure thumbnail")
ROLES = frozenset(english.roles) - {"index"}  # which docutils does not implement


class _AnyOptions(dict[str, Callable[..., Any]]):
    """A directive's options, of any name, taken unchanged."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        return lambda value: value or ""

    def __bool__(self) -> bool:
        return True


class _Lenient(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive with any arguments, options and body."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOptions()
    has_content = True

    def words(self) -> str:
        return " ".join(" ".join(self.arguments).split())

    def nested(self, node: Any) -> Any:
        self.state.nested_parse(self.content, self.content_offset, node, match_titles=True)
        return node

    def inline(self, text: str) -> list[Any]:
        inline, messages = self.state.inline_text(text, self.lineno)
        return [*inline, *messages]


class _Hidden(_Lenient):
    def run(self) -> list[Any]:
        return []


class _Code(_Lenient):
    """A code block; its first word is the language, except in `math`."""

    def run(self) -> list[Any]:
        head = "\n".join(self.arguments).split("\n") if self.arguments else []
        opening = self.block_text.split("\n", 1)[0].rstrip()
        is_language = self.name != "math" and not opening.endswith("::")
        text = "\n".join([*head[is_language:], *self.content])
        caption = self.options.get("caption")
        block = nodes.literal_block(text, text)
        return [nodes.paragraph("", "", *self.inline(caption)), block] if caption else [block]


class _Picture(_Lenient):
    """A picture, replaced by its alternative text and caption."""

    def run(self) -> list[Any]:
        picture = nodes.image(uri="", alt=self.options.get("alt") or "")
        return [picture, *self.nested(nodes.container()).children]


class _Note(_Lenient):
    """A box; its kind is written before its first paragraph."""

    optional_arguments = 0

    def run(self) -> list[Any]:
        kind = "See also" if self.name == "seealso" else self.name.capitalize()
        body = self.nested(nodes.container()).children
        if body and isinstance(body[0], nodes.paragraph):
            body[0].insert(0, nodes.Text(f"{kind}: "))
        return list(body)


class _Since(_Lenient):
    """A version note such as `.. versionadded:: 2.0`, with its text."""

    def run(self) -> list[Any]:
        version, _, rest = self.words().partition(" ")
        text = f"{SINCE[self.name.rpartition(':')[2]]} {version}"
        opening = nodes.paragraph("", "", nodes.Text(text + (": " if rest else "")))
        opening += self.inline(rest)
        body = self.nested(nodes.container()).children
        if not rest and body and isinstance(body[0], nodes.paragraph):
            opening += [nodes.Text(": "), *body.pop(0).children]
        return [opening, *body]


class _Object(_Lenient):
    """A described object: a function, a setting, an option."""

    def run(self) -> list[Any]:
        described = self.nested(nodes.container())
        words = utils.unescape(" ".join(self.words().replace("\\", "").split()))
        is_style = self.name == "class" and words.islower() and not re.search(r"[.(]", words)
        if is_style or not words:
            return list(described.children)
        described["title"] = words
        return [described]


class _Titled(_Lenient):
    """A box, tab or card: a title and its contents."""

    def run(self) -> list[Any]:
        body = self.nested(nodes.container()).children
        if self.content and any(map(str.isalpha, self.words())):
            return [nodes.paragraph("", "", *self.inline(self.words())), *body]
        return list(body)


def _lenient(table: type[Directive]) -> type[Directive]:
    return type(table.__name__, (table,), {"option_spec": _AnyOptions(table.option_spec)})


KINDS: tuple[tuple[Container[str], type[Directive]], ...] = (
    (HIDDEN, _Hidden),
    (CODE, _Code),
    (NOTES, _Note),
    (SINCE, _Since),
    (PICTURES, _Picture),
    ({"list-table"}, _lenient(ListTable)),
    ({"csv-table"}, _lenient(CSVTable)),
    ({"table"}, _lenient(RSTTable)),
    (OBJECTS, _Object),
    ({"admonition"}, _Titled),
)


def register(text: str) -> None:
    """Register every directive and role that a text uses with docutils."""
    for name in set(map(str.lower, DIRECTIVE.findall(text))):
        if kind := _kind(name):
            directives.register_directive(name, kind)
    for pair in set(ROLE.findall(text)):
        name = (pair[0] or pair[1]).lower()
        if name not in ROLES:
            roles.register_local_role(name, _role)


def _kind(name: str) -> type[Directive] | None:
    """Return the directive for a name; None where docutils' own is used."""
    bare = name.rpartition(":")[2]
    if bare.startswith("auto"):
        return _Hidden
    unknown = None if name in english.directives else _Titled
    return next((kind for names, kind in KINDS if bare in names), unknown)


def _role(
    name: str, _raw: str, text: str, *_rest: Any, **_more: Any
) -> tuple[list[Any], list[Any]]:
    """Return the visible text of a role; the title of a referenced section is filled in later."""
    plain = utils.unescape(text).strip()
    match = TEXT_BEFORE_TARGET.fullmatch(plain)
    if match:
        return [nodes.inline("", match[1].strip())], []
    if name in {"ref", "numref", "any"}:
        return [nodes.inline("", words_of_label(plain), label=plain.lower())], []
    if name == "doc":
        return [nodes.inline("", words_of_label(plain.rpartition("/")[2]))], []
    words = plain.lstrip("!.")
    if words.startswith("~"):
        words = words.rpartition(".")[2].lstrip("~")
    return [nodes.inline("", words)], []


def words_of_label(label: str) -> str:
    """Return a label as words, where its title is not in this file."""
    return " ".join(re.split(r"[-_\s]+", label)).strip() or label


SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "traceback": True,  # errors are raised; otherwise docutils ends the process
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
    *(nodes.comment, nodes.target, nodes.substitution_definition, nodes.pending, nodes.raw),
    *(nodes.decoration, nodes.footnote_reference, nodes.label, nodes.transition),
)
# docutils parses a paragraph again from each unclosed mark in it: the time grows with the
# square of the marks. Manuals reach some hundred thousand, a hostile line 10^8.
MOST_WORK = 30_000_000
MARK = re.compile(r"[`*|]|_(?!\w)")
PARAGRAPH = re.compile(r"\n[ \t]*\n")
OPTIONS = re.compile(r"(?:[ \t]*(?:(?:\.\.|:).*)?(?:\n|$))*")  # lines of options of directives only


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
        plain_text.read(data, outline, limits)  # markup on which docutils itself fails
        return
    html.read_fragment(page, outline)


def _make_readable(document: Any) -> None:
    """Write into the page what only styles or a builder would show."""
    titles: dict[str, str] = {}  # after each label
    for node in document.findall(nodes.Structural):
        title = next(iter(node.findall(nodes.title)), None)
        if title is not None:
            titles |= dict.fromkeys(node.get("names", ()), title.astext())
    for node in list(document.findall(nodes.inline)):
        if node.get("label", "") in titles:
            node.children = [nodes.Text(titles[node["label"]])]
    for node in list(document.findall(lambda node: isinstance(node, UNSEEN))):
        node.parent.remove(node)
    for kind, rewrite in REWRITTEN:
        for node in list(document.findall(kind)):
            node.parent.replace(node, rewrite(node))


def _described(node: Any) -> list[Any]:
    """Turn an object's description into a section that ends, unlike those of HTML pages."""
    if not node.get("title"):
        return list(node.children)
    title = nodes.title("", node["title"])
    return [nodes.section("", title, *node.children, classes=[html.ENDS])]


def _classifier(node: Any) -> list[Any]:
    node.parent[0] += [nodes.Text(" : "), *node.children]
    return []


def _term(node: Any) -> list[Any]:
    """End a term in a list entry with a colon, since its meaning follows on the same line."""
    above = node if node.astext()[-1:].isalnum() else None
    while above is not None and not isinstance(above, nodes.list_item):
        above = above.parent
    return [node] if above is None else [nodes.term("", "", *node.children, nodes.Text(":"))]


def _field(node: Any) -> list[Any]:
    name, body = node.children
    if not body.children:  # `:orphan:` is only for the builder
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
    """Keep what a directive could not parse as plain text.

    A title in it is left out: it is written above already.
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
    """Put each cell on one line; without a header, the rows become list entries."""
    for cell in node.findall(nodes.entry):
        cell.children = [nodes.Text(" ".join(cell.astext().split()))]
    if any(True for _head in node.findall(nodes.thead)):
        return [node]
    entries = nodes.bullet_list()
    for row in node.findall(nodes.row):
        cells = [cell.astext() for cell in row.children]
        text = (": " if len(cells) == 2 else "; ").join(filter(None, cells))
        entries += nodes.list_item("", nodes.paragraph("", text))
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


HEADING = re.compile(r"(={1,6}|#{1,6}) (\S.*)")
ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?: +(.*))?")
USED = re.compile(r"\{([\w-]{1,60})\}")
FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|`{3,}\w*)")
ASCIIDOC_CODE = ("----", "....", "```", "++++")
TABLE = re.compile(r"([|,:!])===")
STYLE = re.compile(r"\[[^\]]*\]")
ENTRY = re.compile(r"(\*{1,5}|-|\.{1,5}|\d+\.|[a-zA-Z]\.|<\d*\.?>) +(\S.*)")
TERM = re.compile(r"(\S[^:;]{0,200})(?::{2,4}|;;)(?: +(.*))?")
CAPTION = re.compile(r"\.([^\s.].*)")
COLUMNS = re.compile(r"cols=(?:\"([^\"]*)\"|'([^']*)'|([^,\]]*))")
CELL = re.compile(r"(?:^|\s|(?<=\|))(?:\d+(?:\.\d+)?[+*])?(?:[<^>]?(?:\.[<^>])?)?[adehlmsv]?\|")
MACRO = re.compile(
    r"(?:<<[^,<>]{0,200},\s?([^<>]{0,200})>>|<<([^<>]{0,200})>>"
    r"|(?:link:|xref:|mailto:)[^\s\[]{0,300}\[([^\]]{0,300})\]"
    r"|(?:https?|ftp)://[^\s\[]{1,300}\[([^\]]{1,300})\]"
    r"|(?:image|video|audio|kbd|btn|menu|icon|footnote):{1,2}[^\s\[]{0,300}\[([^\]]{0,300})\]"
    r"|\[\[[^\[\]]{0,100}\]\]|\(\(\([^()]{0,100}\)\)\))"
)
QUOTE = re.compile(r"(?<![\w\\])(\*\*?|__?|``?|##?)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
DROPPED = re.compile(
    r"(?://(?!/).*|include::.*|ifn?def::.*|ifeval::.*|endif::.*|toc::.*|<<<|'{3,})"
)
ADMONITIONS = re.compile(r"\[(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]")
MOST_COLUMNS = 200


def read_asciidoc(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from an AsciiDoc text in any encoding."""
    _AsciiDoc(outline).read(clean(decode(data)).split("\n"))


class _AsciiDoc:
    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.attributes: dict[str, str] = {}
        self.paragraph: list[str] = []
        self.style = ""  # the style of the following block

    def read(self, lines: list[str]) -> None:
        rest = iter(lines)
        for line in map(str.rstrip, rest):
            if attribute := ATTRIBUTE.fullmatch(line):
                self._flush()
                self.attributes[attribute[1]] = attribute[2] or ""
            elif not line or line == "+" or DROPPED.fullmatch(line):
                self._flush()
            elif not self._is_block(line, rest):
                self.paragraph.append(line.strip())
        self._flush()

    def _is_block(self, line: str, rest: Iterator[str]) -> bool:
        """Take a line that is no text of a paragraph, with its block; return whether it was one."""
        heading, fence = HEADING.fullmatch(line), FENCE.fullmatch(line)
        if heading and not self.paragraph:
            self.outline.heading(len(heading[1]), self._plain(heading[2]))
        elif TABLE.fullmatch(line):
            self._flush()
            self._table(line, rest)
        elif fence and not line.startswith("//"):
            self._flush()
            if line.startswith(ASCIIDOC_CODE):
                end = "```" if line.startswith("```") else line
                self.outline.code("\n".join(_until(end, rest)))
        elif fence:
            _until(line, rest)
        elif STYLE.fullmatch(line) and not self.paragraph:
            self.style = line
            self.paragraph += [f"{kind.capitalize()}:" for kind in ADMONITIONS.findall(line)]
        elif CAPTION.fullmatch(line) and not self.paragraph:
            self.outline.paragraph(self._plain(line[1:]))
        else:
            return self._is_entry(line)
        return True

    def _is_entry(self, line: str) -> bool:
        if entry := ENTRY.fullmatch(line.strip()):
            self._flush()
            depth = len(entry[1]) - 1 if entry[1][0] in "*." else 0
            self.outline.entry(self._plain(entry[2]), depth=min(depth, 5))
            return True
        term = TERM.fullmatch(line) if not self.paragraph else None
        if term:
            self.paragraph.append(f"{term[1]}: {term[2] or ''}".strip())
        return term is not None

    def _flush(self) -> None:
        if self.paragraph:
            self.outline.paragraph(self._plain(" ".join(self.paragraph)))
        self.paragraph = []

    def _table(self, fence: str, rest: Iterator[str]) -> None:
        lines = _until(fence, rest)
        separated = csv.reader(lines, delimiter=fence[0])
        rows = filter(None, separated) if fence[0] in ",:" else _cells(lines, self.style)
        self.style = ""
        if cells := [list(map(self._plain, row)) for row in rows]:
            self.outline.table(cells)

    def _plain(self, text: str) -> str:
        text = USED.sub(lambda match: self.attributes.get(match[1], match[0]), text)
        text = MACRO.sub(lambda match: next(filter(None, match.groups()), ""), text)
        return QUOTE.sub(r"\2", QUOTE.sub(r"\2", text))


def _until(fence: str, rest: Iterator[str]) -> list[str]:
    return list(takewhile(lambda line: line.rstrip() != fence, rest))


def _cells(lines: list[str], style: str) -> list[list[str]]:
    """Group cells into rows by the stated number of columns, else that of the first line."""
    cells: list[str] = []
    width = _stated_columns(style)
    for line in lines:
        parts = [part.strip() for part in CELL.split(line)]
        if len(parts) == 1:  # continues the cell before
            if cells and parts[0]:
                cells[-1] = f"{cells[-1]} {parts[0]}".strip()
            continue
        cells.extend(parts[1:])
        width = width or len(cells)
    width = width or len(cells) or 1
    return [cells[position : position + width] for position in range(0, len(cells), width)]


def _stated_columns(style: str) -> int:
    match = COLUMNS.search(style)
    if not match:
        return 0
    stated = next(filter(None, match.groups()), "").split(",")
    times = (re.match(r"(\d{1,3})\*", part.strip()) for part in stated)
    return min(sum(int(count[1]) if count else 1 for count in times), MOST_COLUMNS)
