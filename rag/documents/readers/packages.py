"""Check the ZIP of DOCX, PPTX, XLSX, OpenDocument and EPUB before any library opens it.

Also read the drawings in such files, and report parts that were not read.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from rag.documents.files import unpacks_hugely
from rag.documents.limits import MEBIBYTE, LoadLimits
from rag.documents.outline import Outline
from rag.documents.reports import counted, first_of
from rag.errors import TooLarge, Unreadable

# A document type with declarations allows entity bombs and external entities. One that only
# names a file, as LibreOffice writes for macros and books have, is not fetched.
DOCTYPE = re.compile(rb"<!\s*(?:ENTITY|DOCTYPE[^>\[]*\[)", re.IGNORECASE)
ENCODINGS = ("utf-16-le", "utf-16-be")
WIDE_DOCTYPE = re.compile(
    b"|".join(word.encode(name) for word in ("<!DOCTYPE", "<!ENTITY") for name in ENCODINGS)
)
ZIP_START = b"PK"
NEEDS_PASSWORD = "the file is encrypted and needs a password. Save it without one."
PROLOGUE_BYTES = MEBIBYTE
MAX_PARTS = 20_000
XML_ENDINGS = (".xml", ".rels", ".vml")
NO_MEMORY = 2  # libxml2's error code, whose message is "unknown error"
BROKEN: tuple[type[Exception], ...] = (
    # SyntaxError is raised by XML parsers.
    *(SyntaxError, LookupError, ValueError, TypeError, AttributeError),
    *(NotImplementedError, zipfile.BadZipFile, zlib.error, EOFError, OSError),
)


def check_package(name: str, data: bytes, limits: LoadLimits) -> None:
    """Check a package by its directory: no library unpacks more of a part than it states.

    Raises:
        Unreadable: Damaged, encrypted, or with a document type in a part.
        TooLarge: It would unpack to more than the limits allow.
    """
    with damage_message(name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        _check_directory(name, parts, limits)
        for part in parts:
            if not part.filename.lower().endswith(XML_ENDINGS):
                continue
            with archive.open(part) as stream:
                prologue = stream.read(PROLOGUE_BYTES)
            if DOCTYPE.search(prologue) or WIDE_DOCTYPE.search(prologue):
                raise Unreadable(
                    name,
                    f"its part {part.filename} declares a document type or entities, which no "
                    "Office program writes and which can read other files. It was not opened.",
                )


@contextmanager
def damage_message(name: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn errors that libraries raise for damaged parts, and `errors`, into Unreadable."""
    try:
        yield
    except (*BROKEN, *errors) as error:
        if type(error).__module__ == "lxml.etree" and getattr(error, "code", 0) == NO_MEMORY:
            raise MemoryError from error
        if "depth" in str(error):  # libxml2's "Excessive depth in document"
            raise RecursionError from error
        raise Unreadable(
            name, "the file is damaged or was cut off: its parts cannot be unpacked. Save it again."
        ) from error


def _check_directory(name: str, parts: list[zipfile.ZipInfo], limits: LoadLimits) -> None:
    if any(part.flag_bits & 1 for part in parts):
        raise Unreadable(name, NEEDS_PASSWORD)
    total, ratio = sum(part.file_size for part in parts), limits.max_unpacked_ratio
    bombs = (part.file_size for part in parts if unpacks_hugely(part, ratio))
    if len(parts) > MAX_PARTS:
        raise TooLarge(
            f"{name}: has {len(parts):,} parts, the limit is {MAX_PARTS:,}. "
            "It looks like a zip bomb; save the document again or split it."
        )
    if size := total if total > limits.max_unpacked_bytes else next(bombs, 0):
        raise TooLarge(
            f"{name}: unpacks to {size / MEBIBYTE:,.0f} MiB or more, the limit is "
            f"{limits.max_unpacked_bytes / MEBIBYTE:,.0f} MiB and {ratio} times its packed size. "
            "It looks like a zip bomb; save the document again or split it."
        )


# ── Drawings, and reports of unread parts ────────────────────────────────────────────────────────

