"""The outline that readers fill in reading order, and its sections.

A superscript is written so that it cannot be taken for part of the figure before it: behind 10 it
is a power, behind a unit part of the unit, behind a word or a figure the number of a note. Hidden
and deleted text is left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from pathlib import PurePosixPath
from textwrap import dedent, indent
from typing import Any, NamedTuple

from rag.documents import kinds
from rag.documents.cleaning import day_in, name_in_words, one_line, shorten, tidy
from rag.documents.reports import READER, counted
from rag.documents.tables import clean_rows, raw_table, table_parts
from rag.errors import TooLarge, Unreadable
from rag.language.grids import headed
from rag.language.sentences import CODE_INDENT
from rag.records import ParsedDocument, RawTable, ReadingReport, Section


class Mark(StrEnum):
    """How a format marks a run of text."""

    RAISED = "raised"
    LOWERED = "lowered"
    STRUCK = "struck"
    HIDDEN = "hidden"
    DELETED = "deleted"


class Run(NamedTuple):
    """Characters with the same marks."""

    text: str
    marks: frozenset[Mark] = frozenset()


NO_MARKS: frozenset[Mark] = frozenset()
UNSEEN = {Mark.HIDDEN, Mark.DELETED}
ALIGNED = {"superscript": Mark.RAISED, "subscript": Mark.LOWERED}  # as Office calls them


def marks_of(*marks: Mark | None) -> frozenset[Mark]:
    """Return the marks that are not None."""
    return frozenset(filter(None, marks))


_UNIT = re.compile(
    r"(?:^|[\s\d/·(])[ckdmµn]?(?:m|s|ft|in|yd|K|A)$"
    r"|(?:^|[\n|\d()\[\]+=*/·×<>−-]\s?)[a-z]$"  # not "option b"
)
TAIL = 20  # characters before a superscript that tell what it is
_TEN = re.compile(r"(?<![\d.,])10$")
_SIGNS = str.maketrans("−–", "--")
_EXPONENT = re.compile(r"-?\d{1,3}")
_NOTE = re.compile(r"\(?(?:\d{1,3}|[a-d])\)?(?:\s?,\s?(?:\d{1,3}|[a-d]))*")
_SUPERSCRIPT = str.maketrans("123", "¹²³")


def written(runs: Iterable[Run]) -> str:
    """Return the text of runs: `10^6`, `30 m²`, `450 [note 1]`, `~~90 EUR~~`."""
    text, before = "", NO_MARKS
    for marks, group in groupby(runs, key=lambda run: run.marks):
        piece = "".join(run.text for run in group)
        if marks & UNSEEN or not piece:
            continue
        if Mark.STRUCK in marks and piece.strip():
            blanks = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
            piece = f"{blanks[0]}~~{piece.strip()}~~{blanks[1]}"
        if Mark.RAISED in marks:
            piece = _raised(text[-TAIL:], piece)
        elif Mark.LOWERED in marks and text[-1:].isdigit() and piece[:1].isdigit():
            piece = f"_{piece}"
        is_glued = Mark.RAISED in before and text[-1:] == "]" and piece[:1].isalnum()
        text += f" {piece}" if is_glued else piece
        before = marks
    return text


def _raised(before: str, piece: str) -> str:
    """Return a superscript in a form that cannot be read as part of the text before it.

    Only the end of `before` is looked at.
    """
    sign = piece.strip().translate(_SIGNS)
    if not _NOTE.fullmatch(sign) and not _EXPONENT.fullmatch(sign):
        return f"^{piece}" if sign[:1] == "-" and sign[1:] else piece  # 1st, ™, *
    if _EXPONENT.fullmatch(sign) and (_TEN.search(before) or sign.startswith("-")):
        return f"^{sign}"
    if sign in ("2", "3") and _UNIT.search(before):
        return sign.translate(_SUPERSCRIPT)
    if not before.strip() or before[-1:] in "\n|" or before.rstrip(" ")[-1:] + before[-1:] == ". ":
        return f"{sign.strip('()')} "  # the note itself
    if sign.isalpha() and not before[-1:].isdigit():
        return piece
    lead = "" if before[-1:].isspace() else " "
    return f"{lead}[note {sign.strip('()')}]"


TITLE_CHARS = 160
HEADING_CHARS = 120
DEEPEST_PATH = 6
MOST_TAGS = 50
PROGRAMS = {"python-docx", "openpyxl", "steve canny"}  # named as authors
FOLDER_PAGES = {"index", "_index", "readme"}
CODE = re.compile(r"(?=.*\d)[\w.+-]+")  # with a digit, and all letters capital
CODE_LENGTHS = range(3, 31)


@dataclass(slots=True)
class _SectionDraft:
    """A section that is being written."""

    path: tuple[str, ...]
    locator: str | None
    page: int | None
    parts: list[str]
    opens: bool  # whether it begins directly below its own heading


class Outline:
    """Collects a document: readers call `heading`, `paragraph`, `entry`, … and then `finish`."""

    def __init__(self, name: str, *, media_type: str, max_characters: int) -> None:
        self.name = name
        self.title = ""  # set by readers that know a better one than the only top heading
        self.fallback_title = ""  # used before the file's name
        self.products: list[str] = []  # declared by the document itself
        self.author = ""
        self.date = ""  # in any form
        self.tags: list[str] = []
        self.pages = 0
        self.pictures = 0
        self.recognised = 0  # pages that were read by OCR
        self.left_out: list[str] = []  # what, and why
        self.inside = 0  # how many files the one that is read now lies in
        self._unseen: Counter[Mark] = Counter()  # words that are hidden or deleted
        self._form_values = 0
        self.media_type = media_type
        self._max_characters = max_characters
        self._characters = 0
        self._drafts: list[_SectionDraft] = []
        self._levels: list[tuple[int, str]] = []
        self._headings: list[tuple[int, str]] = []
        self._table_products: list[str] = []
        self._labels: dict[str, None] = {}  # of the columns and rows of tables
        self._tables: list[RawTable] = []
        self._locator: str | None = None
        self._page: int | None = None
        self._last_was_entry = False
        self._marks: list[str] = []  # of the open list entries, the outermost first

    def take_properties(self, core: Any) -> None:
        """Take title, author, date and tags from an Office file's properties, of any library."""
        self.fallback_title = core.title or ""
        author = getattr(core, "author", None) or getattr(core, "creator", None) or ""
        self.author = "" if author.lower() in PROGRAMS else author
        day = core.modified or core.created
        self.date = day.date().isoformat() if isinstance(day, datetime) else ""
        self.tags.extend(re.split(r"[,;]", core.keywords or ""))

    def heading(self, level: int, text: str) -> None:
        """Begin a section below the last heading of a smaller level (1 is outermost)."""
        if self._marks:
            self.paragraph(text)
            return
        text = shorten(one_line(text), HEADING_CHARS)
        if not text:
            return
        self._count(text)
        self._levels = [(depth, title) for depth, title in self._levels if depth < level]
        self._levels.append((level, text))
        self._headings.append((level, text))
        self._begin(opens=True)

    def place(self, locator: str, *, page: int | None = None) -> None:
        """Begin a section at a page, slide, sheet or range of rows; headings stay as they are."""
        self._locator, self._page = locator, page
        self._begin(opens=False)

    def end_heading(self, level: int) -> None:
        """End the headings deeper than this level; the last heading of the level stays."""
        self._levels = [(depth, title) for depth, title in self._levels if depth <= level]
        self._begin(opens=False)

    def leave_headings(self) -> None:
        """End all headings: what follows is below none."""
        self._levels = []

    def paragraph(self, text: str) -> None:
        """Add a paragraph, or the next lines of the open list entry."""
        if self._marks:
            self.entry(text, depth=len(self._marks) - 1, mark=self._marks[-1])
            self._marks[-1] = " " if text.strip() else self._marks[-1]
            return
        self._add(tidy(text), tight=False)
        self._last_was_entry = False

    def begin_entry(self, mark: str = "-") -> None:
        """Open a list entry, inside those that are open already."""
        self._marks.append(mark)

    def end_entry(self) -> None:
        self._marks.pop()

    @property
    def is_in_entry(self) -> bool:
        return bool(self._marks)

    def entry(self, text: str, *, depth: int = 0, mark: str = "-") -> None:
        """Add a list entry; `depth` counts from 0."""
        if text := one_line(text):
            self._add(f"{'  ' * min(depth, 8)}{mark} {text}", tight=self._last_was_entry)
            self._last_was_entry = True

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table; its words tell whether the first row is the header."""
        self.rows(list(enumerate(rows, start=1)))
        headed_rows, has_header = headed(clean_rows(rows))
        self.part_of_table(headed_rows, has_header=has_header)

    @property
    def under(self) -> str:
        """The innermost heading at this place, or ""."""
        return next((title for _level, title in reversed(self._levels)), "")

    def rows(
        self, rows: Sequence[tuple[int, Sequence[str]]], *, name: str = "", place: str = ""
    ) -> None:
        """Add numbered rows of a grid as a table for queries; they do not become text."""
        table = raw_table(name or self.under or self.stem, place or self._locator or "", rows)
        if table is not None:
            self._tables.append(table)

    def part_of_table(self, rows: Sequence[Sequence[str]], *, has_header: bool = True) -> None:
        """Add a table, or some of its rows, as text."""
        cleaned = clean_rows(rows)
        if cleaned and not has_header:
            cleaned.insert(0, [""] * len(cleaned[0]))
        self._table_products.extend(kinds.in_table(cleaned))
        header = cleaned[0] if cleaned else []
        self._labels |= dict.fromkeys([*header, *(row[0] for row in cleaned)])
        for part in table_parts(cleaned):
            self._add(part, tight=False)
        self._last_was_entry = False

    def code(self, text: str) -> None:
        """Add preformatted text, indented by four blanks, which mark it as code."""
        self.lines(indent(dedent(text), CODE_INDENT))

    def lines(self, text: str) -> None:
        """Add text whose line breaks and indentation stay."""
        self._add(text.strip("\n").rstrip(), tight=False)
        self._last_was_entry = False

    def form_values(self, values: Sequence[tuple[str, str]]) -> None:
        """Add filled-in form values, each with its field's name."""
        for name, value in values:
            self.entry(f"{name}: {value}")
        self._form_values += len(values)

    def count_unseen(self, runs: Iterable[Run]) -> None:
        """Count hidden and deleted words for the report; they are not searchable."""
        for run in runs:
            for mark in run.marks & UNSEEN:
                self._unseen[mark] += len(run.text.split())

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been added so far."""
        return not self._characters

    @property
    def stem(self) -> str:
        """The file's name in words; a page that stands for its folder has the folder's name."""
        path = PurePosixPath(self.name)
        folder = path.parent.name
        return name_in_words(folder if folder and path.stem.lower() in FOLDER_PAGES else self.name)

    def finish(self) -> ParsedDocument:
        """Return the document. Raises Unreadable if no text was found."""
        title = self.chosen_title
        sections = self._sections(title)
        if not sections:
            raise Unreadable(
                self.name,
                "there is no text in it: it is blank or holds only pictures, which are not read.",
            )
        headings = [text for _level, text in self._headings]
        stated = "" if title == self.stem else title
        products = [*self.products, *kinds.in_headings(stated, headings), *self._table_products]
        products += list(kinds.siblings(products, self._labels))
        return ParsedDocument(
            self._with_code(title),
            tuple(sections),
            self.media_type,
            kinds.unique(products),
            tuple(self._tables),
            self._report(sections),
        )

    def _report(self, sections: Sequence[Section]) -> ReadingReport:
        unseen = [
            counted(count, f"{mark} word") for mark, count in sorted(self._unseen.items()) if count
        ]
        return ReadingReport(
            self.pages,
            sum(len(section.text.split()) for section in sections),
            len(self._tables),
            self._form_values,
            self.pictures,
            (*self.left_out, *unseen),
            self.recognised,
            READER,
            shorten(one_line(self.author), HEADING_CHARS),
            day_in(self.date),
            tuple(dict.fromkeys(filter(None, map(one_line, self.tags))))[:MOST_TAGS],
        )

    def _add(self, text: str, *, tight: bool) -> None:
        if not text.strip():
            return
        self._count(text)
        if not self._drafts:
            self._begin(opens=False)
        parts = self._drafts[-1].parts
        if parts:
            parts.append("\n" if tight else "\n\n")
        parts.append(text)

    def _count(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > self._max_characters:
            raise TooLarge(
                f"{self.name}: holds more than {self._max_characters:,} characters of text. "
                "Split it into several files."
            )

    def _begin(self, *, opens: bool) -> None:
        path = tuple(title for _level, title in self._levels)
        self._last_was_entry = False
        self._drafts.append(_SectionDraft(path, self._locator, self._page, [], opens))

    @property
    def chosen_title(self) -> str:
        """The file's own title, or its only highest heading, or its name. Never empty."""
        top = min((level for level, _text in self._headings), default=0)
        highest = [text for level, text in self._headings if level == top]
        only = highest[0] if len(highest) == 1 and self._headings[0] == (top, highest[0]) else ""
        candidates = (self.title, only, self.fallback_title, self.stem, self.name)
        return shorten(next(filter(None, map(one_line, candidates)), "Untitled"), TITLE_CHARS)

    def _with_code(self, title: str) -> str:
        """Put a file name that is a code before the title: `M104: Set temperature` for M104.md.

        People ask for the document by this code.
        """
        code = PurePosixPath(self.name).stem
        is_code = len(code) in CODE_LENGTHS and code.isupper() and bool(CODE.fullmatch(code))
        if not is_code or _signs(code) in _signs(title):
            return title
        return shorten(f"{code}: {title}", TITLE_CHARS)

    def _sections(self, title: str) -> list[Section]:
        sections: list[Section] = []
        for place, draft in enumerate(self._drafts):
            text = "".join(draft.parts)
            following = self._drafts[place + 1 : place + 2]
            goes_on = any(other.path[: len(draft.path)] == draft.path for other in following)
            if not text and draft.opens and not goes_on:
                text = draft.path[-1]  # nothing is below the heading: its words are not lost
            if not text.strip():
                continue
            path = draft.path[1:] if draft.path[:1] == (title,) else draft.path
            locator = draft.locator or "§ " + (" › ".join(path) or title)
            path = path[:1] + path[1:][-(DEEPEST_PATH - 1) :]
            sections.append(Section(len(sections), path, locator, text, draft.page))
        return sections


def _signs(text: str) -> str:
    """Keep letters and digits only, so that `KH-2319` is found in `KH 2319`."""
    return "".join(filter(str.isalnum, text)).casefold()
