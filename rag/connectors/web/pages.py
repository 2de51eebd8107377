"""What a person reads of a web page, without its menus; and what else its markup says."""

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
LEAST_SHARE = 0.7  # of the page's cells and headings: with fewer, the main text is not the main one
SOME_WORDS = 20
MOST_LINKS = 5_000  # of a page
MOST_GUESSED = 2_000_000  # characters of a page whose main text is looked for by its words


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as it is kept and followed."""

    html: bytes  # its title and main text, whole tables and lists and headings in it
    links: tuple[str, ...] = ()  # absolute, in order
    canonical: str = ""


def read_page(data: bytes, url: str, declared: str | None = None) -> WebPage:
    """Raises TooLarge for markup that is nested without end."""
    from selectolax.lexbor import LexborHTMLParser

    stated = CHARSET.search(data[:4096])
    markup = decode(data, declared=declared or (stated[1].decode("ascii") if stated else None))
    check_depth(markup, url)
    tree = LexborHTMLParser(markup)
    base = urljoin(url, _attribute(tree.css_first("base[href]"), "href"))
    links = (_attribute(link, "href") for link in tree.css("a[href], area[href]")[:MOST_LINKS])
    canonical = _attribute(tree.css_first("link[rel=canonical]"), "href")
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
    except ValueError:  # brackets that are no address
        return ""


def _attribute(element: Any, name: str) -> str:
    return (element.attributes.get(name) or "").strip() if element is not None else ""


def _main_text(tree: Any, markup: str, url: str) -> str:
    """The element that says it is the main one; else what trafilatura takes for it, unless that
    leaves out tables or headings; else the page without what stands around it."""
    for element in tree.css(AROUND):
        element.decompose()
    candidates = [element for element in tree.css(MAIN) if len(_words(element)) >= SOME_WORDS]
    outermost = [element for element in candidates if not _is_inside(element, candidates)]
    if len(outermost) == 1:
        return str(outermost[0].html)
    if tree.body is None:
        return ""
    extracted = _extracted(markup, url) if len(markup) <= MOST_GUESSED else ""
    wanted = [word for part in tree.body.css("td, th, h1, h2, h3") for word in _words(part)]
    extracted_words = set(_text_words(extracted))
    if extracted and sum(word in extracted_words for word in wanted) >= LEAST_SHARE * len(wanted):
        return extracted
    return str(tree.body.html)


def _is_inside(element: Any, others: list[Any]) -> bool:
    above = element.parent
    while above is not None:
        if any(above == other for other in others):
            return True
        above = above.parent
    return False


def _extracted(markup: str, url: str) -> str:
    from selectolax.lexbor import LexborHTMLParser
    from trafilatura import extract

    html = extract(
        markup, url=url, output_format="html", include_tables=True, include_formatting=True,
        include_comments=False, favor_recall=True,
    )  # fmt: skip
    body = LexborHTMLParser(html).body if html else None
    return str(body.inner_html) if body is not None else ""


def _words(element: Any) -> list[str]:
    return str(element.text(deep=True, separator=" ")).split()


def _text_words(markup: str) -> list[str]:
    from selectolax.lexbor import LexborHTMLParser

    body = LexborHTMLParser(markup).body
    return _words(body) if body is not None else []


# ── Pages of the web are read where files are, in a process that a hostile one may end ────────────

SECONDS = 10.0  # of the processor, for one page


def page_of(data: bytes, url: str, declared: str | None = None) -> WebPage:
    """Raises TooLarge, and Unreadable for a page that ends its reader or keeps it too long."""
    page = opened(_reader().ask(url, f"{declared or ''}\n".encode() + data))
    return WebPage(page["html"].encode(), tuple(page["links"]), page["canonical"])


@cache
def _reader() -> GuardedLoader:
    """One process, for all sites that are looked at; it ends with this one."""
    limits = LoadLimits(max_bytes=1 << 40, max_seconds=SECONDS)  # what is fetched has its own limit
    return GuardedLoader(limits, readers=1, module=__name__)


def _answer(url: str, message: bytes, limits: LoadLimits) -> bytes:
    declared, _, data = message.partition(b"\n")

    def work() -> bytes:
        page = read_page(data, url, declared.decode() or None)
        return dumps(asdict(page) | {"html": page.html.decode()}).encode()

    return answered(url, limits, work)


if __name__ == "__main__":
    serve(_answer)


# ── What a site was like when it was looked at last, so that only what changed is ──

FILE, LOG, PAGES = "seen.json", "look.jsonl", "pages"
PAUSED_SECONDS = 3600.0  # at most: a look that was left longer ago begins anew
VERSION = 1
Secrets = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CachedPage:
    """An address as it was answered last."""

    url: str  # after redirects
    name: str  # "" for what gave no file, such as a page that is another one's copy
    mark: str = ""
    etag: str = ""
    modified: str = ""
    size: int | None = None
    links: tuple[str, ...] = ()

    def conditions(self) -> dict[str, str]:
        """Headers by which a site says that nothing changed."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in named.items() if value}


