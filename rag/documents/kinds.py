"""File kinds, detected from the content first and the name's ending second; and product names.

Every cell of a table's product column is taken as a name. Most headings are ordinary words, so
only those parts of them that have the shape of a product name are taken.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, dropwhile, pairwise
from pathlib import PurePosixPath

from rag.documents.cleaning import one_line, utf16_by_zeros
from rag.documents.files import BROKEN, check_honest
from rag.errors import Unreadable
from rag.language.words import phrases, read_lists, words

SUPPORTED = (
    "Markdown, HTML, PDF, DOCX, PPTX, XLSX, XLS, CSV, Parquet, ODT, ODS, ODP, EPUB, RTF, mails "
    "(EML, MSG, MBOX), Jupyter notebooks, JSON, YAML, XML, subtitles (VTT, SRT), reStructuredText, "
    "AsciiDoc and whatever else is plain text"
)
SAVE_AS = "if it is a document, save it as PDF in the program that made it"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
OFFICE = "application/vnd.openxmlformats-officedocument"


class FileKind(StrEnum):
    """A supported format; the value is its media type, `word` what people call it."""

    word: str

    def __new__(cls, media_type: str, word: str) -> "FileKind":
        kind = str.__new__(cls, media_type)
        kind._value_, kind.word = media_type, word
        return kind

    MARKDOWN = "text/markdown", "Markdown"
    HTML = "text/html", "HTML"
    PDF = "application/pdf", "PDF"
    DOCX = f"{OFFICE}.wordprocessingml.document", "Word"
    PPTX = f"{OFFICE}.presentationml.presentation", "PowerPoint"
    XLSX = f"{OFFICE}.spreadsheetml.sheet", "Excel"
    CSV = "text/csv", "CSV"
    RST = "text/x-rst", "reStructuredText"
    ASCIIDOC = "text/asciidoc", "AsciiDoc"
    TEXT = "text/plain", "Text"
    EPUB = "application/epub+zip", "EPUB"
    EML = "message/rfc822", "mail"
    MSG = "application/vnd.ms-outlook", "Outlook message"
    MBOX = "application/mbox", "mailbox"
    ODT = f"{OPEN_DOCUMENT}.text", "OpenDocument"
    ODP = f"{OPEN_DOCUMENT}.presentation", "OpenDocument"
    ODS = f"{OPEN_DOCUMENT}.spreadsheet", "OpenDocument"
    XLS = "application/vnd.ms-excel", "Excel"
    PARQUET = "application/vnd.apache.parquet", "Parquet"
    RTF = "application/rtf", "RTF"
    NOTEBOOK = "application/x-ipynb+json", "Jupyter notebook"
    JSON = "application/json", "JSON"
    JSON_LINES = "application/jsonl", "JSON Lines"
    YAML = "application/yaml", "YAML"
    XML = "application/xml", "XML"
    SUBTITLES = "text/vtt", "Subtitles"
    PNG = "image/png", "picture"
    JPEG = "image/jpeg", "picture"
    TIFF = "image/tiff", "picture"
    GIF = "image/gif", "picture"
    WEBP = "image/webp", "picture"
    BMP = "image/bmp", "picture"


ENDINGS = {
    FileKind.MARKDOWN: ".md .markdown .mdown .mkd .mdx",
    FileKind.HTML: ".html .htm .xhtml",
    FileKind.CSV: ".csv .tsv",
    FileKind.RST: ".rst .rest",
    FileKind.ASCIIDOC: ".adoc .asciidoc .asc",
    FileKind.TEXT: ".txt .text .log .org .nfo .readme",
    FileKind.EML: ".eml .emlx .mht .mhtml",
    FileKind.MBOX: ".mbox",
    FileKind.ODT: ".fodt .fods .fodp",
    FileKind.NOTEBOOK: ".ipynb",
    FileKind.JSON: ".json .geojson",
    FileKind.JSON_LINES: ".jsonl .ndjson",
    FileKind.YAML: ".yaml .yml",
    FileKind.XML: ".xml",
    FileKind.SUBTITLES: ".vtt .srt",
}
BY_ENDING = {ending: kind for kind, endings in ENDINGS.items() for ending in endings.split()}
BY_ENDING[""] = FileKind.TEXT
BY_FOLDER = {"word/": FileKind.DOCX, "ppt/": FileKind.PPTX, "xl/": FileKind.XLSX}
BY_MIMETYPE = {
    kind.value.encode(): kind for kind in (FileKind.EPUB, FileKind.ODT, FileKind.ODP, FileKind.ODS)
}
MAGIC = {
    b"{\\rtf": FileKind.RTF,
    b"\x89PNG": FileKind.PNG,
    b"\xff\xd8\xff": FileKind.JPEG,
    b"II*\x00": FileKind.TIFF,
    b"MM\x00*": FileKind.TIFF,
    b"GIF8": FileKind.GIF,
    b"PAR1": FileKind.PARQUET,
}
OTHER_MAGIC = {
    (b"\x1f\x8b", b"Rar!", b"7z\xbc\xaf"): "a compressed archive; unpack it first",
    (b"%!PS",): "a PostScript file; save it as PDF",
    (b"SQLite format 3",): "a database",
    (b"\x7fELF", b"MZ\x90"): "a program",
    (b"-----BEGIN ",): "a key or a certificate",
}
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
NO_TEXT_ENDINGS = {".pdf", ".docx", ".pptx", ".xlsx"}
HTML_STARTS = (b"<!doctype html", b"<html")
XML_STARTS = (b"<?xml", b"<svg")


def kind_of(name: str, data: bytes) -> FileKind:
    """Return the format of a file. Raises Unreadable, with the supported formats, for any other."""
    if b"%PDF-" in data[:1024]:
        return FileKind.PDF
    if data.startswith(ZIP_MAGIC):
        return _zipped_kind(name, data)
    if data.startswith(OLE_MAGIC):
        return _ole_kind(name, data)
    if file_kind := _kind_by_magic(data):
        return file_kind
    for magics, description in OTHER_MAGIC.items():
        if data.startswith(magics):
            raise _unsupported(name, description)
    return _text_kind(name, data)


def _kind_by_magic(data: bytes) -> FileKind | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return FileKind.WEBP
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return FileKind.BMP
    return next((kind for magic, kind in MAGIC.items() if data.startswith(magic)), None)


def ending_of(name: str) -> str:
    """Return the ending of a name in lower case with its dot; "" for none."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _unsupported(name: str, description: str) -> Unreadable:
    return Unreadable(name, f"this is {description}. Supported are {SUPPORTED}.")


