"""Read PDF: a section for each page, and for each heading on it."""

import ctypes
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from string import ascii_uppercase
from typing import Any

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits, check_pages
from rag.documents.outline import Outline
from rag.documents.readers import pictures
from rag.documents.readers.pdf.layout import Page, write_pages
from rag.documents.readers.pdf.lines import (
    MOST_RULES,
    PdfLine,
    Rule,
    Spell,
    from_top_down,
    lattices_of,
    page_lines,
    page_rules,
)
from rag.documents.readers.pictures import OcrClock
from rag.documents.reports import pages_named
from rag.errors import TooLarge, Unreadable
from rag.language.words import read_lists

JUNK_TITLE = (
    *("untitled", "microsoft ", "powerpoint ", "slide 1"),
    *("document", ".doc", ".ppt", ".qxd"),
)
REASONS = {
    "password": "the PDF is encrypted and needs a password. Save it without one, then ingest it.",
    "security": "the PDF is encrypted in a way that is not supported. Save it without encryption.",
}
DAMAGED = "the PDF is damaged or was cut off and cannot be opened. Copy or export it again."
# Such a file can often be opened, but pages are missing unnoticed.
CUT_OFF = "the PDF was cut off: its end is missing, and pages with it. Copy or download it again."
END_MARK = b"%%EOF"
MOST_NOTES = 5_000  # of a page
SCAN_SCALE = 200 / 72  # pixels per point: the best resolution for OCR


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline from the text layer; pages without text are read by OCR, if installed."""
    import pypdfium2

    if data.rfind(END_MARK) < len(data) // 2:  # a linearised file has one at its beginning too
        raise Unreadable(outline.name, CUT_OFF)
    try:
        document = pypdfium2.PdfDocument(data)
        # Its cross-reference table is wrong; without it, pdfium rebuilds it.
        if not _begins(document):
            document.close()
            document = pypdfium2.PdfDocument(data.replace(b"startxref", b"%tartxref"))
    except pypdfium2.PdfiumError as error:
        message = str(error).lower()
        reason = next((reason for word, reason in REASONS.items() if word in message), DAMAGED)
        raise Unreadable(outline.name, reason) from error
    try:
        _read_document(document, Ligatures(data), outline, limits)
    finally:
        document.close()


def _begins(document: Any) -> bool:
    import pypdfium2

    try:
        if len(document):
            document[0].close()
    except pypdfium2.PdfiumError:
        return False
    return True


def _read_document(
    document: Any, ligatures: "Ligatures", outline: Outline, limits: LoadLimits
) -> None:
    count = len(document)
    if count == 0:
        raise Unreadable(outline.name, DAMAGED)
    check_pages(outline.name, count, "pages", limits)
    if document.get_formtype():
        document.init_forms()
    pages = list(_pages(document, ligatures.spell, limits.max_characters, outline.name))
    pages = list(_recognised(document, pages, outline, limits))
    if not any(page.lines or page.form_values for page in pages):
        if all(page.is_broken for page in pages):
            raise Unreadable(outline.name, DAMAGED)
        raise Unreadable(
            outline.name,
            f"the PDF has no text layer on its {count} page(s): it is scanned or drawn. "
            f"Run text recognition (OCR) on it, then ingest it; {pictures.INSTALL}.",
        )
    _take_properties(document.get_metadata_dict(), pages[0], outline)
    write_pages(pages, _bookmarks(document), outline)
    outline.pages = count
    if blank := [page.number for page in pages if page.is_blank]:
        lacks_model = f"no text layer; {pictures.INSTALL}"
        reason = "no text, so drawn or blank" if pictures.is_installed() else lacks_model
        outline.left_out.append(f"{pages_named(blank)}: {reason}")
    if broken := [page.number for page in pages if page.is_broken]:
        outline.left_out.append(f"{pages_named(broken)}: damaged")


def _take_properties(stated: dict[str, Any], first: Page, outline: Outline) -> None:
    title = str(stated.get("Title") or "").strip("\0 \t\r\n")
    is_junk = any(word in title.lower() for word in JUNK_TITLE)
    if is_junk or " " not in title or not 3 < len(title) < 200:
        title = ""
    outline.title = filing_title([line.text for line in first.lines]) or title
    outline.author = str(stated.get("Author") or "")
    outline.date = str(stated.get("ModDate") or stated.get("CreationDate") or "").removeprefix("D:")
    outline.tags.extend(re.split(r"[,;]", str(stated.get("Keywords") or "")))


def _recognised(
    document: Any, pages: list[Page], outline: Outline, limits: LoadLimits
) -> Iterator[Page]:
    """Yield the pages, those without text as OCR reads them, if installed and until time is up."""
    clock, is_able = OcrClock(limits), pictures.is_installed()
    for page in pages:
        if not (is_able and page.is_blank) or clock.is_over:
            yield page
            continue
        lines = _recognised_lines(document, page.number, limits.ocr_models)
        outline.recognised += bool(lines)
        place = f"page {page.number}, {pictures.MARK}" if lines else ""
        yield replace(page, lines=lines, place=place)


def _recognised_lines(document: Any, number: int, models: Iterable[str]) -> tuple[PdfLine, ...]:
    import pypdfium2

    try:
        page = document[number - 1]
        width, height = page.get_size()
        scale = min(SCAN_SCALE, pictures.SIDES[-1] / max(width, height, 1))
        picture = page.render(scale=scale).to_pil()
        page.close()
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        return ()
    return pictures.recognise(picture, models)


def _pages(document: Any, spell: Spell, max_characters: int, name: str) -> Iterator[Page]:
    import pypdfium2
    from pypdfium2 import raw

    characters = 0
    for position in range(len(document)):
        try:
            page = document[position]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield Page(position + 1, (), is_broken=True)  # the other pages may be intact
            continue
        rules = page_rules(page)
        crossed = [*rules.thin, *islice(_strikes(page), MOST_RULES)]
        lines = tuple(from_top_down([*page_lines(text_page, spell, crossed)]))
        lattices = tuple(lattices_of(rules, lines))
        characters += sum(len(line.text) for line in lines)
        notes: list[str] = []
        for kind, note in _annotations(page):
            if kind not in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_POPUP):
                contents = partial(raw.FPDFAnnot_GetStringValue, note, b"Contents")
                notes.append(_text(contents, longest=LONGEST_NOTE).strip())
                characters += len(notes[-1])
                _check_characters(name, characters, max_characters)
        values = tuple(form_values(document.formenv, page)) if document.formenv else ()
        text_page.close()
        page.close()
        _check_characters(name, characters, max_characters)
        texts = tuple(filter(None, notes))
        yield Page(position + 1, lines, form_values=values, lattices=lattices, notes=texts)


def _check_characters(name: str, count: int, most: int) -> None:
    if count > most:
        raise TooLarge(f"{name}: has more than {most:,} characters. Split it.")


def _annotations(page: Any) -> Iterator[tuple[int, Any]]:
    """Yield the kind and handle of each annotation, which is closed when the next is taken."""
    from pypdfium2 import raw

    for position in range(min(raw.FPDFPage_GetAnnotCount(page), MOST_NOTES)):
        note = raw.FPDFPage_GetAnnot(page, position)
        try:
            yield raw.FPDFAnnot_GetSubtype(note), note
        finally:  # the caller may stop early
            raw.FPDFPage_CloseAnnot(note)


def _strikes(page: Any) -> Iterator[Rule]:
    """Yield rules where annotations strike out words."""
    from pypdfium2 import raw

    quad = raw.FS_QUADPOINTSF()
    for kind, note in _annotations(page):
        count = raw.FPDFAnnot_CountAttachmentPoints(note) if kind == raw.FPDF_ANNOT_STRIKEOUT else 0
        for position in range(min(count, MOST_NOTES)):
            raw.FPDFAnnot_GetAttachmentPoints(note, position, quad)
            across, up = (
                [getattr(quad, f"{axis}{corner}") for corner in range(1, 5)] for axis in "xy"
            )
            yield Rule(sum(up) / 4, min(across), max(across))


def _bookmarks(document: Any) -> dict[int, list[tuple[int, str]]]:
    """Return (level from 1, title) of the outline's entries, by page from 1."""
    import pypdfium2

    results = defaultdict[int, list[tuple[int, str]]](list)
    try:
        for bookmark in document.get_toc(max_depth=6):
            target = bookmark.get_dest()
            page = target.get_index() if target else None
            if page is not None:
                results[page + 1].append((bookmark.level + 1, bookmark.get_title()))
    except pypdfium2.PdfiumError:
        return {}  # a damaged outline does not affect the text
    return results


