"""Web pages, sites, sitemaps and feeds as sources of documents."""

import mimetypes
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import httpx

from rag.connectors.guard import Guard
from rag.connectors.kinds import hidden, masked, revealed
from rag.connectors.web.fetch import (
    MADE_PAGES,
    PAGE_ENDINGS,
    FetchedPage,
    Fetcher,
    HostLogin,
    Robots,
    Scope,
    digest,
    distinguished,
    ending_in,
    is_same_page,
    kind_of_list,
    normal,
    read_list,
    refuse_private,
    unpacked_list,
)
from rag.connectors.web.pages import (
    CachedPage,
    Look,
    LookLog,
    load_page_cache,
    page_of,
    save_page_cache,
)
from rag.documents.cleaning import word_set
from rag.documents.kinds import BY_ENDING
from rag.errors import Forbidden, SourceAway, TooLarge, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

MOST_PAGES = 5_000
MOST_ASKED = 4 * MOST_PAGES  # addresses of a visit, including those without a page of their own
MOST_SECONDS = 8 * 3600.0  # of a visit: 5,000 pages at the longest delay take seven hours
MOST_SITEMAPS = 200
MOST_FAILED = 10  # failures in a row after which the site counts as unreachable
HTML = "text/html"
PAGE_TYPES = frozenset({HTML, "application/xhtml+xml"})
VAGUE_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "text/plain"})
OFFICE_ENDINGS = word_set(".pdf .docx .pptx .xlsx .xls .odt .ods .odp .epub .rtf .msg")
FILE_ENDINGS = (OFFICE_ENDINGS | BY_ENDING.keys()) - PAGE_ENDINGS - {"", ".xml", ".json"}
HTML_STARTS = (b"<!doctype html", b"<html")


