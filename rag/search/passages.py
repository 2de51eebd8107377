"""The neighbourhood in which a chunk is read, and the order in which hits are shown.

Small chunks match, whole passages are read. Sections of one document whose headings differ in one
place only, such as conscious and unconscious patients, are shown side by side. So are the steps of
a procedure that are sections of their own. Contents pages come last, and one document does not take
all places.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from rag.language.sentences import CODE_INDENT
from rag.language.words import content_words
from rag.records import Chunk, Hit

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
    """Extend a range to the edges of the list, table or code block that it cuts."""
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
    """Yield the lists with their lead-in lines, the tables and the code blocks in a range."""
    kind, start, end, is_apart = "", 0, 0, False
    lead: int | None = None  # where a line begins that what follows belongs to
    for line in _LINE.finditer(text, text.rfind("\n", 0, first) + 1, last):
        content = line.group().rstrip()
        line_kind = _kind(content, kind)
        if line_kind != kind or not line_kind or (line_kind == "table" and is_apart):
            if kind:
                yield start, end
            kind, start = line_kind, line.start() if lead is None else lead
        end = line.start() + len(content)
        is_apart = line.group().endswith("\n\n")  # a long table has its header again behind a gap
        lead = line.start() if content.endswith((":", "：")) and not line_kind else None
    if kind:
        yield start, end


def _kind(line: str, above: str) -> str:
    """Return the kind of a line, given the kind above; empty lines have the kind above."""
    if line.startswith("|"):
        return "table"
    if _ENTRY.match(line) or (above == "list" and line.startswith("  ")):
        return "list"
    return "code" if line.startswith(CODE_INDENT) else ""


def _edges(text: str, first: int, last: int) -> Iterator[int]:
    """Yield where sentences and lines end in a range; table rows are never cut."""
    for line in _LINE.finditer(text, text.rfind("\n", 0, first) + 1, last):
        if not line.group().lstrip().startswith("|"):
            yield from (match.end() for match in _SENTENCE_END.finditer(text, *line.span()))
        yield line.end()


def count_words(text: str) -> int:
    """Count words; two letters of a script without spaces count as one."""
    words = len(text.split())
    return words if text.isascii() else words + len(_UNSPACED.findall(text)) // 2


def _with_table_header(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a range to its table's first line, unless that is too far away."""
    first = text.rfind("\n", 0, start) + 1
    if not _TABLE_LINE.match(text, first):
        return start, end
    while first > 0:
        previous = text.rfind("\n", 0, first - 1) + 1
        if not _TABLE_LINE.match(text, previous):
            break
        first = previous
    is_near = count_words(text[first:end]) <= MAX_PASSAGE_WORDS
    return (first if is_near else start), end


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, end
    # The first line of code keeps its indent, by which it is known.
    blank = "\n" if _CODE.match(piece) else None
    return start + len(piece) - len(piece.lstrip(blank)), start + len(piece.rstrip())


def grown(hit: Hit, texts: Texts) -> Hit:
    """Return a hit with the neighbourhood of its chunk."""
    text = texts.get(section_of(hit))
    if text is None:
        return hit
    start, end = neighbourhood(text, hit.chunk.start, hit.chunk.end)
    return replace(hit, passage=text[start:end], passage_start=start, passage_end=end)


def merged(
    hits: Sequence[Hit], texts: Texts, limit: int, read: Callable[[Hit, Texts], Hit]
) -> list[Hit]:
    """Return the best hits; passages of a section that overlap or adjoin are merged.

    The better chunk stays the hit's own. Two passages stay apart where one would be too long,
    unless the better one already holds the other's chunk. `read` gives a hit its passage: only
    those are read that may be among the best, or be a part of one.
    """
    passages: list[Hit] = []
    for hit in hits:
        section = section_of(hit)
        same = [place for place, other in enumerate(passages) if section_of(other) == section]
        if len(passages) >= limit and not same:
            continue
        fresh = read(hit, texts)
        for place in same:
            joined = _joined(passages[place], fresh, texts)
            if joined is not None:
                passages[place] = joined
                break
        else:
            passages.append(fresh)
    return passages[:limit]


def section_of(hit: Hit) -> tuple[str, int]:
    """Return the key of a hit's section."""
    return hit.chunk.document_id, hit.chunk.section_index


def _joined(better: Hit, other: Hit, texts: Texts) -> Hit | None:
    """Merge two hits of the same section; None if the passage would be too long."""
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


_FIGURE = re.compile(r"(\D*[^\W\d_]\D*)(\d{1,2})(?!\d)(?!\.\d)")  # behind a word
BESIDE = 3  # hits whose other conditions are looked for
FARTHEST = 3.0  # standard deviations that the other one may be less like the question
ALIKE = 0.3  # of the words of the shorter, that both must hold
DIFFERENT = 2  # words of two headings that are not in both: "version 4", "version 5"
CROWD, CROWDED = 3, 0.5  # passages of one document; what each further one is less worth
LEADERS = " \t.…·_"  # between a title and its page
AROUND = 8  # sections to either side, among which a procedure's steps are
MOST_STEPS, BEFORE = 5, 2  # that are shown together; of these at most, before the one found
_FEWEST_ENTRIES, _SHARE, MOST_DIGITS = 4, 0.7, 4


