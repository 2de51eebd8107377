"""SECURITY.md promises what a test holds, and counts what tests try."""

import re
from pathlib import Path

import pytest

from tests.connectors import test_nothing_kept as sealing
from tests.connectors import test_secrets as secrets
from tests.documents import test_bombs as bombs
from tests.mcp import test_attacks as agents
from tests.render import attacks as markdown
from tests.render import test_hostile as hostile
from tests.test_listeners import DEEDS, FOREIGN, FOREIGN_PAGES, FORGED, GUESSED, REACHED, WAYS
from tests.web import test_attacks_by_names as names

ROOT = Path(__file__).parents[1]
TOLD = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`(tests/[\w/.]+)`", TOLD)))
TRIED = {
    "pictures that report who reads": len(list(markdown.attacks("pictures"))),
    "tags and scripts": len(list(markdown.attacks("tags"))),
    "definitions that lead a number elsewhere": len(list(markdown.attacks("definitions"))),
    "links around a number": len(list(markdown.attacks("links"))),
    "the same in disguise": len(list(markdown.attacks("disguises"))),
    "metadata of a PDF": len(hostile.FORMS),
    "the report of a regression": len(hostile.FORMS),
    "names of files, collections and conversations": len(names.NAMES),
    "addresses that others reach": 3 * len(REACHED),
    "names under which a listener is not known": 2 * len(FOREIGN),
    "addresses that a client made up": len(FORGED) * len(WAYS),
    "pages of others": len(FOREIGN_PAGES) * len(DEEDS),
    "guesses of a token": 30 * len(GUESSED),
    "secrets written into an address": len(secrets.WRITTEN) + len(sealing.IN_A_QUERY),
    "secrets that a server spells anew": len(secrets.ECHOED) + len(secrets.SIGNS),
    "calls of tools and resources": len(agents.SENT) + len(agents.RESOURCES),
    "files that grow when they are read": len(bombs.BOMBS),
}


@pytest.mark.parametrize("path", PATHS)
def test_a_promise_names_a_test_that_is_there(path):
    place = ROOT / path
    files = [place] if place.is_file() else list(place.rglob("test_*.py"))

    assert path == "tests/canary.py" or any("def test_" in each.read_text() for each in files)


def test_every_promise_names_one():
    promises = TOLD.partition("| promise | test |")[2].partition("## ")[0]
    rows = [row for row in promises.splitlines() if row.startswith("| ")]

    assert len(rows) >= 15
    assert [row for row in rows if "`tests/" not in row] == []


def test_as_many_are_tried_as_is_told():
    rows = re.findall(r"(?m)^\| (.+?) \| (\d+) \| 0 \|$", TOLD)

    assert {kind: int(count) for kind, count in rows} == {
        kind: count
        for begins, count in TRIED.items()
        for kind, _ in rows
        if kind.startswith(begins)
    }
    assert len(rows) == len(TRIED)
    assert min(TRIED.values()) >= 30