class WebSource:
    """A source that lists by visiting: pages by their links, or those in a sitemap or feed."""

    def __init__(self, address: str, options: SourceOptions, auth: httpx.Auth) -> None:
        self._address = address
        self._options = options
        guard = Guard(options.private_hosts)
        self._fetcher = Fetcher(guard, max_bytes=options.max_bytes, auth=auth)
        self._robots = Robots(self._fetcher)
        self._before = load_page_cache(options.aside, options.secrets)
        self._now: dict[str, CachedPage] = {}
        self._files: dict[str, str] = {}  # name → address
        self._marks: set[str] = set()
        self._failed = 0
        self._log = LookLog(options.aside, options.secrets)
        self.is_replaying = False
        self._left = self._log.load(self._key())
        self._is_kept = False

    # ── Listing ──────────────────────────────────────────────────────────────────────────────

    def listed(self) -> Iterator[ListedFile]:
        """Yield each page and file once. Raises SourceAway where not all can be read."""
        self._now, self._files, self._marks = {}, {}, set()
        if not self._robots.allow(self._address):
            raise SourceAway(f"{self._address} is not read: robots.txt of its site forbids it.")
        look, self._left = self._left or self._begun(), None
        self._scope = Scope.of(look.start)
        yield from self._visit(look)
        save_page_cache(self._options.aside, self._now, self._options.secrets)

    def _key(self) -> list[object]:
        """Return the parameters that an interrupted visit must share to be resumed."""
        options = self._options
        return [hidden(self._address, options.secrets), options.depth, options.last_look]

    def _begun(self) -> Look:
        first = self._fetcher.get(self._address)
        if not first.is_there:
            raise SourceAway(f"{self._address} answers {first.status}. Nothing is removed.")
        url, depth = normal(first.url), self._options.depth
        self._scope = Scope.of(url)
        data = unpacked_list(first.data, self._options.max_bytes)
        kind = kind_of_list(data)
        urls, depth = (self._pages_of_list(kind, data, first.url), 0) if kind else ([url], depth)
        look = Look(url, tuple(urls), depth, deque())
        self._log.begin(look, self._key())
        return look

    def _pages_of_list(self, kind: str, data: bytes, url: str) -> list[str]:
        """Return the pages of a sitemap or feed.

        For a feed also pages that it named before: it shows only its newest entries.
        """
        if kind == "feed":
            addresses = [*read_list(data, url).pages, *self._before]
            return list(dict.fromkeys(filter(None, map(normal, addresses))))
        pages: dict[str, None] = {}
        waiting = deque([url])
        seen = {url}
        while waiting and len(pages) <= MOST_ASKED:
            here = waiting.popleft()  # one at a time is in memory
            if here != url:
                answer = self._fetcher.get(here)
                if not answer.is_there:
                    raise SourceAway(f"{here}, a part of the sitemap, answers {answer.status}.")
                data = unpacked_list(answer.data, self._options.max_bytes)
            entry = read_list(data, here)
            inside = (page for page in map(normal, entry.pages) if self._scope.has_host(page))
            pages.update(dict.fromkeys(inside))
            for sitemap in entry.sitemaps:
                if sitemap not in seen and self._scope.has_host(sitemap):
                    seen.add(sitemap)
                    waiting.append(sitemap)
            if len(seen) > MOST_SITEMAPS:
                raise SourceAway(f"{self._address} names more than {MOST_SITEMAPS} sitemaps.")
        return list(pages)

    def _visit(self, look: Look) -> Iterator[ListedFile]:
        """Visit pages breadth first, so that near pages are found before deep ones.

        What an interrupted visit has seen is not requested again; its links are known.
        """
        waiting = deque((url, look.depth) for url in look.urls)
        queued = {url for url, _depth in waiting}
        ends, count = time.monotonic() + MOST_SECONDS, 0
        while waiting:
            url, left = waiting.popleft()
            count += 1
            self._check_bounds(count, ends)
            self.is_replaying = bool(look.pages)
            page = self._replay(look, url, count) if look.pages else self._looked(url)
            if page is None:
                continue
            self._now[url] = page
            if page.name:
                yield self._file(page)
            if left > 0 and len(queued) <= MOST_ASKED:
                links = [link for link in self._followed(page.links) if link not in queued]
                queued.update(links)
                waiting.extend((link, left - 1) for link in links)

    def _replay(self, look: Look, url: str, place: int) -> CachedPage | None:
        seen_url, page = look.pages.popleft()
        if seen_url != url:  # written by another version of the program
            look.pages.clear()
            self.is_replaying = False
            self._log.cut(place - 1)
            return self._looked(url)
        if page is not None:
            self._marks.add(page.mark)
        return page

    def _looked(self, url: str) -> CachedPage | None:
        page = self._look(url)
        self._log.add(url, page)
        return page

    def _check_bounds(self, count: int, ends: float) -> None:
        """Raise SourceAway for a site that seems endless: a calendar, a search, an attack."""
        if count > MOST_ASKED or time.monotonic() > ends:
            bound = f"{MOST_ASKED:,} addresses" if count > MOST_ASKED else "eight hours of looking"
            raise SourceAway(
                f"{self._address} leads to more than {bound}. Name a folder of it or its sitemap, "
                "or follow fewer links. Nothing is removed."
            )

    def _followed(self, links: Iterable[str]) -> Iterator[str]:
        """Yield links to pages below the address, and to files on the same host."""
        for link in dict.fromkeys(map(normal, links)):
            ending = ending_in(link)
            is_page = ending in PAGE_ENDINGS | MADE_PAGES or ending not in mimetypes.types_map
            is_file = ending in FILE_ENDINGS and self._scope.has_host(link)
            if is_file or (is_page and self._scope.holds(link)):
                yield link

    def _file(self, page: CachedPage) -> ListedFile:
        most = min(self._options.most_files, MOST_PAGES)
        if len(self._files) >= most:
            raise SourceAway(
                f"{self._address} has more than {most:,} pages. Name a folder of it or its "
                "sitemap, or follow fewer links."
            )
        self._files[page.name] = page.url
        url = hidden(page.url, self._options.secrets)
        return ListedFile(page.name, page.mark, page.size, url)

    # ── One address ──────────────────────────────────────────────────────────────────────────

    def _look(self, url: str) -> CachedPage | None:
        """Request an address; None where there is no document to read. Raises SourceAway."""
        before = self._before.get(url)
        conditions = before.conditions() if before else None
        try:
            if not self._robots.allow(url):
                return None
            self._robots.wait(url)
            answer = self._fetcher.get(url, conditions, wants_body=_wants_body)
        except TooLarge:  # reading it says so
            return CachedPage(url, self._name_of(url, ending_in(url) or ".html"))
        except Forbidden as error:  # an address in this network: the link is ignored
            return self._cannot_see(before, str(error)) if before else None
        except SourceAway as error:
            return self._cannot_see(before, str(error))
        if answer.is_gone:
            return None
        if answer.status == 304 and before:
            self._failed = 0
            return self._same(before)
        if not answer.is_there:
            return self._cannot_see(before, f"{url} answers {answer.status}")
        self._failed = 0
        return self._answered(answer, url)

    def _cannot_see(self, before: CachedPage | None, reason: str) -> CachedPage | None:
        """Return the page as it was, or None. Raises SourceAway after many failures in a row."""
        self._failed += 1
        if self._options.aside is None or self._failed >= MOST_FAILED:
            raise SourceAway(f"{reason}. Nothing is removed.")
        return self._same(before) if before else None

    def _same(self, before: CachedPage) -> CachedPage:
        page = replace(before, name="") if before.url in self._files.values() else before
        self._marks.add(page.mark)
        return self._distinct(page)

    def _answered(self, answer: FetchedPage, requested: str) -> CachedPage | None:
        url = normal(answer.url)
        leads_away = self._scope.has_host(requested) and not self._scope.has_host(url)
        if not url or leads_away or not self._robots.allow(url):
            return None
        etag, modified = (answer.headers.get(name, "") for name in ("etag", "last-modified"))
        page = CachedPage(url, "", etag=etag, modified=modified)
        if _is_page(answer):
            return self._page(answer, page)
        ending = _ending_of(answer)
        if ending not in FILE_ENDINGS:
            return None
        mark = f"{etag}{modified}" or _hash(answer.data)
        stated = answer.headers.get("content-length", "")
        is_size = stated.isdecimal() and "content-encoding" not in answer.headers
        size = int(stated) if is_size else None
        file = replace(page, name=self._name_of(url, ending), mark=mark, size=size)
        return self._distinct(file)

    def _page(self, answer: FetchedPage, cached: CachedPage) -> CachedPage:
        try:
            page = page_of(answer.data, cached.url, _charset(answer))
        except (TooLarge, Unreadable):  # reading it says so
            name, mark = self._name_of(cached.url, ".html"), _hash(answer.data)
            return self._distinct(replace(cached, name=name, mark=mark))
        # The canonical address, if it is another spelling of the same page.
        url, stated = cached.url, normal(page.canonical)
        if stated and self._scope.has_host(stated) and is_same_page(stated, url):
            url = stated
        mark = _hash(page.html)
        fresh = replace(cached, url=url, mark=mark, size=len(page.html), links=page.links)
        is_copy = mark in self._marks or url in self._files.values()
        self._marks.add(mark)
        if not is_copy:
            fresh = self._distinct(replace(fresh, name=self._name_of(url, ".html")))
            self._aside(fresh.name).write_bytes(page.html)
        return fresh

    def _name_of(self, url: str, ending: str) -> str:
        return self._scope.name_of(hidden(url, self._options.secrets), ending)

    def _distinct(self, page: CachedPage) -> CachedPage:
        """Give the later of two addresses with the same name a name of its own."""
        if self._files.get(page.name, page.url) == page.url:
            return page
        return replace(page, name=distinguished(page.name, digest(page.url)))

    # ── Reading ──────────────────────────────────────────────────────────────────────────────

    def read(self, file: ListedFile) -> bytes:
        """Return the page as it was listed, else as it is now. Raises UserError and SourceAway."""
        aside = self._aside(file.name)
        if aside.exists():
            return aside.read_bytes()
        url = self._files.get(file.name) or revealed(file.url, self._options.secrets)
        answer = self._fetcher.get(url)
        if answer.is_gone:
            raise Unreadable(file.name, "it is not there any more.")
        if not answer.is_there:
            raise SourceAway(f"{url} answers {answer.status}.")
        if not _is_page(answer):
            return answer.data
        if ending_in(file.name) not in PAGE_ENDINGS:
            reason = "the site gives a page in its place, such as a login. See what its link opens."
            raise Unreadable(file.name, reason)
        return page_of(answer.data, url, _charset(answer)).html

    def _aside(self, name: str) -> Path:
        return self._log.pages / sha256(name.encode()).hexdigest()

    def keep(self) -> None:
        self._is_kept = True

    def close(self) -> None:
        self._fetcher.close()
        if not self._is_kept:
            self._log.end()


