"""How much of `rag/` seven requests pass through: files and functions, as somebody reads them.

    python -m benchmarks.trace [--names]

Each request is made twice over the JSON API of an application that is loaded. The second one is
traced, in its own thread and in those that it begins. What is defined in a module counts once,
however often it is called; modules' own lines, lambdas and comprehensions do not. `--names` lists
the files, in the order in which they are first entered. The model is a server on loopback that
says one sentence.
"""

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

from rag.documents.files import IncomingFile
from rag.settings import Settings
from rag.web import create_app
from rag.wiring.application import build
from tests.fakes import HashEmbedder
from tests.openai_server import OpenAIServer, reply

RAG = str(Path(__file__).parents[1] / "rag") + "/"
API = "/api/v1"
MANUAL = b"""# Aero 5

## Weight

The Aero 5 weighs 120 g. The Aero 5 Pro weighs 140 g.

## Refunds

Refunds are paid within five working days.
"""
PRICES = (
    b"product,category,price\nAero 5,earphones,79\nAero 5 Pro,earphones,129\nKontor 8,switch,99\n"
)
QUESTION = "How long do refunds take?"
SAID = "Refunds are paid within five working days [1]."
SOURCE = {"n": 1, "text": "Refunds are paid within five working days."}


class Trace:
    """The code of `rag/` that ran while the block did, in the order of its first call."""

    def __init__(self) -> None:
        self.called: dict[CodeType, None] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        threading.setprofile(self._note)  # of threads that begin meanwhile
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(RAG) and code.co_name[0] != "<":
            self.called.setdefault(code)

    @property
    def files(self) -> list[str]:
        """Below `rag/`, in the order in which they were entered."""
        return list(dict.fromkeys(code.co_filename.removeprefix(RAG) for code in self.called))


class Requests:
    """What a program may ask of the API, each in a session of its own."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def _post(self, path: str, body: Any = None, **options: Any) -> Any:
        sent = options or {"json": body or {}}
        answer = self._client.post(path, **sent)
        assert answer.status_code < 300, (path, answer.status_code, answer.get_json())
        return answer.get_json()

    def _session(self, **body: Any) -> str:
        return f"{API}/sessions/{self._post(f'{API}/sessions', body)['id']}"

    def question(self) -> Callable[[], Any]:
        """With or without a model, as the application has one."""
        session = self._session()
        return lambda: self._post(f"{session}/messages", {"content": QUESTION})

    def chat(self) -> Callable[[], Any]:
        """As a stock client asks."""
        message = {"role": "user", "content": QUESTION}
        body = {"model": "groundnote", "messages": [message]}
        return lambda: self._post("/v1/chat/completions", body)

    def table(self) -> Callable[[], Any]:
        """A question over rows."""
        session = self._session()
        body = {"content": "What is the average price by category?"}
        return lambda: self._post(f"{session}/messages", body)

    def summary(self) -> Callable[[], Any]:
        """Compacting a long conversation."""
        session = self._session(context_config={"max_tokens": 3000, "recent_message_count": 4})
        messages = [
            {"role": role, "content": text}
            for number in range(1, 19)
            for role, text in (
                ("user", f"How long is step {number}?"),
                ("assistant", f"Step {number} takes {number} minutes, and none may be left out."),
            )
        ]
        self._post(f"{session}/import", {"messages": messages})
        return lambda: self._post(f"{session}/compact")

    def verdict(self) -> Callable[[], Any]:
        """Of a text that somebody else wrote."""
        body = {"text": SAID, "sources": [SOURCE]}
        return lambda: self._post(f"{API}/check", body)

    def upload(self) -> Callable[[], Any]:
        """What a worker does comes on top."""
        from io import BytesIO

        return lambda: self._post(f"{API}/documents", data={"file": (BytesIO(MANUAL), "more.md")})


@contextmanager
def served(folder: Path, **llm: Any) -> Iterator[Requests]:
    """An application with a manual and a table, loaded."""
    settings = Settings(data_dir=folder, llm=llm, checks={"model": "off"})
    application = build(settings, embedder=HashEmbedder())
    files = (("aero.md", MANUAL), ("prices.csv", PRICES))
    list(application.ingestion.ingest(IncomingFile.from_bytes(*each) for each in files))
    application.load()
    yield Requests(create_app(application).test_client())
    application.stop()


def traced(make: Callable[[], Callable[[], Any]]) -> Trace:
    """The second of two such requests."""
    make()()
    request, trace = make(), Trace()
    with trace.running():
        request()
    return trace


@click.command()
@click.option("--names", is_flag=True, help="List the files as well.")
def main(names: bool) -> None:
    """Print one row a request."""
    with tempfile.TemporaryDirectory() as folder, OpenAIServer(reply(SAID)) as server:
        rows: dict[str, Trace] = {}
        with served(Path(folder) / "without") as requests:
            rows["a question, without a model"] = traced(requests.question)
            rows["a table"] = traced(requests.table)
            rows["a summary"] = traced(requests.summary)
            rows["a verdict"] = traced(requests.verdict)
            rows["an upload, until it is queued"] = traced(requests.upload)
        model = {"base_url": server.url, "model": "fake", "max_retries": 0}
        with served(Path(folder) / "with", **model) as requests:
            rows["a question, with a model"] = traced(requests.question)
            rows["/v1/chat/completions"] = traced(requests.chat)
    click.echo(f"{'request':32} {'files':>6} {'functions':>10}")
    for name, trace in rows.items():
        click.echo(f"{name:32} {len(trace.files):6} {len(trace.called):10}")
        if names:
            click.echo("".join(f"    {each}\n" for each in trace.files))


if __name__ == "__main__":
    main()
