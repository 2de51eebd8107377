"""Traces of turns, where a collector is named: what took how long, and no word that was said.

`OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`) switches them on, and the other standard
variables are obeyed. Without it nothing of OpenTelemetry is loaded.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any

from rag.errors import SetupError
from rag.runtime.error_log import is_due

SWITCHES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
TALKATIVE = (EXPORTER, "opentelemetry.sdk._shared_internal")
CLOSE_SECONDS = 3.0  # for what was not sent yet


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time. Where there is no collector, nothing is kept of it."""

    tracer: Any = None
    span: Any = None

    @contextmanager
    def part(self, name: str) -> Iterator["Span"]:
        """A stretch within this one; of an error that ends it, its kind is noted."""
        if self.tracer is None:
            yield self
            return
        from opentelemetry.trace import set_span_in_context

        above = None if self.span is None else set_span_in_context(self.span)
        part = Span(self.tracer, self.tracer.start_span(name, above))
        try:
            yield part
        except GeneratorExit:  # nobody reads on, which is no error
            raise
        except BaseException as error:
            part.fail(error)
            raise
        finally:
            part.span.end()

    def note(self, **values: str | bool | int | float) -> None:
        """Say kinds and figures, never texts. `gen_ai__x` stands for the standard's `gen_ai.x`."""
        for key, value in values.items() if self.span is not None else ():
            name = key.replace("__", ".") if "__" in key else f"groundnote.{key}"
            self.span.set_attribute(name, value)

    def happened(self, what: str) -> None:
        """A moment in it."""
        if self.span is not None:
            self.span.add_event(what)

    def fail(self, error: BaseException) -> None:
        """What an error says may hold words of documents."""
        if self.span is not None:
            from opentelemetry.trace import StatusCode

            self.span.set_attribute("error.type", type(error).__name__)
            self.span.set_status(StatusCode.ERROR)


class Traces:
    """Sends spans to the collector that the environment names, if it names one.

    Spans wait in a bounded queue for a thread of their own; a collector that is slow or away costs
    spans, never time of a turn.
    """

    def __init__(self) -> None:
        is_wanted = any(os.environ.get(switche) for switche in SWITCHES)
        self._provider = _provider() if is_wanted else None
        self.root = Span(self._provider.get_tracer("groundnote")) if self._provider else Span()

    def close(self) -> None:
        """Send what waits, if the collector takes it soon."""
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
    return is_due(record.name)
