"""PPTX to sections: one for each slide, its notes below."""

import io
from collections.abc import Iterator
from typing import Any

from rag.documents.formats.packages import check_package, damage_told
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.tables import spread
from rag.errors import TooLarge

DEEPEST = 20  # groups inside groups


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a slide's title is its heading."""
    import pptx
    from pptx.exc import PythonPptxError

    check_package(outline.name, data, limits)
    with damage_told(outline.name, PythonPptxError):
        presentation = pptx.Presentation(io.BytesIO(data))
        slides = list(presentation.slides)
        outline.fallback_title = presentation.core_properties.title or ""
        _check_count(outline.name, len(slides), limits)
        outline.pages = len(slides)
        for number, slide in enumerate(slides, start=1):
            if slide.element.get("show") == "0":
                outline.left_out.append(f"slide {number}: hidden")
            else:
                _write_slide(number, slide, outline)


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
        _write_chart(shape.chart, outline)
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


def _write_chart(chart: Any, outline: Outline) -> None:
    if chart.has_title and chart.chart_title.has_text_frame:
        outline.paragraph(chart.chart_title.text_frame.text)
    plot = chart.plots[0]
    header = ["", *(series.name for series in plot.series)]
    columns = [list(series.values) for series in plot.series]
    rows = [
        [str(category), *(_value(column, at) for column in columns)]
        for at, category in enumerate(plot.categories)
    ]
    outline.table([header, *rows])


def _value(column: list[Any], at: int) -> str:
    return "" if at >= len(column) or column[at] is None else str(column[at])
