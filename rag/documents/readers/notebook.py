"""Jupyter notebooks to sections: text, code and what it printed, cell by cell."""

import json
from typing import Any

from rag.documents.cleaning import clean, decode
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import markdown
from rag.errors import Unreadable

PRINTED_CHARS = 4_000  # of one cell's output: a page of it says what it is


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; pictures of outputs are left out."""
    for number, cell in enumerate(_cells(data, outline.name), start=1):
        source = _joined(cell.get("source"))
        outline.place(f"cell {number}")
        if cell.get("cell_type") == "markdown":
            markdown.read(source.encode(), outline, limits)
        elif source.strip():
            outline.code(source)
        for output in cell.get("outputs") or ():
            _write_output(output, outline)


def _cells(data: bytes, name: str) -> list[dict[str, Any]]:
    try:
        book = json.loads(clean(decode(data)))
        cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
        return [cell for cell in cells if isinstance(cell, dict)]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise Unreadable(name, "this is no Jupyter notebook: it has no cells.") from error


def _write_output(output: Any, outline: Outline) -> None:
    if not isinstance(output, dict):
        return
    held = output.get("data") or {}
    outline.pictures += sum(1 for kind in held if str(kind).startswith("image/"))
    printed = _joined(output.get("text") or held.get("text/plain"))
    if printed.strip():
        outline.code(printed[:PRINTED_CHARS])


def _joined(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")
