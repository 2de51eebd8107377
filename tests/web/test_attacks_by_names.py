"""Names of files, collections and conversations: each is shown, and does no more."""

import json
import re
from email.message import Message

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.documents.files import IncomingFile
from rag.settings import Settings
from tests.applications import app_of, application_of
from tests.render.readers import harms
from tests.render.test_hostile import live_in

EVIL = "http://evil.example/x"
NAMES = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'onmouseover='alert(1)",
    "</title><svg onload=alert(1)>",
    "{{7*191}}", "{% raw %}", "${7*191}", "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "--><script>alert(1)</script>",
    f"![x]({EVIL})", f"[1]({EVIL})", f"[1]: {EVIL}", "[^1]: x", "a|b|c", "```", "# Title",
    "* [x](javascript:alert(1))",
    "a\r\nSet-Cookie: groundnote=evil", "a\nX-Evil: 1", "a\r\n\r\n<script>alert(1)</script>",
    "a\x00b", "a\x1b[2J\x1b]0;evil\x07", "a\x7fb\x9b31m",
    "\u202egpj.exe", "a\u2066b\u2069", "a\u200bb\ufeff", "a\u2028b\u2029c", "a\x85b", "\u0430dmin",
    "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "%s%n%x", "../../etc/passwd",
    "..\\..\\x", "/etc/passwd", "C:\\x",
    "con", ".", "..", " ", "a" * 400, "é\u0301" * 60, "💥" * 40, "null", "$(id)`id`;id|id",
    "a%0d%0aX-Evil: 1", 'a"; filename="evil.exe', "a;filename*=UTF-8''evil.exe",
]  # fmt: skip


FILES = "Which documents do you have?"


def obeyed(text):
    """The signs of it that move a cursor or end a line."""
    return re.findall(".{0,20}[\x00-\x08\x0b-\x1f\x7f-\x9f].{0,9}", text.replace("\r\n", "\n"))


class World:
    """Everything that can have a name has each of them."""

    def __init__(self, folder):
        self.folder = folder
        self.application = application_of(Settings(data_dir=folder))
        self.client = app_of(self.application).test_client()
        texts = [f"# {name}\n\nZorbium {n} melts at {n} degrees.\n" for n, name in enumerate(NAMES)]
        files = [
            IncomingFile.from_bytes(f"{name} {n}.md", text.encode())
            for n, (name, text) in enumerate(zip(NAMES, texts, strict=True))
        ]
        table = "\n".join([json.dumps(NAMES[0]), *(json.dumps(name) for name in NAMES)])
        files.append(IncomingFile.from_bytes("names.csv", table.encode()))
        self.failed = [r for r in self.application.ingestion.ingest(files) if r.stage == "failed"]
        self.collections = [self.post("/api/v1/collections", name=name) for name in NAMES]
        made = [self.post("/api/v1/sessions", title=name) for name in NAMES]
        self.sessions = [
            f"sessions/{each.get_json()['id']}" for each in made if each.status_code == 201
        ]
        listed = self.client.get("/api/v1/documents?limit=1000").get_json()["documents"]
        self.documents = [f"documents/{each['id']}" for each in listed]

    def post(self, path, **body):
        return self.client.post(path, json=body)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("names"))
    yield made
    made.application.stop()


def test_are_taken_or_refused(world):
    assert len(NAMES) >= 30
    assert world.failed == []
    assert {each.status_code for each in world.collections} == {201, 400, 422}
    assert len(world.sessions) > 40
    assert len(world.documents) == len(NAMES) + 1


def test_on_pages(world):
    lists = ["/", "/documents", "/collections", "/sessions", "/tables"]
    paths = [*lists, *(f"/{each}" for each in (*world.documents, *world.sessions))]
    answers = {path: world.client.get(path) for path in paths}

    assert {path for path, answer in answers.items() if answer.status_code >= 500} == set()
    assert {path: found for path, a in answers.items() if (found := live_in(a.text))} == {}
    # 7 * 191, worked out; ids may hold these digits by chance.
    computed = re.compile(r"(?<![0-9a-f])1337(?![0-9a-f])")
    assert [path for path, answer in answers.items() if computed.search(answer.text)] == []


def test_in_headers(world):
    exports = [f"/api/v1/{each}/export" for each in world.sessions]
    answers = [world.client.get(path) for path in (
        *exports, *(f"/{each}/original" for each in world.documents),
        *(f"/api/v1/{each}/original" for each in world.documents),
    )]  # fmt: skip
    heads = [answer.headers for answer in answers]
    told = [Message() for _ in heads]
    for head, each in zip(heads, told, strict=True):
        each["Content-Disposition"] = head.get("Content-Disposition", "")
    names = [each.get_filename("") for each in told]

    assert max(answer.status_code for answer in answers) < 500
    assert [value for head in heads for value in head.values() if obeyed(value + " ")] == []
    assert [head for head in heads if {"X-Evil", "Set-Cookie"} & {*head.keys()}] == []
    assert [name for name in names if "/" in name or "\\" in name] == []
    assert {head.get("X-Content-Type-Options") for head in heads} == {"nosniff"}


def test_in_exports_and_answers(world):
    for each in world.sessions:
        world.post(f"/api/v1/{each}/messages", content="When does Zorbium 7 melt?")
    told = world.post(f"/api/v1/{world.sessions[0]}/messages", content=FILES).get_json()
    exports = [world.client.get(f"/api/v1/{each}/export").text for each in world.sessions]

    assert harms(told["content"]) == {}
    assert [found for text in exports if (found := harms(text))] == []


@pytest.mark.parametrize(
    "words", [["sessions"], ["collections"], ["audit"], ["ask", FILES], ["doctor"]]
)
def test_on_a_terminal(world, monkeypatch, words):
    monkeypatch.setenv("GROUNDNOTE_DATA_DIR", str(world.folder))

    shown = CliRunner().invoke(main, words).output

    assert len(shown) > 100
    assert obeyed(shown) == []