EMBEDDED = re.compile(r".*/embeddings/[^/]+|.*\.(?:html?|mht|rtf|txt|pdf|(?:doc|xls|ppt)x?)", re.I)
MARKUP = (".xml", ".xhtml", ".html", ".htm", ".svg")
TAGS = re.compile(rb"<[^>]*>")
HEADS = re.compile(rb"<(head|style|script)\b.*?</\1>|<!--.*?-->", re.DOTALL)
NO_TEXT = re.compile(
    r"META-INF/.*|Configurations2/.*|(?:.*/)?(?:settings|meta)\.xml|.*\.rels|\[Content_Types\]\.xml|docProps/.*|customXml/.*|(?:.*/)?(?:theme|_rels|persons)/.*"
    r"|(?:.*/)?diagrams/(?:drawing|layout|quickStyle|colors)\d*\.xml|(?:.*/)?charts/(?:style|colors)\d*\.xml"
)
LETTERS_IN_XML = re.compile(rb"<(?:\w+:)?(?:t|text)(?:\s[^>]*)?>([^<]*[^\s<][^<]*)<")
CHART, DRAWING = (
    f"{{http://schemas.openxmlformats.org/drawingml/2006/{name}}}" for name in ("chart", "main")
)
DIAGRAM_NAMES = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
CATEGORIES, VALUES = ("cat", "xVal"), ("val", "yVal")


