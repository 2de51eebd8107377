"""Read DOCX: paragraphs, lists and tables in the order of the document.

The XML is walked directly, because python-docx omits content controls and text boxes. Text is made
of runs (`rag.documents.outline`); equations (Office Math, ECMA-376 part 1, 22.1) become LaTeX;
paragraph numbers are not stored and are counted as Word does.
"""

import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import ALIGNED, NO_MARKS, Mark, Outline, Run, marks_of, written
from rag.documents.readers.packages import check_package, damage_message, numeral, read_drawings
from rag.documents.tables import spread

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
HEADING_STYLE = re.compile(r"(?:heading|überschrift|titre|título|titolo)\s*([1-9])", re.IGNORECASE)
LIST_STYLE = re.compile(r"list|aufzählung", re.IGNORECASE)
TEXT_BOX_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/main}blip"
UNSEEN = {f"{WORD}{name}" for name in ("pPr", "rPr", "sdtPr", "sdtEndPr", "instrText")}
TRANSPARENT = {
    f"{WORD}{name}" for name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")
}
NOTES = re.compile(r"(?:foot|end)notes\d*\.xml")
RUNNING = re.compile(r"(header|footer)\d*\.xml")
COMMENTS = re.compile(r"comments\d*\.xml")
LISTS = re.compile(r"numbering\d*\.xml")
OTHER_KINDS = (
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
)
PARTS = re.compile(  # of which text is read here, or is none
    r"word/(?:document|(?:foot|end)notes\d*|(?:header|footer)\d*|comments\d*|styles|numbering|settings"
    r"|fontTable|webSettings|theme/.*|glossary/.*)\.xml|docProps/.*|customXml/.*|.*\.rels"
)
PLACE = re.compile(r"%([1-9])")
Numbering = tuple[str, int]  # id of a list, level from 0
LEVELS = 9
DEEPEST_MATH = 40
DEEPEST = 12  # tables and content controls inside each other


# Characters of symbol fonts (ECMA-376, `sym`), by the last byte of their code.
SYMBOLS = {
    font: {int(code, 16): sign for code, sign in re.findall(r"(\w\w)(\S)", signs)}
    for font, signs in (
        ("wingdings", "6F☐ A8☐ FE☑ FD☒ 78☒ FC✓ FB✗ E0→ A7▪"),
        ("wingdings 2", "52☑ 53☒ 54☒ A3☐ 50✓ 4F✗ 51☒"),
        (
            "symbol",
            "A3≤ B3≥ B1± B0° 6Dµ B4× B8÷ B9≠ BB≈ A5∞ AE→ AC← D7⋅ B7• D6√ 2D− A2′ B2″ 57Ω 44Δ 53Σ "
            "61α 62β 67γ 64δ 65ε 6Cλ 70π 73σ 74τ 66φ 77ω 71θ 72ρ 68η",
        ),
    )
}
UNKNOWN_SIGN = "\ufffd"


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; notes, headers, footers and comments follow the text."""
    from docx.opc.exceptions import OpcError
    from docx.opc.part import PartFactory
    from docx.package import Package
    from docx.parts.document import DocumentPart

    PartFactory.part_type_for.update(dict.fromkeys(OTHER_KINDS, DocumentPart))
    check_package(outline.name, data, limits)
    with damage_message(outline.name, OpcError):
        # Like `docx.Document`, but also templates and documents with macros.
        document = Package.open(io.BytesIO(data)).main_document_part.document
        outline.take_properties(document.core_properties)
        styles = Styles(document)
        body = document.element.body
        behind = list(_notes_and_running(document))
        walk = _DocxWalk(outline, styles, Numbers(document, styles))
    if body is not None:
        walk.blocks(body, 0)
        for text in behind:
            outline.paragraph(text)
        outline.count_unseen(_runs(body))
        outline.pictures = sum(1 for _picture in body.iter(PICTURE))
    read_drawings(data, outline, PARTS)


def _line(element: Any) -> str:
    return " ".join(written(_runs(element)).split())


def _notes_and_running(document: Any) -> Iterator[str]:
    """Yield footnotes and endnotes; headers and footers, each once; and comments."""
    for _kind, part in _parts(document, NOTES):
        notes = part.iterchildren(f"{WORD}footnote", f"{WORD}endnote")
        yield from filter(None, map(_line, notes))
    running = {_line(part): kind[1] for kind, part in reversed([*_parts(document, RUNNING)])}
    for text, kind in reversed(running.items()):
        if text and not text.isdecimal():
            yield f"{kind.capitalize()}: {text}"
    for _kind, part in _parts(document, COMMENTS):
        for comment in part.iterchildren(f"{WORD}comment"):
            if text := _line(comment):
                yield f"Comment by {comment.get(f'{WORD}author') or 'somebody'}: {text}"


def _parts(document: Any, shape: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Any]]:
    """Yield the package's parts with matching names, parsed."""
    from docx.oxml import parse_xml

    for part in document.part.package.iter_parts():
        if kind := shape.fullmatch(part.partname.rsplit("/", 1)[-1]):
            yield kind, parse_xml(part.blob)


