"""Which format a file has: by its content first, then by the ending of its name."""

import io
import zipfile
from enum import StrEnum
from pathlib import PurePosixPath

from rag.documents.cleaning import utf16_by_zeros
from rag.errors import Unreadable

SUPPORTED = "Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, reStructuredText and plain text"
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
    TEXT = "text/plain", "Text"


ENDINGS = {
    FileKind.MARKDOWN: ".md .markdown .mdown .mkd .mdx",
    FileKind.HTML: ".html .htm .xhtml",
    FileKind.CSV: ".csv .tsv",
    FileKind.RST: ".rst .rest",
    FileKind.TEXT: ".txt .text .log .adoc .asciidoc .org .nfo .readme",
}
BY_ENDING = {ending: kind for kind, endings in ENDINGS.items() for ending in endings.split()}
BY_ENDING[""] = FileKind.TEXT
BY_FOLDER = {"word/": FileKind.DOCX, "ppt/": FileKind.PPTX, "xl/": FileKind.XLSX}
ZIPPED_OTHERS = {
    b"application/vnd.oasis.opendocument.text": "an OpenDocument text; save it as DOCX",
    b"application/vnd.oasis.opendocument.spreadsheet": "an OpenDocument sheet; save it as XLSX",
    b"application/vnd.oasis.opendocument.presentation": "OpenDocument slides; save them as PPTX",
    b"application/epub+zip": "an EPUB book; save it as HTML or PDF",
}
OTHER_MAGIC = {
    (b"{\\rtf",): "an RTF file; save it as DOCX",
    (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\x00"): "a picture; text in pictures is not read",
    (b"\x1f\x8b", b"Rar!", b"7z\xbc\xaf"): "a compressed archive; unpack it first",
    (b"%!PS",): "a PostScript file; save it as PDF",
    (b"SQLite format 3",): "a database",
    (b"\x7fELF", b"MZ\x90"): "a program",
}
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
HTML_STARTS = (b"<!doctype html", b"<html")


def kind_of(name: str, data: bytes) -> FileKind:
    """Raises Unreadable for formats that we do not read, saying which do."""
    if b"%PDF-" in data[:1024]:
        return FileKind.PDF
    if data.startswith(ZIP_MAGIC):
        return _zipped_kind(name, data)
    if data.startswith(OLE_MAGIC):
        raise Unreadable(name, _ole_reason(data))
    for magics, description in OTHER_MAGIC.items():
        if data.startswith(magics):
            raise _unsupported(name, description)
    if _is_binary(data):
        raise _unsupported(name, _binary_description(name))
    return _text_kind(name, data)


def ending_of(name: str) -> str:
    """Lower case, with its dot; empty for none."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _unsupported(name: str, description: str) -> Unreadable:
    return Unreadable(name, f"this is {description}. Supported are {SUPPORTED}.")


def _zipped_kind(name: str, data: bytes) -> FileKind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.namelist()
            mimetype = archive.open("mimetype").read(200) if "mimetype" in members else b""
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        raise Unreadable(
            name,
            "the file is damaged or was cut off (its zip directory cannot be read). "
            "Save or copy it again.",
        ) from error
    for folder, kind in BY_FOLDER.items():
        if "[Content_Types].xml" in members and any(each.startswith(folder) for each in members):
            return kind
    described = ZIPPED_OTHERS.get(mimetype.strip(), "a zip archive; unpack it first")
    raise _unsupported(name, described)


def _ole_reason(data: bytes) -> str:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "the file is encrypted and needs a password. Save it without one, then ingest it."
    return (
        "this is an Office file of before 2007 or an Outlook message. "
        f"Save it as DOCX, XLSX or PPTX. Supported are {SUPPORTED}."
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
    return "a binary file of an unknown format"


def _text_kind(name: str, data: bytes) -> FileKind:
    ending = ending_of(name)
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if ending in {".docx", ".pptx", ".xlsx", ".pdf"} and not start.startswith(HTML_STARTS):
        raise _unsupported(name, _binary_description(name))
    if start.startswith(HTML_STARTS) and BY_ENDING.get(ending) is not FileKind.MARKDOWN:
        return FileKind.HTML
    kind = BY_ENDING.get(ending)
    if kind is None:
        raise Unreadable(name, f"{ending} files are not read. Supported are {SUPPORTED}.")
    return kind