def arranged(hits: Sequence[Hit]) -> list[Hit]:
    """Order hits: contrasting sections side by side, documents in turn, contents pages last."""
    contents = [hit for hit in hits if is_contents(hit.chunk.text)]
    passages = [hit for hit in hits if hit not in contents] if contents else hits
    results = _spread_documents(passages)
    for hit in results[:BESIDE]:
        other = next((passage for passage in passages if _contrasts(hit, passage)), None)
        if other is not None and results.index(other) > results.index(hit) + 1:
            results.remove(other)
            results.insert(results.index(hit) + 1, other)
    return [*results, *contents]


def is_step(chunk: Chunk) -> bool:
    """Whether a heading counts steps: `Step 2`, `Schritt 2: Saugen`; not `2. Warranty`."""
    return _counted(chunk) is not None


def with_steps(hits: Sequence[Hit], step: Hit, near: Sequence[Chunk]) -> list[Hit]:
    """Return the hits with a step's whole procedure in order; `near` are the chunks around it.

    Sections are steps if their headings have one parent, begin alike and count up, and if all
    together are no longer than a passage; chapters and paragraphs of a law are longer.
    """
    run = _run_of(step.chunk, near)
    firsts = [chunks[0] for chunks in run.values()]
    if len(run) < 2 or sum(count_words(c.text) for c in chain(*run.values())) > MAX_PASSAGE_WORDS:
        return [*hits]
    place = [*run].index(step.chunk.section_index)
    start = max(0, place - BEFORE)
    by_section = {(hit.chunk.document_id, hit.chunk.section_index): hit for hit in reversed(hits)}
    steps = [
        by_section.get((chunk.document_id, chunk.section_index))
        or Hit(chunk, step.score, chunk.text, chunk.start, chunk.end, step.relevance)
        for chunk in firsts[start : start + MOST_STEPS]
    ]
    others = [hit for hit in hits if hit not in steps]
    place = len([hit for hit in hits[: hits.index(step)] if hit not in steps])
    return [*others[:place], *steps, *others[place:]]


def _run_of(chunk: Chunk, near: Sequence[Chunk]) -> dict[int, list[Chunk]]:
    """Return the chunks of the sections that count up to this one and on, by section."""
    sections: dict[int, list[Chunk]] = {}
    for neighbour in near:
        sections.setdefault(neighbour.section_index, []).append(neighbour)
    if chunk.section_index not in sections:  # the document was read anew meanwhile
        return {}
    order = sorted(sections)
    place = order.index(chunk.section_index)
    first = last = place
    while first > 0 and _follows(sections[order[first - 1]][0], sections[order[first]][0]):
        first -= 1
    end = len(order) - 1
    while last < end and _follows(sections[order[last]][0], sections[order[last + 1]][0]):
        last += 1
    return {index: sections[index] for index in order[first : last + 1]}


def _follows(one: Chunk, other: Chunk) -> bool:
    first, second = _counted(one), _counted(other)
    return first is not None and second == (*first[:-1], first[-1] + 1)


def _counted(chunk: Chunk) -> tuple[tuple[str, ...], str, int] | None:
    """Split a heading: the headings above, the text before its first number, the number."""
    *above, heading = chunk.heading_path or ("",)
    match = _FIGURE.match(heading)
    return (tuple(above), match[1].casefold(), int(match[2])) if match else None


def is_contents(text: str) -> bool:
    """Whether a text lists what stands on which page: `Setup ....... 12`."""
    lines = [line for line in text.splitlines() if line.strip()]
    pages = [page for page in map(_page_of_entry, lines) if page is not None]
    return (
        len(pages) >= _FEWEST_ENTRIES
        and len(pages) >= _SHARE * len(lines)
        and pages == sorted(pages)
        and pages[0] < pages[-1]
    )


def _page_of_entry(line: str) -> int | None:
    """Return the page of `Setup ....... 12`; None for other lines. Linear in the line's length."""
    head = line.rstrip().rstrip("0123456789")
    digits = line.rstrip()[len(head) :]
    title = head.rstrip(LEADERS)
    is_entry = bool(title.strip()) and head[len(title) :] not in ("", ".")
    return int(digits) if is_entry and 1 <= len(digits) <= MOST_DIGITS else None


def _spread_documents(hits: Sequence[Hit]) -> list[Hit]:
    """Let hits of other documents that match about as well pass those of a crowded one."""
    counts: Counter[str] = Counter()
    worth: list[tuple[float, int, Hit]] = []
    lowest = float("inf")  # so far: a reranker's order is no order of scores
    for place, hit in enumerate(hits):
        lowest = min(lowest, hit.score)
        over = max(0, counts[hit.chunk.document_id] - CROWD + 1)
        worth.append((lowest - CROWDED * over, -place, hit))
        counts[hit.chunk.document_id] += 1
    return [hit for *_, hit in sorted(worth, key=lambda ranked: ranked[:2], reverse=True)]


def _contrasts(hit: Hit, other: Hit) -> bool:
    """Whether two hits say the same of different conditions."""
    one, two = hit.chunk, other.chunk
    if one.document_id != two.document_id or one.section_index == two.section_index:
        return False
    if other.score < hit.score - FARTHEST or len(one.heading_path) != len(two.heading_path):
        return False
    pairs = zip(one.heading_path, two.heading_path, strict=True)
    different = [(_words(a), _words(b)) for a, b in pairs if a != b]
    if len(different) != 1:
        return False
    [(first, second)] = different
    if not first or not second or len(first ^ second) > DIFFERENT:
        return False
    first, second = set(content_words(one.text)), set(content_words(two.text))
    return len(first & second) >= ALIKE * max(1, min(len(first), len(second)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
