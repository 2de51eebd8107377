"""Words without what people leave out when they type."""

import unicodedata

from rag.language.late import re

_ACCENTS = re.compile(r"[\u0300-\u036f]+")


def plain(told: str) -> str:
    """Without capitals and accents."""
    if told.isascii():
        return told.lower()
    apart = unicodedata.normalize("NFD", told.lower())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))
