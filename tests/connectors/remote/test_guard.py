"""No address, name or redirect reaches this network unless it is named as allowed."""

import gzip
import socket
import threading
import time
import zlib

import pytest

from rag.connectors.guard import Guard
from rag.connectors.web import open_web
from rag.connectors.web.fetch import Fetcher
from rag.errors import Forbidden, SourceAway, TooLarge
from rag.seams import SourceOptions

HOSTILE = [
    # loopback, in every spelling that a resolver takes
    "http://127.0.0.1/", "http://127.0.0.1:80/", "http://127.1/", "http://127.0.1/",
    "http://127.255.255.254/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/",
    "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.000.000.001/",
    "http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://ⓛocalhost/",
    "http://127。0。0。1/", "http://１２７.0.0.1/", "http://127.0.0.1./",
    "http://user:secret@127.0.0.1/", "http://example.com@127.0.0.1/",
    # nowhere, and this host
    "http://0/", "http://0.0.0.0/", "http://0.0.0.0:8000/", "http://[::]/", "http://[::]:8000/",
    # IPv6
    "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/", "http://[2002:7f00:1::]/", "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/", "http://[fe80::1%251]/", "http://[fc00::1]/", "http://[fd12::8]/",
    "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/", "http://[::ffff:10.0.0.1]/",
    "http://[2001:0:7f00:1:0:0:80ff:fffe]/",
    # private networks
    "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.254/",
    "http://192.168.1.1/", "http://167772161/", "http://0xC0A80101/", "http://100.64.0.1/",
    "http://198.18.0.1/", "http://192.0.2.1/", "http://203.0.113.9/",
    # where a machine of a cloud is told its secrets
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/", "http://[fd00:ec2::254]/",
    "http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/",
    "http://[64:ff9b::a9fe:a9fe]/",
    # multicast, reserved, broadcast
    "http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/", "http://255.255.255.255/",
    # what is no http, and ports of other services
    "file:///etc/passwd", "ftp://8.8.8.8/", "gopher://8.8.8.8:70/_x", "dict://8.8.8.8:11211/",
    "ldap://8.8.8.8/", "data:text/html,hello", "javascript:alert(1)", "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "//127.0.0.1/", "http:///etc/passwd", "http://",
    "http://8.8.8.8:22/", "http://8.8.8.8:25/", "http://8.8.8.8:6379/",
    "http://8.8.8.8:99999/", "http://8.8.8.8:5432/", "https://1.1.1.1:11211/",
    "http://8.8.8.8\r\nHost: x/", "http://" + "a" * 300 + "/",
]  # fmt: skip


@pytest.fixture
def fetcher():
    made = Fetcher(Guard(), max_bytes=100_000)
    yield made
    made.close()


@pytest.fixture
def no_connection(monkeypatch):
    """Whatever would connect is noticed, and does not."""
    tried = []

    def connect(address, *_args, **_kwargs):
        tried.append(address)
        raise OSError("a test connects to nobody")

    monkeypatch.setattr(socket, "create_connection", connect)
    return tried


@pytest.mark.parametrize("url", HOSTILE)
def test_nothing_in_this_network_is_asked(url, fetcher, no_connection):
    with pytest.raises((Forbidden, SourceAway)):
        fetcher.get(url)

    assert no_connection == []


@pytest.mark.parametrize("url", [url for url in HOSTILE if url.startswith("http://1")][:12])
def test_nor_may_it_be_added(url, no_connection):
    with pytest.raises(Forbidden):
        open_web(url, SourceOptions())


def test_what_is_public_would_be_asked(fetcher, no_connection):
    for url in ("http://8.8.8.8/", "https://1.1.1.1/", "http://[2606:4700::1111]/",
                "http://[64:ff9b::808:808]/", "https://8.8.8.8:8443/"):  # fmt: skip
        with pytest.raises(SourceAway):
            fetcher.get(url)

    assert [port for _host, port in no_connection] == [80, 443, 80, 80, 8443]


