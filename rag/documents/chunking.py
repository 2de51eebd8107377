"""Cut sections into chunks of about ninety words, at the boundaries of the text.

A section is split into units that should stay whole: paragraphs, list entries, small tables (the
readers repeat the header in each, see `tables`). Units are joined until a chunk is full. A unit
too long for one chunk is split into rows, sentences or lines of code, and a sentence too long for
the embedder into words; only those pieces overlap, by a few words.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

from rag.language.sentences import CODE_INDENT, split_sentences
from rag.records import DEFAULT_COLLECTION, Chunk, Section

CountTokens = Callable[[Sequence[str]], list[int]]
TARGET_WORDS = 90
FULL = 1.3  # times the target: a chunk may grow to this size before it is cut
SMALL = 0.3  # times the target: a smaller last piece joins the one before
OVERLAP_WORDS = 12
CHARS_PER_WORD = 9  # longer words count more than once: part numbers, URLs, text without blanks
HEADING_SHARE = 0.5  # of the embedder's token limit

WORD, LINE = re.compile(r"\S+"), re.compile(r"[^\n]+")
BLOCK = re.compile(r"[^\n]++(?:\n[^\n]++)*+")
LIST_ENTRY = re.compile(r"^[ \t]*(?:[-*•] |\(?\d{1,3}[.)] )", re.MULTILINE)
CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
Offsets = tuple[int, int]


def document_id_for(name: str, collection_id: str = DEFAULT_COLLECTION) -> str:
    """Derive a document's id from its name, so that the same file again is the same document."""
    place = "" if collection_id == DEFAULT_COLLECTION else f"{collection_id}\0"
    return sha256(f"document\0{place}{name}".encode()).hexdigest()[:32]


