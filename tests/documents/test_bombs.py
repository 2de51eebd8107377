"""Small files that grow without bound when they are read: each is refused, or costs little."""

import io
import json
import re
import struct
import tarfile
import time
import zipfile
import zlib
from dataclasses import replace
from email.message import EmailMessage

import pytest

from rag.documents.limits import LoadLimits
from rag.documents.sandbox import GuardedLoader
from rag.errors import TooLarge, Unreadable
from tests.documents import office_files
from tests.waiting import LONG

MIB = 1 << 20
BOUNDS = LoadLimits(max_seconds=3.0, max_memory_bytes=768 * MIB)
TIGHT = replace(BOUNDS, max_seconds=1.0)  # of those that may cost all that they are given
LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(12)
)
DOCTYPE = f"<?xml version='1.0'?><!DOCTYPE x [{LAUGHS}]>"
SQUARE = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "{"a" * 60_000}">]>'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
OPEN_DOCUMENT = "application/vnd.oasis.opendocument."


# ── Packages ─────────────────────────────────────────────────────────────────────────────────


def packed(parts, *, level=9):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


def word(body, before=""):
    data = office_files.docx(lambda document: document.add_paragraph("x"))
    return office_files.with_part(
        data,
        "word/document.xml",
        f"{before}<w:document {W}><w:body>{body}</w:body></w:document>".encode(),
    )


def excel(part, text):
    data = office_files.xlsx({"Sheet": [["a", "b"], ["x", 1]]})
    return office_files.with_part(data, part, text.encode())


def sheet(rows, more=""):
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    return excel(
        "xl/worksheets/sheet1.xml",
        f"<worksheet {space}>{more}<sheetData>{rows}</sheetData></worksheet>",
    )


def shared(strings, before=""):
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    return excel("xl/sharedStrings.xml", f"{before}<sst {space}>{strings}</sst>")


def opened(kind, body, before=""):
    whole = "office:document-content"
    content = f"{before}<{whole} {ODF}><office:body>{body}</office:body></{whole}>"
    space = 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"'
    manifest = f"<manifest:manifest {space}/>"
    return packed({
        "mimetype": f"{OPEN_DOCUMENT}{kind}", "content.xml": content,
        "META-INF/manifest.xml": manifest,
    })  # fmt: skip


def table(cells):
    whole = f'<table:table table:name="a">{cells}</table:table>'
    return f"<office:spreadsheet>{whole}</office:spreadsheet>"


def overlapped(count, name="word/media/{}.xml", size=900_000):
    """A directory of many entries that all point to the same packed bytes."""
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = raw.compress(bytes(size)) + raw.flush()
    fields = (20, 0, 8, 0, 33, zlib.crc32(bytes(size)), len(body), size)
    names = ["word/document.xml", *(name.format(n) for n in range(count))]
    first = names[0].encode()
    data = struct.pack("<4s5H3I2H", b"PK\x03\x04", *fields, len(first), 0) + first + body
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, *fields, len(each), 0, 0, 0, 0, 0, 0) + each
        for each in (one.encode() for one in names)
    )
    ends = struct.pack(
        "<4s4H2IH", b"PK\x05\x06", 0, 0, len(names), len(names), len(directory), len(data), 0
    )
    return data + directory + ends


def nested(depth, inner):
    data = inner
    for _ in range(depth):
        data = packed({f"{n}.zip": data for n in range(10)})
    return data


def tarred(data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        entry = tarfile.TarInfo("a.txt")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


# ── PDF ──────────────────────────────────────────────────────────────────────────────────────


def pdf(*objects):
    """These objects, from number 1; the first is the catalogue."""
    out, places = io.BytesIO(b"%PDF-1.7\n"), []
    out.seek(0, 2)
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    out.write(b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(places) + 1, rows))
    out.write(
        b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, start)
    )
    return out.getvalue()


def stream(data, filters=b"/FlateDecode", more=b""):
    return b"<</Length %d/Filter%s%s>>stream\n%s\nendstream" % (len(data), filters, more, data)


DRAWN = b"BT /F1 9 Tf (x) Tj ET\n"
WIDE = b"/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 8/ColorSpace/DeviceRGB"
CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"


def page_of(*more, box=b"0 0 600 800", resources=b""):
    return pdf(
        CATALOGUE,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Resources%s%s>>/Contents 4 0 R>>"
        % (box, FONT, resources),
        *more,
    )


