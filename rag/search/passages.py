"""The neighbourhood in which a chunk is read: small chunks to match, whole thoughts to read."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from rag.language.sentences import CODE_INDENT
from rag.records import Hit

PASSAGE_WORDS = 220
MAX_PASSAGE_WORDS = 380  # of two passages made one, and of a table with its header

Texts = Mapping[tuple[str, int], str]  # of sections

# A new line, or a stop before what may begin a sentence; abbreviations go on in small letters.
# What it may begin with stands first, in one class: all else is passed over four times as quickly.
_SENTENCE_END = re.compile(
    r"[.!?…。！？\n](?:(?<=[.!?…])['\"”’)\]]*\s+(?![a-z])|(?<=[。！？])|(?<=\n)\n*)"
)
_LINE = re.compile(r"[^\n]*\n+|[^\n]+")
_CODE = re.compile(rf"\n*{CODE_INDENT}")
_ENTRY = re.compile(r"[ \t]*(?:[-*+•◦‣–]|\(?\d{1,3}[.)])[ \t]+(?=\S)")
_NEAR = 3_000  # characters around a range: a block of more is too long, as is what is read
_TABLE_LINE = re.compile(r"^[ \t]*\|.*$", re.MULTILINE)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def neighbourhood(
    text: str, start: int, end: int, *, words: int = PASSAGE_WORDS
) -> tuple[int, int]:
    """Grow `[start, end)` by whole sentences on both sides, up to about so many words.

    What follows is read more often than what came before, so it is tried first. Rows of a table
    get the table's header when it is near enough.
    """
    start, end = _with_table_header(text, start, end)
    edges = [0, *_edges(text, max(0, start - _NEAR), end + _NEAR), len(text)]
    before = [edge for edge in edges if edge < start]
    after = [edge for edge in reversed(edges) if edge > end]
    room = words - count_words(text[start:end])
    is_growing = True
    while is_growing:
        is_growing = False
        if after and (cost := count_words(text[end : after[-1]])) <= room:
            end, room, is_growing = after.pop(), room - cost, True
        if before and (cost := count_words(text[before[-1] : start])) <= room:
            start, room, is_growing = before.pop(), room - cost, True
    return _stripped(text, *_with_whole_blocks(text, start, end))


def _with_whole_blocks(text: str, start: int, end: int) -> tuple[int, int]:
    """Up to the edges of the list, table or code that begins before it, or goes on behind it."""
    left, right = start, end
    for block_start, block_end in _blocks(text, max(0, start - _NEAR), end + _NEAR):
        if block_start < start < block_end:
            left = block_start
        if block_start < end < block_end:
            right = block_end
    for grown in ((left, right), (start, right), (left, end)):
        if count_words(text[slice(*grown)]) <= MAX_PASSAGE_WORDS:
            return grown
    return start, end


def _blocks(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Lists with the line that leads in, tables, and code with its empty lines, between places."""
    kind, start, end, is_apart = "", 0, 0, False
    lead: int | None = None  # where a line begins that what follows belongs to
    for line in _LINE.finditer(text, text.rfind("\n", 0, first) + 1, last):
        said = line.group().rstrip()
        own = _kind(said, kind)
        if own != kind or not own or (own == "table" and is_apart):
            if kind:
                yield start, end
            kind, start = own, line.start() if lead is None else lead
        end = line.start() + len(said)
        is_apart = line.group().endswith("\n\n")  # a long table has its header again behind a gap
        lead = line.start() if said.endswith((":", "：")) and not own else None
    if kind:
        yield start, end


def _kind(line: str, above: str) -> str:
    """Of a line below another of some kind; empty lines come with the line above them."""
    if line.startswith("|"):
        return "table"
    if _ENTRY.match(line) or (above == "list" and line.startswith("  ")):
        return "list"
    return "code" if line.startswith(CODE_INDENT) else ""


def _edges(text: str, first: int, last: int) -> Iterator[int]:
    """Where sentences and lines end between places; a row of a table is never cut."""
    for line in _LINE.finditer(text, text.rfind("\n", 0, first) + 1, last):
        if not line.group().lstrip().startswith("|"):
            yield from (match.end() for match in _SENTENCE_END.finditer(text, *line.span()))
        yield line.end()


def count_words(text: str) -> int:
    """Words; two letters of an unspaced script count as one."""
    words = len(text.split())
    return words if text.isascii() else words + len(_UNSPACED.findall(text)) // 2


def _table_start(text: str, start: int) -> int | None:
    """Where the table begins that this place is in, if it is in one."""
    line_start = text.rfind("\n", 0, start) + 1
    while line_start > 0 and _TABLE_LINE.match(text, line_start):
        previous = text.rfind("\n", 0, line_start - 1) + 1
        if not _TABLE_LINE.match(text, previous):
            break
        line_start = previous
    return line_start if _TABLE_LINE.match(text, line_start) else None


def _with_table_header(text: str, start: int, end: int) -> tuple[int, int]:
    """From the first line of the table in which the range begins, unless that is too far."""
    line_start = _table_start(text, start)
    if line_start is None:
        return start, end
    is_near = count_words(text[line_start:end]) <= MAX_PASSAGE_WORDS
    return (min(line_start, start), end) if is_near else (start, end)


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, end
    # The first line of code keeps its indent, by which it is known.
    blank = "\n" if _CODE.match(piece) else None
    return start + len(piece) - len(piece.lstrip(blank)), start + len(piece.rstrip())


def grown(hit: Hit, texts: Texts, spans: dict[str, tuple[int, int]]) -> Hit:
    """A hit in the neighbourhood of its chunk; `spans` has those that are known."""
    chunk, text = hit.chunk, texts.get(section_of(hit))
    if text is None:
        return hit
    if chunk.id not in spans:
        spans[chunk.id] = neighbourhood(text, chunk.start, chunk.end)
    start, end = spans[chunk.id]
    return replace(hit, passage=text[start:end], passage_start=start, passage_end=end)


def merged(
    hits: Sequence[Hit], texts: Texts, limit: int, read: Callable[[Hit, Texts], Hit] | None = None
) -> list[Hit]:
    """The best hits, with passages that overlap or adjoin in a section made one.

    The better chunk stays the hit's own. Two passages stay apart where one would be too long,
    unless the better one already holds the other's chunk. `read` gives a hit its passage: only
    those are read that may be among the best, or be a part of one.
    """
    kept: list[Hit] = []
    for hit in hits:
        same = [place for place, each in enumerate(kept) if section_of(each) == section_of(hit)]
        if len(kept) >= limit and not same:
            continue
        own = hit if read is None else read(hit, texts)
        for place in same:
            joined = _joined(kept[place], own, texts)
            if joined is not None:
                kept[place] = joined
                break
        else:
            kept.append(own)
    return kept[:limit]


def section_of(hit: Hit) -> tuple[str, int]:
    """The key of its section."""
    return hit.chunk.document_id, hit.chunk.section_index


def _joined(better: Hit, other: Hit, texts: Texts) -> Hit | None:
    """Of the same section."""
    text = texts.get(section_of(better))
    if text is None:
        return None
    if better.passage_start <= other.chunk.start and other.chunk.end <= better.passage_end:
        return better
    start = min(better.passage_start, other.passage_start)
    end = max(better.passage_end, other.passage_end)
    gap_start = min(better.passage_end, other.passage_end)
    gap_end = max(better.passage_start, other.passage_start)
    if text[gap_start:gap_end].strip() or count_words(text[start:end]) > MAX_PASSAGE_WORDS:
        return None
    return replace(better, passage=text[start:end], passage_start=start, passage_end=end)