def test_a_name_that_leads_to_this_network_as_well_is_refused(fetcher, monkeypatch, no_connection):
    both = [(2, 1, 6, "", ("8.8.8.8", 80)), (2, 1, 6, "", ("10.0.0.7", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: both)

    with pytest.raises(Forbidden, match=r"10\.0\.0\.7"):
        fetcher.get("http://rebound.test/")
    assert no_connection == []


def test_a_name_is_resolved_once_and_what_was_checked_is_asked(fetcher, monkeypatch, no_connection):
    answers = iter([["8.8.8.8"], ["127.0.0.1"], ["127.0.0.1"]])

    def resolve(*_args, **_kwargs):
        return [(2, 1, 6, "", (address, 80)) for address in next(answers)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    with pytest.raises(SourceAway):
        fetcher.get("http://rebinding.test/")
    assert no_connection == [("8.8.8.8", 80)]


def test_an_answer_with_a_zone_is_refused(monkeypatch, no_connection):
    zoned = [(10, 1, 6, "", ("fe80::1%2", 80, 0, 2))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: zoned)

    with pytest.raises(Forbidden):
        Guard(["fe80::/10", "router.test"]).connect("router.test", 80)
    assert no_connection == []


class TestNamedHosts:
    def test_are_asked(self, site):
        site["/"] = "hello"

        with_name = Fetcher(Guard(["127.0.0.1"]), max_bytes=100)
        assert with_name.get(site.url + "/").data == b"hello"
        with_network = Fetcher(Guard(["127.0.0.0/8"]), max_bytes=100)
        assert with_network.get(site.url + "/").data == b"hello"

    def test_open_no_other(self, site, no_connection):
        with pytest.raises(Forbidden):
            Fetcher(Guard(["10.0.0.0/8"]), max_bytes=100).get(site.url)
        with pytest.raises(Forbidden):
            Fetcher(Guard(["127.0.0.1"]), max_bytes=100).get("http://127.0.0.2/")

    @pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "[fe80::1]", "168.63.129.16"])
    def test_are_never_those_that_tell_secrets(self, host, no_connection):
        guard = Guard([host, "169.254.0.0/16", "0.0.0.0/0", "::/0"])

        with pytest.raises(Forbidden):
            Fetcher(guard, max_bytes=100).get(f"http://{host}/")
        assert no_connection == []


class TestRedirects:
    def open(self) -> Fetcher:
        return Fetcher(Guard(["127.0.0.1"]), max_bytes=1000)

    @pytest.mark.parametrize(
        "to",
        ["http://127.0.0.2/", "http://169.254.169.254/", "http://[::1]/", "file:///etc/passwd",
         "ftp://127.0.0.1/", "//10.0.0.1/", "http://2130706434/", "gopher://127.0.0.1/"],
    )  # fmt: skip
    def test_are_checked_anew(self, to, site):
        site["/"] = (302, {"Location": to}, "")

        with pytest.raises(Forbidden):
            self.open().get(site.url)

    def test_end(self, site):
        site["/"] = (302, {"Location": "/"}, "")

        with pytest.raises(SourceAway, match="redirects more than"):
            self.open().get(site.url)
        assert len(site.asked) <= 7

    def test_take_no_login_elsewhere(self, site):
        site["/"] = (302, {"Location": site.url.replace("127.0.0.1", "localhost") + "/b"}, "")
        site["/b"] = "there"
        fetcher = Fetcher(Guard(["127.0.0.1", "localhost"]), max_bytes=1000)

        assert fetcher.get(site.url.replace("//", "//me:secret@")).data == b"there"
        assert ["Authorization" in each for each in site.headers] == [True, False]


class TestBounds:
    def open(self, max_bytes: int = 100_000) -> Fetcher:
        return Fetcher(Guard(["127.0.0.1"]), max_bytes=max_bytes)

    def test_of_bytes_stated(self, site):
        site["/"] = b"x" * 5000

        with pytest.raises(TooLarge):
            self.open(4999).get(site.url)
        assert len(self.open(5000).get(site.url).data) == 5000

    def test_of_bytes_not_stated(self, site):
        site["/"] = (200, {"Content-Length": "", "Connection": "close"}, b"x" * 5000)

        with pytest.raises(TooLarge):
            self.open(4999).get(site.url)

    @pytest.mark.parametrize("kind", ["gzip", "deflate"])
    def test_of_what_is_packed(self, kind, site):
        bomb = b"\0" * 200_000_000
        packed = gzip.compress(bomb) if kind == "gzip" else zlib.compress(bomb)
        site["/"] = (200, {"Content-Encoding": kind}, packed)
        fetcher = self.open(max_bytes=1_000_000)

        began = time.process_time()
        with pytest.raises(TooLarge):
            fetcher.get(site.url)
        assert time.process_time() - began < 1

    def test_of_ways_to_pack(self, site):
        site["/"] = (200, {"Content-Encoding": "br"}, b"\x0b\x02\x80hello\x03")

        with pytest.raises(SourceAway, match="packed as 'br'"):
            self.open().get(site.url)

    def test_of_time_however_slowly_it_drips(self, monkeypatch):
        monkeypatch.setattr("rag.connectors.web.fetch.SECONDS", 0.4)
        with Dripping() as url, pytest.raises(SourceAway):
            self.open().get(url)

    def test_of_time_for_headers_that_drip(self, monkeypatch):
        monkeypatch.setattr("rag.connectors.web.fetch.SECONDS", 0.4)
        with Dripping(b"HTTP/1.1 200 OK\r\nX: ") as url, pytest.raises(SourceAway):
            self.open().get(url)

    def test_unpacks_what_is_packed_rightly(self, site):
        site["/"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"hello"))

        assert self.open().get(site.url).data == b"hello"


class Dripping:
    """A server that sends a byte now and then, for ever."""

    def __init__(self, start: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n") -> None:
        self._start = start
        self._ends = threading.Event()

    def __enter__(self) -> str:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return f"http://127.0.0.1:{self._server.getsockname()[1]}/"

    def _serve(self) -> None:
        connection, _address = self._server.accept()
        with connection:
            connection.sendall(self._start)
            while not self._ends.wait(0.02):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    def __exit__(self, *_exception) -> None:
        self._ends.set()
        self._thread.join()
        self._server.close()
