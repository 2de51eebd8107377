"""Read PPTX: a section for each slide, with its notes below."""

import io
import re
from collections.abc import Iterator
from typing import Any

from defusedxml.ElementTree import fromstring

from rag.documents.limits import LoadLimits, check_pages
from rag.documents.outline import NO_MARKS, Mark, Outline, Run, marks_of, written
from rag.documents.readers import packages
from rag.documents.readers.packages import DRAWING, check_package, damage_message, in_reading_order
from rag.documents.tables import Spanning, spread

OTHER_KINDS = (
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
)
DIAGRAM_MODEL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
DEEPEST = 20  # groups inside groups
PARTS = re.compile(  # of which text is read here, or is none
    r"ppt/(?:slides|notesSlides|diagrams)/[^/]*\.xml|ppt/charts/chart[^/]*\.xml|ppt/(?:slideLayouts|slideMasters"
    r"|notesMasters|handoutMasters|tags)/.*|ppt/[^/]*\.xml"
)


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a slide's title is its heading."""
    from pptx.exc import PythonPptxError
    from pptx.opc.package import PartFactory
    from pptx.package import Package
    from pptx.parts.presentation import PresentationPart

    PartFactory.part_type_for.update(dict.fromkeys(OTHER_KINDS, PresentationPart))
    check_package(outline.name, data, limits)
    with damage_message(outline.name, PythonPptxError):
        # Like `pptx.Presentation`, but also shows and templates.
        presentation = Package.open(io.BytesIO(data)).main_document_part.presentation
        slides = list(presentation.slides)
        outline.take_properties(presentation.core_properties)
        check_pages(outline.name, len(slides), "slides", limits)
        outline.pages = len(slides)
        for number, slide in enumerate(slides, start=1):
            if slide.element.get("show") == "0":
                outline.left_out.append(f"slide {number}: hidden")
            else:
                _write_slide(number, slide, outline)
    packages.read_drawings(data, outline, PARTS)


def _write_slide(number: int, slide: Any, outline: Outline) -> None:
    outline.leave_headings()
    outline.place(f"slide {number}", page=number)
    title = slide.shapes.title
    if title is not None and title.has_text_frame and title.text_frame.text.strip():
        text = " ".join(map(_words, title.text_frame.paragraphs))
        outline.heading(1, text)
        if number == 1:
            outline.title = text
    below = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
    for shape in _ungrouped_shapes(below, 0):
        _write_shape(shape, outline)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        outline.paragraph(f"Notes: {notes.text.strip()}")


def _ungrouped_shapes(shapes: Any, depth: int) -> Iterator[Any]:
    """Yield the shapes in reading order, with groups opened."""
    for shape in in_reading_order(list(shapes)):
        if hasattr(shape, "shapes") and depth < DEEPEST:
            yield from _ungrouped_shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _write_shape(shape: Any, outline: Outline) -> None:
    if getattr(shape, "has_table", False) and shape.has_table:
        cells = [[cell for cell in row.cells if not cell.is_spanned] for row in shape.table.rows]
        outline.table(spread([[_cell(cell) for cell in row] for row in cells]))
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        packages.write_chart(shape.chart_part._element, outline)
    elif (diagram := shape.element.find(f".//{packages.DIAGRAM_NAMES}relIds")) is not None:
        part = shape.part.related_part(diagram.get(DIAGRAM_MODEL))
        packages.write_diagram(fromstring(part.blob), outline)
    elif shape.has_text_frame:
        texts = [(_words(paragraph), paragraph.level) for paragraph in shape.text_frame.paragraphs]
        filled = [(text, level) for text, level in texts if text.strip()]
        for text, level in filled:
            if len(filled) > 1 or level:
                outline.entry(text, depth=level)
            else:
                outline.paragraph(text)
    elif shape.element.tag.endswith("}pic"):
        outline.pictures += 1


def _cell(cell: Any) -> Spanning:
    text = " ".join(filter(None, map(_words, cell.text_frame.paragraphs)))
    return text, cell.span_width, cell.span_height


def _words(paragraph: Any) -> str:
    return written(_runs(paragraph._p))


def _runs(paragraph: Any) -> Iterator[Run]:
    for child in paragraph:
        name = str(child.tag).removeprefix(DRAWING)
        if name == "br":
            yield Run("\v")
        elif name in ("r", "fld"):
            text = child.find(f"{DRAWING}t")
            yield Run((text.text if text is not None else "") or "", _marks(child))


def _marks(run: Any) -> frozenset[Mark]:
    properties = run.find(f"{DRAWING}rPr")
    if properties is None:
        return NO_MARKS
    baseline, align = properties.get("baseline", "0").rstrip("%"), None
    if baseline.lstrip("-").isdecimal() and int(baseline):
        align = Mark.LOWERED if baseline.startswith("-") else Mark.RAISED
    is_struck = properties.get("strike", "noStrike") != "noStrike"
    return marks_of(align, Mark.STRUCK if is_struck else None)
