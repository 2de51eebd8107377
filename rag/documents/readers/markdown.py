"""Read Markdown: a section for each heading.

Extensions of site generators are understood: front matter, boxes, footnotes, definitions, template
tags.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag.documents.cleaning import clean, day_in, decode
from rag.documents.kinds import FileKind
from rag.documents.limits import LoadLimits
from rag.documents.outline import NO_MARKS, Mark, Outline, Run, marks_of, written
from rag.documents.readers.data import DEEPEST, parsed, write_properties
from rag.documents.readers.html import MARKS, read_fragment

FENCED = re.compile(
    r"\A(?:---|(\+{3}))[ \t]*\n(.*?)\n(?(1)\+{3}|(?:---|\.\.\.))[ \t]*(?:\n|\Z)", re.DOTALL
)
KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*[:=][ \t]*(.*)")
BLOCK = re.compile(r"[|>][+-]?")  # the value is in the indented lines below
INLINE_VALUE = re.compile(r"\"[^\"]*\"|'[^']*'|[^,]+")
# Keys about how a page is built, addressed and dated are not text.
MACHINE_KEY = re.compile(
    r"title$|slug|layout|permalink|date|draft|weight|order|nav_|sidebar|toc|id$|image|url|path|link"
    r"|redirect|template|author|published|lastmod|tags$|hide|custom_|pagination|position|lang$"
)
MACHINE_VALUE = re.compile(
    r"https?://\S*|true|false|null|-?\d+|\d{4}-\d\d-\d\d.*|[/.]\S*|\W*", re.I
)
PROPERTY_KEYS = {
    "author": ("author", "authors", "by"),
    "date": ("date", "published", "created", "updated", "lastmod", "modified", "last_updated"),
    "tags": ("tags", "tag", "categories", "category", "keywords"),
}
PRODUCT_KEYS = ("model", "models", "product", "products")
NESTED = re.compile(r"^(?:[ \t]+\S|- |\[)", re.MULTILINE)
FEWEST_WORDS = 3  # words of a value that is text, not a setting


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The parts of the front matter that are used."""

    title: str = ""
    products: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()  # "key: value", without what only machines read
    author: str = ""
    date: str = ""  # the latest date
    tags: tuple[str, ...] = ()
    records: Mapping[str, Any] = field(default_factory=dict)  # nested values that contain sentences


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Return the front matter, and the text after it.

    Flat keys, `[a, b]` and `- a` lists are read line by line, also where the whole is invalid YAML;
    nested values are parsed.
    """
    match = FENCED.match(text.lstrip("\n"))
    if not match or not KEY.search(match.group(2)):
        return FrontMatter(), text
    values = _values(match.group(2).split("\n"))
    properties = {
        name: tuple(value for key in keys for value in values.get(key, []) if value)
        for name, keys in PROPERTY_KEYS.items()
    }
    parse = tomllib.loads if match.group(1) else lambda text: parsed(text, FileKind.YAML)
    facts = []
    for key, entries in values.items():
        words = [entry for entry in entries if not MACHINE_VALUE.fullmatch(entry)]
        if words and not MACHINE_KEY.match(key):
            facts.append(f"{key.replace('_', ' ')}: {', '.join(words)}")
    front = FrontMatter(
        title=(values.get("title") or [""])[0],
        products=tuple(name for key in PRODUCT_KEYS for name in values.get(key, [])),
        facts=tuple(facts),
        author=", ".join(properties["author"]),
        date=max(map(day_in, properties["date"]), default=""),
        tags=properties["tags"],
        records=_records(match.group(2), parse),
    )
    return front, text.lstrip("\n")[match.end() :]


def _records(text: str, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return nested values that contain sentences, such as a command's parameters, by key.

    Other nested values configure a page: menus, pictures, settings.
    """
    if not NESTED.search(text):
        return {}
    try:
        values = parse(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, Mapping):
        return {}
    return {
        str(key).replace("_", " "): value
        for key, value in values.items()
        if isinstance(value, Mapping | list)
        and not MACHINE_KEY.match(str(key).lower())
        and any(len(words.split()) >= FEWEST_WORDS for words in _texts(value, 0))
    }


