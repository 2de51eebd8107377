"""What Groundnote adds to a model: time to its first words, and tokens that it is sent.

The model is a server on loopback that answers at once, so that what is measured is ours.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from werkzeug.serving import make_server

from rag.answers.prompts import SYSTEM_PROMPT, question_prompt
from rag.documents.files import IncomingFile
from rag.records import EVERYTHING
from rag.settings import HOME, Settings
from rag.tokens import count_tokens
from rag.web import create_app
from rag.wiring import build

ANSWER = "The documents say so [1], and a second source adds what is needed to use it [2]."
SUBJECTS = ("Aero 5", "Aero 5 Pro", "Kontor 24", "Etude", "warranty of the Hora", "refund")
ASKED = ("How much does the {} weigh?", "How long does the {} last?", "How do I reset the {}?",
         "What must I know before I use the {}?", "Where is the {} described?")  # fmt: skip
QUESTIONS = [ask.format(subject) for ask in ASKED for subject in SUBJECTS]
PAIRS = 5  # that plain retrieval keeps word for word


class Model(ThreadingHTTPServer):
    """Answers at once; calls a tool first in each of `every` turns that offer one."""

    def __init__(self, every: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.every, self.asked, self.tokens, self.calls = every, 0, 0, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def deltas(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        if "messages" not in body:
            return []
        self.tokens += sum(count_tokens(str(each["content"])) + 4 for each in body["messages"])
        self.tokens += sum(count_tokens(json.dumps(tool)) for tool in body.get("tools", ()))
        is_first = body["messages"][-1]["role"] == "user"
        self.asked += is_first
        if is_first and body.get("tools") and self.asked % self.every == 0:
            self.calls += 1
            called = {"name": "search_documents", "arguments": '{"query": "reset", "limit": 3}'}
            return [{"tool_calls": [{"index": 0, "id": "call00001", "function": called}]}]
        return [{"content": word + " "} for word in ANSWER.split()]


class Handler(BaseHTTPRequestHandler):
    """Chat completions, streamed."""

    server: Model

    def do_GET(self) -> None:
        self._send(json.dumps({"data": []}).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        events = [{"choices": [{"delta": delta}]} for delta in self.server.deltas(body)]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        content = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        self._send(content.encode(), "text/event-stream")

    def _send(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def first_words(url: str, body: dict[str, Any], sign: str) -> float:
    """Milliseconds until a line of the stream begins so; the rest is read, too."""
    began, found = time.perf_counter(), 0.0
    headers = {"Accept": "text/event-stream"}
    with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as reply:
        for line in reply.iter_lines():
            if not found and line.startswith(sign):
                found = 1000 * (time.perf_counter() - began)
    return found


def measure(folder: Path, turns: int, every: int) -> None:
    """Ask the questions both ways, and print the figures."""
    model = Model(every)
    llm = {"base_url": model.url, "model": "any", "context_window": 16_000, "tools": every > 0}
    application = build(Settings.model_validate({"data_dir": folder, "llm": llm}))
    paths = [path for path in (HOME / "data" / "library").rglob("*") if path.is_file()]
    files = [IncomingFile.from_bytes(path.name, path.read_bytes()) for path in sorted(paths)]
    list(application.ingestion.ingest(files))
    web = make_server("127.0.0.1", 0, create_app(application), threaded=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{web.server_port}/api/v1/sessions"
    session = httpx.post(base, json={}).json()["id"]
    plain: list[int] = []
    said: list[str] = []
    alone, ours = [], []
    asked = (QUESTIONS * 2)[:turns]
    first_words(f"{base}/{session}/messages", {"content": "Warm?"}, "event: delta")
    model.tokens = model.calls = model.asked = 0
    for question in asked:
        ours.append(
            first_words(f"{base}/{session}/messages", {"content": question}, "event: delta")
        )
        hits = application.retriever.search(question, EVERYTHING, limit=8)
        sources = "\n\n".join(f"[{n}] {hit.passage}" for n, hit in enumerate(hits, start=1))
        recent = said[-2 * PAIRS :]
        prompt = [SYSTEM_PROMPT, *recent, question_prompt(question, sources)]
        plain.append(sum(count_tokens(text) + 4 for text in prompt))
        said += [question, ANSWER]
    sent, calls = model.tokens, model.calls
    for question in asked:
        body = {"messages": [{"role": "user", "content": question}], "stream": True}
        alone.append(first_words(f"{model.url}/chat/completions", body, "data: "))
    web.shutdown()
    application.stop()
    p50 = statistics.median(ours) - statistics.median(alone)
    print(f"{turns} turns, {calls} tool calls")
    print(f"first words, p50: model alone {statistics.median(alone):.1f} ms, + {p50:.1f} ms")
    p95 = statistics.quantiles(ours, n=20)[-1] - statistics.median(alone)
    print(f"first words, p95: + {p95:.1f} ms")
    print(f"prompt tokens: {sent:,}, plain {sum(plain):,}, {sent / sum(plain):.2f} times")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--every", type=int, default=4, help="a tool call in each so many turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.turns, options.every)


if __name__ == "__main__":
    main()
