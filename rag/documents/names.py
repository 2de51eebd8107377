"""Product names: what a document's title, headings and tables call a product.

A table's product column is believed as it is written. Headings are not: most of them are ordinary
words, so only the part of one that has the shape of a product counts.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, pairwise

from rag.documents.cleaning import one_line
from rag.language.languages import phrases, read_lists, words

NAME_CHARS = 60
NAME_WORDS = 7
MAX_NAMES = 5_000  # of one document

_LISTS = read_lists("names")
_PIECES = re.compile(
    rf"[,;:()\[\]{{}}|/–—]|\s-\s|\s(?:vs\.?|{phrases('ands')}|{phrases('ors')}|&)\s"
)
PRODUCT_COLUMN = re.compile(_LISTS["product_column"], re.IGNORECASE)
VAGUE_COLUMN = re.compile(_LISTS["vague_column"], re.IGNORECASE)
GOODS_COLUMN = re.compile(_LISTS["goods_column"], re.IGNORECASE)
NO_NAME = re.compile(_LISTS["no_name"], re.IGNORECASE)
SENTENCE = re.compile(r"[.!?;:]\s|[.!?]$|https?://|@")
CODE_SHAPE = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[^\W\d_])[\w][\w.+/-]*[™®©+]*")
CAPITALISED = re.compile(r"[\"'(]*[A-ZÀ-ÖØ-ÞΑ-ΩА-Я][\w'’+&-]*[™®©+]*")
MIXED_CASE = re.compile(r"[a-z]+[A-Z][\w-]*|[A-Z]+[a-z]+[A-Z][\w-]*")
NUMBER = re.compile(r"\d{1,5}[A-Za-z]{0,3}\+?[™®©]*")
YEAR = re.compile(r"(?:19|20)\d\d")
MARKED = re.compile(r"[™®]")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

STANDARD = re.compile(
    r"v\d[\d.]*|[QH][1-4]|WPA\d|USB\d?|IPv\d|IPX?\d+|MP[34]|H26[45]|A[0-6]|[2-6]G|BT\d|RS-?\d{3}"
    r"|CAT\d\w?|HDMI\d?|DDR\d|UTF-?\d+|SHA-?\d+|AES-?\d+|ISO-?\d+|WiFi\d|Web\d|B2B|B2C|COVID-19|I/?O",
    re.IGNORECASE,
)

COUNTING = words(_LISTS["counting"])
SURROUNDING = words(_LISTS["surrounding"])
DOCUMENT_WORDS = words(_LISTS["document_words"])


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """In order of first appearance, exact spelling, without what can be no name."""
    return tuple(dict.fromkeys(filter(_is_possible, map(one_line, names))))[:MAX_NAMES]


def in_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The cells of product columns; the first row is the header. Also of upright tables."""
    if len(rows) < 2:
        return []
    is_upright = len(rows[0]) == 2 and _has_product_shape(rows[0][1].split())
    if is_upright:  # "Model | XR-5", one property a line
        cells = [row[1] for row in rows if PRODUCT_COLUMN.fullmatch(row[0].strip(" :"))]
    else:
        cells = _cells(rows)
    return [name for cell in filter(_is_cell_name, cells) for name in _spellings(cell)]


def in_headings(title: str, headings: Sequence[str]) -> list[str]:
    """Product-shaped runs of words in the title and the headings; "" for no title of its own."""
    runs = chain.from_iterable(map(_runs, dict.fromkeys((title, *headings))))
    return [*_title_names(title), *runs]


def siblings(products: Iterable[str], labels: Iterable[str]) -> Iterator[str]:
    """Labels of a table that go on behind a known name: `Aero 5 Pro` beside `Aero 5`."""
    names = set(products)
    for label in labels:
        words = label.split()
        openings = (" ".join(words[:end]) for end in range(1, len(words)))
        is_name = len(words) <= NAME_WORDS and all(map(_may_belong, words))
        if is_name and any(opening in names for opening in openings):
            yield label