def deflated(data, times=1):
    for _ in range(times):
        data = zlib.compress(data, 9)
    return data


def zeros(mebibytes):
    """As `deflated` gives them, sooner: each is packed as the first one."""
    packer = zlib.compressobj(9)
    head = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    each = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    sum_of_all = struct.pack(">HH", mebibytes * MIB % 65_521, 1)
    return head + each * (mebibytes - 1) + b"\x03\x00" + sum_of_all


def forms():
    """Each draws the next ten times."""
    names = b"/XObject<<" + b"".join(b"/X%d %d 0 R" % (n, n + 5) for n in range(12)) + b">>"
    each = [
        b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%s>>/Length %d>>"
        b"stream\n%s\nendstream" % (names, len(draws), draws)
        for draws in [b"/X%d Do " % (n + 1) * 10 for n in range(11)] + [b"BT (x) Tj ET"]
    ]
    return page_of(stream(deflated(b"/X0 Do"), more=b""), *each, resources=names)


# ── Others ───────────────────────────────────────────────────────────────────────────────────


def picture(width, height):
    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", deflated(bytes(9_000_000)))
        + chunk(b"IEND", b"")
    )


def tiff_in_a_circle():
    return b"II*\x00" + struct.pack("<IHHHIII", 8, 1, 256, 4, 1, 9, 8)


def mail(depth):
    inner = EmailMessage()
    inner["Subject"] = "the last"
    inner.set_content("x")
    data = inner.as_bytes()
    for n in range(depth):
        data = b"Subject: %d\r\nContent-Type: message/rfc822\r\n\r\n" % n + data
    return data


def book(references):
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="a.opf"/></rootfiles></container>'
    )
    spine = '<itemref idref="c"/>' * references
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
        '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
        f"<spine>{spine}</spine></package>"
    )
    chapter = f"<html><body><p>{'word ' * 20_000}</p></body></html>"
    return packed({
        "mimetype": "application/epub+zip", "META-INF/container.xml": container,
        "a.opf": package, "c.xhtml": chapter,
    })  # fmt: skip


def yaml_laughs():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(lines)


def asciidoc_laughs():
    return (
        "= T\n"
        + "\n".join(f":a{n}: {f'{{a{n - 1}}}' * 10 if n else 'ha'}" for n in range(12))
        + "\n\n{a11}\n"
    )


def rst_laughs():
    return (
        "T\n=\n\n"
        + "\n".join(f".. |a{n}| replace:: {f'|a{n - 1}| ' * 10 if n else 'ha'}" for n in range(12))
        + "\n\n|a11|\n"
    )