def _zipped_kind(name: str, data: bytes) -> FileKind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            members = [part.filename for part in parts]
            mimetype = archive.open("mimetype").read(200) if "mimetype" in members else b""
    except (*BROKEN, zlib.error) as error:
        raise Unreadable(
            name,
            "the file is damaged or was cut off (its zip directory cannot be read). "
            "Save or copy it again.",
        ) from error
    for folder, kind in BY_FOLDER.items():
        is_there = any(member.startswith(folder) for member in members)
        if is_there and "[Content_Types].xml" in members:
            return FileKind.XLS if "xl/workbook.bin" in members else kind
    if file_kind := BY_MIMETYPE.get(mimetype.strip().removesuffix(b"-template")):
        return file_kind
    check_honest(name, parts)
    is_zip = ending_of(name) == ".zip"
    what = "a zip archive within another" if is_zip else "a zip archive of an unknown format"
    raise _unsupported(name, f"{what}; {'unpack it' if is_zip else SAVE_AS}")


# Names of streams in the files of Office before 2007 ([MS-CFB], UTF-16).
OLD_STREAMS = ("WordDocument", "PowerPoint Document")
OLE_STREAMS = {
    "__properties_version1.0": FileKind.MSG,
    "Workbook": FileKind.XLS,
    "Book": FileKind.XLS,
}


def _ole_kind(name: str, data: bytes) -> FileKind:
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise Unreadable(
            name, "the file is encrypted and needs a password. Save it without one, then ingest it."
        )
    if any(stream.encode("utf-16-le") in data for stream in OLD_STREAMS):
        old = "a Word or PowerPoint file of before 2007; save it as DOCX or PPTX"
        raise _unsupported(name, old)
    for stream, kind in OLE_STREAMS.items():
        if stream.encode("utf-16-le") in data:
            return kind
    old = f"a file of Office, or of a program like it, of before 2007; {SAVE_AS}"
    raise _unsupported(name, old)


