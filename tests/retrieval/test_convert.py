"""A converted model is made once, whole or not at all, and only used where it is exact."""

import mmap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from rag.retrieval.embed import convert, engines, local
from rag.retrieval.embed.convert import converted
from rag.retrieval.embed.known import note
from rag.retrieval.embed.local import LocalEmbedder


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def runs(monkeypatch):
    """Conversions that were run; each writes a model."""
    seen = []

    def run(model, part):
        seen.append(part)
        (part / "model.xml").write_text("graph")

    monkeypatch.setattr(convert, "_run", run)
    return seen


def test_is_made_once_for_the_same_content(tmp_path, model, runs):
    first = converted(model, tmp_path / "cache")
    again = converted(model, tmp_path / "cache")

    assert first == again
    assert (first / "model.xml").read_text() == "graph"
    assert len(runs) == 1


def test_is_made_anew_for_other_weights(tmp_path, model, runs):
    first = converted(model, tmp_path / "cache")
    (model / "model.safetensors").write_bytes(b"others")

    assert converted(model, tmp_path / "cache") != first


def test_is_made_once_by_many_at_once(tmp_path, model, runs):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: converted(model, tmp_path / "cache"), range(8)))

    assert len(set(found)) == 1
    assert len(runs) == 1


def test_is_not_there_if_its_making_was_killed(tmp_path, model, monkeypatch):
    def killed(model, part):
        (part / "model.xml").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(convert, "_run", killed)
    with pytest.raises(KeyboardInterrupt):
        converted(model, tmp_path / "cache")

    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["converting.lock"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda form: (form / "model.xml").write_text("grap"),
        lambda form: (form / "model.xml").write_text("grabh"),
        lambda form: (form / "model.xml").write_text(""),
        lambda form: (form / "model.xml").unlink(),
        lambda form: (form / convert.CHECKSUM).unlink(),
        lambda form: (form / convert.CHECKSUM).write_text("other"),
        lambda form: (form / "added.bin").write_bytes(b"?"),
    ],
    ids=["cut off", "a bit", "empty", "gone", "without its checksum", "another checksum", "more"],
)
def test_is_made_anew_where_it_was_damaged(tmp_path, model, runs, caplog, damage):
    made = converted(model, tmp_path / "cache")
    note(model, made, 384)
    damage(made)

    again = converted(model, tmp_path / "cache")

    assert (again / "model.xml").read_text() == "graph"
    assert not (again / "added.bin").exists()
    assert len(runs) == 2
    assert "is made anew" in caplog.text
    assert converted(model, tmp_path / "cache") == again
    assert len(runs) == 2


class Fussy:
    """Runs only what was converted on this processor."""

    at_once = 1

    def __init__(self, folder, tokenizer, *, max_tokens):
        if (folder / "model.xml").read_text() != "for this processor":
            raise RuntimeError("no such instruction")

    def vectors(self, texts):
        return np.ones((len(texts), 384), np.float32)


@pytest.mark.parametrize("made_here", ["for this processor", "for none"])
def test_one_that_another_processor_made_is_made_anew_or_done_without(
    tmp_path, monkeypatch, caplog, made_here
):
    made = ["for another processor", made_here]
    monkeypatch.setattr(
        convert, "_run", lambda model, part: (part / "model.xml").write_text(made.pop(0)) and None
    )
    monkeypatch.setattr(local, "Converted", Fussy)
    monkeypatch.setattr(engines.Reference, "model", "loaded")
    embedder = LocalEmbedder(cache=tmp_path)

    engine = embedder._engine

    assert not made
    assert isinstance(engine, Fussy if made_here == "for this processor" else engines.Reference)
    assert "it is made anew (no such instruction)" in caplog.text
    assert ("sentence-transformers takes its place" in caplog.text) == (made_here == "for none")


@pytest.mark.slow
def test_what_cannot_be_converted_says_why_and_is_not_tried_again(
    tmp_path, model, monkeypatch, caplog
):
    assert converted(model, tmp_path / "cache") is None
    assert "converting it failed" in caplog.text
    assert "tokenizer.json" in caplog.text or "cannot be loaded" in caplog.text

    monkeypatch.setattr(convert, "_run", lambda *_: pytest.fail("it was tried again"))
    assert converted(model, tmp_path / "cache") is None


@pytest.mark.parametrize(
    ("limit", "most"),
    [("50000 100000", 1), ("150000 100000", 2), ("max 100000", None), ("nonsense", None)],
)
def test_a_containers_limit_counts_as_processors(tmp_path, monkeypatch, limit, most):
    unlimited = engines.processors()
    (tmp_path / "cpu.max").write_text(limit)
    monkeypatch.setattr(engines, "CPU_LIMIT", tmp_path / "cpu.max")

    assert engines.processors() == (unlimited if most is None else min(unlimited, most))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="tells of memory elsewhere")
def test_pages_of_a_file_that_was_read_are_given_back_and_can_be_read_again(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"weights." * 100_000)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:].count(b"weights.") == 100_000
        before = resident(path)

        engines.give_back(path)

        assert before > 100
        assert resident(path) == 0
        assert mapped[-8:] == b"weights."


def resident(path):
    """KiB of a mapped file that this process holds."""
    rows = Path("/proc/self/smaps").read_text().splitlines()
    at = next(number for number, row in enumerate(rows) if row.endswith(f" {path}"))
    return next(int(row.split()[1]) for row in rows[at:] if row.startswith("Rss:"))
