"""How documents are spoken of: their kind in a word, their size as people read it."""

from rag.documents.kinds import FileKind


def kind_in_words(media_type: str) -> str:
    """The kind of a document in one word."""
    return next((kind.word for kind in FileKind if kind == media_type), media_type)


def size_in_words(count: int) -> str:
    """Bytes as people read them: "1.4 MB"."""
    if count < 1000:
        return f"{count} bytes"
    value = count / 1000
    for unit in ("kB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
