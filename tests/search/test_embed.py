import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rag.errors import ModelUnavailable, SetupError, UnreadableReply
from rag.seams import Embedder
from rag.search.embedders.engines import EncoderEngine, OpenAIEmbedder
from rag.search.embedders.local import RECENT, LocalEmbedder
from rag.search.hybrid import CrossEncoderReranker
from tests.fakes import HashEmbedder
from tests.waiting import until

Reply = Callable[[dict], tuple[int, dict]]


class Server:
    """A loopback /v1/embeddings: vectors of three numbers, or what a test scripts."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.reply: Reply = vectors_of
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                status, reply = outer.reply(body)
                encoded = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


def vectors_of(body: dict) -> tuple[int, dict]:
    rows = [
        {"object": "embedding", "index": place, "embedding": [3.0, 4.0, float(len(text) % 2)]}
        for place, text in enumerate(body["input"])
    ]
    return 200, {"object": "list", "model": body["model"], "data": rows[::-1], "usage": {}}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.http.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture(
    params=[
        "fake",
        "server",
        pytest.param("packaged", marks=pytest.mark.slow),
    ]
)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "fake":
        return HashEmbedder()
    if request.param == "packaged":
        return LocalEmbedder()
    return OpenAIEmbedder(base_url=request.getfixturevalue("server").url, model="m")


# ── Every embedder ───────────────────────────────────────────────────────────────────────────


def test_each_text_gets_one_row_of_length_one_in_order(embedder: Embedder) -> None:
    texts = ["a", "some longer text about routers", "", "lamps\ud800"]

    vectors = embedder.embed(texts)

    assert vectors.dtype == np.float32
    assert vectors.shape == (4, embedder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-4)
    np.testing.assert_allclose(vectors[1], embedder.embed([texts[1]])[0], atol=0.02)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.dimensions)
    assert embedder.count_tokens([]) == []


def test_more_words_are_more_tokens(embedder: Embedder) -> None:
    short, long = embedder.count_tokens(["one", "one and two and three"])

    assert 0 < short < long
    assert embedder.max_tokens > long


def test_a_questions_sentences_wait_for_no_whole_ingest() -> None:
    embedder, engine = LocalEmbedder(batch_size=1), BlockedEngine()
    vars(embedder)["_load"] = engine
    ingest = [f"passage {row}" for row in range(40)]
    marked = [f"sentence {row}" for row in range(12)]

    with ThreadPoolExecutor(2) as others:
        passages = others.submit(embedder.embed, ingest)
        until(lambda: len(engine.begun) == engine.at_once)
        sentences = others.submit(embedder.embed, marked)
        until(lambda: "sentence 0" in engine.begun)  # while nothing of the ingest is done
        engine.released.set()

        assert passages.result()[:, 0].tolist() == list(range(40))
        assert sentences.result()[:, 0].tolist() == list(range(12))


class BlockedEngine:
    """Says the number that stands in a text, once it is released."""

    at_once = 2

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.released = threading.Event()

    def vectors(self, texts: list[str]) -> np.ndarray:
        self.begun += texts
        assert self.released.wait(60)
        rows = np.zeros((len(texts), 384), dtype=np.float32)
        rows[:, 0] = [int(text.split()[1]) for text in texts]
        return rows


# ── The packaged model ───────────────────────────────────────────────────────────────────────


def test_what_the_chunker_asks_needs_no_model() -> None:
    embedder = LocalEmbedder()

    assert (embedder.name, embedder.dimensions, embedder.max_tokens) == (
        "all-MiniLM-L6-v2",
        384,
        256,
    )
    assert embedder.count_tokens(["hello world", "", "word " * 1000]) == [4, 2, 1002]
    assert "_load" not in vars(embedder)


def test_the_packaged_model_is_known_by_its_usual_name() -> None:
    for name in ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        assert LocalEmbedder(name).count_tokens(["hello world"]) == [4]


@pytest.mark.slow
def test_like_texts_are_nearer_than_others() -> None:
    router, restart, lamp = LocalEmbedder().embed(
        ["How do I reset the router?", "Restarting your network device", "Recipes for lamb stew"]
    )

    assert router @ restart > router @ lamp + 0.2


@pytest.mark.slow
def test_vectors_are_those_of_full_precision() -> None:
    texts = ["How do I reset the router?", "The AX-5400 has four ports. " * 20, "中国"] * 12
    embedder = LocalEmbedder()
    exact = embedder._reference.model.encode(texts, normalize_embeddings=True)

    assert isinstance(embedder._load, EncoderEngine)
    for vectors in (embedder.embed(texts), np.vstack([embedder.embed([text]) for text in texts])):
        assert ((vectors * exact).sum(axis=1) > 0.9999).all()


def test_texts_of_about_one_length_have_one_width(monkeypatch) -> None:
    """The engine writes code anew for each width, which takes as long as a question itself."""
    widths: list[int] = []

    class Request:
        def infer(self, given) -> None:
            tokens, mask = given
            assert (mask.sum(axis=1) == (tokens[..., 0] != 0).sum(axis=1)).all()
            widths.append(tokens.shape[1])

        def get_output_tensor(self, _number: int) -> SimpleNamespace:
            return SimpleNamespace(data=np.ones((1, 2), dtype=np.float32))

    compiled = SimpleNamespace(create_infer_request=Request)
    monkeypatch.setattr(
        "rag.search.embedders.engines._compiled", lambda _encoder, streams: compiled
    )
    encoder = SimpleNamespace(tokens=lambda ids: ids[:, None].astype(np.float32))
    engine = EncoderEngine(encoder, LocalEmbedder().tokenizer, max_tokens=40)
    for count in (1, 5, 14, 15, 30, 31, 200):
        engine.vectors(["word " * count])

    assert widths == [8, 8, 16, 24, 32, 40, 40]


@pytest.mark.slow
def test_the_packaged_model_needs_no_torch() -> None:
    code = """
