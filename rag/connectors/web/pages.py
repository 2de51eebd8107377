"""The main text of web pages, without menus, and their links.

The module also keeps what is known of a site between two syncs.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from html import escape
from itertools import takewhile
from json import dumps
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urljoin

from rag.connectors.kinds import hidden, revealed
from rag.documents.cleaning import decode, one_line
from rag.documents.limits import LoadLimits
from rag.documents.readers.html import CHARSET, DATES, check_depth, properties_of
from rag.documents.sandbox import GuardedLoader
from rag.documents.sandbox_worker import answered, opened, serve

MAIN = "main, [role=main], article"
AROUND = (
    "script, style, noscript, template, iframe, object, embed, nav, form, button, dialog, "
    "body > header, body > footer, body > aside, [role=navigation], [role=banner], "
    "[role=contentinfo], [role=search], [aria-hidden=true], [hidden]"
)
LEAST_SHARE = 0.7  # of the page's cells and headings that a main text must hold
SOME_WORDS = 20
MOST_LINKS = 5_000  # of a page
MOST_GUESSED = 2_000_000  # longest page, in characters, given to trafilatura


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page reduced to its main text, with its links."""

    html: bytes  # title and main text with its tables, lists and headings
    links: tuple[str, ...] = ()  # absolute, in order
    canonical: str = ""


def read_page(data: bytes, url: str, declared: str | None = None) -> WebPage:
    """Read a page. Raises TooLarge for markup that is nested too deeply."""
    from selectolax.lexbor import LexborHTMLParser

    stated = CHARSET.search(data[:4096])
    markup = decode(data, declared=declared or (stated[1].decode("ascii") if stated else None))
    check_depth(markup, url)
    tree = LexborHTMLParser(markup)
    base = urljoin(url, _href(tree.css_first("base[href]")))
    links = map(_href, tree.css("a[href], area[href]")[:MOST_LINKS])
    canonical = _href(tree.css_first("link[rel=canonical]"))
    title = tree.css_first("title")
    name = one_line(title.text()) if title else ""
    return WebPage(
        _document(name, properties_of(tree), _main_text(tree, markup, url)),
        tuple(dict.fromkeys(filter(None, (_joined(base, link) for link in links)))),
        _joined(base, canonical) if canonical else "",
    )


def _document(title: str, metadata: Mapping[str, str], main: str) -> bytes:
    metas = (
        f'<meta name="{name}" content="{escape(metadata[name])}">'
        for name in ("author", "article:author", "keywords", *DATES)
        if name in metadata
    )
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>{"".join(metas)}'
    return f"<!doctype html><html><head>{head}</head><body>{main}</body></html>".encode()


def _joined(base: str, link: str) -> str:
    try:
        return urljoin(base, link.strip())
    except ValueError:  # brackets without a valid address
        return ""


def _href(element: Any) -> str:
    return (element.attributes.get("href") or "").strip() if element is not None else ""


def _main_text(tree: Any, markup: str, url: str) -> str:
    """Return the main text: the element marked as main, else what trafilatura extracts.

    If that loses tables or headings, it is the page without navigation and the like.
    """
    for element in tree.css(AROUND):
        element.decompose()
    candidates = [element for element in tree.css(MAIN) if len(_words(element)) >= SOME_WORDS]
    outermost = [element for element in candidates if not _is_inside(element, candidates)]
    if len(outermost) == 1:
        return str(outermost[0].html)
    if tree.body is None:
        return ""
    body = _extracted(markup, url) if len(markup) <= MOST_GUESSED else None
    extracted = str(body.inner_html) if body is not None else ""
    if extracted:
        main = [word for part in tree.body.css("td, th, h1, h2, h3") for word in _words(part)]
        words = set(_words(body))
        if sum(word in words for word in main) >= LEAST_SHARE * len(main):
            return extracted
    return str(tree.body.html)


def _is_inside(element: Any, others: list[Any]) -> bool:
    above = element.parent
    while above is not None:
        if any(above == other for other in others):
            return True
        above = above.parent
    return False


def _extracted(markup: str, url: str) -> Any:
    """Return the body that trafilatura extracts, or None."""
    from selectolax.lexbor import LexborHTMLParser
    from trafilatura import extract

    html = extract(
        markup, url=url, output_format="html", include_tables=True, include_formatting=True,
        include_comments=False, favor_recall=True,
    )  # fmt: skip
    return LexborHTMLParser(html).body if html else None


def _words(element: Any) -> list[str]:
    return str(element.text(deep=True, separator=" ")).split()


# ── Reading pages in a sandbox process ───────────────────────────────────────────────────────────

SECONDS = 10.0  # of processor time, for one page


def page_of(data: bytes, url: str, declared: str | None = None) -> WebPage:
    """Read a page in a sandbox process.

    Raises TooLarge, and Unreadable for a page that crashes the process or takes too long.
    """
    page = opened(_reader().ask(url, f"{declared or ''}\n".encode() + data))
    return WebPage(page["html"].encode(), tuple(page["links"]), page["canonical"])


@cache
def _reader() -> GuardedLoader:
    """Return the reading process for all sites; it ends with this process."""
    limits = LoadLimits(max_bytes=1 << 40, max_seconds=SECONDS)  # fetching has its own limit
    return GuardedLoader(limits, readers=1, module=__name__)


def _answer(url: str, message: bytes, limits: LoadLimits) -> bytes:
    declared, _, data = message.partition(b"\n")

    def work() -> bytes:
        page = read_page(data, url, declared.decode() or None)
        return dumps(asdict(page) | {"html": page.html.decode()}).encode()

    return answered(url, limits, work)


