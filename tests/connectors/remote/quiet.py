"""Servers of tests that write nothing down."""

from wsgiref.simple_server import WSGIRequestHandler


class Quiet(WSGIRequestHandler):
    def log_message(self, *_args) -> None:
        pass
