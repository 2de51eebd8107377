"""Which format a file has: by its content first, then by the ending of its name."""

import io
import zipfile
import zlib
from enum import StrEnum
from pathlib import PurePosixPath

from rag.documents.archives import check_honest
from rag.documents.cleaning import utf16_by_zeros
from rag.errors import Unreadable

SUPPORTED = (
    "Markdown, HTML, PDF, DOCX, PPTX, XLSX, XLS, CSV, Parquet, ODT, ODS, ODP, EPUB, RTF, mails "
    "(EML, MSG, MBOX), Jupyter notebooks, JSON, YAML, XML, subtitles (VTT, SRT), reStructuredText, "
    "AsciiDoc and whatever else is plain text"
)
SAVE_AS = "if it is a document, save it as PDF in the program that made it"
OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
OFFICE = "application/vnd.openxmlformats-officedocument"


class FileKind(StrEnum):
    """A format that we can read; the value is its media type, `word` what people call it."""

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


BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, EOFError)
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
HTML_STARTS = (b"<!doctype html", b"<html")
XML_STARTS = (b"<?xml", b"<svg")


def kind_of(name: str, data: bytes) -> FileKind:
    """Raises Unreadable for formats that we do not read, saying which do."""
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
    if _is_binary(data):
        raise _unsupported(name, _binary_description(name))
    return _text_kind(name, data)


def _kind_by_magic(data: bytes) -> FileKind | None:
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return FileKind.WEBP
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return FileKind.BMP
    return next((kind for magic, kind in MAGIC.items() if data.startswith(magic)), None)


def ending_of(name: str) -> str:
    """Lower case, with its dot; empty for none."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _unsupported(name: str, description: str) -> Unreadable:
    return Unreadable(name, f"this is {description}. Supported are {SUPPORTED}.")


def _zipped_kind(name: str, data: bytes) -> FileKind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            members = [part.filename for part in parts]
            mimetype = archive.open("mimetype").read(200) if "mimetype" in members else b""
    except (*BROKEN_ZIP, NotImplementedError, RuntimeError, OSError, ValueError) as error:
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
        raise _unsupported(
            name, "a Word or PowerPoint file of before 2007; save it as DOCX or PPTX"
        )
    for stream, kind in OLE_STREAMS.items():
        if stream.encode("utf-16-le") in data:
            return kind
    raise _unsupported(
        name, f"a file of Office, or of a program like it, of before 2007; {SAVE_AS}"
    )


def _is_binary(data: bytes) -> bool:
    sample = data[:8192]
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")) or utf16_by_zeros(sample):
        return False
    controls = sum(
        sample.count(bytes([code])) for code in range(0x20) if code not in b"\t\n\r\f\x1b"
    )
    # A few stray NULs are cleaned away; a file full of them is not text.
    return controls > max(8, len(sample) // 20)


def _binary_description(name: str) -> str:
    if ending_of(name) in {".pdf", ".docx", ".pptx", ".xlsx"}:
        return f"not really a {ending_of(name)[1:].upper()} file: its content is unknown or damaged"
    return f"a binary file of an unknown format; {SAVE_AS}"


def _text_kind(name: str, data: bytes) -> FileKind:
    ending = ending_of(name)
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if ending in {".docx", ".pptx", ".xlsx", ".pdf"} and not start.startswith(HTML_STARTS):
        raise _unsupported(name, _binary_description(name))
    if start.startswith(HTML_STARTS) and BY_ENDING.get(ending) is not FileKind.MARKDOWN:
        return FileKind.HTML
    unnamed = FileKind.XML if start.startswith(XML_STARTS) else FileKind.TEXT
    return BY_ENDING.get(ending, unnamed)