LONGEST_VALUE = 100_000  # bytes of one field's value; a form may have many fields
LONGEST_NOTE = 2**26  # bytes; more than the text that a document may have
ReadBuffer = Callable[[Any, int], int]  # fills a buffer of so many bytes; returns how many it needs


def form_values(form: Any, page: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each filled field of a page, in the order of the file.

    A field's label for people is used if it has one. A ticked box is `yes`.
    """
    from pypdfium2 import raw

    names: set[str] = set()
    for kind, field in _annotations(page):
        if kind != raw.FPDF_ANNOT_WIDGET:
            continue
        label = one_line(_text(partial(raw.FPDFAnnot_GetFormFieldAlternateName, form.raw, field)))
        name = label or one_line(_text(partial(raw.FPDFAnnot_GetFormFieldName, form.raw, field)))
        value = _value(form.raw, field)
        if name and value and name not in names:
            names.add(name)
            yield name, value


def _value(form: Any, field: Any) -> str:
    from pypdfium2 import raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, field)
    if kind == raw.FPDF_FORMFIELD_CHECKBOX:
        return "yes" if raw.FPDFAnnot_IsChecked(form, field) else ""
    if kind in {raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE}:
        return ""
    value = one_line(_text(partial(raw.FPDFAnnot_GetFormFieldValue, form, field)))
    return "" if kind == raw.FPDF_FORMFIELD_RADIOBUTTON and value == "Off" else value


def _text(read: ReadBuffer, *, longest: int = LONGEST_VALUE) -> str:
    """Read a string from pdfium, which returns its UTF-16 length with a final zero.

    It fills a buffer of that length, and writes nothing to a smaller one.
    """
    from pypdfium2 import raw

    length = min(read(None, 0), longest)
    buffer = ctypes.create_string_buffer(length)
    read(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), length)
    return buffer.raw.decode("utf-16-le", "replace").split("\0")[0]


LISTS = read_lists("filings")
COVER_LINES = 60
FORM = re.compile(
    rf"(?<!\w){LISTS['form']}\s+(\d{{1,2}}-[A-Z]{{1,3}}(?:/A)?|[A-Z]-\d{{1,2}}(?:/A)?)(?!\w)",
    re.IGNORECASE,
)
PERIOD = re.compile(
    rf"{LISTS['before_period']}({LISTS['period']}:?\s+\w+\.? \d{{1,2}},? \d{{4}})", re.IGNORECASE
)
TITLE_CUE = re.compile(rf"\(?\s*{LISTS['named']}", re.IGNORECASE)
NO_NAME = re.compile(rf"\W*|{LISTS['no_name']}.*", re.IGNORECASE)


def filing_title(lines: Sequence[str]) -> str:
    """Return the title from a filing's cover page; "" for any other document."""
    cover = list(lines[:COVER_LINES])
    text = " ".join(" ".join(cover).split())
    form, period = FORM.search(text), PERIOD.search(text)
    # The company is above "(Exact name of registrant as specified in its charter)".
    position = next((index for index, line in enumerate(cover) if TITLE_CUE.match(line)), 0)
    above = (line.strip() for line in reversed(cover[:position]))
    company = next((line for line in above if not NO_NAME.fullmatch(line)), "")[:100]
    if not (form and company):
        return ""
    parts = [company, f"Form {form[1].upper()}", " ".join(period[1].split()) if period else ""]
    return " – ".join(filter(None, parts))


ODD = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\uf724\uf730-\uf77a]|\r(?=[a-z])")
OF_TEX = dict(zip("\x0b\x0c\r\x0e\x0f", ("ff", "fi", "fl", "ffi", "ffl"), strict=True))
IN_A_WORD = re.compile(r"(?<=[A-Za-z])[\x0b-\x0f](?![\n\r])|[\x0b-\x0f](?=[a-z])")
PRIVATE = {
    0xF724: "$",
    **{0xF730 + digit: str(digit) for digit in range(10)},  # old-style figures
    **{0xF761 + place: letter for place, letter in enumerate(ascii_uppercase)},  # small capitals
}
DIFFERENCES = re.compile(rb"/Differences\s*\[([^\[\]]{0,20000})\]")
CODE_OR_NAME = re.compile(rb"(\d{1,3})|/([^\s/\[\]()<>{}%]+)")
LETTERS = re.compile(rb"[A-Za-z](?:_[A-Za-z])+")
HEAD = re.compile(rb"/ObjStm\b(?:(?!/ObjStm|stream).){0,300}stream\r?\n", re.DOTALL)
MOST_STREAMS = 10_000
MOST_PACKED = 2**20  # bytes, of one stream
MOST_OBJECTS = 2**26  # bytes, unpacked


