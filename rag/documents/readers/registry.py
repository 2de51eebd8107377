"""The reader of each format, imported when the first file of its kind is read."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from rag.documents.kinds import FileKind, kind_of
from rag.documents.limits import LoadLimits, check_size
from rag.documents.outline import Outline
from rag.errors import TooLarge, Unreadable
from rag.records import ParsedDocument

Reader = Callable[[bytes, Outline, LoadLimits], None]  # it fills the outline
READERS = {
    FileKind.MARKDOWN: "markdown",
    FileKind.HTML: "html",
    FileKind.PDF: "pdf.reader",
    FileKind.DOCX: "docx",
    FileKind.PPTX: "pptx",
    FileKind.XLSX: "sheets:read_xlsx",
    FileKind.CSV: "sheets:read_csv",
    FileKind.RST: "rst",
    FileKind.ASCIIDOC: "rst:read_asciidoc",
    FileKind.TEXT: "text",
    FileKind.EPUB: "epub",
    FileKind.EML: "mail",
    FileKind.MSG: "mail",
    FileKind.MBOX: "mail:read_mailbox",
    FileKind.ODT: "opendocument",
    FileKind.ODP: "opendocument",
    FileKind.ODS: "opendocument:read_sheets",
    FileKind.XLS: "sheets:read_xls",
    FileKind.PARQUET: "sheets:read_parquet",
    FileKind.RTF: "text:read_rtf",
    FileKind.NOTEBOOK: "text:read_notebook",
    **dict.fromkeys((FileKind.JSON, FileKind.JSON_LINES, FileKind.YAML, FileKind.XML), "data"),
    FileKind.SUBTITLES: "text:read_subtitles",
    **{kind: "pictures" for kind in FileKind if kind.startswith("image/")},
}
MOST_INSIDE = 50  # files contained in another file
DEEPEST_INSIDE = 8  # attachments of attachments: each level is decoded once more


def reader_of(kind: FileKind) -> Reader:
    """Return the reader of a kind, importing its module."""
    module, _, name = READERS[kind].partition(":")
    reader = getattr(import_module(f"rag.documents.readers.{module}"), name or "read")
    return cast(Reader, reader)


class AttachedFiles:
    """Files contained in another file, such as a mail's attachments: its next sections."""

    def __init__(self, outline: Outline, limits: LoadLimits) -> None:
        self._outline = outline
        self._limits = limits
        self._count = 0

    def add(self, name: str, data: bytes) -> None:
        """Read an attachment; one that cannot be read, or is too large, is reported."""
        self._count += 1
        if self._count > MOST_INSIDE or self._outline.inside >= DEEPEST_INSIDE:
            self._outline.left_out.append(f"attachment {name}: too many, or too deep inside")
            return
        outline, title = self._outline, self._outline.title
        author, date = outline.author, outline.date
        outline.inside += 1
        try:
            kind = kind_of(name, data)
            outline.leave_headings()
            outline.place(f"attachment {name}")
            outline.heading(1, name)
            reader_of(kind)(data, outline, self._limits)
        except Unreadable as error:
            reason = error.reason.partition(" Supported are ")[0]
            outline.left_out.append(f"attachment {name}: {reason}")
        except TooLarge as error:
            outline.left_out.append(f"attachment {name}: {error}")
        finally:
            outline.inside -= 1
            outline.title, outline.author, outline.date = title, author, date


def load(name: str, data: bytes, *, limits: LoadLimits) -> ParsedDocument:
    """Read a file in this process; for untrusted files use `GuardedLoader`.

    Raises:
        Unreadable: Encrypted, damaged, without text, or an unsupported format.
        TooLarge: More bytes, pages, cells or characters than the limits allow.
    """
    check_size(name, len(data), limits=limits)
    if not data:
        raise Unreadable(name, "the file is empty (0 bytes).")
    kind = kind_of(name, data)
    outline = Outline(name, media_type=kind.value, max_characters=limits.max_characters)
    reader_of(kind)(data, outline, limits)
    return outline.finish()
