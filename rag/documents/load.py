"""A file's bytes to its text in sections."""

from rag.documents.kinds import kind_of
from rag.documents.limits import LoadLimits, check_size
from rag.documents.outline import Outline
from rag.documents.readers.registry import reader_of
from rag.errors import Unreadable
from rag.records import ParsedDocument


def load(name: str, data: bytes, *, limits: LoadLimits) -> ParsedDocument:
    """Read a file in this process; `guard.GuardedLoader` is for files nobody has vouched for.

    Raises:
        Unreadable: encrypted, broken, without text, or a format that is not supported.
        TooLarge: more bytes, pages, cells or characters than the limits allow.
    """
    check_size(name, len(data), limits=limits)
    if not data:
        raise Unreadable(name, "the file is empty (0 bytes).")
    kind = kind_of(name, data)
    outline = Outline(name, media_type=kind.value, max_characters=limits.max_characters)
    reader_of(kind)(data, outline, limits)
    return outline.finish()
