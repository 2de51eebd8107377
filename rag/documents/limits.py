"""Limits on the size and reading time of a document."""

from dataclasses import dataclass

from rag.errors import TooLarge

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Limits for one file; a larger file is refused, never cut silently.

    The error names both numbers.
    """

    max_bytes: int = 64 * MEBIBYTE
    max_pages: int = 3_000  # PDF pages, slides
    max_cells: int = 20_000_000  # CSV and XLSX, empty ones not counted
    max_characters: int = 30_000_000  # of the text that was found
    max_unpacked_bytes: int = 512 * MEBIBYTE  # of a zipped format, all its parts together
    max_unpacked_ratio: int = 300  # unpacked to packed, of any part that is over 1 MiB
    max_seconds: float = 60.0  # in the reading process
    ocr_models: tuple[str, ...] = ()  # files that read pictures besides the packaged model
    max_memory_bytes: int = 1280 * MEBIBYTE  # address space of the reading process, beside OCR's


def check_size(name: str, size_bytes: int, *, limits: LoadLimits) -> None:
    """Raise TooLarge for a file of too many bytes; may be called before the file is read."""
    if size_bytes > limits.max_bytes:
        raise TooLarge(
            f"{name}: the file has {size_bytes / MEBIBYTE:,.1f} MiB, the limit is "
            f"{limits.max_bytes / MEBIBYTE:,.1f} MiB. Split it, or raise the limit in the settings."
        )


def check_pages(name: str, count: int, what: str, limits: LoadLimits) -> None:
    """Raise TooLarge for too many pages or slides."""
    if count > limits.max_pages:
        raise TooLarge(
            f"{name}: has {count:,} {what}, the limit is {limits.max_pages:,}. Split it."
        )
