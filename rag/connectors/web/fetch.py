"""Fetch web addresses: the guarded client, robots.txt, normalised addresses, sitemaps and feeds."""

import json
import re
import ssl
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qsl, unquote, urldefrag, urlencode, urljoin, urlsplit, urlunsplit

import httpx
from protego import Protego

from rag.connectors.guard import Guard, GuardedNetwork
from rag.connectors.kinds import without_secrets
from rag.documents.cleaning import word_set
from rag.documents.files import safe_name
from rag.errors import Forbidden, SourceAway, TooLarge, UserError
from rag.seams import SourceOptions

AGENT = "Groundnote"
MOST_REDIRECTS = 5
SECONDS = 60.0  # for a request including its redirects
QUIET_SECONDS = 15.0  # without a byte
LONGEST_URL = 2_000
PIECE_BYTES = 64 * 1024
ENCODINGS = {"": 0, "identity": 0, "gzip": 47, "x-gzip": 47, "deflate": 47}  # window bits of zlib

WantsBody = Callable[[httpx.Response], bool]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A response; `data` is empty where the body was not wanted."""

    url: str  # after redirects
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case
    data: bytes = b""
    has_body: bool = True

    @property
    def is_there(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        return self.status in (404, 410)

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json_object(self, away: Callable[[str], SourceAway]) -> dict[str, Any]:
        """Return the body as a JSON object; for another one raise what `away` makes of why."""
        try:
            data = json.loads(self.data)
        except ValueError as error:
            raise away("its answer is no JSON") from error
        if not isinstance(data, dict):
            raise away("its answer is of another form")
        return data


class HostLogin(httpx.Auth):
    """The login in an address, sent to the origin of that address only."""

    def __init__(self, address: str) -> None:
        self._url = httpx.URL(address)
        self._basic = httpx.BasicAuth(self._url.username, self._url.password)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._url.userinfo and _origin(request.url) == _origin(self._url):
            yield from self._basic.auth_flow(request)
        else:
            yield request


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class Fetcher:
    """Fetches over http and https; used by one thread at a time."""

    def __init__(self, guard: Guard, *, max_bytes: int, auth: httpx.Auth | None = None) -> None:
        self._max_bytes = max_bytes
        self._network = GuardedNetwork(guard)
        self._client = httpx.Client(
            transport=guarded_transport(self._network),
            headers={"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate"},
            timeout=QUIET_SECONDS,
            follow_redirects=True,
            max_redirects=MOST_REDIRECTS,
            trust_env=False,  # no proxy and no .netrc: both would bypass the guard
            auth=auth,
        )

    def get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        wants_body: WantsBody = lambda _response: True,
    ) -> FetchedPage:
        """Return the response, whatever its status.

        Raises Forbidden, TooLarge, and SourceAway where the host does not answer.
        """
        if len(url) > LONGEST_URL or not url.isprintable():
            raise Forbidden(f"{url[:80]!r} is no address that is fetched.")
        self._network.deadline = time.monotonic() + SECONDS
        try:
            with self._client.stream("GET", url, headers=headers) as response:
                is_wanted = response.status_code == 200 and wants_body(response)
                data = self._body(response) if is_wanted else b""
                url, headers = str(response.url), dict(response.headers)
                return FetchedPage(url, response.status_code, headers, data, is_wanted)
        except httpx.TooManyRedirects as error:
            raise SourceAway(f"{url} redirects more than {MOST_REDIRECTS} times.") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise Forbidden(f"{url} leads to what is not http or https.") from error
        except (httpx.HTTPError, ssl.SSLError, zlib.error, ValueError) as error:
            message = str(error) or type(error).__name__
            raise SourceAway(f"{url} cannot be fetched ({message}).") from error

    def _body(self, response: httpx.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ENCODINGS:
            raise SourceAway(f"{response.url} came packed as {encoding[:40]!r}, unasked.")
        stated = response.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._max_bytes:
            raise self._too_large(response)
        pieces = response.iter_raw(PIECE_BYTES)
        body = bytearray()
        for piece in inflated(pieces, ENCODINGS[encoding], self._max_bytes + 1):
            body += piece
            if len(body) > self._max_bytes:
                raise self._too_large(response)
        return bytes(body)

    def _too_large(self, response: httpx.Response) -> TooLarge:
        return TooLarge(f"{response.url} has more than {self._max_bytes:,} bytes, the limit.")

    def close(self) -> None:
        self._client.close()


def inflated(pieces: Iterator[bytes], window_bits: int, most: int) -> Iterator[bytes]:
    """Decompress pieces, never much more at once than `most` bytes; unchanged for 0 window bits."""
    if not window_bits:
        yield from pieces
        return
    unpacker = zlib.decompressobj(window_bits)
    for piece in pieces:
        if unpacker.eof:  # data after the end of the stream is ignored
            return
        yield unpacker.decompress(piece, most)


def guarded_transport(network: GuardedNetwork) -> httpx.HTTPTransport:
    """Return the transport of an httpx client that connects only through the guard."""
    import httpcore

    transport = httpx.HTTPTransport(trust_env=False)
    # httpx offers no way to replace the connections; its connection pool does.
    transport._pool = httpcore.ConnectionPool(
        ssl_context=httpx.create_ssl_context(),
        max_connections=4,
        keepalive_expiry=10,
        network_backend=network,
    )
    return transport


# ── robots.txt ───────────────────────────────────────────────────────────────────────────────────

LONGEST_DELAY = 5.0  # seconds between two requests at most, whatever a site asks for
MOST_BYTES = 512 * 1024


class Robots:
    """The robots.txt of each host, read once."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, Protego] = {}
        self._last = 0.0

    def allow(self, url: str) -> bool:
        """Return whether a URL may be fetched. Raises SourceAway if robots.txt cannot be read."""
        return self._of(url).can_fetch(url, AGENT)

    def wait(self, url: str) -> None:
        """Wait as long as the site wants between two requests."""
        delay = self._of(url).crawl_delay(AGENT)
        if delay:
            due = self._last + min(delay, LONGEST_DELAY)
            time.sleep(max(0.0, due - time.monotonic()))
        self._last = time.monotonic()

    def _of(self, url: str) -> Protego:
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        if host not in self._rules:
            answer = self._fetcher.get(f"{host}/robots.txt")
            if answer.status >= 500 or answer.status == 429:
                raise SourceAway(
                    f"{host}/robots.txt answers {answer.status}: what may be read there is not "
                    "known."
                )
            data = answer.data[:MOST_BYTES] if answer.is_there else b""
            self._rules[host] = Protego.parse(data.decode("utf-8", "replace"))
        return self._rules[host]


