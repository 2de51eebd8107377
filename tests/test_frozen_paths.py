"""Paths that the documentation has named, or that settings of others hold, still lead there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = [
    "app:create",
    "groundnote:HistoryTrimmer",
    "groundnote:Library",
    "groundnote:check",
    "rag:HistoryTrimmer",
    "rag:Trimmed",
    "rag.cli:main",
    "rag.evaluation.plugin:pytest_collect_file",
    "rag.seams:Source",
    "rag.seams:SourceOptions",
    "rag.sources.confluence:open_confluence",
    "rag.sources.guard:Guard",
    "rag.wsgi:create",
]


@pytest.mark.parametrize("place", PLACES)
def test_leads_to_something(place):
    module, name = place.split(":")

    assert getattr(import_module(module), name)


def test_a_former_path_gives_the_very_same_thing():
    from rag.connectors import guard
    from rag.sources.guard import Guard

    assert Guard is guard.Guard


def test_the_list_of_moves_leads_to_what_is_there():
    rows = (ROOT / "docs/internals/moves.tsv").read_text(encoding="utf-8").splitlines()[1:]
    targets = [row.split("\t")[1] for row in rows]
    assert len(targets) > 50

    rooms = {re.match(r"(?:rag|tests)\.[a-z_]+", each)[0] for each in targets}

    assert [room for room in rooms if not (ROOT / room.replace(".", "/")).is_dir()] == []
