"""Decode bytes to text, and remove characters that no reader should see."""

import re
import unicodedata
from contextlib import suppress
from datetime import date
from pathlib import PurePosixPath

_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?!\d{8})")

BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Without this list the detector tries a hundred code pages and prefers rare ones for short text.
LIKELY_ENCODINGS = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r", "mac_roman"),
    *("cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949"),
]
# The most frequent characters of each script: of running text, and of lists and tables.
COMMON = {
    "gb18030": "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生"
    "号价格名称数量单位日期库存型产品编址电话合计总额金备注料件",
    "big5": "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生"
    "號價格名稱數量單位日期庫存型產品編址電話合計總額金備註料件",
    "cp949": "이가다는을의에하고기지도사자로인어리시대정은수서부나만해일전보관계합명격량품번호"
    "제름주소금액년월단총재비한원",
    "cp932": "のにはをたがでてとしれさあいうえおかきくこすせそちつなぬねひふほまみむめもやゆよらり"
    "るろわんアイウエオカキクケコサシスセソタチツテトナニネノハヒフヘホマミムメモヤユヨラリルレロワンー",
}
SHORT_BYTES = 400
WESTERN = ("cp1252", "cp850", "mac_roman")
BESIDE_LATIN = re.compile(r"[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][a-z]")
# Evidence of a wrong encoding: a symbol in a word, or a capital after a small letter.
ODD = re.compile(
    r"[a-z][^\x00-\x7f\w\u2018\u2019\u2013\u2014\u201c\u201d\u2026 ]|[a-z][À-ÞŠŒŽŸ]"
    r"|[^\x00-\x7f\w][a-z]{2}|[^\x00-\x7f]{3}"
)
SAMPLE_BYTES = 65_536
WIDE = [*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]
WIDE_FORMS = {code: code - 0xFEE0 for code in (*WIDE, *map(ord, "－．＋％／"))}
INVISIBLE = WIDE_FORMS | dict.fromkeys(
    [
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *(0xAD, 0x200B, 0x2060, 0xFEFF),  # soft hyphens and blanks without a width
        *range(0xD800, 0xE000),  # lone surrogates: no database takes them
        *(*range(0xFFF9, 0xFFFC), 0xFFFE, 0xFFFF),
    ]
)
LINE_ENDS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")
BLANKS = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u3000]+")
MANY_NEWLINES = re.compile(r"\n{3,}")


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode bytes in an unknown encoding; what cannot be decoded becomes U+FFFD.

    Tried in order: byte order mark, UTF-8, the encoding that the file declares, UTF-16 by its zero
    bytes, a guess.
    """
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # cut off within the last character
            return data.decode("utf-8", errors="replace")
    if declared and (text := _decoded(data, declared)) is not None:
        return text
    sample = data[:SAMPLE_BYTES]
    encoding = utf16_by_zeros(sample) or _of_a_short_text(sample)
    if not encoding:
        from charset_normalizer import from_bytes

        best = from_bytes(sample, cp_isolation=LIKELY_ENCODINGS).best()
        encoding = best.encoding if best else "cp1252"
    return data.decode(encoding, errors="replace")


def utf16_by_zeros(data: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark, whose every other byte is zero, or None."""
    sample = data[:SAMPLE_BYTES]
    half = len(sample) // 2
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    for order, zeros, others in (("le", odd, even), ("be", even, odd)):
        if half >= 2 and zeros > half * 0.7 and others < half * 0.1:
            return f"utf-16-{order}"
    return None


def _of_a_short_text(sample: bytes) -> str:
    """Guess the encoding of text too short for the detector, from frequent characters.

    East Asian encodings count their commonest characters, western ones letters within words.
    """
    if sum(byte > 0x7F for byte in sample) > SHORT_BYTES:
        return ""
    texts = {name: text for name in COMMON if (text := _decoded(sample, name)) is not None}
    hits = {name: sum(map(COMMON[name].count, text)) for name, text in texts.items()}
    most = max(hits.values(), default=0)
    best = [name for name in hits if hits[name] == most]
    if most > 1 and len(best) == 1:
        return best[0]
    western = {name: text for name in WESTERN if (text := _decoded(sample, name)) is not None}
    odd = {name: len(ODD.findall(text)) for name, text in western.items()}
    is_latin = all(BESIDE_LATIN.search(text) for text in western.values())
    return min(odd, key=odd.__getitem__) if is_latin and len(set(odd.values())) > 1 else ""


def _decoded(sample: bytes, encoding: str) -> str | None:
    try:
        return sample.decode(encoding)
    except (LookupError, UnicodeError):
        return None


def clean(text: str) -> str:
    """Remove control characters and lone surrogates; make line ends `\\n`; normalise to NFC.

    Full-width letters and digits become ordinary ones.
    """
    text = LINE_ENDS.sub("\n", text).translate(INVISIBLE)
    return unicodedata.normalize("NFC", text)


def tidy(text: str) -> str:
    """Clean text: single blanks, none at line ends, at most one empty line in a row."""
    lines = (BLANKS.sub(" ", line).strip() for line in clean(text).split("\n"))
    return MANY_NEWLINES.sub("\n\n", "\n".join(lines)).strip()


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def name_in_words(name: str) -> str:
    """Return a file's name without folders and ending, with blanks for underscores."""
    return one_line(PurePosixPath(name).stem.replace("_", " "))


def day_in(text: str) -> str:
    """Return the day at the beginning of a date, as "2025-03-31"; "" if there is none."""
    match = _DAY.match(text.strip())
    with suppress(ValueError):
        return date(*map(int, match.groups())).isoformat() if match else ""
    return ""


def one_line(text: str) -> str:
    """Clean text and put it on one line."""
    return " ".join(clean(text).split())


def shorten(text: str, limit: int) -> str:
    """Cut text to at most `limit` characters with an ellipsis, after a word if one ends near."""
    if len(text) <= limit:
        return text
    beginning = text[: limit - 1]
    word_end = beginning.rfind(" ")
    return beginning[: word_end if word_end > limit * 0.6 else None].rstrip() + "…"