def _in_words(value: Any, parser: Any) -> Any:
    """Render the Markdown in a value's texts as a reader sees it."""
    if isinstance(value, Mapping):
        return {key: _in_words(inner, parser) for key, inner in value.items()}
    if isinstance(value, list):
        return [_in_words(inner, parser) for inner in value]
    if not isinstance(value, str):
        return value
    return inline_text(parser.parseInline(value)[0]).strip()


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth < DEEPEST:
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner, depth + 1)


def _values(lines: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    current: list[str] = []
    in_block = False
    for line in lines:
        entry = re.match(r"\s*-\s+(.*)", line)
        key = KEY.match(line)
        if in_block and line.startswith(" "):
            current[:] = [" ".join([*current, line.strip()])]
        elif entry:
            current.append(_unquote(entry.group(1)))
        elif key:
            current = values.setdefault(key.group(1).lower(), [])
            text = key.group(2).strip()
            in_block = bool(BLOCK.fullmatch(text))
            is_list = text.startswith("[") and text.endswith("]")
            parts = INLINE_VALUE.findall(text[1:-1]) if is_list else [text]
            current += [_unquote(part) for part in parts if part.strip() and not in_block]
    return values


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]{0,2000}>", re.DOTALL)
TEMPLATE = re.compile(r"\{%[^%]{0,500}%\}|\{\{[<%][^{}]{0,500}[%>]\}\}")
# Links whose target is a template, and a word passed to a template in a sentence.
LINKED = re.compile(
    r"\[([^\[\]]{1,500})\]\(\s*(?:\{%[^%]{0,500}%\}|\{\{[^{}]{0,500}\}\})[^()\s]{0,200}\s*\)"
)
TEMPLATE_WORD = re.compile(r"(?<=\w )\{%-? *\w+ +[\"']([^\"'/.%]{1,80})[\"'] *-?%\}")
# Attributes of a heading or paragraph: "{#setup .wide}".
ATTRIBUTES = re.compile(r"(?<![ \t])[ \t]*\{:?[ \t]*[#.][^{}]{0,200}\}[ \t]*$")
IMPORTED = re.compile(r" from ['\"][^'\"]{1,500}['\"];?$")
ALERT = re.compile(r"\[!([A-Z]+)\]\s*")
BOX = re.compile(r"\{?([A-Za-z]+)\}?[ \t]*(.*)")  # "note Title", "{note} Title"
MARKING_TAG = re.compile(rf"<(/?)({'|'.join(MARKS)})(?:\s[^<>]*)?>", re.IGNORECASE)
STRUCK = marks_of(Mark.STRUCK)
MAX_NESTING = 40


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from a Markdown file, including its front matter."""
    text = clean(decode(data))
    front, body = split_front_matter(text)
    outline.title = front.title
    outline.products.extend(front.products)
    outline.author, outline.date = front.author, front.date
    outline.tags.extend(front.tags)
    tokens = _parser().parse(body)
    _MarkdownWalk(outline, _footnotes(tokens)).all(tokens)
    if front.records:
        outline.title = outline.chosen_title
        outline.leave_headings()
        write_properties(_in_words(front.records, _parser()), outline, limits)
    if outline.is_empty and body != text:
        for fact in front.facts:  # a document that has only front matter
            outline.entry(fact)
    if outline.is_empty and body != text:
        outline.paragraph(front.title or outline.stem)  # a page that has only a title


def _parser() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.admon import admon_plugin
    from mdit_py_plugins.container import container_plugin
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin

    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    parser.enable(["table", "strikethrough"])
    parser.use(container_plugin, "box", validate=lambda info, _markup: bool(info.strip()))
    return parser.use(admon_plugin).use(deflist_plugin).use(footnote_plugin, inline=False)


def _footnotes(tokens: Sequence[Any]) -> dict[int, str]:
    """Return the texts of the footnotes, which are at the end of the token stream."""
    notes, note = defaultdict[int, str](str), None
    for token in tokens:
        if token.type in ("footnote_open", "footnote_close"):
            note = token.meta["id"] if token.type == "footnote_open" else None
        elif token.type == "inline" and note is not None:
            notes[note] = f"{notes[note]} {inline_text(token)}".strip()
    return notes


class _MarkdownWalk:
    """Walks markdown-it's flat stream of tokens."""

    def __init__(self, outline: Outline, notes: dict[int, str]) -> None:
        self.outline = outline
        self.notes = notes  # footnotes that are not written yet
        self.table_notes: list[str] = []  # footnotes of the open table
        self.in_footnotes = False
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
        self._write_notes()

    def _container_box_open(self, token: Any) -> None:
        if box := BOX.fullmatch(token.info.strip()):
            self.outline.paragraph(box[2] or box[1].capitalize())

    def _dt_open(self, _token: Any) -> None:
        self.outline.begin_entry()

    def _dd_open(self, _token: Any) -> None:
        self.outline.begin_entry(" ")

    _dt_close = _dd_close = _list_item_close

    def _footnote_block_open(self, _token: Any) -> None:
        self.in_footnotes = True  # each was written after its reference

    def _write_notes(self) -> None:
        for note in self.table_notes:
            self.outline.paragraph(note)
        self.table_notes = []

    def _inline(self, token: Any) -> None:
        text = inline_text(token)
        if self.in_footnotes or (text.startswith("import ") and IMPORTED.search(text)):
            return
        references = (
            child.meta["id"] for child in token.children or () if child.type == "footnote_ref"
        )
        self.table_notes += [self.notes.pop(note) for note in references if note in self.notes]
        if self.rows is not None:
            self.rows[-1].append(text)
        elif self.heading_level:
            self.outline.heading(self.heading_level, text)
        else:
            self.outline.paragraph(text)
            self._write_notes()

    def _fence(self, token: Any) -> None:
        self.outline.code(token.content)

    _code_block = _fence

    def _html_block(self, token: Any) -> None:
        read_fragment(TEMPLATE.sub("", token.content), self.outline)