def _cells(rows: Sequence[Sequence[str]]) -> list[str]:
    labels = [label.strip(" :*#").replace("_", " ") for label in rows[0]]
    sure = [index for index, label in enumerate(labels) if PRODUCT_COLUMN.fullmatch(label)]
    results = [row[position] for position in sure for row in rows[1:]]
    if any(GOODS_COLUMN.fullmatch(label) for label in labels):
        vague = [index for index, label in enumerate(labels) if VAGUE_COLUMN.fullmatch(label)]
        cells = [row[position] for position in vague for row in rows[1:]]
        results.extend(cell for cell in cells if _has_own_shape(cell))
    return results


def _is_possible(name: str) -> bool:
    return 2 <= len(name) <= NAME_CHARS and any(map(str.isalpha, name))


def _is_cell_name(cell: str) -> bool:
    if not _is_possible(cell) or NO_NAME.fullmatch(cell) or SENTENCE.search(cell):
        return False
    return len(cell.split()) <= NAME_WORDS


def _has_own_shape(cell: str) -> bool:
    """Whether it looks like a name even outside a product column: not "fan", not "ear tips"."""
    return "," not in cell and (cell[:1].isupper() or bool(CJK.search(cell) or MARKED.search(cell)))


def _spellings(cell: str) -> Iterator[str]:
    """The cell as it is, and for `森の音 (Mori no Oto)` both names by themselves."""
    yield cell
    double = re.fullmatch(r"(.+?) ?[(（](.+)[)）]", cell)
    if double:
        outer, inner = double.groups()
        yield outer
        if CJK.search(outer) or all(map(_is_code, inner.split())):
            yield inner


def _title_names(title: str) -> Iterator[str]:
    """ "Nimbus Router User Manual" is about the Nimbus Router."""
    words = re.split(r"\s[–—|:-]\s|:\s", title)[0].split()
    if not any(word.lower() in DOCUMENT_WORDS for word in title.split()):
        return
    name = _strip_surrounding(words)
    if 2 <= len(name) <= 4 and all(_may_belong(word) for word in name) and len(name) < len(words):
        yield " ".join(name)


def _runs(text: str) -> Iterator[str]:
    for piece in _PIECES.split(text):
        run: list[str] = []
        for word in [*piece.split(), ""]:
            if word and _may_belong(word):
                run.append(word.strip("\"'“”‘’"))
                continue
            yield from _name_of_run(run)
            run = []


def _may_belong(word: str) -> bool:
    bare = word.strip("\"'“”‘’.,!?")
    shapes = (CODE_SHAPE, CAPITALISED, NUMBER, MIXED_CASE)
    return any(shape.fullmatch(bare) for shape in shapes) or bool(
        MARKED.search(bare) or CJK.search(bare)
    )


def _name_of_run(run: list[str]) -> Iterator[str]:
    words = _strip_surrounding(_without_counters(run))
    if 1 <= len(words) <= 5 and _has_product_shape(words):
        yield " ".join(words).strip(".,!?")


def _without_counters(run: list[str]) -> list[str]:
    """Drop "Step 3", "Version 2.1", "2024" and numbering at the beginning."""
    words = list(dropwhile(lambda word: NUMBER.fullmatch(word) or word.strip(".").isdigit(), run))
    for index, word in enumerate(words):
        if word.lower().strip(".") in COUNTING:
            return words[:index]
    return words


def _strip_surrounding(words: Sequence[str]) -> list[str]:
    inner = [i for i, word in enumerate(words) if word.lower().strip(".,") not in SURROUNDING]
    return list(words[inner[0] : inner[-1] + 1]) if inner else []


def _has_product_shape(words: Sequence[str]) -> bool:
    is_mixed = len(words) > 1 and any(map(MIXED_CASE.fullmatch, words))
    if is_mixed or any(map(MARKED.search, words)) or any(map(_is_code, words)):
        return True
    return any(
        CAPITALISED.fullmatch(first) and NUMBER.fullmatch(second) and not YEAR.fullmatch(second)
        for first, second in pairwise(words)
    )


def _is_code(word: str) -> bool:
    """ "XR-500", "S10+", but not "2nd", "5th", "10GB" or "v2.1"."""
    if not CODE_SHAPE.fullmatch(word) or not word[0].isalpha():
        return False
    if re.split(r"[\W\d_]", word)[0].lower() in COUNTING:  # "Sheet1", "Fig2"
        return False
    return not STANDARD.fullmatch(word) and not re.search(r"^[a-z]+-.*-|\.\w{2,4}$", word)
