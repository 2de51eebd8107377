"""Reports of what was read from a file, as records and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rag.documents.kinds import FileKind
from rag.records import ReadingReport

MOST_NAMED = 8  # pages, files, cells
READER = 4  # to be raised when the readers change; see `groundnote reread`


def report_from(stored: Mapping[str, Any]) -> ReadingReport:
    """Make a report from what `stored_report` wrote; empty for documents stored before reports."""
    lists = {name: tuple(stored.get(name, ())) for name in ("left_out", "tags")}
    return ReadingReport(**{**stored, **lists})


def stored_report(report: ReadingReport) -> dict[str, Any]:
    """Return a report as JSON-compatible values."""
    return asdict(report) | {"left_out": list(report.left_out), "tags": list(report.tags)}


def counted(count: int, thing: str) -> str:
    """Write a count and its noun: `1 page`, `1,204 words`, `2 boxes`."""
    ending = "es" if thing.endswith("x") else "s"
    return f"{count:,} {thing}{ending if count != 1 else ''}"


def first_of(names: Sequence[str]) -> str:
    """List the first names: `B7, B8 …`."""
    return ", ".join(names[:MOST_NAMED]) + " …" * (len(names) > MOST_NAMED)


def pages_named(numbers: Sequence[int]) -> str:
    """List page numbers: `page 4`, `pages 4, 7 and 3 more`."""
    rest = len(numbers) - MOST_NAMED
    listed = ", ".join(map(str, numbers[:MOST_NAMED])) + (f" and {rest} more" if rest > 0 else "")
    return f"page{'s' if len(numbers) != 1 else ''} {listed}"


def in_words(report: ReadingReport) -> str:
    """Return what was read in words: `12 pages, 3,204 words, 4 tables`; "" if nothing is known."""
    things = (
        (report.pages, "page"),
        (report.words, "word"),
        (report.tables, "table"),
        (report.form_values, "form value"),
    )
    words = [counted(count, thing) for count, thing in things if count]
    if report.recognised:
        words.append(f"{report.recognised:,} read by OCR")
    return ", ".join(words)


def left_out(report: ReadingReport) -> list[str]:
    """Return the parts of a document that are not searchable, each with its reason."""
    pictures = f"{counted(report.pictures, 'picture')}: text in pictures is not read"
    things = [pictures, *report.left_out] if report.pictures else list(report.left_out)
    refused = f"what newer readers find, for they refuse the file: {report.refused.rstrip('.')}"
    return [*things, refused] if report.refused else things


def kind_in_words(media_type: str) -> str:
    """Return the kind of a document in one word."""
    return next((kind.word for kind in FileKind if kind == media_type), media_type)


def size_in_words(count: int) -> str:
    """Write a number of bytes for people: "1.4 MB"."""
    if count < 1000:
        return f"{count} bytes"
    value = count / 1000
    for unit in ("kB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
