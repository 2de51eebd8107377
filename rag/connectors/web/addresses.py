"""Web addresses: in one spelling, within what was asked for, and as names that people can read."""

import re
import zlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urldefrag, urlencode, urljoin, urlsplit, urlunsplit

from rag.connectors.kinds import without_secrets
from rag.connectors.web.fetch import inflated
from rag.documents.cleaning import word_set
from rag.documents.files import safe_name
from rag.errors import SourceAway, UserError

PORTS = {"http": 80, "https": 443}
FOLLOWS_PEOPLE = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|ref_src")
INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")
PAGE_ENDINGS = frozenset({".html", ".htm", ".xhtml"})
MADE_PAGES = word_set(".php .php5 .asp .aspx .jsp .do .cgi .cfm .shtml .action")
LONGEST_PART = 100
LONGEST_NAME = 400
HASH_CHARS = 8


def normal(url: str) -> str:
    """One spelling of an address of the web, without a login; "" for what is none."""
    try:
        parts = urlsplit(urldefrag(url.strip()).url)
        port = parts.port
    except ValueError:
        return ""
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower().rstrip(".")
    if scheme not in PORTS or not host:
        return ""
    host = f"[{host}]" if ":" in host else host
    place = host if port in (None, PORTS[scheme]) else f"{host}:{port}"
    query = parts.query
    if FOLLOWS_PEOPLE.search(query):
        pairs = parse_qsl(query, keep_blank_values=True)
        query = urlencode([pair for pair in pairs if not FOLLOWS_PEOPLE.fullmatch(pair[0])])
    return urlunsplit((scheme, place, parts.path or "/", query, ""))


def is_same_page(first: str, second: str) -> bool:
    """Whether they differ in what a site writes this way and that: index.html, a slash, a query."""
    return _plain(first) == _plain(second)


def _plain(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    return host, INDEX.sub("/", parts.path).rstrip("/").casefold()


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a site was asked for: the folder of its address, on its host."""

    host: str
    folder: str  # ends with a slash

    @classmethod
    def of(cls, url: str) -> "Scope":
        parts = urlsplit(url)
        path = parts.path or "/"
        last = path.rpartition("/")[2]
        folder = path if "." not in last and last else path.rpartition("/")[0]
        return cls(parts.netloc.rpartition("@")[2], folder.rstrip("/") + "/")

    def has_host(self, url: str) -> bool:
        return urlsplit(url).netloc.rpartition("@")[2] == self.host

    def holds(self, url: str) -> bool:
        path = urlsplit(url).path or "/"
        return self.has_host(url) and (path + "/").startswith(self.folder)

    def name_of(self, url: str, ending: str) -> str:
        """`setup/wi-fi.html`, with the host before it where it is another one."""
        found = urlsplit(url)
        path = (found.path or "/").removeprefix(self.folder if self.holds(url) else "")
        path = "" if path + "/" == self.folder else path
        parts = [_part(unquote(part, errors="replace")) for part in path.split("/") if part]
        if not parts:
            parts.append("index")
        if not self.has_host(url):
            parts.insert(0, _part(found.hostname or "site"))
        last = _with_ending(parts[-1], ending)
        query = urlsplit(without_secrets(url)).query  # names are for everybody who reads it
        if query:
            last = distinguished(last, f"{_part(query)[:40]}-{digest(query)}")
        name = "/".join([*parts[:-1], last])
        return name if len(name) <= LONGEST_NAME else f"{name[:300]}-{digest(url)}{ending}"


def _with_ending(name: str, ending: str) -> str:
    """`prices.php` as a page is `prices.html`, `v1.2` is `v1.2.html`; `a.htm` stays."""
    own = _ending(name)
    if own == ending or {own, ending} <= PAGE_ENDINGS:
        return name
    return (name[: -len(own)] if own in MADE_PAGES else name) + ending


def distinguished(name: str, by: str) -> str:
    """`prices.html` by `2f3a`: `prices-2f3a.html`."""
    stem, ending = name[: len(name) - len(_ending(name))], _ending(name)
    return f"{stem}-{by}{ending}"


def digest(text: str) -> str:
    """Short, and always the same."""
    return sha256(text.encode()).hexdigest()[:HASH_CHARS]


def ending_in(url: str) -> str:
    """Of the file that an address names, lower case; "" for none."""
    return _ending(unquote(urlsplit(url).path).rpartition("/")[2])


def _ending(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z][a-z0-9]{0,8}", suffix) else ""


def _part(part: str) -> str:
    try:
        return safe_name(re.sub(r"[/\\?*:|\"<>]+", "-", part))[:LONGEST_PART]
    except UserError:
        return digest(part)


# ── Sitemaps and feeds: the pages that they name ──────────────────────────────────────────────────

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
