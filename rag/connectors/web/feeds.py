"""Sitemaps and feeds: the pages that they name."""

import re
import zlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from rag.connectors.web.fetch import inflated
from rag.errors import SourceAway

GZIP = b"\x1f\x8b"
MOST_ENTRIES = 50_000  # of one file, as the protocol of sitemaps has it
ROOT = re.compile(
    rb"^\s*(?:<\?xml.{0,200}?\?>|<!--.{0,2000}?-->|<!doctype[^\[>]{0,500}(?:\[.{0,4000}?\]\s*)?>|\s)*"
    rb"<(?:[\w-]{1,40}:)?(\w+)",
    re.DOTALL | re.IGNORECASE,
)
KINDS = {b"urlset": "sitemap", b"sitemapindex": "sitemap", b"rss": "feed", b"feed": "feed",
         b"rdf": "feed"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """What a sitemap or a feed names."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def kind_of_list(data: bytes) -> str:
    """`sitemap`, `feed`, or "" for what is neither."""
    root = ROOT.match(data[:8192].removeprefix(b"\xef\xbb\xbf"))
    return KINDS.get(root[1].lower(), "") if root else ""


def unpacked_list(data: bytes, max_bytes: int) -> bytes:
    """Of `sitemap.xml.gz`; others as they are. Raises SourceAway."""
    if not data.startswith(GZIP):
        return data
    try:
        found = b"".join(inflated(iter([data]), 47, max_bytes + 1))
    except zlib.error as error:
        raise SourceAway(f"A sitemap is damaged ({error}).") from error
    if len(found) > max_bytes:
        raise SourceAway(f"A sitemap unpacks to more than {max_bytes:,} bytes.")
    return found


def read_list(data: bytes, url: str) -> FeedEntry:
    """Raises SourceAway for what is damaged, or would define entities of its own."""
    from xml.etree.ElementTree import ParseError

    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(data)
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise SourceAway(f"{url} is no sitemap or feed that can be read ({error}).") from error
    kind = _tag(root)
    if kind == "sitemapindex":
        return FeedEntry(sitemaps=_joined(url, _texts(root, "sitemap", "loc")))
    if kind == "urlset":
        return FeedEntry(pages=_joined(url, _texts(root, "url", "loc")))
    entries = [each for each in root.iter() if _tag(each) in ("item", "entry")]
    return FeedEntry(pages=_joined(url, [_link(entry) for entry in entries[:MOST_ENTRIES]]))


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _texts(root: Any, parent: str, child: str) -> list[str]:
    above = [each for each in root if _tag(each) == parent][:MOST_ENTRIES]
    return [inner.text or "" for each in above for inner in each if _tag(inner) == child]


def _link(entry: Any) -> str:
    """Of an entry: RSS writes it as text, Atom as an attribute."""
    for child in entry:
        if _tag(child) == "link" and child.get("rel", "alternate") == "alternate":
            found = child.get("href") or child.text or ""
            if found.strip():
                return str(found)
    ids = [child for child in entry if _tag(child) in ("guid", "id")]
    texts = [str(id_.text or "") for id_ in ids if id_.get("isPermaLink") != "false"]
    return next((text for text in texts if text.startswith("http")), "")


def _joined(base: str, links: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(urljoin(base, link.strip()) for link in links if link.strip()))