def _is_binary(data: bytes) -> bool:
    sample = data[:8192]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")) or utf16_by_zeros(sample):
        return False
    controls = sum(
        sample.count(bytes([code])) for code in range(0x20) if code not in b"\t\n\r\f\x1b"
    )
    # A few stray NULs are cleaned away; a file full of them is not text.
    return controls > max(8, len(sample) // 20)


def _text_kind(name: str, data: bytes) -> FileKind:
    ending = ending_of(name)
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    is_html, is_named = start.startswith(HTML_STARTS), ending in NO_TEXT_ENDINGS
    if _is_binary(data) or (is_named and not is_html):
        description = f"a binary file of an unknown format; {SAVE_AS}"
        if is_named:
            kind = ending[1:].upper()
            description = f"not really a {kind} file: its content is unknown or damaged"
        raise _unsupported(name, description)
    if is_html and BY_ENDING.get(ending) is not FileKind.MARKDOWN:
        return FileKind.HTML
    unnamed = FileKind.XML if start.startswith(XML_STARTS) else FileKind.TEXT
    return BY_ENDING.get(ending, unnamed)


NAME_CHARS = 60
NAME_WORDS = 7
MAX_NAMES = 5_000  # of one document

_LISTS = read_lists("names")
_PIECES = re.compile(
    rf"[,;:()\[\]{{}}|/–—]|\s-\s|\s(?:vs\.?|{phrases('ands')}|{phrases('ors')}|&)\s"
)
PRODUCT_COLUMN = re.compile(_LISTS["product_column"], re.IGNORECASE)
VAGUE_COLUMN = re.compile(_LISTS["vague_column"], re.IGNORECASE)
GOODS_COLUMN = re.compile(_LISTS["goods_column"], re.IGNORECASE)
NO_NAME = re.compile(_LISTS["no_name"], re.IGNORECASE)
SENTENCE = re.compile(r"[.!?;:]\s|[.!?]$|https?://|@")
CODE_SHAPE = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[^\W\d_])[\w][\w.+/-]*[™®©+]*")
CAPITALISED = re.compile(r"[\"'(]*[A-ZÀ-ÖØ-ÞΑ-ΩА-Я][\w'’+&-]*[™®©+]*")
MIXED_CASE = re.compile(r"[a-z]+[A-Z][\w-]*|[A-Z]+[a-z]+[A-Z][\w-]*")
NUMBER = re.compile(r"\d{1,5}[A-Za-z]{0,3}\+?[™®©]*")
YEAR = re.compile(r"(?:19|20)\d\d")
MARKED = re.compile(r"[™®]")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

STANDARD = re.compile(
    r"v\d[\d.]*|[QH][1-4]|WPA\d|USB\d?|IPv\d|IPX?\d+|MP[34]|H26[45]|A[0-6]|[2-6]G|BT\d|RS-?\d{3}"
    r"|CAT\d\w?|HDMI\d?|DDR\d|UTF-?\d+|SHA-?\d+|AES-?\d+|ISO-?\d+|WiFi\d|Web\d|B2B|B2C|COVID-19|I/?O",
    re.IGNORECASE,
)

COUNTING = words(_LISTS["counting"])
SURROUNDING = words(_LISTS["surrounding"])
DOCUMENT_WORDS = words(_LISTS["document_words"])


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return each possible name once, in its exact spelling, in order of first appearance."""
    return tuple(dict.fromkeys(filter(_is_possible, map(one_line, names))))[:MAX_NAMES]


def in_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the names in a table's product columns; the first row is the header.

    A table of two columns with one property in each row is understood as well.
    """
    if len(rows) < 2:
        return []
    is_upright = len(rows[0]) == 2 and _has_product_shape(rows[0][1].split())
    if is_upright:  # "Model | XR-5", one property a line
        cells = [row[1] for row in rows if PRODUCT_COLUMN.fullmatch(row[0].strip(" :"))]
    else:
        cells = _cells(rows)
    return [name for cell in filter(_is_cell_name, cells) for name in _spellings(cell)]


def in_headings(title: str, headings: Sequence[str]) -> list[str]:
    """Return product names in the title and the headings.

    `title` is "" if the document has none.
    """
    runs = chain.from_iterable(map(_runs, dict.fromkeys((title, *headings))))
    return [*_title_names(title), *runs]


def siblings(products: Iterable[str], labels: Iterable[str]) -> Iterator[str]:
    """Yield labels of a table that extend a known name: `Aero 5 Pro` beside `Aero 5`."""
    names = set(products)
    for label in labels:
        words = label.split()
        openings = (" ".join(words[:end]) for end in range(1, len(words)))
        is_name = len(words) <= NAME_WORDS and all(map(_may_belong, words))
        if is_name and any(opening in names for opening in openings):
            yield label


