"""Letters that pdfium gives as another character: ligatures, small capitals, old figures.

Adobe's programs write `/Differences [31 /f_i]` for OpenType fonts; pdfium knows `fi`, not `f_i`,
and gives the code. TeX's own fonts name nothing; their codes are those of the TeXbook, appendix F.
What a name is made of, and Adobe's private characters:
https://github.com/adobe-type-tools/agl-specification
"""

import re
import zlib
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

ODD = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\uf724\uf730-\uf77a]|\r(?=[a-z])")
OF_TEX = dict(zip("\x0b\x0c\r\x0e\x0f", ("ff", "fi", "fl", "ffi", "ffl"), strict=True))
IN_A_WORD = re.compile(r"(?<=[A-Za-z])[\x0b-\x0f](?![\n\r])|[\x0b-\x0f](?=[a-z])")
PRIVATE = {0xF730 + at: str(at) for at in range(10)}  # old figures
PRIVATE[0xF724] = "$"
PRIVATE |= {0xF761 + at: chr(ord("A") + at) for at in range(26)}  # small capitals
DIFFERENCES = re.compile(rb"/Differences\s*\[([^\[\]]{0,20000})\]")
CODE_OR_NAME = re.compile(rb"(\d{1,3})|/([^\s/\[\]()<>{}%]+)")
LETTERS = re.compile(rb"[A-Za-z](?:_[A-Za-z])+")
HEAD = re.compile(rb"/ObjStm\b(?:(?!/ObjStm|stream).){0,300}stream\r?\n", re.DOTALL)
MOST_STREAMS = 10_000
MOST_PACKED = 2**20  # bytes, of one stream
MOST_OBJECTS = 2**26  # bytes, unpacked


class Ligatures:
    """Spells what the fonts of a file write with one character; reads the file when asked first."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def spell(self, text: str) -> str:
        """The text with its ligatures in letters; control characters that are none stay."""
        if not ODD.search(text):
            return text
        named = text.translate(self._letters | PRIVATE)
        return IN_A_WORD.sub(lambda found: OF_TEX[found[0]], named)

    @cached_property
    def _letters(self) -> dict[int, str]:
        """By code, where all fonts agree."""
        results: dict[int, set[str]] = {}
        for part in self._parts():
            for match in DIFFERENCES.finditer(part):
                for code, name in _named(match[1]):
                    if code < ord(" "):
                        letters = name.replace(b"_", b"") if LETTERS.fullmatch(name) else b""
                        results.setdefault(code, set()).add(letters.decode("ascii"))
        return {
            code: min(names) for code, names in results.items() if len(names) == 1 and all(names)
        }

    def _parts(self) -> Iterator[bytes]:
        """The file, and the objects that are packed in it."""
        yield self._data
        left, whole = MOST_OBJECTS, memoryview(self._data)
        for match in islice(HEAD.finditer(self._data), MOST_STREAMS):
            packed = whole[match.end() : match.end() + MOST_PACKED]
            try:
                part = zlib.decompressobj().decompress(packed, left)
            except zlib.error:  # packed in another way, or encrypted
                continue
            yield part
            left -= len(part)
            if left <= 0:
                return


def _named(differences: bytes) -> Iterator[tuple[int, bytes]]:
    """Codes with their names: a number, and names for it and those after it."""
    code = 0
    for number, name in CODE_OR_NAME.findall(differences):
        if name:
            yield code, name.partition(b".")[0]
            code += 1
        else:
            code = int(number)
