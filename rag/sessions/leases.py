"""Leases of answers: which process is writing an answer, and its text so far.

A process that begins a turn holds its lease until the turn ends. If the turn takes longer than a
moment, the lease is stored and renewed; a pending answer without a lease has lost its process.
"""

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Engine, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from rag.db import messages, reading, running_answers, sessions, storable, writing
from rag.records import Judging, Message, MessageStatus

BEAT_SECONDS = 1.0
RENEWED_EVERY = timedelta(seconds=5)
LEASE = timedelta(seconds=20)
GRACE = timedelta(seconds=20)  # of an answer that is too young to have a lease
LONGEST = timedelta(hours=1)
JUDGED_WITHIN = timedelta(minutes=15)  # of an answer's beginning
NOT_JUDGED = "The check failed: the program was ended meanwhile."
LOST = "The server was stopped while it wrote this answer. Ask for it again."

Clock = Callable[[], datetime]
StopWriting = Callable[[], None]
AnswerKey = tuple[str, int, int]  # session, index, revision


@dataclass(slots=True)
class _Lease:
    """One lease of this process."""

    begun_at: float = field(default_factory=time.monotonic)
    text: str = ""
    stop: StopWriting = lambda: None
    written: str | None = None  # the text that is written down; None: nothing is yet
    renewed_at: datetime | None = None


