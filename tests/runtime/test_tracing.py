"""Traces of turns, as a collector of OpenTelemetry on this machine receives and decodes them."""

import gzip
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rag.errors import SetupError
from rag.runtime import metrics
from rag.runtime.metrics import Traces
from tests.model_application import World, calling
from tests.openai_server import failure, reply

pytestmark = pytest.mark.slow

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
QUESTION = "How much does the Aero 5 weigh?"


class Collector:
    """Takes spans over OTLP/HTTP; while `holds` it takes the connection and says nothing."""

    def __init__(self):
        self.spans, self.resources, self.bodies, self.paths = [], [], [], []
        self.holds = threading.Event()
        self.let_go = threading.Event()

    def __enter__(self):
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.holds.is_set():
                    collector.let_go.wait(60)
                collector.paths.append(self.path)
                collector.take(body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        return self

    def __exit__(self, *_):
        self.let_go.set()
        self._http.shutdown()
        self._http.server_close()

    def take(self, body):
        self.bodies.append(body)
        for each in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(values_of(each.resource))
            self.spans += [span for scope in each.scope_spans for span in scope.spans]

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def one(self, name):
        (span,) = self.named(name)
        return values_of(span)


def values_of(holder):
    told = ((each.key, each.value) for each in holder.attributes)
    return {key: getattr(value, value.WhichOneof("value")) for key, value in told}


@pytest.fixture
def collector(monkeypatch):
    with Collector() as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        yield collector


def test_a_turn_is_told_with_its_parts_and_figures(collector, tmp_path):
    with World(tmp_path) as world:
        search = calling(("search_documents", {"query": "Aero 5 weight"}))
        answer = world.ask(QUESTION, search, reply("The Aero 5 weighs 120 g [1]."))

    assert set(collector.paths) == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "groundnote"
    (turn,) = collector.named("turn")
    parts = [span for span in collector.spans if span.parent_span_id == turn.span_id]
    assert [span.name for span in sorted(parts, key=lambda each: each.start_time_unix_nano)] == [
        "follow-up",
        "direct",
        "retrieval",
        "model",
        "check",
    ]  # nothing is left for a judge
    assert {span.trace_id for span in collector.spans} == {turn.trace_id}
    assert all(turn.start_time_unix_nano <= each.start_time_unix_nano for each in parts)
    assert all(each.end_time_unix_nano <= turn.end_time_unix_nano for each in parts)
    assert [event.name for event in turn.events] == ["first words"]
    assert values_of(turn) == {
        "groundnote.session": world.session_id,
        "groundnote.answer": answer["index"],
        "groundnote.status": "complete",
    }
    assert collector.one("follow-up")["groundnote.is_followup"] is False
    assert collector.one("retrieval") == {
        "groundnote.sources": len(answer["sources"]) + 1,
        "groundnote.by_words_alone": False,
    }
    model = collector.one("model")
    assert model["gen_ai.request.model"] == "fake"
    assert model["gen_ai.usage.output_tokens"] > 0
    assert model["groundnote.context_tokens"] > 100
    assert collector.one("check")["groundnote.supported"] == 1


def test_no_word_of_question_documents_or_answer_is_told(collector, tmp_path):
    with World(tmp_path) as world:
        world.ask(QUESTION, reply("The Aero 5 weighs 120 g [1]."))
        world.ask("And the Pro?", failure(500, "The Aero 5 Pro weighs 140 g, said the model"))

    sent = b"".join(collector.bodies).lower()
    assert len(collector.named("turn")) == 2
    for word in (b"aero", b"weigh", b"120 g", b"140 g", b"battery", b"pro?", b"said the"):
        assert word not in sent


@pytest.mark.parametrize(
    ("reply_of_the_model", "error"),
    [(failure(500, "broken"), "ModelUnavailable"), (reply(" "), "ModelInterrupted")],
)
def test_a_model_that_fails_is_an_error_of_its_part_alone(
    collector, tmp_path, reply_of_the_model, error
):
    with World(tmp_path) as world:
        world.ask(QUESTION, reply_of_the_model)

    (model,) = collector.named("model")
    assert model.status.code == model.status.STATUS_CODE_ERROR
    assert values_of(model)["error.type"] == error
    assert collector.one("turn")["groundnote.status"] == "complete"


def test_without_a_collector_nothing_is_loaded_and_nothing_is_told():
    code = (
        "import sys\n"
        "from rag.runtime.metrics import Metrics\n"
        "from rag.runtime.metrics import Traces\n"
        "traces = Traces()\n"
        "with traces.root.part('turn') as span: span.note(status='complete'); span.happened('x')\n"
        "traces.close(); assert span is traces.root\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)"
    )
    names = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    subprocess.run([sys.executable, "-c", code], check=True, env=names)


class TestACollectorThatDoesNotAnswer:
    def test_costs_no_turn_its_time(self, collector, tmp_path, monkeypatch):
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")  # it hangs from the first turn on
        monkeypatch.setattr(metrics, "CLOSE_SECONDS", 0.2)
        collector.holds.set()
        with World(tmp_path) as world:
            for _ in range(8):
                world.ask(QUESTION, reply("The Aero 5 weighs 120 g [1]."))
            assert not collector.spans
            closed_at = time.monotonic()
        assert time.monotonic() - closed_at < 5

    def test_drops_spans_rather_than_keeping_all(self, collector, monkeypatch):
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        monkeypatch.setattr(metrics, "CLOSE_SECONDS", 0.2)
        collector.holds.set()
        traces = Traces()
        began = time.process_time()
        for _ in range(10_000):
            with traces.root.part("turn"):
                pass
        assert time.process_time() - began < 10
        collector.let_go.set()
        monkeypatch.setattr(metrics, "CLOSE_SECONDS", 10)
        traces.close()
        assert 0 < len(collector.spans) < 6_000

    def test_is_told_of_in_one_line(self, monkeypatch, caplog):
        monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")  # nobody listens
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        traces = Traces()
        for _ in range(3):
            with traces.root.part("turn"):
                pass
            traces._provider.force_flush(500)
            assert len(caplog.records) <= 1
        traces.close()
        assert all(record.exc_info is None for record in caplog.records)


def test_another_protocol_is_refused_by_name(monkeypatch):
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")

    with pytest.raises(SetupError, match="http/protobuf, not as grpc"):
        Traces()


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, metrics.EXPORTER, None)

    with pytest.raises(SetupError, match=r"pip install 'groundnote\[otel\]'"):
        Traces()