class Styles:
    """The name and base of each style, and what it says of headings and lists."""

    def __init__(self, document: Any) -> None:
        styles = document.styles.element.iterchildren(f"{WORD}style")
        self._styles = {style.get(f"{WORD}styleId"): style for style in styles}

    def _line(self, style_id: str) -> Iterator[Any]:
        """Yield the style and those it is based on, nearest first."""
        passed: set[str] = set()
        while style_id in self._styles and style_id not in passed:
            passed.add(style_id)
            yield self._styles[style_id]
            style_id = _value(self._styles[style_id], "basedOn")

    def name(self, style_id: str) -> str:
        style = self._styles.get(style_id)
        return style_id if style is None else _value(style, "name") or style_id

    def level(self, style_id: str) -> int:
        """Return a heading's level from 1; 0 for any other paragraph."""
        for style in self._line(style_id):
            level = _outline_level(style) or _level_of_style(_value(style, "name"))
            if level is not None:
                return level
        return _level_of_style(style_id) or 0

    def numbering(self, style_id: str) -> Numbering | None:
        return next(filter(None, map(_numbering, self._line(style_id))), None)


def _level_of_style(name: str) -> int | None:
    match = HEADING_STYLE.match(name)
    return int(match.group(1)) if match else None


def _outline_level(element: Any) -> int | None:
    """Return the level from 1; 0 for body text; None if unspecified."""
    if element.find(f"{WORD}pPr/{WORD}outlineLvl") is None:
        return None
    value = _value(element, "pPr/outlineLvl")
    return int(value) + 1 if value and value in "012345678" else 0


class _DocxWalk:
    """Walks the document in reading order and fills the outline."""

    def __init__(self, outline: Outline, styles: Styles, numbers: "Numbers") -> None:
        self.outline = outline
        self.styles = styles
        self.numbers = numbers

    def blocks(self, parent: Any, depth: int) -> None:
        for element in _opened_controls(parent):
            if element.tag == f"{WORD}p":
                self.paragraph(element)
            elif element.tag == f"{WORD}tbl" and depth < DEEPEST:
                self.table(element, depth)

    def paragraph(self, element: Any) -> None:
        text = written(_runs(element)).strip()
        if not text:
            return
        style_id = _value(element, "pPr/pStyle")
        style, level = self.styles.name(style_id), _outline_level(element)
        level = self.styles.level(style_id) if level is None else level
        label = self.numbers.label(element, style_id)
        if style.lower() == "title" and not self.outline.title:
            self.outline.title = text
        elif level and len(text) < 250:
            self.outline.heading(level, f"{label or ''} {text}")
        elif label is not None or LIST_STYLE.match(style):
            depth = _whole_number(_value(element, "pPr/numPr/ilvl"), 0)
            self.outline.entry(text, depth=depth, mark=f"- {label or ''}".strip())
        else:
            self.outline.paragraph(text)

    def table(self, element: Any, depth: int) -> None:
        rows = _rows(element)
        if len(rows) == 1 or all(len(row) == 1 for row in rows):
            # A table of one cell, a frame around text.
            for row in _opened_controls(element, f"{WORD}tr"):
                for cell in _opened_controls(row, f"{WORD}tc"):
                    self.blocks(cell, depth + 1)
            return
        self.outline.table(spread([list(map(tuple, row)) for row in rows]))
        # Tables inside cells, each under its row's name.
        for row in _opened_controls(element, f"{WORD}tr"):
            cells = list(_opened_controls(row, f"{WORD}tc"))
            tables = [table for cell in cells for table in _opened_controls(cell, f"{WORD}tbl")]
            name = next(filter(None, map(_cell_text, cells)), "") if tables else ""
            for table in tables:
                self.outline.paragraph(f"{name}:" if name else "")
                if depth < DEEPEST:
                    self.table(table, depth + 1)


def _opened_controls(parent: Any, tag: str = f"{WORD}*") -> Iterator[Any]:
    """Yield the children, including those in content controls and tracked insertions."""
    for child in parent.iterchildren():
        if any(child.find(f"{WORD}trPr/{WORD}{name}") is not None for name in ("del", "hidden")):
            continue
        if child.tag in TRANSPARENT:
            yield from _opened_controls(child, tag)
        elif child.tag == tag or tag.endswith("*"):
            yield child


