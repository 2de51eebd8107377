"""The reader of each format, loaded when the first file of its kind comes."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from rag.documents.kinds import FileKind, kind_of
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.errors import TooLarge, Unreadable

Reader = Callable[[bytes, Outline, LoadLimits], None]  # fills the outline
READERS = {
    FileKind.MARKDOWN: "markdown",
    FileKind.HTML: "html",
    FileKind.PDF: "pdf.reader",
    FileKind.DOCX: "docx",
    FileKind.PPTX: "pptx",
    FileKind.XLSX: "grids.xlsx",
    FileKind.CSV: "grids.csv",
    FileKind.RST: "markup.rst",
    FileKind.ASCIIDOC: "markup.asciidoc",
    FileKind.TEXT: "text",
    FileKind.EPUB: "epub",
    FileKind.EML: "mail",
    FileKind.MSG: "mail",
    FileKind.MBOX: "mbox",
    FileKind.ODT: "opendocument",
    FileKind.ODP: "opendocument",
    FileKind.ODS: "grids.sheets",
    FileKind.XLS: "grids.sheets",
    FileKind.PARQUET: "grids.parquet",
    FileKind.RTF: "rtf",
    FileKind.NOTEBOOK: "notebook",
    FileKind.JSON: "data",
    FileKind.JSON_LINES: "data",
    FileKind.YAML: "data",
    FileKind.XML: "data",
    FileKind.SUBTITLES: "subtitles",
    FileKind.PNG: "pictures.reader",
    FileKind.JPEG: "pictures.reader",
    FileKind.TIFF: "pictures.reader",
    FileKind.GIF: "pictures.reader",
    FileKind.WEBP: "pictures.reader",
    FileKind.BMP: "pictures.reader",
}
MOST_INSIDE = 50  # files that stand in another one
DEEPEST_INSIDE = 3  # a mail in a mail in a mail


def reader_of(kind: FileKind) -> Reader:
    """Its module is loaded now."""
    module = import_module(f"rag.documents.readers.{READERS[kind]}")
    return cast(Reader, module.read)


class AttachedFiles:
    """Files that stand in another one, such as the attachments of a mail: its next sections."""

    def __init__(self, outline: Outline, limits: LoadLimits, *, depth: int) -> None:
        self._outline = outline
        self._limits = limits
        self._depth = depth
        self._count = 0

    def add(self, name: str, data: bytes) -> None:
        """What cannot be read is told in the report. Raises TooLarge as every reader does."""
        self._count += 1
        if self._count > MOST_INSIDE or self._depth >= DEEPEST_INSIDE:
            self._outline.left_out.append(f"attachment {name}: too many, or too deep inside")
            return
        outline, title = self._outline, self._outline.title
        author, date = outline.author, outline.date
        try:
            kind = kind_of(name, data)
            outline.leave_headings()
            outline.place(f"attachment {name}")
            outline.heading(1, name)
            reader_of(kind)(data, outline, self._limits)
        except Unreadable as error:
            outline.left_out.append(f"attachment {name}: {_reason(error)}")
        except TooLarge as error:
            outline.left_out.append(f"attachment {name}: {error}")
        finally:
            outline.title, outline.author, outline.date = title, author, date


def _reason(error: Unreadable) -> str:
    return error.reason.partition(" Supported are ")[0]