def load_page_cache(folder: Path | None, secrets: Secrets = ()) -> dict[str, CachedPage]:
    """By the address that was asked; nothing where nothing, or nonsense, is kept.

    What was kept with its secrets, as once it was, is kept without them from now on.
    """
    seen = _load(folder, lambda text: revealed(text, secrets))
    if secrets and seen and any(value in str(_load(folder, str)) for value, _name in secrets):
        save_page_cache(folder, seen, secrets)
    return seen


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
    folder: Path | None, seen: dict[str, CachedPage], secrets: Secrets = ()
) -> None:
    """Whole or not at all; where it cannot be written, the next look fetches everything."""
    hide = partial(hidden, secrets=secrets)
    if folder is None:
        return
    saved = {
        "version": VERSION,
        "seen": {hide(url): asdict(_spelled(page, hide)) for url, page in seen.items()},
    }
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{FILE}.{os.getpid()}.part"
        part.write_text(json.dumps(saved), encoding="utf-8")
        part.replace(folder / FILE)


@dataclass(frozen=True, slots=True)
class Look:
    """Where a look at a site began, and what it has seen so far, in the order of its asking."""

    start: str
    urls: tuple[str, ...]
    depth: int  # of links that are followed from these
    pages: deque[tuple[str, CachedPage | None]]  # None: it gave nothing


class LookLog:
    """A look as it goes, with the pages that it read: one that is left is gone on with."""

    def __init__(self, folder: Path | None, secrets: Secrets) -> None:
        self._folder = folder
        self._secrets = secrets
        self._hide = partial(hidden, secrets=secrets)
        self.pages = folder / PAGES if folder else Path(mkdtemp(prefix="groundnote-web-"))

    def load(self, of: Sequence[object]) -> Look | None:
        """The one that was left, if it was `of` the same, and not long ago."""
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
                    seen = _logged_pages(file, read)
                    self.cut(len(seen))
                    return Look(read(head["start"]), urls, head["depth"], seen)
        return None

    def cut(self, entries: int) -> None:
        """Leave so many: behind a half line, or another way, nothing can be gone on with."""
        if self._folder is None:
            return
        with suppress(OSError), (self._folder / LOG).open("r+b") as file:
            for _ in range(entries + 1):
                file.readline()
            end = file.tell()
            if file.read(1):
                file.truncate(end)

    def begin(self, look: Look, of: Sequence[object]) -> None:
        """Forget the one before."""
        self.end()
        self.pages.mkdir(parents=True, exist_ok=True)
        start, urls = self._hide(look.start), [*map(self._hide, look.urls)]
        self._write({"of": [VERSION, *of], "start": start, "urls": urls, "depth": look.depth})

    def add(self, url: str, page: CachedPage | None) -> None:
        self._write([self._hide(url), page and asdict(_spelled(page, self._hide))])

    def _write(self, line: object) -> None:
        """What cannot be written is asked for again."""
        if self._folder is None:
            return
        with suppress(OSError), (self._folder / LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def end(self) -> None:
        """Leave nothing of it."""
        rmtree(self.pages, ignore_errors=True)
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / LOG).unlink(missing_ok=True)


def _logged_pages(
    lines: Iterable[str], read: Callable[[str], str]
) -> deque[tuple[str, CachedPage | None]]:
    seen: deque[tuple[str, CachedPage | None]] = deque()
    with suppress(ValueError, TypeError, KeyError):  # a line may be half of one, or another's
        for line in takewhile(lambda line: line.endswith("\n"), lines):
            url, page = json.loads(line)
            seen.append((read(url), page and _page_from(page, read)))
    return seen


def _page_from(values: Mapping[str, Any], read: Callable[[str], str]) -> CachedPage:
    return _spelled(CachedPage(**{**values, "links": tuple(values["links"])}), read)