def _runs(element: Any, marks: frozenset[Mark] = NO_MARKS) -> Iterator[Run]:
    """Yield runs with tabs, breaks and symbols, without fallback copies."""
    for child in element.iterchildren():
        name = str(child.tag).removeprefix(WORD)
        if name in SIMPLE:
            yield Run(SIMPLE[name] or child.text or "", marks)
        elif name in SIGNS:
            yield Run(SIGNS[name](child), marks)
        elif child.tag == f"{MATH}oMath":
            yield Run(f" ${latex(child)}$ ", marks)
        elif name in MARKED:
            yield from _runs(child, marks | MARKED[name](child))
        elif child.tag not in {*UNSEEN, TEXT_BOX_FALLBACK}:
            edge = Run("\n" * (name == "p"), marks)  # a paragraph of a text box
            yield from (edge, *_runs(child, marks), edge)


def _marks(run: Any) -> frozenset[Mark]:
    properties = run.find(f"{WORD}rPr")
    if properties is None:
        return NO_MARKS
    switched = (mark for name, mark in SWITCHES if _is_on(properties.find(f"{WORD}{name}")))
    return marks_of(ALIGNED.get(_value(properties, "vertAlign")), *switched)


def _is_on(switch: Any) -> bool:
    return switch is not None and switch.get(f"{WORD}val", "1") not in OFF


def _symbol(element: Any) -> str:
    font = element.get(f"{WORD}font", "").lower()
    code = int(element.get(f"{WORD}char", "0")[:6] or "0", 16)
    sign = UNKNOWN_SIGN if code >= 0xF000 else chr(code)
    return str(SYMBOLS.get(font, {}).get(code & 0xFF, sign))


def _field(element: Any) -> str:
    """Return the state of a legacy form's check box."""
    box = element.find(f"{WORD}ffData/{WORD}checkBox")
    if box is None:
        return ""
    state = box.find(f"{WORD}checked")
    return "☑ " if _is_on(box.find(f"{WORD}default") if state is None else state) else "☐ "


def _row_marks(row: Any) -> frozenset[Mark]:
    if row.find(f"{WORD}trPr/{WORD}hidden") is not None:
        return marks_of(Mark.HIDDEN)
    return DELETED if row.find(f"{WORD}trPr/{WORD}del") is not None else NO_MARKS


