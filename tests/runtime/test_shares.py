"""What is scarce is shared out in fair turn of its owners."""

import threading
import time

import pytest

from rag.errors import Busy, ClientGone
from rag.runtime.budget import Budget, HangUp, Lane, limited, telling
from tests.deployment.conftest import until


def enter(lane, owner, **patience):
    """Wait for a place without looking at how many wait before."""
    ticket = lane.join(owner)
    list(lane.wait(ticket, **patience))
    return ticket


class Asker:
    """Somebody who waits for a place in a thread of their own."""

    def __init__(self, lane, owner):
        self._lane, self._owner = lane, owner
        self.ticket = None
        self.refusal = None
        self._thread = threading.Thread(target=self._enter, daemon=True)
        self._thread.start()

    def _enter(self):
        try:
            self.ticket = enter(self._lane, self._owner, patience_seconds=30)
        except Busy as error:
            self.refusal = error


class TestLane:
    def test_lets_in_as_many_as_fit(self):
        lane = Lane(2, waiting=0)

        enter(lane, "anna")
        second = enter(lane, "anna")
        with pytest.raises(Busy, match="0 more wait before yours") as refused:
            enter(lane, "anna")
        lane.leave(second)

        assert refused.value.retry_seconds == 5
        assert enter(lane, "anna").is_in

    def test_lets_the_owner_with_the_fewest_in_first(self):
        lane = Lane(2, waiting=4)
        tickets = [enter(lane, "anna"), enter(lane, "anna")]
        annas = Asker(lane, "anna")
        until(lambda: len(lane._queue) == 1)
        bens = Asker(lane, "ben")
        until(lambda: len(lane._queue) == 2)

        lane.leave(tickets.pop())
        until(lambda: bens.ticket)
        assert annas.ticket is None

        lane.leave(tickets.pop())
        until(lambda: annas.ticket)

    def test_says_how_many_wait_before_when_patience_ends(self):
        lane = Lane(1, waiting=2)
        enter(lane, "anna")
        Asker(lane, "anna")
        until(lambda: len(lane._queue) == 1)

        with pytest.raises(Busy, match="1 more wait before yours"):
            enter(lane, "anna", patience_seconds=0.01)

    def test_tells_each_how_many_wait_before(self):
        lane = Lane(1, waiting=3)
        inside = enter(lane, "anna")
        first, second, third = (lane.join("anna") for _ in range(3))
        places = lane.wait(third)

        told = [next(places)]
        lane.leave(first)  # who gives up counts no more
        told.append(next(places))
        lane.leave(inside)
        told.append(next(places))
        lane.leave(second)

        assert [*told, *places] == [2, 1, 0]
        assert third.is_in

    def test_gives_the_place_of_one_who_gave_up_to_the_next(self):
        lane = Lane(1, waiting=2)
        ticket = enter(lane, "anna")
        with pytest.raises(Busy):
            enter(lane, "ben", patience_seconds=0.01)

        lane.leave(ticket)

        assert enter(lane, "cleo", patience_seconds=0.01).is_in


class TestShares:
    def test_one_owner_among_several_has_no_more_than_a_share(self):
        lane = Lane(4, waiting=8, share=2)
        inside = [enter(lane, "anna"), enter(lane, "anna")]

        with pytest.raises(Busy):
            enter(lane, "anna", patience_seconds=0.01)

        assert enter(lane, "ben", patience_seconds=0.01).is_in
        lane.leave(inside.pop())
        assert enter(lane, "anna", patience_seconds=0.01).is_in

    def test_one_owner_never_fills_the_queue(self):
        lane = Lane(2, waiting=4, share=1)
        enter(lane, "anna"), enter(lane, "cleo")
        for _ in range(2):
            lane.join("anna")

        with pytest.raises(Busy, match="2 more wait before yours"):
            lane.join("anna")

        assert not lane.join("ben").is_in

    def test_whoever_comes_next_is_second_in_line(self):
        lane = Lane(1, waiting=200, share=1)
        inside = enter(lane, "anna")
        others = [lane.join("anna") for _ in range(90)]
        bens = lane.join("ben")

        lane.leave(inside)

        assert bens.is_in
        lane.leave(bens)
        assert others[0].is_in


class TestPlaces:
    def test_are_taken_for_whoever_the_thread_works_for_and_given_back(self):
        lane = Lane(2, waiting=0, share=1)

        with limited(Budget(owner="anna")), lane.place():
            assert lane._inside == {"anna": 1}
        assert lane._inside == {}

    def test_what_is_done_inside_needs_no_other(self):
        lane = Lane(1, waiting=0)

        with lane.place(patience_seconds=0.01), lane.place(patience_seconds=0.01):
            assert lane._inside.total() == 1

    def test_tells_how_many_wait_before(self):
        lane, told = Lane(1, waiting=2), []
        enter(lane, "anna")

        with telling(told.append), pytest.raises(Busy), lane.place(patience_seconds=0.01):
            pass

        assert told == [0]

    def test_nobody_waits_on_for_one_who_has_left(self):
        lane, hang_up = Lane(1, waiting=2), HangUp()
        enter(lane, "anna")
        threading.Timer(0.05, hang_up.now).start()
        began = time.monotonic()

        with hang_up.heard_here(), pytest.raises(ClientGone), lane.place(patience_seconds=20):
            pass

        assert time.monotonic() - began < 10
        assert lane._queue == []
