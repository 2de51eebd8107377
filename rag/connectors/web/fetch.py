"""One way to fetch over HTTP: guarded, bounded in bytes, time and redirects."""

import ssl
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from protego import Protego

from rag.connectors.guard import Guard, GuardedNetwork
from rag.errors import Forbidden, SourceAway, TooLarge

AGENT = "Groundnote"
MOST_REDIRECTS = 5
SECONDS = 60.0  # of a request, with its redirects
QUIET_SECONDS = 15.0  # without a byte
LONGEST_URL = 2_000
PIECE_BYTES = 64 * 1024
ENCODINGS = {"": 0, "identity": 0, "gzip": 47, "x-gzip": 47, "deflate": 47}  # window bits of zlib

WantsBody = Callable[[httpx.Response], bool]


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """An answer; `data` is empty where the body was not wanted."""

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


class HostLogin(httpx.Auth):
    """The login that an address is written with, told to the origin of that address alone."""

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
            trust_env=False,  # no proxy and no .netrc: both would go around the guard
            auth=auth,
        )

    def get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        wants_body: WantsBody = lambda _response: True,
    ) -> FetchedPage:
        """Whatever the status. Raises Forbidden, TooLarge, and SourceAway where nothing answers."""
        if len(url) > LONGEST_URL or not url.isprintable():
            raise Forbidden(f"{url[:80]!r} is no address that is fetched.")
        self._network.deadline = time.monotonic() + SECONDS
        try:
            with self._client.stream("GET", url, headers=headers) as response:
                is_wanted = response.status_code == 200 and wants_body(response)
                data = self._body(response) if is_wanted else b""
                final = str(response.url)
                return FetchedPage(
                    final, response.status_code, dict(response.headers), data, is_wanted
                )
        except httpx.TooManyRedirects as error:
            raise SourceAway(f"{url} redirects more than {MOST_REDIRECTS} times.") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise Forbidden(f"{url} leads to what is not http or https.") from error
        except (httpx.HTTPError, ssl.SSLError, zlib.error, ValueError) as error:
            told = str(error) or type(error).__name__
            raise SourceAway(f"{url} cannot be fetched ({told}).") from error

    def _body(self, response: httpx.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ENCODINGS:
            raise SourceAway(f"{response.url} came packed as {encoding[:40]!r}, unasked.")
        stated = response.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > self._max_bytes:
            raise self._too_large(response)
        pieces = response.iter_raw(PIECE_BYTES)
        found = bytearray()
        for piece in inflated(pieces, ENCODINGS[encoding], self._max_bytes + 1):
            found += piece
            if len(found) > self._max_bytes:
                raise self._too_large(response)
        return bytes(found)

    def _too_large(self, response: httpx.Response) -> TooLarge:
        return TooLarge(f"{response.url} has more than {self._max_bytes:,} bytes, the limit.")

    def close(self) -> None:
        self._client.close()


def inflated(pieces: Iterator[bytes], window_bits: int, most: int) -> Iterator[bytes]:
    """Unpacked, never much more of it at once than `most`; as they are for 0 bits."""
    if not window_bits:
        yield from pieces
        return
    unpacker = zlib.decompressobj(window_bits)
    for piece in pieces:
        if unpacker.eof:  # what follows an ended stream is none of it
            return
        yield unpacker.decompress(piece, most)


def guarded_transport(network: GuardedNetwork) -> httpx.HTTPTransport:
    """Of an httpx client that connects through the guard only."""
    import httpcore

    transport = httpx.HTTPTransport(trust_env=False)
    # httpx has no way to say how connections are made; the pool below it has.
    transport._pool = httpcore.ConnectionPool(
        ssl_context=httpx.create_ssl_context(),
        max_connections=4,
        keepalive_expiry=10,
        network_backend=network,
    )
    return transport


# ── What a site asks of programs that read it ─────────────────────────────────────────────────────

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