DELETED = marks_of(Mark.DELETED)
MARKED: dict[str, Callable[[Any], frozenset[Mark]]] = {
    "r": _marks,
    "tr": _row_marks,
    "del": lambda _element: DELETED,
    "moveFrom": lambda _element: DELETED,
}
SIMPLE = {"t": "", "delText": "", "tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
SIGNS = {"sym": _symbol, "fldChar": _field}
SWITCHES = (("strike", Mark.STRUCK), ("dstrike", Mark.STRUCK), ("vanish", Mark.HIDDEN))
OFF = {"0", "false", "off"}


def _rows(table: Any) -> list[list[list[Any]]]:
    """Return for each cell its text and how many columns and rows it spans."""
    rows: list[list[list[Any]]] = []
    last: dict[int, list[Any]] = {}  # cell of each column
    for row in _opened_controls(table, f"{WORD}tr"):
        position = min(_whole_number(_value(row, "trPr/gridBefore"), 0), 200)
        rows.append([["", 1, 1] for _column in range(position)])
        for cell in _opened_controls(row, f"{WORD}tc"):
            width = min(max(1, _whole_number(_value(cell, "tcPr/gridSpan"), 1)), 200)
            merged = cell.find(f"{WORD}tcPr/{WORD}vMerge")
            if merged is not None and merged.get(f"{WORD}val") != "restart" and position in last:
                last[position][2] += 1
            else:
                last[position] = [_cell_text(cell), width, 1]
                rows[-1].append(last[position])
            position += width
    return rows


def _cell_text(cell: Any) -> str:
    """Return a cell's paragraphs; tables inside it are written after its table."""
    paragraphs = (written(_runs(control)) for control in _opened_controls(cell, f"{WORD}p"))
    return " ".join(filter(None, map(str.strip, paragraphs)))


# ── Numbers of paragraphs ────────────────────────────────────────────────────────────────────


class Numbers:
    """Counts paragraph numbers as Word does; call `label` for each paragraph in reading order."""

    def __init__(self, document: Any, styles: "Styles") -> None:
        self._levels: dict[str, dict[int, Any]] = {}
        self._lists: dict[str, str] = {}
        self._restarts: dict[str, dict[int, int]] = {}  # levels at which a list restarts, once
        self._styles = styles
        self._counts: dict[str, list[Any]] = defaultdict(lambda: [None] * LEVELS)
        for _kind, lists in islice(_parts(document, LISTS), 1):
            for kind in lists.iterchildren(f"{WORD}abstractNum"):
                levels = {_list_level(level): level for level in kind.iterchildren(f"{WORD}lvl")}
                self._levels[kind.get(f"{WORD}abstractNumId", "")] = levels
            for entries in lists.iterchildren(f"{WORD}num"):
                name = entries.get(f"{WORD}numId", "")
                self._lists[name] = _value(entries, "abstractNumId")
                self._restarts[name] = {
                    _list_level(level): _whole_number(_value(level, "startOverride"), 1)
                    for level in entries.iterchildren(f"{WORD}lvlOverride")
                    if level.find(f"{WORD}startOverride") is not None
                }

    def label(self, paragraph: Any, style_id: str) -> str | None:
        """Return the number before a paragraph; "" for a bullet, None outside lists."""
        name, level = _numbering(paragraph) or self._styles.numbering(style_id) or ("0", 0)
        its_list = self._lists.get(name)
        levels = self._levels.get(its_list or "", {})
        if its_list is None or level not in levels:
            return None
        counts = self._counts[its_list]
        for again, start in self._restarts.pop(name, {}).items():
            counts[again] = start - 1
        first = _whole_number(_value(levels[level], "start"), 1) - 1
        counts[level] = (first if counts[level] is None else counts[level]) + 1
        counts[level + 1 :] = [None] * (LEVELS - level - 1)
        if _value(levels[level], "numFmt") in ("bullet", "none"):
            return ""

        def counted(place: re.Match[str]) -> str:
            position = int(place[1]) - 1
            kind = _value(levels.get(position, levels[level]), "numFmt")
            return numeral(max(counts[position] or 1, 1), kind)

        return PLACE.sub(counted, _value(levels[level], "lvlText")).strip()


def _numbering(element: Any) -> Numbering | None:
    name, level = (_value(element, f"pPr/numPr/{part}") for part in ("numId", "ilvl"))
    return (name, min(_whole_number(level, 0), LEVELS - 1)) if name else None


def _list_level(element: Any) -> int:
    return min(_whole_number(element.get(f"{WORD}ilvl", ""), 0), LEVELS - 1)


def _whole_number(value: str, otherwise: int) -> int:
    return int(value[:9]) if value.isdecimal() else otherwise


def _value(element: Any, path: str) -> str:
    """Return the `val` of the element at a path; "" if there is none."""
    part = element.find("/".join(f"{WORD}{name}" for name in path.split("/")))
    return part.get(f"{WORD}val", "") if part is not None else ""


# ── Equations ────────────────────────────────────────────────────────────────────────────────

MATH_SIGNS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∞": r"\infty", "√": r"\sqrt"}
MATH_FORMS = {
    "f": r"\frac{{{num}}}{{{den}}}",
    "sSup": "{e}^{{{sup}}}",
    "sSub": "{e}_{{{sub}}}",
    "sSubSup": "{e}_{{{sub}}}^{{{sup}}}",
    "d": "({e})",
}


def latex(element: Any, depth: int = 0) -> str:
    """Return a formula as LaTeX; an unknown construct as its parts in order."""
    if depth > DEEPEST_MATH:
        return ""
    name = element.tag.removeprefix(MATH)
    if name == "t":
        return "".join(MATH_SIGNS.get(sign, sign) for sign in element.text or "")
    if name not in (*MATH_FORMS, "rad", "nary"):
        return "".join(latex(child, depth + 1) for child in element)
    parts = defaultdict[str, str](str)
    parts |= {child.tag.removeprefix(MATH): latex(child, depth + 1) for child in element}
    if name == "rad":
        return rf"\sqrt{'[' + parts['deg'] + ']' if parts['deg'] else ''}{{{parts['e']}}}"
    if name == "nary":
        limits = ((mark, parts[key]) for mark, key in (("_", "sub"), ("^", "sup")))
        ends = "".join(f"{mark}{{{limit}}}" for mark, limit in limits if limit)
        signs = element.iterfind(f"{MATH}naryPr/{MATH}chr")
        sign = next((sign.get(f"{MATH}val", "∫") for sign in signs), "∫")
        return f"{MATH_SIGNS.get(sign, sign)}{ends} {parts['e']}"
    return MATH_FORMS[name].format_map(parts)
