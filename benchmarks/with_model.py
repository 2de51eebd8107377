"""What Groundnote adds to a model: time to its first words, and tokens that it is sent.

    python -m benchmarks.with_model [--turns 40] [--every 4] [--recent]

The model is a server on loopback that answers at once, with what two of its sources say, so that
what is measured is ours. Plain retrieval is asked beside it, with the same sources and answers.
"""

import json
import logging
import re
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click
import httpx
from werkzeug.serving import make_server

from rag.chat.prompts import CITE, SYSTEM_PROMPT
from rag.documents.files import IncomingFile
from rag.records import EVERYTHING, Hit
from rag.settings import HOME, Settings
from rag.tokens import count_tokens
from rag.web import create_app
from rag.wiring.application import build

SUBJECTS = ("Aero 5", "Aero 5 Pro", "Kontor 24", "Etude", "warranty of the Hora", "refund")
ASKED = ("How much does the {} weigh?", "How long does the {} last?", "How do I reset the {}?",
         "What must I know before I use the {}?", "Where is the {} described?")  # fmt: skip
QUESTIONS = [ask.format(subject) for ask in ASKED for subject in SUBJECTS]
LOOKED_FOR = ("price of a repair", "batteries and disposal", "delivery abroad", "opening hours")
PAIRS = 5  # that plain retrieval keeps word for word
FRAME = 4  # tokens of a message beside its text
SOURCE = re.compile(r"^\[(?P<number>\d+)\].*\n(?P<text>(?:(?!\[\d+\] ).*\n?)*)", re.MULTILINE)
SENTENCE = re.compile(r"[^\n<>|]{30,}?[.!?](?=\s|$)")


