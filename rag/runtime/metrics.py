"""Counters and timings in the format of Prometheus, and optional traces of turns.

`OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) switches traces on; the other standard
variables hold. Without it nothing of OpenTelemetry is loaded.
"""

import logging
import os
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from threading import Thread
from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from rag.errors import SetupError
from rag.records import Event, Failed, Finished, SummaryReport, Text
from rag.runtime.error_log import is_due

SWITCHES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
TALKATIVE = (EXPORTER, "opentelemetry.sdk._shared_internal")
CLOSE_SECONDS = 3.0  # to send the last spans


@dataclass(frozen=True, slots=True)
class Span:
    """A span of a trace; does nothing without a collector."""

    tracer: Any = None
    span: Any = None

    @contextmanager
    def part(self, name: str) -> Iterator["Span"]:
        """Open a span within this one; of an error that ends it, only the class is noted."""
        if self.tracer is None:
            yield self
            return
        from opentelemetry.trace import set_span_in_context

        above = None if self.span is None else set_span_in_context(self.span)
        part = Span(self.tracer, self.tracer.start_span(name, above))
        try:
            yield part
        except GeneratorExit:  # the reader has stopped, which is no error
            raise
        except BaseException as error:
            part.fail(error)
            raise
        finally:
            part.span.end()

    def note(self, **values: str | bool | int | float) -> None:
        """Set attributes, never texts. `gen_ai__x` is written as the standard's `gen_ai.x`."""
        for key, value in values.items() if self.span is not None else ():
            name = key.replace("__", ".") if "__" in key else f"groundnote.{key}"
            self.span.set_attribute(name, value)

    def happened(self, what: str) -> None:
        """Add an event to the span."""
        if self.span is not None:
            self.span.add_event(what)

    def fail(self, error: BaseException) -> None:
        """Note the class of the error; its message may hold words of documents."""
        if self.span is not None:
            from opentelemetry.trace import StatusCode

            self.span.set_attribute("error.type", type(error).__name__)
            self.span.set_status(StatusCode.ERROR)


class Traces:
    """Sends spans to the collector that the environment names, if any.

    Spans wait in a bounded queue for a thread of their own; a collector that is slow or cannot be
    reached loses spans, but never delays a turn.
    """

    def __init__(self) -> None:
        is_wanted = any(os.environ.get(switch) for switch in SWITCHES)
        self._provider = _provider() if is_wanted else None
        self.root = Span(self._provider.get_tracer("groundnote")) if self._provider else Span()

    def close(self) -> None:
        """Send the waiting spans, if the collector takes them soon."""
        if self._provider is not None:
            closing = Thread(target=self._provider.shutdown, daemon=True)
            closing.start()
            closing.join(CLOSE_SECONDS)


def _provider() -> Any:
    """Raises SetupError."""
    wanted = next(
        (os.environ[protocol] for protocol in PROTOCOLS if os.environ.get(protocol)), PROTOCOL
    )
    if wanted != PROTOCOL:
        raise SetupError(f"Traces are sent as {PROTOCOL}, not as {wanted}: set {PROTOCOLS[1]}.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise SetupError(
            f"{SWITCHES[1]} is set, and {error.name} is not installed. Install it: "
            "pip install 'groundnote[otel]'."
        ) from error
    for name in TALKATIVE:
        logging.getLogger(name).addFilter(_once_a_minute)
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "groundnote"}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _once_a_minute(record: logging.LogRecord) -> bool:
    """The filter of a logger, which takes the same function once, however many providers are."""
    return is_due(record.name)


SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """All that is measured while serving; one per application, never global."""

    def __init__(self, trace: Span | None = None) -> None:
        self.trace = trace or Span()  # parent of the spans of turns
        self.registry = CollectorRegistry()
        self.turns = self._counter("turns", "Turns by how they ended.", "status")
        self.turn_seconds = self._histogram("turn_seconds", "From question to stored answer.")
        self.first_text_seconds = self._histogram(
            "first_text_seconds", "From question to the first words of the answer."
        )
        self.citations = self._counter("citations", "Citations of answers by verdict.", "verdict")
        self.compactions = self._counter("compactions", "Summaries made, by whom.", "model")
        self.compaction_seconds = self._histogram("compaction_seconds", "Time of one summary.")
        self.summary_numbers = self._counter(
            "summary_citations", "Required citations of summaries, by what became of them.", "fate"
        )
        self.summary_lines = self._counter(
            "summary_lines", "Lines of summaries, by their mark; dropped clauses.", "mark"
        )
        self.summary_tokens = self._counter(
            "summary_tokens", "Tokens of models that wrote summaries, both ways.", "model"
        )
        self.summary_names = self._counter(
            "summary_names", "Required product names of summaries, by what became of them.", "fate"
        )
        self.conversations = self._counter(
            "conversations", "Requests over /v1 by how their conversation was found.", "by"
        )
        self.documents = self._counter("documents", "Files by how their ingestion ended.", "state")

    def _counter(self, name: str, what: str, label: str) -> Counter:
        return Counter(f"groundnote_{name}", what, [label], registry=self.registry)

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"groundnote_{name}", what, buckets=SECONDS, registry=self.registry)

    def render(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        return generate_latest(self.registry)

    def watched(self, events: Generator[Event, None, None]) -> Generator[Event, None, None]:
        """Yield the same events, counted and timed."""
        began = perf_counter()
        spoke = False
        status, seconds = "interrupted", None
        try:
            with closing(events):
                for event in events:
                    if isinstance(event, Text) and not spoke:
                        spoke = True
                        self.first_text_seconds.observe(perf_counter() - began)
                    if isinstance(event, Finished):
                        status, seconds = "finished", perf_counter() - began
                        answer = event.message.answer
                        for citation in answer.citations if answer else ():
                            self.citations.labels(citation.verdict.value).inc()
                    elif isinstance(event, Failed):
                        status = "failed"
                    yield event
        finally:
            self.turns.labels(status).inc()
            self.turn_seconds.observe(perf_counter() - began if seconds is None else seconds)

    def count_summary(self, report: SummaryReport) -> None:
        """Count one compaction, and what became of the numbers it had to keep."""
        self.compactions.labels(report.model).inc()
        self.compaction_seconds.observe(report.seconds)
        for fate, number in (
            ("stated", len(report.stated_citations)),
            ("recallable", len(report.recallable_citations)),
            ("listed", len(report.listed_citations)),
        ):
            self.summary_numbers.labels(fate).inc(number)
        for mark, count in (
            ("written", report.written),
            ("quoted", report.quoted),
            ("put_back", report.put_back),
            ("unchecked", report.unchecked),
            ("dropped", report.dropped),
        ):
            self.summary_lines.labels(mark).inc(count)
        self.summary_tokens.labels(report.model).inc(report.model_tokens)
        self.summary_names.labels("stated").inc(len(report.stated_names))
        self.summary_names.labels("recallable").inc(len(report.recallable_names))
