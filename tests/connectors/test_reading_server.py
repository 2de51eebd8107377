"""PDF and Office files read by a server that speaks the protocol of docling-serve."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from werkzeug.formparser import parse_form_data

from rag.connectors.reading_server import ReadingServer, ServedLoader
from rag.documents.limits import LoadLimits
from rag.errors import SetupError, TooLarge, Unreadable, UserError
from rag.settings import Settings
from rag.wiring.components import open_loader

PDF = b"%PDF-1.7\nwhatever it is, the server reads it\n%%EOF"


def text(number, words, label="text", page=1, **more):
    place = {"self_ref": f"#/texts/{number}", "prov": [{"page_no": page}]}
    return {**place, "label": label, "text": words, "content_layer": "body", **more}


def cell(row, column, words, **more):
    place = {"start_row_offset_idx": row, "start_col_offset_idx": column}
    return {**place, "text": words, "row_span": 1, "col_span": 1, **more}


def refer(*places):
    return [{"$ref": f"#/{place}"} for place in places]


DOCUMENT = {
    "schema_name": "DoclingDocument",
    "pages": {"1": {}, "3": {}},
    "body": {
        "self_ref": "#/body",
        "children": refer("texts/0", "texts/1", "groups/0", "tables/0", "groups/1", "texts/6"),
    },
    "groups": [
        {"self_ref": "#/groups/0", "label": "list", "children": refer("texts/2")},
        {"self_ref": "#/groups/1", "label": "inline", "children": refer("texts/4", "texts/5")},
    ],
    "texts": [
        text(0, "Pump handbook", "title"),
        text(1, "Refilling", "section_header", level=1),
        text(2, "Seal the plug", "list_item", enumerated=True, marker="1."),
        text(3, "Torque by size", "caption", page=3),
        text(4, "It carries 10", page=3),
        text(5, "6", page=3, formatting={"script": "super"}),
        text(6, "Page 3 of 3", "page_footer", page=3, content_layer="furniture"),
    ],
    "tables": [
        {
            "self_ref": "#/tables/0",
            "label": "table",
            "prov": [{"page_no": 3}],
            "captions": refer("texts/3"),
            "data": {
                "num_rows": 3,
                "num_cols": 3,
                "table_cells": [
                    cell(0, 0, "Size", row_span=2, column_header=True),
                    cell(0, 1, "Torque", col_span=2, column_header=True),
                    cell(1, 1, "dry", column_header=True),
                    cell(1, 2, "oiled", column_header=True),
                    cell(2, 0, "M8"),
                    cell(2, 1, "25"),
                    cell(2, 2, "20"),
                ],
            },
        }
    ],
}


class Server:
    """Speaks as much of the protocol as is used: one file in a form, JSON back."""

    def __init__(self):
        self.requests = []
        self.status, self.seconds = 200, 0.0
        self.reply = {"document": {"json_content": DOCUMENT}, "status": "success", "errors": []}

    def answer(self, environ):
        _stream, form, files = parse_form_data(environ)
        self.requests.append((environ, form.to_dict(), files.get("files")))
        time.sleep(self.seconds)
        body = self.reply if isinstance(self.reply, bytes) else json.dumps(self.reply).encode()
        return self.status, body

    @contextmanager
    def running(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                environ = {
                    "wsgi.input": self.rfile,
                    "REQUEST_METHOD": "POST",
                    "PATH_INFO": self.path,
                    "CONTENT_TYPE": self.headers["Content-Type"],
                    "CONTENT_LENGTH": self.headers["Content-Length"],
                    "key": self.headers.get("X-Api-Key"),
                }
                self.send(*server.answer(environ))

            def do_GET(self):
                self.send(200 if self.path == "/health" else 404, b"{}")

            def send(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
            threading.Thread(target=listening.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{listening.server_port}"
            finally:
                listening.shutdown()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def load(server):
    with server.running() as url:
        documents = {"reader_url": f"{url}/", "reader_api_key": "k", "reader_timeout_seconds": 2}
        loader = open_loader(Settings(documents=documents))
        yield loader.load
        loader.close()


def test_what_it_makes_of_a_file_is_read_with_its_pages_lists_tables_and_marks(server, load):
    document = load("manuals/pump.pdf", PDF)

    (environ, form, file), *others = server.requests
    assert not others
    assert (environ["PATH_INFO"], environ["key"]) == ("/v1/convert/file", "k")
    assert form["to_formats"] == "json"
    assert (file.filename, file.mimetype) == ("pump.pdf", "application/pdf")
    assert (document.title, document.media_type) == ("Pump handbook", "application/pdf")
    assert [(each.locator, each.heading_path, each.text) for each in document.sections] == [
        ("page 1", ("Refilling",), "- 1. Seal the plug"),
        (
            "page 3",
            ("Refilling",),
            "Torque by size\n\n| Size | Torque dry | Torque oiled |\n| --- | --- | --- |\n"
            "| M8 | 25 | 20 |\n\nIt carries 10^6",
        ),
    ]
    assert document.tables[0].rows.endswith("M8,25,20\n")
    assert document.report.pages == 2


def test_other_files_stay_here(server, load):
    assert load("a.csv", b"a,b\n1,2\n").tables
    assert load("a.md", b"# Title\n\nText\n").title == "Title"
    assert server.requests == []


def test_markdown_is_read_where_the_server_sends_nothing_else(server, load):
    server.reply = {"document": {"md_content": "# Title\n\nText"}, "status": "success"}

    assert load("a.pdf", PDF).sections[0].text == "Text"


def test_what_it_could_not_read_is_told(server, load):
    server.reply |= {"status": "partial_success", "errors": [{"error_message": "Page 2 failed"}]}

    assert load("a.pdf", PDF).report.left_out == ("the reading server: Page 2 failed",)


@pytest.mark.parametrize(
    ("status", "reply", "error", "words"),
    [
        (200, {"status": "failure", "errors": [{"error_message": "no"}]}, Unreadable, "(no)"),
        (422, {"detail": [{"msg": "bad form"}]}, Unreadable, "422: bad form"),
        (200, {"document": {"json_content": {"body": 1}}, "status": "success"}, Unreadable, "no"),
        (200, b"<html>hello</html>", UserError, "no reply of docling-serve"),
        (401, {"detail": "Unauthorized"}, UserError, "documents.reader_api_key"),
        (404, {"detail": "Not Found"}, UserError, "documents.reader_url"),
        (503, b"busy", UserError, "503: busy"),
        (504, {"detail": "too long"}, UserError, "DOCLING_SERVE_MAX_SYNC_WAIT"),
    ],
)
def test_faults_say_what_came_and_what_to_do(server, load, status, reply, error, words):
    server.status, server.reply = status, reply

    with pytest.raises(UserError) as raised:
        load("a.pdf", PDF)
    assert type(raised.value) is error  # a file that is refused is not sent again before it changes
    assert words in str(raised.value)


def test_a_server_that_is_slow_or_away_ends_in_time(server, load):
    server.seconds = 4

    with pytest.raises(UserError, match="did not answer within 2 seconds"):
        load("a.pdf", PDF)


def test_a_reply_without_end_is_refused(server):
    server.reply = b"x" * 5_000
    with server.running() as url:
        reading = ReadingServer(url, seconds=2, max_bytes=1_000)
        loader = ServedLoader(LoadLimits(), reading)
        with pytest.raises(TooLarge, match="1,000 bytes"):
            loader.load("a.pdf", PDF)
        loader.close()


def test_addresses_that_nobody_may_ask_are_not_asked():
    reading = ReadingServer("http://169.254.169.254", seconds=2, max_bytes=1_000)

    with pytest.raises(UserError, match="is not asked"):
        reading.convert("a.pdf", PDF, "application/pdf")


def test_the_address_is_looked_at_when_it_is_set(server):
    with server.running() as url:
        ReadingServer(url, seconds=2, max_bytes=9).look()
    for address in (url, "http://127.0.0.1:1"):
        with pytest.raises(SetupError, match="cannot be used"):
            ReadingServer(address, seconds=2, max_bytes=9).look()
    with pytest.raises(SetupError, match=r"documents\.reader_url is 'ftp://x'"):
        ReadingServer("ftp://x", seconds=2, max_bytes=9)
    assert not isinstance(open_loader(Settings()), ServedLoader)
