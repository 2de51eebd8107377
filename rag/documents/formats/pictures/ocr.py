"""Text in pictures, by a model that comes with the extra `groundnote[ocr]`: nothing is fetched.

One model reads some fifty languages in Latin and East Asian scripts; there is nothing to set.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from rag.documents.formats.pdf.tables import PdfCell, PdfLine
from rag.documents.limits import LoadLimits

MOST_PIXELS = 60_000_000  # of a picture
LONGEST_SIDE = 3_000  # pixels that are looked at: larger ones are made smaller
TIME_SHARE = 0.7  # of what a file may take; what is left over stays unread, and is told
LEAST_SCORE = 0.6
SAME_LINE = 0.5  # of its height, that two pieces share
MARK = "read by OCR"
INSTALL = "text in pictures is read where groundnote[ocr] is installed"


def is_installed() -> bool:
    """Whether the extra is there."""
    return find_spec("rapidocr") is not None


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that were seen, with their place in pixels from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class OcrClock:
    """The time of one file: reading pictures may take much of it."""

    def __init__(self, limits: LoadLimits) -> None:
        ends = time.process_time() + TIME_SHARE * limits.max_seconds
        self._ends = min(ends, _last_second() - (1 - TIME_SHARE) * limits.max_seconds)

    @property
    def is_over(self) -> bool:
        return time.process_time() > self._ends


def _last_second() -> float:
    """Of the processor's time that this process has: others may have used much for this file."""
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    soft, _hard = resource.getrlimit(resource.RLIMIT_CPU)
    return float("inf") if soft == resource.RLIM_INFINITY else float(soft)


@cache
def _engine() -> Any:
    from rapidocr import EngineType, RapidOCR

    kinds = {f"{part}.engine_type": EngineType.OPENVINO for part in ("Det", "Cls", "Rec")}
    threads = {"EngineConfig.openvino.inference_num_threads": 2}
    return RapidOCR(params={**kinds, **threads, "Global.log_level": "critical"})


def recognise(picture: Any) -> tuple[PdfLine, ...]:
    """The lines of a picture (of Pillow), from top to bottom, as those of a page are."""
    import numpy

    plain = picture.convert("RGB")
    plain.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    found = _engine()(numpy.asarray(plain))
    if found.txts is None:
        return ()
    pieces = [
        Piece(text.strip(), *_box(corners))
        for text, score, corners in zip(found.txts, found.scores, found.boxes, strict=True)
        if score >= LEAST_SCORE and text.strip()
    ]
    return tuple(as_lines(pieces, plain.height))


def _box(corners: Any) -> tuple[float, float, float, float]:
    across = [float(corner[0]) for corner in corners]
    down = [float(corner[1]) for corner in corners]
    return min(across), min(down), max(across), max(down)


def as_lines(pieces: Iterable[Piece], height: float) -> Iterator[PdfLine]:
    """Pieces that stand beside each other are one line with several cells."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: piece.top):
        row = next((row for row in reversed(rows[-3:]) if _is_beside(row[0], piece)), None)
        if row is None:
            rows.append([piece])
        else:
            row.append(piece)
    for row in rows:
        row.sort(key=lambda piece: piece.left)
        size = round(max(piece.bottom - piece.top for piece in row) * 0.75)
        yield PdfLine(
            " ".join(piece.text for piece in row),
            float(size),
            False,
            row[0].left,
            height - max(piece.bottom for piece in row),
            tuple(PdfCell(piece.text, piece.left, piece.right) for piece in row),
        )


def _is_beside(first: Piece, second: Piece) -> bool:
    shared = min(first.bottom, second.bottom) - max(first.top, second.top)
    return shared > SAME_LINE * min(first.bottom - first.top, second.bottom - second.top)
