"""A space of Confluence Cloud as a source, over its REST API (version 2).

Its files are the rendered pages, named by the tree of their titles; a page's version number is its
mark. Blog posts, comments and attachments are not read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rag.connectors.guard import Guard
from rag.connectors.web.fetch import Fetcher
from rag.documents.files import fit_name
from rag.errors import SourceAway, Unreadable, UserError
from rag.seams import ListedFile, SourceOptions

API = "/wiki/api/v2"
BATCH = 250  # pages in one response, the API's maximum
DEEPEST = 50  # depth of the page tree


@dataclass(frozen=True, slots=True)
class Space:
    """A space's host and key, with the login for its API."""

    host: str  # with scheme and port
    key: str
    login: tuple[str, str]


def read_address(address: str, scheme: str = "https") -> Space:
    """Parse the address of a space. Raises UserError."""
    parsed = urlsplit(address)
    parts = [part for part in parsed.path.split("/") if part]
    if not parsed.hostname or len(parts) != 1 or not parsed.username or not parsed.password:
        raise UserError(
            "A space of Confluence is written confluence://EMAIL:{name}@SITE.atlassian.net/KEY, "
            "with @ in the email as %40. A token is made in the settings of your account there."
        )
    host = urlunsplit((scheme, parsed.netloc.rpartition("@")[2], "", "", ""))
    return Space(host, unquote(parts[0]), (unquote(parsed.username), unquote(parsed.password)))


class ConfluenceSource:
    """Lists the pages of a space and reads them one by one."""

    def __init__(self, space: Space, options: SourceOptions) -> None:
        import httpx

        self._space = space
        self._most_files = options.most_files
        guard = Guard(options.private_hosts)
        login = httpx.BasicAuth(*space.login)
        self._fetcher = Fetcher(guard, max_bytes=options.max_bytes, auth=login)
        self._ids: dict[str, tuple[str, str]] = {}  # name → (page id, title)
        self._authors: dict[str, str] = {}  # account id → display name

    def listed(self) -> Iterator[ListedFile]:
        """Yield each current page. Raises SourceAway where not all can be listed."""
        spaces = list(self._all(f"{API}/spaces?keys={quote(self._space.key, safe='')}"))
        if len(spaces) != 1:
            raise self._away(f"there is no space {self._space.key!r} that this login may see")
        path = f"{API}/spaces/{spaces[0]['id']}/pages?status=current&limit={BATCH}"
        pages = {str(page["id"]): page for page in self._all(path)}
        self._ids = {}
        for key, page in pages.items():
            name = self._name(page, pages)
            self._ids[name] = key, str(page.get("title", ""))
            link = str(page.get("_links", {}).get("webui", ""))
            url = f"{self._space.host}/wiki{link}" if link.startswith("/") else ""
            yield ListedFile(name, f"{key}-{page['version']['number']}", None, url)

    def _name(self, page: Mapping[str, Any], pages: Mapping[str, Any]) -> str:
        titles: list[str] = []
        above: Mapping[str, Any] | None = page
        while above is not None and len(titles) < DEEPEST:
            titles.insert(0, str(above.get("title") or above["id"]).replace("/", "-").strip(". "))
            above = pages.get(str(above.get("parentId")))
        name = fit_name("/".join(title or "page" for title in titles))
        return f"{name}.html" if f"{name}.html" not in self._ids else f"{name} {page['id']}.html"

    def _all(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the results of all response pages; each response names the next."""
        seen: set[str] = set()
        count = 0
        while path and path not in seen:
            seen.add(path)
            answer = self._get(path)
            try:
                results, following = answer["results"], answer.get("_links", {}).get("next", "")
                for result in results:
                    count += 1
                    if count > self._most_files:
                        raise self._away(
                            f"it has more than {self._most_files:,} pages (sources.most_files)"
                        )
                    yield result
            except (KeyError, TypeError, AttributeError) as error:
                raise self._away(f"its answer is of another form ({error})") from error
            path = str(following or "")
            if path and not path.startswith(f"{API}/"):  # the login is sent to no other host
                raise self._away(f"it names another place as its next page ({path[:100]})")

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._fetcher.get(self._space.host + path, {"Accept": "application/json"})
        refused = f"it answers {answer.status}"
        if answer.status in (401, 403):
            refused = f"the login is refused ({answer.status}); see its email and token"
        if answer.is_gone:
            raise _Gone(f"{self._space.host}: {refused}. Nothing is removed.")
        if not answer.is_there:
            raise self._away(refused)
        return answer.json_object(self._away)

    def read(self, file: ListedFile) -> bytes:
        """Return a page as HTML. Raises Unreadable and SourceAway."""
        key, title = self._ids.get(file.name, ("", ""))
        if not key:
            raise Unreadable(file.name, "the page is not there any more.")
        try:
            query = "body-format=view&include-labels=true"
            page = self._get(f"{API}/pages/{quote(key, safe='')}?{query}")
            body = str(page["body"]["view"]["value"])
            head = self._head(title, page)
        except _Gone as error:
            raise Unreadable(file.name, "the page is not there any more.") from error
        except (KeyError, TypeError) as error:
            raise self._away("a page has no body") from error
        return (
            f"<html><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>".encode()
        )

    def _head(self, title: str, page: Mapping[str, Any]) -> str:
        """Return the page's author, date and labels as HTML metadata."""
        version = page.get("version") or {}
        labels = (page.get("labels") or {}).get("results") or ()
        fields = {
            "author": self._author(str(version.get("authorId") or page.get("authorId") or "")),
            "date": str(version.get("createdAt") or page.get("createdAt") or ""),
            "keywords": ",".join(str(label.get("name", "")) for label in labels),
        }
        metas = (f'<meta name="{key}" content="{escape(value)}">' for key, value in fields.items())
        return f'<meta charset="utf-8"><title>{escape(title)}</title>{"".join(metas)}'

    def _author(self, account: str) -> str:
        """Return a person's display name; "" where this login may not see it."""
        if account and account not in self._authors:
            path = f"/wiki/rest/api/user?accountId={quote(account, safe='')}"
            try:
                self._authors[account] = str(self._get(path).get("displayName", ""))
            except SourceAway:
                self._authors[account] = ""
        return self._authors.get(account, "")

    def close(self) -> None:
        self._fetcher.close()

    def _away(self, reason: str) -> SourceAway:
        return SourceAway(f"{self._space.host}: {reason}. Nothing is removed.")


class _Gone(SourceAway):
    """Raised where there is nothing at an address, or nothing that this login may see."""


def open_confluence(
    address: str, options: SourceOptions, scheme: str = "https"
) -> ConfluenceSource:
    """Open a space. Raises UserError for an address without a space or a login."""
    return ConfluenceSource(read_address(address, scheme), options)
