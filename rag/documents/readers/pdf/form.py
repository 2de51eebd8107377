"""What was filled into the form of a PDF: it stands in fields, not in the text of a page."""

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from rag.documents.cleaning import one_line

LONGEST_VALUE = 100_000  # bytes
ReadBuffer = Callable[[Any, int], int]  # into a buffer of so many bytes; says how many it wants


def form_values(form: Any, page: Any) -> Iterator[tuple[str, str]]:
    """Name and value of each field on the page that holds something, in the order of the file.

    A field's own label for people is taken where it has one. A box that is ticked is `yes`.
    """
    from pypdfium2 import raw

    seen: set[str] = set()
    for at in range(raw.FPDFPage_GetAnnotCount(page)):
        field = raw.FPDFPage_GetAnnot(page, at)
        if raw.FPDFAnnot_GetSubtype(field) == raw.FPDF_ANNOT_WIDGET:
            name, value = _label(form.raw, field), _value(form.raw, field)
            if name and value and name not in seen:
                seen.add(name)
                yield name, value
        raw.FPDFPage_CloseAnnot(field)


def _label(form: Any, field: Any) -> str:
    from pypdfium2 import raw

    label = _text(lambda *room: raw.FPDFAnnot_GetFormFieldAlternateName(form, field, *room))
    return label or _text(lambda *room: raw.FPDFAnnot_GetFormFieldName(form, field, *room))


def _value(form: Any, field: Any) -> str:
    from pypdfium2 import raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, field)
    if kind == raw.FPDF_FORMFIELD_CHECKBOX:
        return "yes" if raw.FPDFAnnot_IsChecked(form, field) else ""
    if kind in {raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE}:
        return ""
    value = _text(lambda *room: raw.FPDFAnnot_GetFormFieldValue(form, field, *room))
    return "" if kind == raw.FPDF_FORMFIELD_RADIOBUTTON and value == "Off" else value


def _text(read: ReadBuffer) -> str:
    """pdfium says how many bytes of UTF-16 it has, with a zero at the end, and fills as many."""
    from pypdfium2 import raw

    length = min(read(None, 0), LONGEST_VALUE)
    buffer = ctypes.create_string_buffer(length)
    read(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), length)
    return one_line(buffer.raw.decode("utf-16-le", "replace").split("\0")[0])