import sys
from rag.search.embedders.local import LocalEmbedder
LocalEmbedder().embed(["text"])
print({"torch", "transformers", "sentence_transformers"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_threads_share_one_embedder() -> None:
    embedder = LocalEmbedder(batch_size=4)
    texts = [f"text number {number} " * (number % 7 + 1) for number in range(12)]
    alone = embedder.embed(texts)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(embedder.embed, [texts] * 4))

    for vectors in together:
        np.testing.assert_allclose(vectors, alone, atol=0.02)


def test_a_question_that_comes_again_is_not_embedded_again(monkeypatch) -> None:
    asked: list[str] = []

    def together(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    embedder = LocalEmbedder()
    monkeypatch.setitem(vars(embedder), "_load", SimpleNamespace(vectors=together))
    embedder.embed(["first"])
    vectors = embedder.embed(["the second", "first", "the second"])

    assert asked == ["first", "the second"]
    assert vectors.tolist() == [[10, 1], [5, 1], [10, 1]]


def test_no_more_questions_are_remembered_than_a_thousand(monkeypatch) -> None:
    embedder = LocalEmbedder()
    engine = SimpleNamespace(vectors=lambda texts: np.zeros((len(texts), 2)))
    monkeypatch.setitem(vars(embedder), "_load", engine)
    for number in range(RECENT + 50):
        embedder.embed([str(number)])

    assert len(embedder._recent) == RECENT
    assert "0" not in embedder._recent


@pytest.mark.slow
def test_long_texts_go_in_small_batches() -> None:
    embedder = LocalEmbedder(batch_size=8)

    batches = list(embedder._batches(["word " * 400] * 20 + ["short"] * 20))

    assert sorted(row for batch in batches for row in batch) == list(range(40))
    assert all(len(batch) <= 8 for batch in batches)
    assert batches[0] == list(range(2))  # 512 tokens
    assert batches[-1] == list(range(36, 40))


@pytest.mark.parametrize("model", ["nowhere/no-such-model", "no-such-model"])
def test_a_model_that_is_not_here_says_what_to_set(model: str) -> None:
    with pytest.raises(SetupError, match=r"embedding\.allow_download"):
        LocalEmbedder(model).count_tokens(["text"])


def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"tokenizer\.json"):
        LocalEmbedder(str(tmp_path)).count_tokens(["text"])


@pytest.mark.slow
def test_a_folder_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="packaged model"):
        _ = LocalEmbedder(str(tmp_path)).dimensions


@pytest.mark.slow
def test_a_reranker_that_is_not_here_says_what_to_set(tmp_path: Path) -> None:
    reranker = CrossEncoderReranker(str(tmp_path))

    assert reranker.score("query", []) == []
    with pytest.raises(SetupError, match=r"retrieval\.rerank_model"):
        reranker.score("query", ["text"])


# ── A server ─────────────────────────────────────────────────────────────────────────────────


def test_many_texts_go_in_batches(server: Server) -> None:
    embedder = OpenAIEmbedder(base_url=server.url, model="m", batch_size=2)

    vectors = embedder.embed(["even", "odd", "even", "odd", "even"])

    assert [len(body["input"]) for body in server.asked] == [2, 2, 1]
    np.testing.assert_allclose(vectors[0], [0.6, 0.8, 0.0], atol=1e-6)
    assert [row[2] > 0 for row in vectors] == [False, True, False, True, False]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    embedder = OpenAIEmbedder(base_url="http://127.0.0.1:9/v1", model="m")

    with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1:9"):
        embedder.embed(["text"])


@pytest.mark.parametrize(
    ("status", "reply", "error"),
    [
        pytest.param(401, {"error": {"message": "no"}}, ModelUnavailable, id="refused key"),
        pytest.param(404, {"error": {"message": "no model"}}, ModelUnavailable, id="no model"),
        pytest.param(200, {"data": []}, UnreadableReply, id="no vectors"),
        pytest.param(200, {"nothing": True}, UnreadableReply, id="another protocol"),
    ],
)
def test_a_servers_failure_is_translated(server: Server, status, reply, error) -> None:
    server.reply = lambda body: (status, reply)

    with pytest.raises(error, match=r"127\.0\.0\.1"):
        OpenAIEmbedder(base_url=server.url, model="m").embed(["text"])
