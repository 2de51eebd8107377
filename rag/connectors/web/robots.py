"""What a site asks of programs that read it."""

import time
from urllib.parse import urlsplit

from protego import Protego

from rag.connectors.web.fetch import AGENT, Fetcher
from rag.errors import SourceAway

LONGEST_DELAY = 5.0  # seconds between two requests, whatever a site asks for
MOST_BYTES = 512 * 1024


class Robots:
    """robots.txt of each host, read once."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, Protego] = {}
        self._last = 0.0

    def allow(self, url: str) -> bool:
        """Raises SourceAway while the site cannot say: it then allows nothing."""
        return self._of(url).can_fetch(url, AGENT)

    def wait(self, url: str) -> None:
        """As long as the site wants between two requests."""
        delay = self._of(url).crawl_delay(AGENT)
        if delay:
            due = self._last + min(delay, LONGEST_DELAY)
            time.sleep(max(0.0, due - time.monotonic()))
        self._last = time.monotonic()

    def _of(self, url: str) -> Protego:
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        if host not in self._rules:
            self._rules[host] = self._read(f"{host}/robots.txt")
        return self._rules[host]

    def _read(self, url: str) -> Protego:
        answer = self._fetcher.get(url)
        if answer.status >= 500 or answer.status == 429:
            raise SourceAway(f"{url} answers {answer.status}: what may be read there is not known.")
        text = answer.data[:MOST_BYTES].decode("utf-8", "replace") if answer.is_there else ""
        return Protego.parse(text)
