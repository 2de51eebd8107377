"""EPUB to sections: its chapters in reading order (EPUB 3.3, "Open Container Format")."""

import io
import posixpath
import zipfile
from collections.abc import Iterator
from typing import Any
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


def read(data: bytes, outline: Outline, limits: LoadLimits) -> None:
    """Fill the outline; a chapter that is named and missing is told in the report."""
    check_package(outline.name, data, limits)
    with damage_message(outline.name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        if RIGHTS in archive.namelist():
            raise Unreadable(outline.name, "the book is protected against copying (DRM).")
        package, folder = _package(archive)
        title = one_line(_first(package, "title"))
        chapters = list(_spine(package, folder))
        for number, place in enumerate(chapters, start=1):
            try:
                chapter = archive.read(place)
            except KeyError:
                outline.left_out.append(f"chapter {number}: missing in the file")
                continue
            outline.leave_headings()
            outline.place(f"chapter {number}")
            html.read(chapter, outline, limits)
        report_unread(archive, outline, {*chapters, *_contents(package, folder)})
    outline.pictures = sum(
        kind.startswith("image/") for _id, _place, kind in _items(package, folder)
    )
    outline.title = title
    outline.author, outline.date = _first(package, "creator"), _first(package, "date")
    outline.fallback_title = ""


def _package(archive: zipfile.ZipFile) -> tuple[Any, str]:
    """The list of what the book holds, and the folder that its names are relative to."""
    from defusedxml.ElementTree import fromstring

    container = fromstring(archive.read(CONTAINER))
    root = next(each for each in container.iter() if each.tag.endswith("}rootfile"))
    path = root.get("full-path") or ""
    return fromstring(archive.read(path)), posixpath.dirname(path)


def _spine(package: Any, folder: str) -> Iterator[str]:
    pages = {name: place for name, place, kind in _items(package, folder) if kind in PAGES}
    for each in package.iter():
        if each.tag.endswith("}itemref") and each.get("idref") in pages:
            yield pages[each.get("idref")]


def _items(package: Any, folder: str) -> Iterator[tuple[str, str, str]]:
    """Of each file of the book its id, its place and its media type."""
    for each in package.iter():
        if each.tag.endswith("}item"):
            place = posixpath.join(folder, unquote(each.get("href") or ""))
            kind = each.get("media-type") or ""
            yield each.get("id") or "", posixpath.normpath(place), kind


def _contents(package: Any, folder: str) -> set[str]:
    """The table of contents: its words are those of the chapters' headings."""
    navs = {
        each.get("id")
        for each in package.iter()
        if each.tag.endswith("}item") and "nav" in (each.get("properties") or "").split()
    }
    return {place for name, place, _kind in _items(package, folder) if name in navs}


def _first(package: Any, name: str) -> str:
    results = (each.text or "" for each in package.iter() if each.tag.endswith(f"}}{name}"))
    return next(results, "")
