"""A site on loopback that a test fills, and that remembers what it was asked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "127.0.0.1"


class Site:
    """`site["/a"] = "<p>text"`; values are a body, or (status, headers, body)."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, int]] = []  # path and status
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def __setitem__(self, path: str, answer) -> None:
        if isinstance(answer, str | bytes):
            answer = (200, {}, answer)
        status, headers, body = answer
        data = body.encode() if isinstance(body, str) else body
        self.pages[path] = (status, {"Content-Type": "text/html; charset=utf-8"} | headers, data)

    def __delitem__(self, path: str) -> None:
        del self.pages[path]

    def __getitem__(self, path: str):
        return self.pages[path]

    def get(self, path: str, headers) -> tuple[int, dict[str, str], bytes]:
        status, given, body = self.pages.get(path, (404, {}, b"nothing here"))
        if status == 200 and given.get("ETag") != "":
            given = {"ETag": f'"{md5(body).hexdigest()}"'} | given
            if headers.get("If-None-Match") == given["ETag"]:
                status, body = 304, b""
        self.asked.append((path, status))
        self.headers.append(dict(headers))
        return status, given, body

    def paths(self, status: int = 200) -> list[str]:
        return [path for path, given in self.asked if given == status and path != "/robots.txt"]


@contextmanager
def running(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = site.get(self.path, self.headers)
            self.send_response(status)
            for name, value in headers.items():
                if value:
                    self.send_header(name, value)
            if "Transfer-Encoding" not in headers and "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_request) -> None:
            """Whoever asked went away in the middle: what is too large is not read to its end."""

    server = Server((HOST, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    site.url = f"http://{HOST}:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
