"""XML that is a text (DocBook, DITA, TEI, FB2, JATS, subtitles in TTML, drawings) to sections."""

from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.outline import Outline

TITLES = ("title", "head", "heading", "h1", "h2", "h3", "h4")
UNSEEN = ("style", "script", "metadata", "binary")
DEEPEST = 40  # what is nested deeper is told in one paragraph


def is_prose(root: Any) -> bool:
    """Whether words stand beside elements, as in no file of data; or it is a drawing."""
    is_mixed = any((child.tail or "").strip() for element in root.iter() for child in element)
    return is_mixed or local_name(root.tag) == "svg"


def write_prose(root: Any, outline: Outline) -> None:
    """Fill the outline in reading order."""
    outline.fallback_title = outline.stem
    _write(root, outline, 1)


def _write(element: Any, outline: Outline, level: int) -> None:
    name = local_name(element.tag)
    if name in UNSEEN:
        return
    has_words = any(map(str.strip, [element.text or "", *(each.tail or "" for each in element)]))
    if not has_words and level < DEEPEST:
        for child in element:
            _write(child, outline, level + 1)
        return
    words = one_line("".join(element.itertext()))
    if name in TITLES:
        outline.heading(level, words)
    else:
        outline.paragraph(words)


def local_name(tag: object) -> str:
    """Without its namespace; "text" of a comment."""
    return tag.rsplit("}", 1)[-1] if isinstance(tag, str) else "text"