if __name__ == "__main__":
    serve(_answer)


# ── The cache of a site between two syncs ────────────────────────────────────────────────────────

FILE, LOG, PAGES = "seen.json", "look.jsonl", "pages"
PAUSED_SECONDS = 3600.0  # a visit that was interrupted longer ago starts again
VERSION = 1
Secrets = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CachedPage:
    """The last response for an address."""

    url: str  # after redirects
    name: str  # "" if it gave no file, such as a copy of another page
    mark: str = ""
    etag: str = ""
    modified: str = ""
    size: int | None = None
    links: tuple[str, ...] = ()

    def conditions(self) -> dict[str, str]:
        """Return the headers by which a site can answer that nothing has changed."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in headers.items() if value}


def load_page_cache(folder: Path | None, secrets: Secrets = ()) -> dict[str, CachedPage]:
    """Load the cached pages by address; empty if there are none or the file is damaged.

    A file that an earlier version wrote with secrets is rewritten without them.
    """
    pages = _load(folder, lambda text: revealed(text, secrets))
    if secrets and pages and any(value in str(_load(folder, str)) for value, _name in secrets):
        save_page_cache(folder, pages, secrets)
    return pages


def _load(folder: Path | None, read: Callable[[str], str]) -> dict[str, CachedPage]:
    if folder is None:
        return {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        saved = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if saved["version"] == VERSION:
            return {read(url): _page_from(values, read) for url, values in saved["seen"].items()}
    return {}


def _spelled(page: CachedPage, spell: Callable[[str], str]) -> CachedPage:
    return replace(page, url=spell(page.url), links=tuple(map(spell, page.links)))


def save_page_cache(
    folder: Path | None, pages: dict[str, CachedPage], secrets: Secrets = ()
) -> None:
    """Write the cache completely or not at all; without it the next sync fetches everything."""
    hide = partial(hidden, secrets=secrets)
    if folder is None:
        return
    saved = {
        "version": VERSION,
        "seen": {hide(url): asdict(_spelled(page, hide)) for url, page in pages.items()},
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE}.{os.getpid()}.part"
        part.write_text(json.dumps(saved), encoding="utf-8")
        part.replace(folder / FILE)


@dataclass(frozen=True, slots=True)
class Look:
    """A visit of a site: where it began, and the responses so far, in order."""

    start: str
    urls: tuple[str, ...]
    depth: int  # of links to follow from these
    pages: deque[tuple[str, CachedPage | None]]  # None: no page


class LookLog:
    """The log of a visit with the pages read, so that an interrupted visit can be resumed."""

    def __init__(self, folder: Path | None, secrets: Secrets) -> None:
        self._folder = folder
        self._secrets = secrets
        self._hide = partial(hidden, secrets=secrets)
        self.pages = folder / PAGES if folder else Path(mkdtemp(prefix="groundnote-web-"))

    def load(self, of: Sequence[object]) -> Look | None:
        """Return the interrupted visit, or None: a recent one of the same parameters `of`."""
        if self._folder is None:
            return None
        path, read = self._folder / LOG, partial(revealed, secrets=self._secrets)
        with suppress(OSError, ValueError, TypeError, KeyError, StopIteration):
            if time.time() - path.stat().st_mtime > PAUSED_SECONDS:
                return None
            self.pages.mkdir(parents=True, exist_ok=True)
            with path.open(encoding="utf-8") as file:
                head = json.loads(next(file))
                if head["of"] == [VERSION, *of]:
                    urls = tuple(map(read, head["urls"]))
                    pages = _logged_pages(file, read)
                    self.cut(len(pages))
                    return Look(read(head["start"]), urls, head["depth"], pages)
        return None

    def cut(self, entries: int) -> None:
        """Keep the first entries: a half-written line, or another path, cannot be resumed."""
        if self._folder is None:
            return
        with suppress(OSError), (self._folder / LOG).open("r+b") as file:
            for _ in range(entries + 1):
                file.readline()
            end = file.tell()
            if file.read(1):
                file.truncate(end)

    def begin(self, look: Look, of: Sequence[object]) -> None:
        """Start a log, deleting the earlier one."""
        self.end()
        self.pages.mkdir(parents=True, exist_ok=True)
        start, urls = self._hide(look.start), [*map(self._hide, look.urls)]
        self._write({"of": [VERSION, *of], "start": start, "urls": urls, "depth": look.depth})

    def add(self, url: str, page: CachedPage | None) -> None:
        self._write([self._hide(url), page and asdict(_spelled(page, self._hide))])

    def _write(self, line: object) -> None:
        """Append a line; if that fails, the address is requested again."""
        if self._folder is None:
            return
        with suppress(OSError), (self._folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def end(self) -> None:
        """Delete the log and its pages."""
        rmtree(self.pages, ignore_errors=True)
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / LOG).unlink(missing_ok=True)


def _logged_pages(
    lines: Iterable[str], read: Callable[[str], str]
) -> deque[tuple[str, CachedPage | None]]:
    pages: deque[tuple[str, CachedPage | None]] = deque()
    # A line may be incomplete or of another version.
    with suppress(ValueError, TypeError, KeyError):
        for line in takewhile(lambda line: line.endswith("\n"), lines):
            url, page = json.loads(line)
            pages.append((read(url), page and _page_from(page, read)))
    return pages


def _page_from(values: Mapping[str, Any], read: Callable[[str], str]) -> CachedPage:
    return _spelled(CachedPage(**{**values, "links": tuple(values["links"])}), read)
