"""The order in which hits stand: what holds under another condition beside what was found.

Nobody who reads what to do with a conscious patient should miss that it is otherwise with an
unconscious one: sections of one document whose headings differ in one place alone, and that speak
of the same, stand together. So do the steps of a procedure that are sections of their own. Contents
pages answer nothing, and one document does not fill it all.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from rag.language.words import content_words
from rag.records import Chunk, Hit
from rag.search.passages import MAX_PASSAGE_WORDS, count_words

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
    """The same, in order: contrasts together, documents in turn, contents pages last."""
    contents = [hit for hit in hits if is_contents(hit.chunk.text)]
    passages = [hit for hit in hits if hit not in contents] if contents else hits
    results = _in_turn(passages)
    for hit in results[:BESIDE]:
        other = next((passage for passage in passages if _contrasts(hit, passage)), None)
        if other is not None and results.index(other) > results.index(hit) + 1:
            results.remove(other)
            results.insert(results.index(hit) + 1, other)
    return [*results, *contents]


def is_step(chunk: Chunk) -> bool:
    """Whether its heading counts: `Step 2`, `Schritt 2: Saugen`; `2. Warranty` is any section."""
    return _counted(chunk) is not None


def with_steps(hits: Sequence[Hit], found: Hit, near: Sequence[Chunk]) -> list[Hit]:
    """A step among the others of its procedure, in their order; `near`: the chunks around it.

    Sections are its steps if their headings stand under one, begin alike and count on, and all
    together are no longer than a passage: chapters and paragraphs of a law are.
    """
    run = _run_of(found.chunk, near)
    firsts = [chunks[0] for chunks in run.values()]
    if len(run) < 2 or sum(count_words(c.text) for c in chain(*run.values())) > MAX_PASSAGE_WORDS:
        return [*hits]
    place = [*run].index(found.chunk.section_index)
    start = max(0, place - BEFORE)
    own = {(hit.chunk.document_id, hit.chunk.section_index): hit for hit in reversed(hits)}
    steps = [
        own.get((chunk.document_id, chunk.section_index))
        or Hit(chunk, found.score, chunk.text, chunk.start, chunk.end, found.relevance)
        for chunk in firsts[start : start + MOST_STEPS]
    ]
    others = [hit for hit in hits if hit not in steps]
    place = len([hit for hit in hits[: hits.index(found)] if hit not in steps])
    return [*others[:place], *steps, *others[place:]]


def _run_of(chunk: Chunk, near: Sequence[Chunk]) -> dict[int, list[Chunk]]:
    """The chunks of the sections that count up to its own and on from it, by section."""
    sections: dict[int, list[Chunk]] = {}
    for each in near:
        sections.setdefault(each.section_index, []).append(each)
    if chunk.section_index not in sections:  # the document was read anew meanwhile
        return {}
    order = sorted(sections)
    place = order.index(chunk.section_index)
    first = last = place
    while first > 0 and _follows(sections[order[first - 1]][0], sections[order[first]][0]):
        first -= 1
    while last + 1 < len(order) and _follows(
        sections[order[last]][0], sections[order[last + 1]][0]
    ):
        last += 1
    return {index: sections[index] for index in order[first : last + 1]}


def _follows(one: Chunk, other: Chunk) -> bool:
    first, second = _counted(one), _counted(other)
    return first is not None and second == (*first[:-1], first[-1] + 1)


def _counted(chunk: Chunk) -> tuple[tuple[str, ...], str, int] | None:
    """What stands above its heading, what before the first figure there, and the figure."""
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
    """Of `Setup ....... 12`; of what is no entry None. In linear time, whatever the line is."""
    head = line.rstrip().rstrip("0123456789")
    digits = line.rstrip()[len(head) :]
    title = head.rstrip(LEADERS)
    is_entry = bool(title.strip()) and head[len(title) :] not in ("", ".")
    return int(digits) if is_entry and 1 <= len(digits) <= MOST_DIGITS else None


def _in_turn(hits: Sequence[Hit]) -> list[Hit]:
    """A document that has had its share gives way to others that match about as well."""
    counts: Counter[str] = Counter()
    worth: list[tuple[float, int, Hit]] = []
    lowest = float("inf")  # so far: a reranker's order is no order of scores
    for place, hit in enumerate(hits):
        lowest = min(lowest, hit.score)
        over = max(0, counts[hit.chunk.document_id] - CROWD + 1)
        worth.append((lowest - CROWDED * over, -place, hit))
        counts[hit.chunk.document_id] += 1
    return [hit for *_, hit in sorted(worth, key=lambda each: each[:2], reverse=True)]


def _contrasts(hit: Hit, other: Hit) -> bool:
    """Whether it says the same of another condition."""
    one, two = hit.chunk, other.chunk
    if one.document_id != two.document_id or one.section_index == two.section_index:
        return False
    return (
        other.score >= hit.score - FARTHEST
        and _differ_in_one_place(one, two)
        and _speak_of_the_same(one, two)
    )


def _differ_in_one_place(one: Chunk, two: Chunk) -> bool:
    pairs = list(zip(one.heading_path, two.heading_path, strict=False))
    different = [(set(_words(a)), set(_words(b))) for a, b in pairs if a != b]
    if len(one.heading_path) != len(two.heading_path) or len(different) != 1:
        return False
    [(first, second)] = different
    return bool(first and second) and len(first ^ second) <= DIFFERENT


def _speak_of_the_same(one: Chunk, two: Chunk) -> bool:
    first, second = (set(content_words(chunk.text)) for chunk in (one, two))
    return len(first & second) >= ALIKE * max(1, min(len(first), len(second)))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