def read_drawings(data: bytes, outline: Outline, read: re.Pattern[str]) -> None:
    """Add the diagrams and charts of a package; report other parts with text not in `read`."""
    from defusedxml.ElementTree import fromstring

    with damage_message(outline.name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        # The embedded files of charts only repeat the charts' figures.
        of_charts = b"".join(archive.read(name) for name in names if "/charts/_rels/" in name)
        embedded = [posixpath.basename(name) for name in filter(EMBEDDED.fullmatch, names)]
        if files := [file for file in embedded if file.encode() not in of_charts]:
            files_counted = counted(len(files), "embedded file")
            outline.left_out.append(f"{files_counted} ({first_of(files)}): not read")
        for name in names:
            if read.fullmatch(name) or NO_TEXT.fullmatch(name) or not name.endswith(".xml"):
                continue
            part = archive.read(name)
            write = next((write for kind, write in DRAWINGS if kind.fullmatch(name)), None)
            if write:
                write(fromstring(part), outline)
            else:
                _report(name, b" ".join(LETTERS_IN_XML.findall(part)), outline)


def report_unread(archive: zipfile.ZipFile, outline: Outline, read: Container[str]) -> None:
    """Report each part of a markup package that has text and was not read."""
    for name in archive.namelist():
        if name not in read and name.lower().endswith(MARKUP) and not NO_TEXT.fullmatch(name):
            _report(name, HEADS.sub(b"", archive.read(name)), outline)


def _report(name: str, part: bytes, outline: Outline) -> None:
    text = TAGS.sub(b" ", part).decode("utf-8", "replace")
    words = sum(any(map(str.isalpha, word)) for word in text.split())
    if words:
        outline.left_out.append(f"{name}: {words:,} words in a part that is not read")


def _write_comments(comments: Any, outline: Outline) -> None:
    for comment in comments.iterfind(".//{*}cm"):
        words = [*texts_within(comment, "text"), *texts_within(comment, "t")]
        outline.paragraph(" ".join(["Comment:", *words]))


def write_diagram(model: Any, outline: Outline) -> None:
    """Write a SmartArt diagram: the text of each point, below its parent."""
    points = {}
    for point in model.iter(f"{DIAGRAM_NAMES}pt"):
        lines = ("".join(texts_within(line, "t")) for line in point.iter(f"{DRAWING}p"))
        points[point.get("modelId")] = " ".join(" ".join(lines).split())
    above = {
        link.get("destId"): link.get("srcId")
        for link in model.iter(f"{DIAGRAM_NAMES}cxn")
        if link.get("type", "parOf") == "parOf"
    }
    for name in [*above, *(point for point in points if point not in above)]:
        depth, parent = 0, above.get(name)
        while parent and points.get(parent) and depth < 8:
            depth, parent = depth + 1, above.get(parent)
        outline.entry(points.get(name, ""), depth=depth)


def _write_chart_title(space: Any, outline: Outline) -> None:
    title = "".join(texts_within(space.find(f"{CHART}chart/{CHART}title"), "t"))
    outline.paragraph(f"Chart: {title}" if title else "")


def write_chart(space: Any, outline: Outline) -> None:
    """Write the figures of any chart, which are stored with it."""
    outline.paragraph("".join(texts_within(space.find(f"{CHART}chart/{CHART}title"), "t")))
    series = list(space.iter(f"{CHART}ser"))
    categories = max((_points(sery, CATEGORIES) for sery in series), key=len, default={})
    columns = [_points(sery, VALUES) for sery in series]
    if not any(columns):
        outline.left_out.append("a chart without stored figures")
        return
    header = ["", *(" ".join(texts_within(sery.find(f"{CHART}tx"), "v")) for sery in series)]
    places = sorted({place for column in columns for place in column})
    rows = [
        [categories.get(place, str(place + 1)), *(column.get(place, "") for column in columns)]
        for place in places
    ]
    outline.table([header, *rows])


def _points(series: Any, names: tuple[str, ...]) -> dict[int, str]:
    """Return the stored texts of categories or values, by position."""
    parts = (series.find(f"{CHART}{name}") for name in names)
    stored = next((part for part in parts if part is not None), None)
    return {
        int(point.get("idx", "0")): " ".join(texts_within(point, "v"))
        for point in (() if stored is None else stored.iter(f"{CHART}pt"))
    }


def _write_drawn_text(drawing: Any, outline: Outline) -> None:
    for paragraph in drawing.iter(f"{DRAWING}p"):
        outline.paragraph("".join(texts_within(paragraph, "t")))


DRAWINGS = (
    (re.compile(r"(?:.*/)?diagrams/data\d*\.xml"), write_diagram),
    (re.compile(r"word/charts/chart\d*\.xml"), write_chart),
    (re.compile(r"xl/charts/chart\d*\.xml"), _write_chart_title),
    (re.compile(r"ppt/comments/[^/]*\.xml"), _write_comments),
    (re.compile(r"xl/drawings/drawing[^/]*\.xml"), _write_drawn_text),
)


def texts_within(element: Any, tag: str) -> list[str]:
    """Return the texts of all elements with a tag, in any namespace."""
    ending = "}" + tag
    parts = () if element is None else element.iter()
    return [part.text or "" for part in parts if str(part.tag).endswith(ending)]


# ── Shared by Office and OpenDocument ────────────────────────────────────────────────────────────

SLACK = 60_000  # EMU by which shapes may overlap, about five points
ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


def numeral(count: int, kind: str) -> str:
    """Return a paragraph's number as `lowerRoman`, `upperLetter` and so on, else in digits."""
    if kind.endswith("Letter"):
        text = chr(ord("a") + (count - 1) % 26) * (1 + (count - 1) // 26 % 4)
    elif kind.endswith("Roman") and count < 40:
        text = "x" * (count // 10) + ROMAN[count % 10]
    else:
        text = str(count)
    return text.upper() if kind.startswith("upper") else text


def in_reading_order(shapes: Sequence[Any]) -> list[Any]:
    """Sort shapes into horizontal bands from the top.

    Bands of several shapes are read by columns.
    """
    if len(shapes) < 2:
        return list(shapes)
    rows = _bands(shapes, "top", "height")
    groups = groupby(rows, key=lambda row: len(row) > 1)
    blocks = [[shape for row in group for shape in row] for _is_row, group in groups]
    if len(blocks) > 1:
        return [shape for block in blocks for shape in in_reading_order(block)]
    columns = _bands(shapes, "left", "width")
    parts = columns if len(columns) > 1 else rows
    if len(parts) > 1:
        return [shape for part in parts for shape in in_reading_order(part)]
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _bands(shapes: Sequence[Any], start: str, size: str) -> list[list[Any]]:
    """Group shapes that overlap along one axis."""
    bands: list[list[Any]] = []
    end = 0
    for shape in sorted(shapes, key=lambda shape: getattr(shape, start) or 0):
        first = getattr(shape, start) or 0
        if bands and first < end - SLACK:
            bands[-1].append(shape)
        else:
            bands.append([shape])
        end = max(end, first + (getattr(shape, size) or 0))
    return bands
