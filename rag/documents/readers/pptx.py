"""PPTX to sections: one for each slide, its notes below."""

import io
from collections.abc import Iterator
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.packages import check_package, damage_told
from rag.documents.tables import spread
from rag.errors import TooLarge

OTHER_KINDS = (
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
)
DEEPEST = 20  # groups inside groups
CHART, DRAWING = (
    f"{{http://schemas.openxmlformats.org/drawingml/2006/{name}}}" for name in ("chart", "main")
)
CATEGORIES, VALUES = ("cat", "xVal"), ("val", "yVal")


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a slide's title is its heading."""
    from pptx.exc import PythonPptxError

    check_package(outline.name, data, limits)
    with damage_told(outline.name, PythonPptxError):
        presentation = _opened(data)
        slides = list(presentation.slides)
        outline.fallback_title = presentation.core_properties.title or ""
        _check_count(outline.name, len(slides), limits)
        outline.pages = len(slides)
        for number, slide in enumerate(slides, start=1):
            if slide.element.get("show") == "0":
                outline.left_out.append(f"slide {number}: hidden")
            else:
                _write_slide(number, slide, outline)


def _opened(data: bytes) -> Any:
    """As `pptx.Presentation` does, which refuses shows and templates."""
    from pptx.opc.package import PartFactory
    from pptx.package import Package
    from pptx.parts.presentation import PresentationPart

    PartFactory.part_type_for.update(dict.fromkeys(OTHER_KINDS, PresentationPart))
    return Package.open(io.BytesIO(data)).main_document_part.presentation


def _check_count(name: str, count: int, limits: LoadLimits) -> None:
    if count > limits.max_pages:
        raise TooLarge(
            f"{name}: has {count:,} slides, the limit is {limits.max_pages:,}. Split it."
        )


def _write_slide(number: int, slide: Any, outline: Outline) -> None:
    outline.leave_headings()
    outline.place(f"slide {number}", page=number)
    title = slide.shapes.title
    if title is not None and title.has_text_frame and title.text_frame.text.strip():
        outline.heading(1, title.text_frame.text)
        if number == 1:
            outline.title = title.text_frame.text
    for shape in _flat(slide.shapes, 0):
        if title is None or shape.shape_id != title.shape_id:
            _write_shape(shape, outline)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        if notes:
            outline.paragraph(f"Notes: {notes}")


def _flat(shapes: Any, depth: int) -> Iterator[Any]:
    """Shapes from top to bottom, groups opened."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        if hasattr(shape, "shapes") and depth < DEEPEST:
            yield from _flat(shape.shapes, depth + 1)
        else:
            yield shape


def _write_shape(shape: Any, outline: Outline) -> None:
    if getattr(shape, "has_table", False) and shape.has_table:
        rows = [[cell for cell in row.cells if not cell.is_spanned] for row in shape.table.rows]
        outline.table(
            spread(
                [[(cell.text, cell.span_width, cell.span_height) for cell in row] for row in rows]
            )
        )
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        _write_chart(shape, outline)
    elif shape.has_text_frame:
        _write_text(shape, outline)
    elif shape.element.tag.endswith("}pic"):
        outline.pictures += 1


def _write_text(shape: Any, outline: Outline) -> None:
    filled = [each for each in shape.text_frame.paragraphs if each.text.strip()]
    for paragraph in filled:
        if len(filled) > 1 or paragraph.level:
            outline.entry(paragraph.text, depth=paragraph.level)
        else:
            outline.paragraph(paragraph.text)


def _write_chart(shape: Any, outline: Outline) -> None:
    """The figures of any kind of chart, as they are stored beside the picture of it."""
    space = shape.chart_part._element
    title = _texts(space.find(f"{CHART}chart/{CHART}title"), f"{DRAWING}t")
    outline.paragraph("".join(title))
    series = list(space.iter(f"{CHART}ser"))
    categories = max((_points(each, CATEGORIES) for each in series), key=len, default={})
    columns = [_points(each, VALUES) for each in series]
    if not any(columns):
        outline.left_out.append("a chart without stored figures")
        return
    header = ["", *(" ".join(_texts(each.find(f"{CHART}tx"), f"{CHART}v")) for each in series)]
    places = sorted({at for column in columns for at in column})
    rows = [
        [categories.get(at, str(at + 1)), *(column.get(at, "") for column in columns)]
        for at in places
    ]
    outline.table([header, *rows])


def _points(series: Any, names: tuple[str, ...]) -> dict[int, str]:
    """The stored texts of categories, or of values, by their places."""
    for name in names:
        found = series.find(f"{CHART}{name}")
        if found is not None:
            points = (each for each in found.iter(f"{CHART}pt"))
            return {
                int(each.get("idx", "0")): " ".join(_texts(each, f"{CHART}v")) for each in points
            }
    return {}


def _texts(element: Any, tag: str) -> list[str]:
    return [] if element is None else [each.text or "" for each in element.iter(tag)]
