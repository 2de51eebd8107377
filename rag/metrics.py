"""Counters and timings, in the format of Prometheus."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)


class Metrics:
    """All that is measured while serving; one per application, never global."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.turns = self._counter("turns", "Turns by how they ended.", "status")
        self.turn_seconds = self._histogram("turn_seconds", "From question to stored answer.")
        self.first_text_seconds = self._histogram(
            "first_text_seconds", "From question to the first words of the answer."
        )
        self.flagged = self._counter("citations", "Citations of answers by support.", "support")
        self.compactions = self._counter("compactions", "Summaries made, by whom.", "model")
        self.compaction_seconds = self._histogram("compaction_seconds", "Time of one summary.")
        self.summary_numbers = self._counter(
            "summary_citations", "Required citations of summaries, by what became of them.", "fate"
        )
        self.summary_names = self._counter(
            "summary_names", "Required product names of summaries, by what became of them.", "fate"
        )
        self.documents = self._counter("documents", "Files by how their ingestion ended.", "state")

    def _counter(self, name: str, what: str, label: str) -> Counter:
        return Counter(f"groundnote_{name}", what, [label], registry=self.registry)

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"groundnote_{name}", what, buckets=SECONDS, registry=self.registry)

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)


@contextmanager
def timed(histogram: Histogram) -> Iterator[None]:
    """Observe how long a block took, also when it raises."""
    began = perf_counter()
    try:
        yield
    finally:
        histogram.observe(perf_counter() - began)
