"""Metrics of all processes that share a database, reported as one by any of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy import Engine, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from rag.db import measurements, reading, writing

ENDED_PROCESSES = "past"  # the row with the sums of all ended processes
ENDED_AFTER = timedelta(minutes=10)  # without an update
CREATED = "_created"  # a time, which is not added up
Samples = dict[str, float]


class SharedFigures(Collector):
    """Adds the metrics that other processes stored last to those of this process."""

    def __init__(self, engine: Engine, registry: CollectorRegistry) -> None:
        self._engine = engine
        self._registry = registry
        self._process = uuid4().hex
        self._others: list[Samples] = []
        self._last_samples: Samples = {}
        self._last_time = datetime.min.replace(tzinfo=UTC)

    def tell(self) -> None:
        """Store this process's metrics, and add those of ended processes to the sums."""
        now = datetime.now(UTC)
        samples = {
            _key(sample.name, sample.labels): sample.value
            for metric in self._registry.collect()
            for sample in metric.samples
            if not sample.name.endswith(CREATED)
        }
        if samples == self._last_samples and now - self._last_time < ENDED_AFTER / 2:
            return
        values = {"samples": samples, "updated_at": now}
        with writing(self._engine) as connection:
            is_own = measurements.c.process == self._process
            if connection.execute(update(measurements).where(is_own).values(values)).rowcount == 0:
                connection.execute(insert(measurements).values(process=self._process, **values))
            is_ended = measurements.c.updated_at < now - ENDED_AFTER
            is_ended |= measurements.c.process == ENDED_PROCESSES
            ended = select(measurements).where(is_ended).with_for_update()
            rows = connection.execute(ended).all()
            if any(row.process != ENDED_PROCESSES for row in rows):
                names = [row.process for row in rows]
                connection.execute(delete(measurements).where(measurements.c.process.in_(names)))
                together = _sum([row.samples for row in rows])
                sums = {"process": ENDED_PROCESSES, "samples": together, "updated_at": now}
                connection.execute(insert(measurements).values(sums))
        self._last_samples, self._last_time = samples, now

    def render(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        try:
            with reading(self._engine) as connection:
                others = select(measurements.c.samples).where(
                    measurements.c.process != self._process
                )
                self._others = list(connection.execute(others).scalars())
        except SQLAlchemyError:
            pass  # the last known values are used: counters must not decrease
        together = CollectorRegistry()
        together.register(self)
        return generate_latest(together)

    def collect(self) -> Iterator[Metric]:
        others = _sum(self._others)
        for metric in self._registry.collect():
            samples = {_key(sample.name, sample.labels): sample for sample in metric.samples}
            metric.samples = [
                sample._replace(value=sample.value + others.pop(key, 0.0))
                for key, sample in samples.items()
                if not sample.name.endswith(CREATED)
            ]
            of_metric = {f"{metric.name}_{part}" for part in ("total", "bucket", "sum", "count")}
            for key in list(others):
                name, *labels = key.split("\t")
                if name in of_metric:
                    values = dict(label.split("=", 1) for label in labels)
                    metric.add_sample(name, values, others.pop(key))
            yield metric


def _sum(rows: list[Samples]) -> Samples:
    total: Samples = {}
    for row in rows:
        for key, value in row.items():
            total[key] = total.get(key, 0.0) + value
    return total


def _key(name: str, labels: dict[str, str]) -> str:
    return "\t".join([name, *(f"{label}={labels[label]}" for label in sorted(labels))])
