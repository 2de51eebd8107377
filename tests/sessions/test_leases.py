"""Whoever writes an answer holds its lease; an answer without one has lost its process."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select

from rag.db import as_utc, reading, running_answers, writing
from rag.records import MessageStatus
from rag.sessions.leases import LEASE, LOST, RENEWED_EVERY
from rag.sessions.store import SqlConversationStore
from tests.waiting import until

pytestmark = pytest.mark.slow


def rows(engine):
    with reading(engine) as connection:
        return connection.execute(select(running_answers)).all()


@pytest.fixture
def now():
    return [datetime.now(UTC)]


def at(now):
    return lambda: now[0]


def test_a_quick_answer_writes_nothing_down(engine):
    session = SqlConversationStore(engine).create("ada")
    turn = session.begin("How heavy?")
    session.finish(replace(turn.answer, content="120 g", status=MessageStatus.COMPLETE))

    assert rows(engine) == []


def test_a_slow_one_is_seen_by_every_process_and_forgotten_at_its_end(engine):
    session = SqlConversationStore(engine).create("ada")
    turn = session.begin("How heavy?")
    session.tell(1, "It weighs", lambda: None)

    elsewhere = SqlConversationStore(engine).open(session.id, owner="ada")
    assert until(lambda: elsewhere.written_so_far(1) == "It weighs")
    assert SqlConversationStore(engine).interrupt_lost() == 0

    session.finish(replace(turn.answer, content="120 g", status=MessageStatus.COMPLETE))
    assert until(lambda: rows(engine) == [])


def test_one_that_writes_nothing_new_for_a_while_is_not_taken_for_lost(engine, now):
    session = SqlConversationStore(engine, clock=at(now)).create("ada")
    turn = session.begin("How heavy?")
    session.tell(1, "It weighs", lambda: None)
    (held,) = session._leases._leases.values()
    held.begun_at -= 10  # seconds, since which it is written
    session._leases.renew_due()

    for _ in range(3):
        now[0] += RENEWED_EVERY
        session._leases.renew_due()
    (row,) = rows(engine)
    session.finish(replace(turn.answer, status=MessageStatus.FAILED))

    assert as_utc(row.lease_until) == now[0] + LEASE


def test_of_several_tries_the_newest_is_what_is_written_so_far(engine, now):
    session = SqlConversationStore(engine).create("ada")
    tries = {0: "It weighs", 2: "The Aero 5", 1: "About"}  # the others' processes were killed
    common = {"session_id": session.id, "index": 1, "lease_until": now[0], "is_stopped": False}
    with writing(engine) as connection:
        for revision, text in tries.items():
            values = common | {"revision": revision, "text": text}
            connection.execute(insert(running_answers).values(values))

    assert session.written_so_far(1) == "The Aero 5"


def test_its_thread_ends_with_the_store(engine):
    session = SqlConversationStore(engine).create("ada")
    before = set(threading.enumerate())
    session.begin("How heavy?")
    (thread,) = set(threading.enumerate()) - before

    del session

    assert until(lambda: not thread.is_alive())


def test_a_stop_reaches_the_process_that_writes(engine):
    session, stopped = SqlConversationStore(engine).create("ada"), []
    turn = session.begin("How heavy?")
    session.tell(1, "It weighs", lambda: stopped.append(1))
    elsewhere = SqlConversationStore(engine).open(session.id, owner="ada")

    assert until(lambda: elsewhere.stop(1))
    assert until(lambda: bool(stopped))
    session.finish(replace(turn.answer, status=MessageStatus.FAILED))


def test_an_answer_whose_process_died_is_ended_with_what_it_had_written(any_engine, now):
    session = SqlConversationStore(any_engine, clock=at(now)).create("ada")
    session.begin("How heavy?")
    session._leases._leases.clear()  # killed
    with writing(any_engine) as connection:
        connection.execute(
            insert(running_answers).values(
                session_id=session.id,
                index=1,
                revision=0,
                text="It weighs",
                lease_until=now[0] + LEASE,
                is_stopped=False,
            )
        )

    survivor = SqlConversationStore(any_engine, clock=at(now))
    now[0] += timedelta(seconds=15)
    assert survivor.interrupt_lost() == 0  # its lease still holds
    now[0] += timedelta(seconds=15)
    assert survivor.interrupt_lost() == 1

    message = session.message(1)
    assert (message.status, message.content, message.error) == (
        MessageStatus.INTERRUPTED,
        "It weighs",
        LOST,
    )
    assert session.begin_again(1).answer.revision == 1


def test_an_answer_that_died_before_it_wrote_anything_is_found_too(any_engine, now):
    session = SqlConversationStore(any_engine, clock=at(now)).create("ada")
    session.begin("How heavy?")
    session._leases._leases.clear()  # killed at once
    survivor = SqlConversationStore(any_engine, clock=at(now))

    assert survivor.interrupt_lost() == 0  # it may be about to take its lease
    now[0] += timedelta(seconds=30)
    assert survivor.interrupt_lost() == 1
    assert session.message(1).status is MessageStatus.INTERRUPTED
