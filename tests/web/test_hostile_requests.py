"""Every text and every list that /openapi.json tells of, filled with what is hostile.

Each is answered or refused, soon. `python -m tests.web.test_hostile_requests` tries every kind
at full length, which takes some minutes; `python -m benchmarks.attack growth` measures them.
"""

import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from tests.applications import application_over
from tests.web.hostile import DEPTH, KINDS, LISTED, MEGABYTE, SHORT
from tests.web.hostile_server import FILES, Server, is_steep

# Of processor time for one request, measured for coverage on a busy machine: what is never done
# is seen here, what is slow by `python -m benchmarks.attack growth`.
MOST_SECONDS = 60.0
TRIED = 1  # kinds for each text, another one for the next


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with application_over(tmp_path_factory.mktemp("data"), FILES) as application:
        yield Server(application)


def length_for(place):
    return SHORT if place.where in ("path", "query") else MEGABYTE


def badly_served(server, wanted):
    """What was not answered or refused, or took too long."""
    found = []
    for place, kind, value in wanted:
        status, seconds = server.send(place, value)
        if status >= 500 or seconds > MOST_SECONDS:
            found.append(f"{place} {kind}: {status} in {seconds:.1f} s")
    return found


def texts(server, kinds_each):
    """Some kinds for each text; all of them come up."""
    kinds = list(KINDS.items())
    for at, place in enumerate(each for each in server.places() if not each.is_list):
        for step in range(kinds_each):
            kind, make = kinds[(at * kinds_each + step) % len(kinds)]
            yield place, kind, make(length_for(place))


def lists(server):
    for place in server.places():
        if place.is_list:
            yield place, f"{LISTED} entries", [place.of if place.of is not None else "x"] * LISTED
            yield place, f"{LISTED} keys", {f"k{at}": at for at in range(LISTED)}


@pytest.mark.slow
def test_a_megabyte_of_anything_is_answered_or_refused(server):
    assert badly_served(server, texts(server, TRIED)) == []


@pytest.mark.slow
def test_lists_of_anything_are_answered_or_refused(server):
    assert badly_served(server, lists(server)) == []


@pytest.mark.parametrize("depth", [DEPTH // 4, DEPTH, 100 * DEPTH])
@pytest.mark.slow
def test_depths_are_refused(server, depth):
    listed = [each for each in server.places() if each.where == "body"]

    statuses = {str(each): server.nested(each, depth)[0] for each in listed}

    assert [each for each, status in statuses.items() if not 400 <= status < 500] == []


@pytest.mark.parametrize(
    ("costs", "steep"),
    [
        ([0.01, 0.04, 0.16], False),
        ([0.1, 0.2, 0.6], False),
        ([0.001, 0.002, 0.04], False),  # too little to tell
        ([0.01, 0.16, 2.56], True),
        ([0.2, 0.3, 3.0], True),
    ],
)
def test_what_grows_as_its_square_is_told_from_what_grows_as_it(costs, steep):
    assert is_steep(costs) is steep


def main():
    """Every kind for every text, at full length: the slowest of each call."""
    slowest = defaultdict(lambda: (0.0, "", 0))
    with tempfile.TemporaryDirectory() as folder, application_over(Path(folder), FILES) as made:
        server = Server(made)
        wanted = [*texts(server, len(KINDS)), *lists(server)]
        for place, kind, value in wanted:
            status, seconds = server.send(place, value)
            slowest[str(place)] = max(slowest[str(place)], (seconds, kind, status))
    for place, (seconds, kind, status) in sorted(slowest.items(), key=lambda each: -each[1][0]):
        print(f"{seconds:6.2f} s  {status}  {kind:20} {place}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
