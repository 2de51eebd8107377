"""One figure for all processes that share a database."""

import re
from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from rag.db import measurements, writing
from rag.operations.measurements import ENDED_AFTER, ENDED_PROCESSES, SharedFigures
from rag.runtime.metrics import Metrics


def process(engine):
    metrics = Metrics()
    return metrics, SharedFigures(engine, metrics.registry)


def turns(told, status="finished"):
    found = re.findall(rf'groundnote_turns_total{{status="{status}"}} ([\d.]+)', told.decode())
    return [float(each) for each in found]


def test_any_process_tells_the_figures_of_all(any_engine):
    (one, here), (other, there) = process(any_engine), process(any_engine)
    one.turns.labels("finished").inc(3)
    other.turns.labels("finished").inc(2)
    other.turns.labels("failed").inc()
    other.turn_seconds.observe(0.2)
    there.tell()

    assert turns(here.render()) == [5.0]
    assert turns(here.render(), "failed") == [1.0]
    assert b"groundnote_turn_seconds_count 1.0" in here.render()
    here.tell()
    assert turns(there.render()) == [5.0]


def test_what_ended_processes_counted_stays(any_engine, monkeypatch):
    for _ in range(3):
        metrics, told = process(any_engine)
        metrics.turns.labels("finished").inc()
        told.tell()
    monkeypatch.setattr("rag.operations.measurements.ENDED_AFTER", timedelta(seconds=-1))

    metrics, here = process(any_engine)
    metrics.turns.labels("finished").inc()
    here.tell()
    monkeypatch.undo()

    assert turns(process(any_engine)[1].render()) == [4.0]


def test_what_was_gathered_before_is_gathered_again(any_engine):
    long_ago = datetime.now(UTC) - 2 * ENDED_AFTER
    for _ in range(4):  # each takes in what the one before it has left
        metrics, told = process(any_engine)
        metrics.turns.labels("finished").inc()
        told.tell()
        with writing(any_engine) as connection:
            is_one = measurements.c.process != ENDED_PROCESSES
            connection.execute(update(measurements).where(is_one).values(updated_at=long_ago))

    assert turns(process(any_engine)[1].render()) == [4.0]