def _cells(rows: Sequence[Sequence[str]]) -> list[str]:
    labels = [label.strip(" :*#").replace("_", " ") for label in rows[0]]
    sure = [index for index, label in enumerate(labels) if PRODUCT_COLUMN.fullmatch(label)]
    results = [row[position] for position in sure for row in rows[1:]]
    if any(GOODS_COLUMN.fullmatch(label) for label in labels):
        vague = [index for index, label in enumerate(labels) if VAGUE_COLUMN.fullmatch(label)]
        cells = [row[position] for position in vague for row in rows[1:]]
        results.extend(cell for cell in cells if _has_own_shape(cell))
    return results


def _is_possible(name: str) -> bool:
    return 2 <= len(name) <= NAME_CHARS and any(map(str.isalpha, name))


def _is_cell_name(cell: str) -> bool:
    if not _is_possible(cell) or NO_NAME.fullmatch(cell) or SENTENCE.search(cell):
        return False
    return len(cell.split()) <= NAME_WORDS


def _has_own_shape(cell: str) -> bool:
    """Return whether a cell looks like a name in any column: not "fan", not "ear tips"."""
    return "," not in cell and (cell[:1].isupper() or bool(CJK.search(cell) or MARKED.search(cell)))


def _spellings(cell: str) -> Iterator[str]:
    """Yield the cell, and for `森の音 (Mori no Oto)` both names alone."""
    yield cell
    double = re.fullmatch(r"(.+?) ?[(（](.+)[)）]", cell)
    if double:
        outer, inner = double.groups()
        yield outer
        if CJK.search(outer) or all(map(_is_code_word, inner.split())):
            yield inner


def _title_names(title: str) -> Iterator[str]:
    """Yield the product of a manual: "Nimbus Router User Manual" names the Nimbus Router."""
    words = re.split(r"\s[–—|:-]\s|:\s", title)[0].split()
    if not any(word.lower() in DOCUMENT_WORDS for word in title.split()):
        return
    name = _strip_surrounding(words)
    if 2 <= len(name) <= 4 and all(_may_belong(word) for word in name) and len(name) < len(words):
        yield " ".join(name)


def _runs(text: str) -> Iterator[str]:
    for piece in _PIECES.split(text):
        run: list[str] = []
        for word in [*piece.split(), ""]:
            if word and _may_belong(word):
                run.append(word.strip("\"'“”‘’"))
                continue
            name = _strip_surrounding(_without_counters(run))
            if 1 <= len(name) <= 5 and _has_product_shape(name):
                yield " ".join(name).strip(".,!?")
            run = []


def _may_belong(word: str) -> bool:
    bare = word.strip("\"'“”‘’.,!?")
    shapes = (CODE_SHAPE, CAPITALISED, NUMBER, MIXED_CASE)
    has_shape = any(shape.fullmatch(bare) for shape in shapes)
    return has_shape or bool(MARKED.search(bare) or CJK.search(bare))


def _without_counters(run: list[str]) -> list[str]:
    """Drop "Step 3", "Version 2.1", "2024" and numbering at the beginning."""
    words = list(dropwhile(lambda word: NUMBER.fullmatch(word) or word.strip(".").isdigit(), run))
    for index, word in enumerate(words):
        if word.lower().strip(".") in COUNTING:
            return words[:index]
    return words


def _strip_surrounding(words: Sequence[str]) -> list[str]:
    inner = [i for i, word in enumerate(words) if word.lower().strip(".,") not in SURROUNDING]
    return list(words[inner[0] : inner[-1] + 1]) if inner else []


def _has_product_shape(words: Sequence[str]) -> bool:
    is_mixed = len(words) > 1 and any(map(MIXED_CASE.fullmatch, words))
    if is_mixed or any(map(MARKED.search, words)) or any(map(_is_code_word, words)):
        return True
    return any(
        CAPITALISED.fullmatch(first) and NUMBER.fullmatch(second) and not YEAR.fullmatch(second)
        for first, second in pairwise(words)
    )


def _is_code_word(word: str) -> bool:
    """Return whether a word is a product code: "XR-500", "S10+", not "2nd", "10GB" or "v2.1"."""
    if not CODE_SHAPE.fullmatch(word) or not word[0].isalpha():
        return False
    if re.split(r"[\W\d_]", word)[0].lower() in COUNTING:  # "Sheet1", "Fig2"
        return False
    return not STANDARD.fullmatch(word) and not re.search(r"^[a-z]+-.*-|\.\w{2,4}$", word)
