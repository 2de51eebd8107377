"""Pages of the web are read where files are, in a process that a hostile one may end."""

from dataclasses import asdict
from functools import cache
from json import dumps

from rag.connectors.web.pages import WebPage, read_page
from rag.documents.limits import LoadLimits
from rag.documents.sandbox import GuardedLoader
from rag.documents.sandbox_worker import answered, opened, serve

SECONDS = 10.0  # of the processor, for one page


def page_of(data: bytes, url: str, declared: str | None = None) -> WebPage:
    """Raises TooLarge, and Unreadable for a page that ends its reader or keeps it too long."""
    found = opened(_reader().ask(url, f"{declared or ''}\n".encode() + data))
    return WebPage(found["html"].encode(), tuple(found["links"]), found["canonical"])


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
