"""Texts travel compressed; streams of events do not, since each event must leave at once."""

import gzip

from flask import Flask, Response, request

from rag.web.access.owner import is_cookie_caller

LEAST_BYTES = 1_000
LEVEL = 5
TEXTS = ("text/", "application/json", "application/problem+json", "application/javascript")
EVENTS = "text/event-stream"


def compress_texts(app: Flask) -> None:
    """Compress where the client can read it, and tell caches that it depends on that."""
    app.after_request(_compressed)


def _compressed(response: Response) -> Response:
    kind = response.mimetype or ""
    if not kind.startswith(TEXTS) or kind == EVENTS:
        return response
    response.vary.add("Accept-Encoding")
    if _may_be(response):
        response.direct_passthrough = False  # a static file
        data = response.get_data()
        if len(data) >= LEAST_BYTES:
            response.set_data(gzip.compress(data, LEVEL, mtime=0))
            response.headers["Content-Encoding"] = "gzip"
            if response.headers.get("ETag"):
                response.headers["ETag"] = f"W/{response.headers['ETag'].removeprefix('W/')}"
    return response


def _may_be(response: Response) -> bool:
    # A page for a browser that is logged in holds its form's secret beside words of others: how
    # long it becomes when compressed would tell of it (BREACH).
    holds_secret = response.mimetype == "text/html" and is_cookie_caller()
    is_whole = response.status_code == 200 and "Content-Encoding" not in response.headers
    is_stream = response.is_streamed and not response.direct_passthrough
    accepted = request.accept_encodings.quality("gzip") > 0
    return accepted and is_whole and not is_stream and not holds_secret
