"""RTF to sections, as plain text is."""

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import text
from rag.documents.readers.packages import damage_message


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; pictures and comments are left out."""
    from striprtf.striprtf import rtf_to_text

    with damage_message(outline.name):
        plain = rtf_to_text(data.decode("latin-1"), errors="replace")  # type: ignore[no-untyped-call]
    lines = (line.rstrip() for line in plain.split("\n"))
    text.read("\n\n".join(filter(None, lines)).encode(), outline, limits)