def open_web(address: str, options: SourceOptions) -> WebSource:
    """Open a site. Raises UserError for an invalid address, or one in this network."""
    url = normal(address)
    if not url:
        raise UserError(
            f"{masked(address)[:80]!r} is no address of the web, such as https://example.com."
        )
    refuse_private(url, options)
    return WebSource(url, options, HostLogin(address))


def _wants_body(response: httpx.Response) -> bool:
    """Return whether to download a body: of pages always, of files only without a version mark."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in PAGE_TYPES or kind in VAGUE_TYPES:
        return True
    has_mark = "etag" in response.headers or "last-modified" in response.headers
    ending = mimetypes.guess_extension(kind) or ""
    return ending in FILE_ENDINGS and not has_mark


def _is_page(answer: FetchedPage) -> bool:
    """Return whether a response is a page: by its header, unless its bytes show otherwise."""
    start = answer.data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(HTML_STARTS):
        return True
    is_other = start.startswith((b"%pdf-", b"pk\x03\x04", b"\x89png", b"\xd0\xcf\x11\xe0"))
    return answer.media_type in PAGE_TYPES and answer.has_body and not is_other


def _ending_of(answer: FetchedPage) -> str:
    """Return a file's ending, by its first bytes, its media type, then its address."""
    if answer.data.startswith(b"%PDF-"):
        return ".pdf"
    ending = ending_in(answer.url)
    if ending in FILE_ENDINGS:
        return ending
    if answer.media_type == "text/plain":
        return ".txt"
    return mimetypes.guess_extension(answer.media_type) or ""


def _charset(answer: FetchedPage) -> str | None:
    message = httpx.Headers({"content-type": answer.headers.get("content-type", "")})
    return httpx.Response(200, headers=message).charset_encoding


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