PORTS = {"http": 80, "https": 443}
FOLLOWS_PEOPLE = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|ref_src")
INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$")
PAGE_ENDINGS = frozenset({".html", ".htm", ".xhtml"})
MADE_PAGES = word_set(".php .php5 .asp .aspx .jsp .do .cgi .cfm .shtml .action")
LONGEST_PART = 100
LONGEST_NAME = 400
HASH_CHARS = 8


def refuse_private(url: str, options: SourceOptions) -> None:
    """Raise Forbidden for an address in this network; an unknown name is left to the first sync."""
    parts, guard = urlsplit(url), Guard(options.private_hosts)
    with suppress(SourceAway):
        guard.addresses(parts.hostname or "", parts.port or PORTS[parts.scheme])


@lru_cache(1 << 16)  # many pages have the same links
def normal(url: str) -> str:
    """Return the normal form of a web address, without a login; "" for an invalid one."""
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
    """Return whether two addresses differ only in index.html, a slash, or a query."""
    return _plain(first) == _plain(second)


def _plain(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    return host, INDEX.sub("/", parts.path).rstrip("/").casefold()


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a site to read: the folder of its address, on its host."""

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
        """Return a name such as `setup/wi-fi.html`, with the host in front if it is another one."""
        parsed = urlsplit(url)
        path = (parsed.path or "/").removeprefix(self.folder if self.holds(url) else "")
        path = "" if path + "/" == self.folder else path
        parts = [_part(unquote(part, errors="replace")) for part in path.split("/") if part]
        if not parts:
            parts.append("index")
        if not self.has_host(url):
            parts.insert(0, _part(parsed.hostname or "site"))
        last = _with_ending(parts[-1], ending)
        query = urlsplit(without_secrets(url)).query  # names are visible to every reader
        if query:
            last = distinguished(last, f"{_part(query)[:40]}-{digest(query)}")
        name = "/".join([*parts[:-1], last])
        return name if len(name) <= LONGEST_NAME else f"{name[:300]}-{digest(url)}{ending}"


def _with_ending(name: str, ending: str) -> str:
    """Name `prices.php` `prices.html` and `v1.2` `v1.2.html`; `a.htm` stays."""
    current = _plausible_suffix(name)
    if current == ending or {current, ending} <= PAGE_ENDINGS:
        return name
    return (name[: -len(current)] if current in MADE_PAGES else name) + ending


def distinguished(name: str, by: str) -> str:
    """Add a suffix to a name: `prices.html` and `2f3a` give `prices-2f3a.html`."""
    stem, ending = name[: len(name) - len(_plausible_suffix(name))], _plausible_suffix(name)
    return f"{stem}-{by}{ending}"


def digest(text: str) -> str:
    """Return a short hash of a text."""
    return sha256(text.encode()).hexdigest()[:HASH_CHARS]


def ending_in(url: str) -> str:
    """Return the ending of the file in an address, in lower case; "" for none."""
    return _plausible_suffix(unquote(urlsplit(url).path).rpartition("/")[2])


def _plausible_suffix(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z][a-z0-9]{0,8}", suffix) else ""


def _part(part: str) -> str:
    try:
        return safe_name(re.sub(r"[/\\?*:|\"<>]+", "-", part))[:LONGEST_PART]
    except UserError:
        return digest(part)


# ── Sitemaps and feeds ───────────────────────────────────────────────────────────────────────────

GZIP = b"\x1f\x8b"
MOST_ENTRIES = 50_000  # in one file, the limit of the sitemap protocol
ROOT = re.compile(
    rb"^\s*(?:<\?xml.{0,200}?\?>|<!--.{0,2000}?-->|<!doctype[^\[>]{0,500}(?:\[.{0,4000}?\]\s*)?>|\s)*"
    rb"<(?:[\w-]{1,40}:)?(\w+)",
    re.DOTALL | re.IGNORECASE,
)
KINDS = {b"urlset": "sitemap", b"sitemapindex": "sitemap", b"rss": "feed", b"feed": "feed",
         b"rdf": "feed"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """The addresses in a sitemap or a feed."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def kind_of_list(data: bytes) -> str:
    """Return `sitemap` or `feed`; "" for anything else."""
    root = ROOT.match(data[:8192].removeprefix(b"\xef\xbb\xbf"))
    return KINDS.get(root[1].lower(), "") if root else ""


def unpacked_list(data: bytes, max_bytes: int) -> bytes:
    """Decompress a `sitemap.xml.gz`; other data stays as it is. Raises SourceAway."""
    if not data.startswith(GZIP):
        return data
    try:
        unpacked = b"".join(inflated(iter([data]), 47, max_bytes + 1))
    except zlib.error as error:
        raise SourceAway(f"A sitemap is damaged ({error}).") from error
    if len(unpacked) > max_bytes:
        raise SourceAway(f"A sitemap unpacks to more than {max_bytes:,} bytes.")
    return unpacked


def read_list(data: bytes, url: str) -> FeedEntry:
    """Parse a sitemap or feed. Raises SourceAway if it is damaged or defines entities."""
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
    entries = [element for element in root.iter() if _tag(element) in ("item", "entry")]
    return FeedEntry(
        pages=_joined(url, [_link_of_entry(entry) for entry in entries[:MOST_ENTRIES]])
    )


def _tag(element: Any) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _texts(root: Any, parent: str, child: str) -> list[str]:
    above = [element for element in root if _tag(element) == parent][:MOST_ENTRIES]
    return [inner.text or "" for element in above for inner in element if _tag(inner) == child]


def _link_of_entry(entry: Any) -> str:
    """Return the link of an entry: text in RSS, an attribute in Atom."""
    for child in entry:
        if _tag(child) == "link" and child.get("rel", "alternate") == "alternate":
            link = child.get("href") or child.text or ""
            if link.strip():
                return str(link)
    ids = [child for child in entry if _tag(child) in ("guid", "id")]
    texts = [str(id_.text or "") for id_ in ids if id_.get("isPermaLink") != "false"]
    return next((text for text in texts if text.startswith("http")), "")


def _joined(base: str, links: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(urljoin(base, link.strip()) for link in links if link.strip()))
