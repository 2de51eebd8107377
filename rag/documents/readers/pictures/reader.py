"""Pictures and scans to sections: what OCR reads on each of their pages."""

import io
from collections.abc import Iterator
from typing import Any

from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers.pdf.layout import Page, write_pages
from rag.documents.readers.pictures.ocr import (
    INSTALL,
    MARK,
    MOST_PIXELS,
    OcrClock,
    is_installed,
    recognise,
)
from rag.documents.reports import pages_named
from rag.errors import TooLarge, Unreadable

FORMATS = (
    "PNG",
    "JPEG",
    "TIFF",
    "GIF",
    "WEBP",
    "BMP",
)  # no other decoder of Pillow's is ever tried
MOST_FRAMES = 200


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline. Raises Unreadable where the extra is missing."""
    if not is_installed():
        raise Unreadable(outline.name, f"this is a picture; {INSTALL}.")
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # asked below, before anything is unpacked
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
            frames = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
            pages = list(_pages(picture, min(frames, MOST_FRAMES), outline, limits))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError) as error:
        raise Unreadable(outline.name, "the picture is damaged or was cut off.") from error
    outline.pages = outline.recognised = len(pages)
    missed = range(len(pages) + 1, frames + 1)
    if missed:
        outline.left_out.append(f"{pages_named(missed)}: reading them by OCR would take too long")
    if pages:
        outline.fallback_title = outline.stem
        write_pages(pages, {}, outline)


def _pages(picture: Any, frames: int, outline: Outline, limits: LoadLimits) -> Iterator[Page]:
    from PIL import ImageOps

    clock = OcrClock(limits)
    for number in range(1, frames + 1):
        if clock.is_over:
            return
        picture.seek(number - 1)
        if picture.width * picture.height > MOST_PIXELS:
            raise TooLarge(
                f"{outline.name}: the picture has {picture.width * picture.height:,} pixels, at "
                f"most {MOST_PIXELS:,} are read. Save it smaller."
            )
        place = f"page {number}, {MARK}" if frames > 1 else f"picture, {MARK}"
        yield Page(
            number, recognise(ImageOps.exif_transpose(picture), limits.ocr_models), place=place
        )