def inline_text(token: Any) -> str:
    """Return the visible text of a line: no emphasis marks, link targets or tags."""
    text = written(_runs(token.children or []))
    return ALERT.sub(lambda kind: f"{kind[1].capitalize()}: ", text) if text[:2] == "[!" else text


def _runs(children: Sequence[Any]) -> Iterator[Run]:
    """Yield the runs of a line; in code, tags are text: `<name>`."""
    marks = NO_MARKS
    pieces: list[str] = []
    for child in children:
        changed = _marks_behind(child, marks)
        is_code = child.type == "code_inline"
        if (changed != marks or is_code) and pieces:
            yield Run(_without_tags("".join(pieces)), marks)
            pieces = []
        marks = changed
        if is_code:
            yield Run(str(child.content), marks)
        else:
            pieces.append(_visible(child))
    yield Run(_without_tags("".join(pieces)), marks)


def _marks_behind(child: Any, marks: frozenset[Mark]) -> frozenset[Mark]:
    if child.type in ("s_open", "s_close"):
        return marks | STRUCK if child.type == "s_open" else marks - STRUCK
    tag = MARKING_TAG.fullmatch(child.content) if child.type == "html_inline" else None
    if tag is None:
        return marks
    changed = MARKS[tag[2].lower()]
    return marks - changed if tag[1] else marks | changed


def _visible(child: Any) -> str:
    if child.type == "softbreak":
        return " "
    if child.type == "hardbreak" or (child.type == "html_inline" and child.content[:3] == "<br"):
        return "\n"
    if child.type in ("html_inline", "footnote_ref", "footnote_anchor"):
        return ""
    return str(child.content)  # of a picture the alternative text


def _without_tags(text: str) -> str:
    """Remove HTML tags and template tags."""
    plain = TEMPLATE_WORD.sub(r"\1", LINKED.sub(r"\1", text))
    return ATTRIBUTES.sub("", TAG.sub("", TEMPLATE.sub("", plain)))
