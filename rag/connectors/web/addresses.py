"""Web addresses: in one spelling, within what was asked for, and as names that people can read."""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, unquote, urldefrag, urlencode, urlsplit, urlunsplit

from rag.connectors.kinds import without_secrets
from rag.documents.cleaning import word_set
from rag.documents.files import safe_name
from rag.errors import UserError

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