class Model(ThreadingHTTPServer):
    """Answers at once; calls a tool first in each of `every` turns that offer one."""

    def __init__(self, every: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.every = every
        self.sent: Counter[str] = Counter()
        self.calls = self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def begin(self) -> None:
        """Count from here."""
        self.sent.clear()
        self.calls = self.asked = 0

    def deltas(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        messages = body.get("messages", [])
        self._count(messages, body.get("tools", ()))
        is_first = messages[-1:] != [] and messages[-1]["role"] == "user"
        if body.get("tools") and is_first:
            self.asked += 1
            if self.asked % self.every == 0:
                self.calls += 1
                return [{"tool_calls": [_call(LOOKED_FOR[self.calls % len(LOOKED_FOR)])]}]
        said = answer_to("\n".join(each["content"] for each in messages[-1:]))
        return [{"content": word + " "} for word in said.split()]

    def _count(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> None:
        """Tokens by what they are spent on."""
        if not messages or messages[0]["content"][:60] != SYSTEM_PROMPT[:60]:
            self.sent["other calls"] += sum(map(_tokens, messages))
            return
        self.sent["tools described"] += sum(count_tokens(json.dumps(tool)) for tool in tools)
        asked = max(n for n, each in enumerate(messages) if each["role"] == "user")
        if asked < len(messages) - 1:
            self.sent["again, after a tool"] += sum(map(_tokens, messages))
            return
        self.sent["rules and summary"] += _tokens(messages[0])
        self.sent["past turns"] += sum(map(_tokens, messages[1:asked]))
        self.sent["question and sources"] += _tokens(messages[asked])


def _tokens(message: dict[str, Any]) -> int:
    called = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return count_tokens(str(message["content"])) + count_tokens(called) + FRAME


def _call(query: str) -> dict[str, Any]:
    called = {"name": "search_documents", "arguments": json.dumps({"query": query})}
    return {"index": 0, "id": "call00001", "function": called}


def answer_to(prompt: str) -> str:
    """The first sentence of each of two numbered sources."""
    said = []
    for source in SOURCE.finditer(prompt):
        sentence = SENTENCE.search(source["text"])
        if sentence is not None:
            said.append(f"{sentence[0].strip().rstrip('.!?')} [{source['number']}].")
    return " ".join(said[:2]) or "I do not know."


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


class Asked:
    """Milliseconds until the first words: by the clock, and of the processor."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.cpu: list[float] = []

    def ask(self, url: str, body: dict[str, Any], sign: str) -> str:
        """The lines of a stream; it is timed until one begins so."""
        began, cpu, lines = time.perf_counter(), time.process_time(), []
        headers = {"Accept": "text/event-stream"}
        seen = False
        with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as reply:
            for line in reply.iter_lines():
                if not seen and line.startswith(sign):
                    seen = True
                    self.clock.append(1000 * (time.perf_counter() - began))
                    self.cpu.append(1000 * (time.process_time() - cpu))
                lines.append(line)
        return "\n".join(lines)


class Plain:
    """Retrieval alone: the rules, the same sources, and turns word for word: the last, or all."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.recent = self.whole = 0

    def ask(self, question: str, hits: Sequence[Hit]) -> None:
        sources = "\n\n".join(
            f"[{n}] {hit.chunk.document_title} › {hit.chunk.locator}\n{hit.passage}"
            for n, hit in enumerate(hits, start=1)
        )
        asked = f"Sources:\n\n{sources}\n\n{CITE}\n\nQuestion: {question}"
        fixed = sum(count_tokens(text) + FRAME for text in (SYSTEM_PROMPT, asked))
        past = [count_tokens(text) + FRAME for text in self.said]
        self.recent += fixed + sum(past[-2 * PAIRS :])
        self.whole += fixed + sum(past)


def asked_both_ways(folder: Path, turns: int, every: int, config: dict[str, Any]) -> Iterator[str]:
    """The lines of the report; `config` is of the session's context."""
    model, ours, alone, plain = Model(every), Asked(), Asked(), Plain()
    llm = {"base_url": model.url, "model": "any", "context_window": 16_000, "tools": every > 0}
    application = build(Settings.model_validate({"data_dir": folder, "llm": llm}))
    application.start()
    paths = [path for path in (HOME / "data" / "library").rglob("*") if path.is_file()]
    files = [IncomingFile.from_bytes(path.name, path.read_bytes()) for path in sorted(paths)]
    list(application.ingestion.ingest(files))
    web = make_server("127.0.0.1", 0, create_app(application), threaded=True)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{web.server_port}/api/v1/sessions"
    Asked().ask(f"{base}/{_new(base)}/messages", {"content": "Warm?"}, "event: delta")
    session, asked = (
        _new(base, context_config=config),
        (QUESTIONS * (1 + turns // len(QUESTIONS)))[:turns],
    )
    model.begin()
    for question in asked:
        told = ours.ask(f"{base}/{session}/messages", {"content": question}, "event: delta")
        plain.ask(question, application.retriever.search(question, EVERYTHING, limit=8))
        plain.said += [question, _final(told)]
    sent, calls = model.sent.copy(), model.calls
    for question in asked:
        body = {"messages": [{"role": "user", "content": question}], "stream": True}
        alone.ask(f"{model.url}/chat/completions", body, "data: ")
    web.shutdown()
    application.stop()
    yield f"{turns} turns, {calls} tool calls"
    for what, row in (("clock", (alone.clock, ours.clock)), ("CPU", (alone.cpu, ours.cpu))):
        p50, p95 = (statistics.quantiles(row[1], n=20)[at] for at in (9, 18))
        model_p50 = statistics.median(row[0])
        yield f"first words, {what}: model alone {model_p50:.0f} ms, p50 + {p50 - model_p50:.0f},"
        yield f"    p95 + {p95 - model_p50:.0f} ms"
    total = sent.total()
    yield f"prompt tokens: {total:,}, {total / turns:,.0f} a turn"
    for kind, tokens in sent.most_common():
        yield f"    {tokens:>9,}  {kind}"
    for what, tokens in ((f"last {PAIRS} turns", plain.recent), ("all turns", plain.whole)):
        yield f"plain with its {what}: {tokens:,}; ours are {total / tokens:.2f} times as many"


def _new(base: str, **about: Any) -> str:
    return str(httpx.post(base, json=about).json()["id"])


def _final(stream: str) -> str:
    data = stream.rpartition("event: final")[2].partition("data: ")[2].partition("\n")[0]
    return str(json.loads(data)["content"])


@click.command()
@click.option("--turns", default=40, show_default=True)
@click.option("--every", default=4, show_default=True, help="a call in each so many turns; 0: none")
@click.option("--recent", is_flag=True, help=f"Both keep the last {PAIRS} turns, and nothing else.")
def main(turns: int, every: int, recent: bool) -> None:
    """Print what is sent, and when words come."""
    sliding = {"compression_strategy": "sliding_window", "recent_message_count": 2 * PAIRS}
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        for line in asked_both_ways(Path(folder), turns, every, sliding if recent else {}):
            print(line)


if __name__ == "__main__":
    main()
