"""Counters and timings, in the format of Prometheus."""

from collections.abc import Generator, Iterator
from contextlib import closing
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from rag.records import Event, Failed, Finished, SummaryReport, Text
from rag.runtime.tracing import Span

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """All that is measured while serving; one per application, never global."""

    def __init__(self, trace: Span | None = None) -> None:
        self.trace = trace or Span()  # above the spans of turns
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
            "conversations",
            "Requests over /v1 by how their conversation was found.",
            "by",
        )
        self.documents = self._counter("documents", "Files by how their ingestion ended.", "state")

    def _counter(self, name: str, what: str, label: str) -> Counter:
        return Counter(f"groundnote_{name}", what, [label], registry=self.registry)

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"groundnote_{name}", what, buckets=SECONDS, registry=self.registry)

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)

    def watched(self, events: Generator[Event, None, None]) -> Iterator[Event]:
        """The same events, counted and timed as they pass."""
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
                        self._count_citations(event)
                    elif isinstance(event, Failed):
                        status = "failed"
                    yield event
        finally:
            self.turns.labels(status).inc()
            self.turn_seconds.observe(perf_counter() - began if seconds is None else seconds)

    def _count_citations(self, finished: Finished) -> None:
        answer = finished.message.answer
        for citation in answer.citations if answer else ():
            self.citations.labels(citation.verdict.value).inc()

    def count_summary(self, report: SummaryReport) -> None:
        """One compaction, and what became of what it had to keep."""
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
