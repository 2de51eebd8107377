"""Read EPUB: the chapters in reading order (EPUB 3.3, "Open Container Format")."""

import io
import posixpath
import zipfile
from typing import Any, NamedTuple
from urllib.parse import unquote

from rag.documents.cleaning import one_line
from rag.documents.limits import LoadLimits
from rag.documents.outline import Outline
from rag.documents.readers import html
from rag.documents.readers.packages import check_package, damage_message, report_unread
from rag.errors import Unreadable

CONTAINER = "META-INF/container.xml"
RIGHTS = "META-INF/rights.xml"
PAGES = ("application/xhtml+xml", "text/html")


class _BookFile(NamedTuple):
    """A file of the book."""

    place: str
    kind: str  # its media type
    is_contents: bool


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a missing chapter is reported."""
    from defusedxml.ElementTree import fromstring

    check_package(outline.name, data, limits)
    with damage_message(outline.name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        if RIGHTS in archive.namelist():
            raise Unreadable(outline.name, "the book is protected against copying (DRM).")
        container: Any = fromstring(archive.read(CONTAINER))
        path = container.find(".//{*}rootfile").get("full-path") or ""
        package: Any = fromstring(archive.read(path))
        items: dict[str, _BookFile] = {}
        for item in package.iterfind(".//{*}item"):
            place = posixpath.join(posixpath.dirname(path), unquote(item.get("href") or ""))
            is_contents = "nav" in (item.get("properties") or "").split()
            kind = item.get("media-type") or ""
            items[item.get("id") or ""] = _BookFile(posixpath.normpath(place), kind, is_contents)
        references = package.iterfind(".//{*}itemref")
        spine = (items.get(reference.get("idref")) for reference in references)
        chapters = [item.place for item in spine if item and item.kind in PAGES]
        for number, place in enumerate(chapters, start=1):
            try:
                chapter = archive.read(place)
            except KeyError:
                outline.left_out.append(f"chapter {number}: missing in the file")
                continue
            outline.leave_headings()
            outline.place(f"chapter {number}")
            html.read(chapter, outline, limits)
        # A table of contents only repeats the chapters' headings.
        contents = (item.place for item in items.values() if item.is_contents)
        report_unread(archive, outline, {*chapters, *contents})
    outline.pictures = sum(item.kind.startswith("image/") for item in items.values())
    outline.title = one_line(_first(package, "title"))
    outline.author, outline.date = _first(package, "creator"), _first(package, "date")
    outline.fallback_title = ""


def _first(package: Any, name: str) -> str:
    return package.findtext(f".//{{*}}{name}") or ""