def fit_title(title: str, *, count_tokens: CountTokens, max_tokens: int) -> str:
    """Shorten a title that would take too much of an embedded text."""
    while len(title) > 1 and count_tokens([title])[0] > max_tokens * HEADING_SHARE * 0.6:
        title = title[: len(title) * 3 // 4].rstrip()
    return title


def cut(
    document_id: str,
    name: str,
    title: str,
    sections: Sequence[Section],
    *,
    count_tokens: CountTokens,
    max_tokens: int,
) -> list[Chunk]:
    """Return the chunks in reading order; no `embedded_text` exceeds `max_tokens`.

    `count_tokens` is the embedder's and takes many texts at once.
    """
    blank = Chunk("", document_id, name, title, 0, 0, (), "", "", 0, 0)
    paths = _fitting_paths(blank, sections, count_tokens, max_tokens)
    texts = {section.index: section.text for section in sections}
    drafts = [
        replace(
            blank,
            section_index=section.index,
            heading_path=paths[section.heading_path],
            locator=section.locator,
            text=section.text[start:end],
            start=start,
            end=end,
        )
        for section in sections
        for start, end in spans(section.text)
    ]
    chunks = []
    copies: Counter[str] = Counter()
    for position, draft in enumerate(_fit(drafts, texts, count_tokens, max_tokens)):
        # Ids are derived from the content: a chunk that only moved keeps its id.
        content = "\0".join((document_id, title, *draft.heading_path, "", draft.text))
        copies[content] += 1
        digest = sha256(f"{content}\0{copies[content]}".encode()).hexdigest()[:32]
        chunks.append(replace(draft, id=digest, position=position))
    return chunks


def spans(text: str, target_words: int = TARGET_WORDS) -> list[Offsets]:
    """Return the offsets of a section's chunks; together they cover all of its text."""
    packed: list[Offsets] = []
    for unit in _units(text, target_words):
        if packed and _belongs(text, packed[-1], unit, target_words):
            packed[-1] = (packed[-1][0], unit[1])
        else:
            packed.append(unit)
    if len(packed) > 1 and _size(text, packed[-1]) < target_words * SMALL:
        start, end = packed[-2][0], packed[-1][1]
        if _size(text, (start, end)) <= target_words * FULL * 1.15:
            packed[-2:] = [(start, end)]
    return packed


def _belongs(text: str, chunk: Offsets, unit: Offsets, target: int) -> bool:
    joined = _size(text, (chunk[0], unit[1]))
    if _size(text, chunk) < target * SMALL:
        return joined <= target * FULL
    # Over the target only if most of the unit lies within it.
    return joined <= target * FULL and joined - target < _size(text, unit) * 0.4


def _size(text: str, span: Offsets) -> float:
    """Count words; long words and text without blanks count by their length."""
    piece = text[span[0] : span[1]]
    ideographs = 0 if piece.isascii() else sum(map(len, CJK.findall(piece)))
    return max(len(piece.split()), (len(piece) + 4 * ideographs) / CHARS_PER_WORD)


def _units(text: str, target: int) -> Iterator[Offsets]:
    """Yield the entries of lists and other blocks as wholes; those that are too long in parts."""
    for block in BLOCK.finditer(text):
        starts = {match.start() for match in LIST_ENTRY.finditer(text, *block.span())}
        for start, end in pairwise([*sorted({block.start(), *starts}), block.end()]):
            body = text[start:end].rstrip()
            end = start + len(body)
            unit = (end - len(body.lstrip("\n")), end)
            if not body:
                continue
            if _size(text, unit) <= target * FULL:
                yield unit
            else:
                yield from _parts(text, unit, target)


def _parts(text: str, unit: Offsets, target: int) -> Iterator[Offsets]:
    """Yield the sentences of a unit that is too long, or its lines if it is code."""
    start, end = unit
    if text.startswith(CODE_INDENT, start):
        parts = [line.span() for line in LINE.finditer(text, start, end)]
    else:
        sentences = split_sentences(text[start:end])
        parts = [(start + sentence.start, start + sentence.end) for sentence in sentences]
    for span in parts:
        if _size(text, span) <= target * FULL:
            yield span
        else:
            yield from _words(text, span, target)


def _words(text: str, span: Offsets, target: int) -> Iterator[Offsets]:
    """Yield pieces of an overlong sentence; each begins with the last words of the one before."""
    words = list(_short_words(text, span, target * CHARS_PER_WORD // 2))
    total = _size(text, (words[0][0], words[-1][1]))
    step = max(1, int(len(words) * target / max(total, target)))  # words of an average chunk
    position = 0
    while position < len(words):
        last = min(position + step, len(words)) - 1
        yield words[position][0], words[last][1]
        if last == len(words) - 1:
            return
        overlap = OVERLAP_WORDS if step > 3 * OVERLAP_WORDS else 0
        position = last + 1 - overlap


def _short_words(text: str, span: Offsets, longest: int) -> Iterator[Offsets]:
    """Yield words; very long ones and text without blanks in pieces."""
    for match in WORD.finditer(text, *span):
        size = 10 if CJK.search(match.group()[:200]) else longest
        for start in range(match.start(), match.end(), size):
            yield start, min(start + size, match.end())


def _fit(
    drafts: list[Chunk], texts: dict[int, str], count_tokens: CountTokens, max_tokens: int
) -> list[Chunk]:
    """Cut chunks that exceed the embedder's limit again, smaller each time, until none does."""
    target = TARGET_WORDS
    while drafts and target > 1:
        lengths = count_tokens([draft.embedded_text for draft in drafts])
        if max(lengths) <= max_tokens:
            break
        target = target * 2 // 3
        pieces: list[Chunk] = []
        for draft, length in zip(drafts, lengths, strict=True):
            if length <= max_tokens:
                pieces.append(draft)
                continue
            for first, last in spans(draft.text, target):
                start, end = draft.start + first, draft.start + last
                text = texts[draft.section_index][start:end]
                pieces.append(replace(draft, text=text, start=start, end=end))
        drafts = pieces
    return drafts


def _fitting_paths(
    blank: Chunk, sections: Sequence[Section], count_tokens: CountTokens, max_tokens: int
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Map each heading path to itself, shortened where it would leave no room for the text.

    The outermost headings are dropped first: the innermost says most about the text.
    """
    fitted = {section.heading_path: section.heading_path for section in sections}
    while fitted:
        paths = list(fitted)
        headings = [replace(blank, heading_path=fitted[path]).heading for path in paths]
        lengths = count_tokens(headings)
        over = [
            path
            for path, length in zip(paths, lengths, strict=True)
            if length > max_tokens * HEADING_SHARE and fitted[path]
        ]
        if not over:
            break
        for path in over:
            first, *inner = fitted[path]
            half = first[: len(first) // 2].rstrip()
            fitted[path] = tuple(inner) or ((half,) if half else ())
    return fitted