ROWS, COLUMNS = 1_048_576, 16_384
REPEATED = (
    f'<table:table-row table:number-rows-repeated="{ROWS}"><table:table-cell '
    f'table:number-columns-repeated="{COLUMNS}"><text:p>x</text:p></table:table-cell></table:table-row>'
)
BOMBS = {
    "one part of zeros.docx": lambda: packed({"word/document.xml": bytes(20 * MIB)}),
    "one part of zeros.xlsx": lambda: packed({"xl/workbook.xml": bytes(20 * MIB)}),
    "one part of zeros.pptx": lambda: packed({"ppt/presentation.xml": bytes(20 * MIB)}),
    "one part of zeros.odt": lambda: packed({"mimetype": OPEN_DOCUMENT + "text",
    "content.xml": bytes(20 * MIB)}),
    "one part of zeros.epub": lambda: packed({"mimetype": "application/epub+zip",
    "c.xhtml": bytes(20 * MIB)}),
    "entries over each other.docx": lambda: overlapped(9_000),
    "more entries than honest.docx": lambda: overlapped(60_000, size=1),
    "zip in zip.zip": lambda: nested(3, bytes(10 * MIB)),
    "zip in a document.docx": lambda: packed({"word/document.xml": nested(2,
    packed({"a": bytes(20 * MIB)}))}),
    "gz.txt.gz": lambda: deflated(bytes(50 * MIB)).replace(b"\x78\xda", b"\x1f\x8b", 1),
    "gz named as text.txt": lambda: tarred(bytes(20 * MIB)),
    "tar in tar.tar.gz": lambda: tarred(tarred(tarred(bytes(20 * MIB)))),
    "bzip.csv": lambda: b"BZh9" + bytes(1000),
    "laughs.docx": lambda: word("<w:p><w:r><w:t>&l11;</w:t></w:r></w:p>", DOCTYPE),
    "laughs in strings.xlsx": lambda: shared("<si><t>&l11;</t></si>", DOCTYPE),
    "laughs.odt": lambda: opened("text", "<office:text><text:p>&l11;</text:p></office:text>",
    DOCTYPE),
    "laughs.xml": lambda: f"{DOCTYPE}<x>&l11;</x>",
    "laughs.xhtml": lambda: f"{DOCTYPE}<html><body>&l11;</body></html>",
    "square.xml": lambda: SQUARE + f"<x>{'&a;' * 60_000}</x>",
    "square.docx": lambda: word(f"<w:p><w:r><w:t>{'&a;' * 60_000}</w:t></w:r></w:p>", SQUARE),
    "laughs.yaml": yaml_laughs,
    "laughs.adoc": asciidoc_laughs,
    "laughs.rst": rst_laughs,
    "laughs in front matter.md": lambda: f"---\n{yaml_laughs()}\n---\nText.\n",
    "a string many times.xlsx": lambda: office_files.xlsx({"a": [["x " * 15_000]] * 2_000}),
    "strings of zeros.xlsx": lambda: shared("<si><t>" + "0" * (40 * MIB) + "</t></si>"),
    "the last cell.xlsx": lambda: sheet(f'<row r="{ROWS}"><c r="XFD{ROWS}"><v>1</v></c></row>'),
    "a row of the last cells.xlsx": lambda: sheet(
        "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 30_000))
    ),
    "merged all.xlsx": lambda: sheet(
        '<row r="1"><c r="A1"><v>1</v></c></row></sheetData>'
        f'<mergeCells><mergeCell ref="A1:XFD{ROWS}"/></mergeCells><sheetData>'
    ),
    "a dimension that lies.xlsx": lambda: sheet('<row r="1"><c r="A1"><v>1</v></c></row>',
    f'<dimension ref="A1:XFD{ROWS}"/>'),
    "hidden columns.xlsx": lambda: sheet(
        '<row r="1"><c r="A1"><v>1</v></c></row>',
        '<cols><col min="1" max="999999999" hidden="1"/></cols>'
    ),
    "a span of a billion.docx": lambda: word(
        "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='999999999'/></w:tcPr>"
        "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
        "</w:tc></w:tr></w:tbl>"
    ),
    "tables in tables.docx": lambda: word("<w:tbl><w:tr><w:tc>" * 3_000),
    "spans.html": lambda: f"<table>{'<tr><td colspan=99999 rowspan=99999>x' * 3_000}</table>",
    "open tags.html": lambda: "<div><table><tr><td>" * 50_000,
    "attributes.html": lambda: f"<p {' '.join(f'a{n}=1' for n in range(200_000))}>x</p>",
    "cells repeated.ods": lambda: opened("spreadsheet", table(REPEATED)),
    "rows repeated in many tables.ods": lambda: opened("spreadsheet", table(REPEATED) * 200),
    "blanks.odt": lambda: opened("text",
    '<office:text><text:p>a<text:s text:c="999999999"/>b</text:p></office:text>'),
    "blanks many times.odt": lambda: opened("text",
    "<office:text>" + '<text:p>a<text:s text:c="900000"/>b</text:p>' * 5_000 + "</office:text>"),
    "groups.rtf": lambda: "{\\rtf1 " + "{" * 500_000 + "x",
    "binary.rtf": lambda: "{\\rtf1 \\bin999999999 x}",
    "a chapter many times.epub": lambda: book(50_000),
    "mails in mails.eml": lambda: mail(2_000),
    "parts in parts.eml": lambda: "".join(
        f'Content-Type: multipart/mixed; boundary="b{n}"\r\n\r\n--b{n}\r\n' for n in range(3_000)
    ),
    "mails.mbox": lambda: "From a@b Thu Jan  1 00:00:00 1970\nSubject: a\n\nx\n\n" * 100_000,
    "lists in lists.json": lambda: "[" * 500_000,
    "cells.ipynb": lambda: json.dumps({"cells": [{"cell_type": "markdown",
    "source": ["a" * 100] * 100}] * 3_000, "nbformat": 4}),
    "quotes in quotes.md": lambda: ">" * 500_000 + " x",
    "brackets.md": lambda: "[" * 300_000,
    "emphasis.md": lambda: "*a **b " * 60_000,
    "commas.csv": lambda: "a,b\n" + "," * 25_000_000,
    "a quote that nothing closes.csv": lambda: 'a,b\n"' + "x,y\n" * 1_000_000,
    "a stream of zeros.pdf": lambda: page_of(stream(zeros(400))),
    "a stream packed three times.pdf": lambda: page_of(
        stream(deflated(bytes(100 * MIB), 3), b"[/FlateDecode/FlateDecode/FlateDecode]")
    ),
    "a stream of operators.pdf": lambda: page_of(stream(deflated(DRAWN * 3_000_000))),
    "forms in forms.pdf": forms,
    "pages in a circle.pdf": lambda: pdf(CATALOGUE,
    b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 99999999>>"),
    "a count that lies.pdf": lambda: pdf(
        CATALOGUE, b"<</Type/Pages/Kids[3 0 R]/Count 2147483647>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>"
    ),
    "a page without end.pdf": lambda: page_of(
        stream(deflated(b"BT /F1 9 Tf (Hello) Tj ET")), box=b"0 0 99999999 99999999"
    ),
    "objects in a stream.pdf": lambda: pdf(
        CATALOGUE, b"<</Type/Pages/Kids[]/Count 0>>",
        stream(deflated(b"9 0 " * 20_000_000), more=b"/Type/ObjStm/N 20000000/First 80000000"),
    ),
    "a picture.pdf": lambda: page_of(
        stream(deflated(b"/X0 Do")),
        stream(deflated(bytes(1000)),
        more=b"/Type/XObject" + WIDE),
        resources=b"/XObject<</X0 5 0 R>>",
    ),
    "pixels.png": lambda: picture(60_000, 60_000),
    "frames.tiff": tiff_in_a_circle,
}  # fmt: skip


# What is said of each that is not read; the others are read, and cost little.
REFUSED = {
    "one part of zeros|zip bomb": r"zip bomb", "entries|more entries": r"as zip bombs do",
    "zip in zip": "a zip archive within another",
    "zip in a document": "a zip archive of an unknown",
    "gz|tar in": "a compressed archive; unpack it first", "bzip": "a binary file",
    r"laughs\.(?:docx|odt)|laughs in strings|square\.docx": "declares a document type or entities",
    r"laughs\.xml|square\.xml": "declares entities", r"laughs\.yaml": "aliases",
    r"a string many times|strings of zeros": "zip bomb",
    "tables in tables|lists in|mails in|parts in": "nested too deep",
    "open tags": "nested 100,000 deep", "a chapter": "more than 30,000,000 characters",
    "pixels": "3,600,000,000 pixels",
    "the last cell|hidden columns|quotes in quotes": "no text in it",
    "frames|pages in a circle|objects in": "damaged",
}  # fmt: skip
BOUNDED = (
    "more than .* of processor time|more than .* of memory|made the reading process fail|no text"
)
HEAVY = """
    more entries than honest.docx, a row of the last cells.xlsx, spans.html, attributes.html,
    mails.mbox, cells.ipynb, brackets.md, a stream of zeros.pdf, a stream packed three times.pdf,
    a stream of operators.pdf, forms in forms.pdf, a count that lies.pdf, objects in a stream.pdf,
    a picture.pdf, laughs.rst, cells repeated.ods, rows repeated in many tables.ods,
    a chapter many times.epub, a quote that nothing closes.csv, commas.csv, emphasis.md,
    parts in parts.eml
"""
COSTLY = {name.strip() for name in HEAVY.split(",")}


@pytest.fixture(scope="module")
def loaders():
    """By whether a file may be costly."""
    made = {
        is_costly: GuardedLoader(TIGHT if is_costly else BOUNDS, readers=1)
        for is_costly in (True, False)
    }
    yield made
    for each in made.values():
        each.close()


def outcome(loader, name):
    """Empty where it was read."""
    data = BOMBS[name]()
    try:
        loader.load(name, data.encode() if isinstance(data, str) else data)
    except (Unreadable, TooLarge) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in COSTLY else name for name in BOMBS],
)
def test_is_refused_in_its_own_words_or_costs_little(loaders, name):
    loader = loaders[name in COSTLY]
    began = time.monotonic()
    said = outcome(loader, name)
    expected = next((words for names, words in REFUSED.items() if re.match(names, name)), "^$")

    assert re.search(f"{expected}|{BOUNDED}" if name in COSTLY else expected, said)
    assert name in COSTLY or time.monotonic() - began < LONG / 4
    assert loader.load("next.md", b"next").sections[0].text == "next"


def test_as_many_are_tried_as_is_told():
    assert len(BOMBS) >= 60