class Leases:
    """The leases of this process, renewed in the background."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._leases: dict[AnswerKey, _Lease] = {}
        self._change = threading.Condition()
        self._is_beating = False

    def hold(self, session_id: str, answer: Message) -> None:
        """Take the lease of an answer; it is stored only if the turn takes longer than a moment."""
        with self._change:
            place = (session_id, answer.index, answer.revision)
            self._leases[place] = _Lease()
            if not self._is_beating:
                self._is_beating = True
                mine = (weakref.ref(self), self._change)  # it ends with the store of these leases
                threading.Thread(target=_beat, args=mine, name="leases", daemon=True).start()

    def release(self, session_id: str, answer: Message) -> None:
        """Give back the lease of an answer that has ended."""
        place = (session_id, answer.index, answer.revision)
        with self._change:
            lease = self._leases.pop(place, None)
            self._change.notify_all()
        if lease is not None and lease.written is not None:
            self._forget(place)

    def _forget(self, place: AnswerKey) -> None:
        with writing(self._engine) as connection:
            connection.execute(delete(running_answers).where(_is_answer(place)))

    def tell(self, session_id: str, index: int, text: str, stop: StopWriting) -> None:
        """Note the text so far, and the function that ends the writing."""
        with self._change:
            for place, lease in self._leases.items():
                if place[:2] == (session_id, index):
                    lease.text, lease.stop = text, stop

    # ── In the background ────────────────────────────────────────────────────────────────────

    def renew_due(self) -> bool:
        """Renew the leases that are due; return False if none is left to renew."""
        with self._change:
            if not self._leases:
                self._is_beating = False
                return False
            due = [pair for pair in self._leases.items() if self._is_due(pair[1])]
        for place, lease in due:
            try:
                self._renew(place, lease)
            except SQLAlchemyError:
                continue  # the database is away: the next beat tries again
        return True

    def _is_due(self, lease: _Lease) -> bool:
        age = time.monotonic() - lease.begun_at
        return BEAT_SECONDS / 2 <= age <= LONGEST.total_seconds()

    def _renew(self, place: AnswerKey, lease: _Lease) -> None:
        now, text = self._clock(), lease.text
        fresh = lease.renewed_at is not None and now - lease.renewed_at < RENEWED_EVERY
        if lease.written == text and fresh:
            query = select(running_answers.c.is_stopped).where(_is_answer(place))
            with reading(self._engine) as connection:
                is_stopped = bool(connection.execute(query).scalar_one_or_none())
        else:
            is_stopped = self._write(place, text, now)
            lease.written, lease.renewed_at = text, now
        if is_stopped:
            lease.stop()
        with self._change:
            is_over = place not in self._leases
        if is_over:  # it ended meanwhile
            self._forget(place)

    def _write(self, place: AnswerKey, text: str, now: datetime) -> bool:
        values = {"text": storable(text), "lease_until": now + LEASE}
        with writing(self._engine) as connection:
            renewed = connection.execute(
                update(running_answers)
                .where(_is_answer(place))
                .values(values)
                .returning(running_answers.c.is_stopped)
            ).one_or_none()
            if renewed is None:
                session_id, index, revision = place
                connection.execute(
                    insert(running_answers).values(
                        session_id=session_id,
                        index=index,
                        revision=revision,
                        is_stopped=False,
                        **values,
                    )
                )
        return renewed is not None and bool(renewed.is_stopped)


def _beat(leases: "weakref.ref[Leases]", change: threading.Condition) -> None:
    while True:
        with change:
            change.wait(BEAT_SECONDS)
        mine = leases()
        if mine is None or not mine.renew_due():
            return
        del mine  # nobody is kept alive while this waits


def interrupt_lost(engine: Engine, now: datetime, *, is_alone: bool) -> int:
    """End answers whose process died, with the text written so far; return how many.

    If this process is alone, every answer that is pending is lost: nobody else can be writing.
    """
    grace = timedelta() if is_alone else GRACE
    with writing(engine) as connection:
        written = select(running_answers.c.text).where(
            running_answers.c.session_id == messages.c.session_id,
            running_answers.c.index == messages.c.index,
            running_answers.c.revision == messages.c.revision,
        )
        lost = messages.c.status == MessageStatus.PENDING.value
        lost &= messages.c.created_at <= now - grace
        if not is_alone:
            lost &= ~written.where(running_answers.c.lease_until > now).exists()
        text = written.scalar_subquery().label("text")
        rows = connection.execute(
            select(messages.c.row, messages.c.details, text).where(lost)
        ).all()
        for row in rows:
            connection.execute(
                update(messages)
                .where(messages.c.row == row.row)
                .where(messages.c.status == MessageStatus.PENDING.value)
                .values(
                    content=row.text or "",
                    status=MessageStatus.INTERRUPTED.value,
                    details={**row.details, "error": LOST},
                )
            )
        connection.execute(
            delete(running_answers).where(running_answers.c.lease_until < now - LONGEST)
        )
        return len(rows)


def give_up_judging(engine: Engine, now: datetime, *, is_alone: bool) -> int:
    """End checks whose process died, with the answers unchanged; return how many.

    A check that ends later after all is stored as it is.
    """
    grace = timedelta() if is_alone else JUDGED_WITHIN
    with writing(engine) as connection:
        waiting = messages.c.details["answer"]["judging"].as_string() == Judging.PENDING.value
        waiting &= messages.c.status == MessageStatus.COMPLETE.value
        waiting &= messages.c.created_at <= now - grace
        rows = connection.execute(select(messages.c.row, messages.c.details).where(waiting)).all()
        for row in rows:
            failed = {"judging": Judging.FAILED.value, "judging_failure": NOT_JUDGED}
            details = {**row.details, "answer": {**row.details["answer"], **failed}}
            connection.execute(
                update(messages).where(messages.c.row == row.row).values(details=details)
            )
        return len(rows)


def written_so_far(engine: Engine, session_id: str, owner: str, index: int) -> str | None:
    """Return a pending answer's text so far, from any process; None if it is unknown yet."""
    query = (
        select(running_answers.c.text)
        .join(sessions, sessions.c.id == running_answers.c.session_id)
        .where(sessions.c.owner == owner, running_answers.c.session_id == session_id)
        .where(running_answers.c.index == index)
        .order_by(running_answers.c.revision.desc())
        .limit(1)
    )
    with reading(engine) as connection:
        return connection.execute(query).scalar_one_or_none()


def ask_to_stop(engine: Engine, session_id: str, owner: str, index: int) -> bool:
    """Ask the process that writes an answer to end it; False if no process is known to."""
    mine = select(sessions.c.id).where(sessions.c.id == session_id, sessions.c.owner == owner)
    with writing(engine) as connection:
        row = connection.execute(
            update(running_answers)
            .where(running_answers.c.session_id.in_(mine), running_answers.c.index == index)
            .values(is_stopped=True)
        )
        return row.rowcount > 0


def _is_answer(place: AnswerKey) -> ColumnElement[bool]:
    session_id, index, revision = place
    table = running_answers.c
    return (table.session_id == session_id) & (table.index == index) & (table.revision == revision)
