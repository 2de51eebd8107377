"""Words without what people leave out when they type."""

import unicodedata

from rag.language.lazy_patterns import re

_ACCENTS = re.compile(r"[\u0300-\u036f]+")


def plain(text: str) -> str:
    """Without capitals and accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))