class Ligatures:
    """Expands ligatures that a file's fonts encode as one character.

    Reads the file on first use.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def spell(self, text: str) -> str:
        """Return the text with ligatures as letters; other control characters stay."""
        if not ODD.search(text):
            return text
        spelt = text.translate(self._letters | PRIVATE)
        return IN_A_WORD.sub(lambda match: OF_TEX[match[0]], spelt)

    @cached_property
    def _letters(self) -> dict[int, str]:
        """The letters by character code, where all fonts agree."""
        results = defaultdict[int, set[str]](set)
        for match in (match for part in self._parts() for match in DIFFERENCES.finditer(part)):
            code = 0
            for number, glyph in CODE_OR_NAME.findall(match[1]):
                if not glyph:
                    code = int(number)
                    continue
                if code < ord(" "):
                    name = glyph.partition(b".")[0]
                    letters = name.replace(b"_", b"") if LETTERS.fullmatch(name) else b""
                    results[code].add(letters.decode("ascii"))
                code += 1
        return {
            code: min(names) for code, names in results.items() if len(names) == 1 and all(names)
        }

    def _parts(self) -> Iterator[bytes]:
        """Yield the file, and the object streams compressed in it."""
        yield self._data
        left, whole = MOST_OBJECTS, memoryview(self._data)
        for match in islice(HEAD.finditer(self._data), MOST_STREAMS):
            packed = whole[match.end() : match.end() + MOST_PACKED]
            try:
                part = zlib.decompressobj().decompress(packed, left)
            except zlib.error:  # compressed in another way, or encrypted
                continue
            yield part
            left -= len(part)
            if left <= 0:
                return
