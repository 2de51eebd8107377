"""What is known of a model holds only while nothing of it was touched."""

import os
import shutil

import pytest

from rag.retrieval.embed import convert
from rag.retrieval.embed.convert import converted
from rag.retrieval.embed.known import KNOWN_FILE, folder_of, name_of, note, works_as_before


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


@pytest.fixture
def cache(tmp_path, model, monkeypatch):
    """Holds the converted form of the model, which was loaded once."""

    def run(model, part):
        (part / "model.bin").write_bytes(b"converted")

    monkeypatch.setattr(convert, "_run", run)
    note(model, converted(model, tmp_path / "cache"), 384)
    return tmp_path / "cache"


def form(cache):
    return next(path for path in cache.iterdir() if path.is_dir())


def rewritten(path):
    """Other content of the same length, and the time of before."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_an_untouched_model_is_known_and_not_read(model, cache, monkeypatch):
    monkeypatch.setattr(convert, "_key", lambda _: pytest.fail("it was read"))

    assert works_as_before(model, cache).dimensions == 384
    assert converted(model, cache) == form(cache)


@pytest.mark.parametrize(
    "touch",
    [
        lambda model, cache: (model / "model.safetensors").write_bytes(b"others"),
        lambda model, cache: rewritten(model / "model.safetensors"),
        lambda model, cache: (model / "1_Pooling" / "config.json").unlink(),
        lambda model, cache: (model / "tokenizer.json").write_text("{}"),
        lambda model, cache: rewritten(form(cache) / "model.bin"),
        lambda model, cache: (form(cache) / "model.bin").unlink(),
        lambda model, cache: shutil.rmtree(form(cache)),
        lambda model, cache: (cache / KNOWN_FILE).unlink(),
        lambda model, cache: (cache / KNOWN_FILE).write_text('{"cut off'),
        lambda model, cache: (cache / KNOWN_FILE).write_text("[]"),
    ],
    ids=[
        "weights",
        "same-length",
        "gone",
        "new",
        "form-same-length",
        "form-part",
        "form",
        "no-notes",
        "cut",
        "other",
    ],
)
def test_a_touched_one_is_not(model, cache, touch):
    touch(model, cache)

    assert works_as_before(model, cache) is None


def test_a_copy_on_another_machine_is_tried_there_first(model, cache, monkeypatch):
    elsewhere = os.uname_result(("Linux", "elsewhere", "6", "1", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: elsewhere)

    assert works_as_before(model, cache) is None


def test_several_models_are_known_at_once(model, cache, tmp_path):
    other = shutil.copytree(model, tmp_path / "other")
    (other / "model.safetensors").write_bytes(b"other weights")

    note(other, converted(other, cache), 768)

    assert works_as_before(other, cache).dimensions == 768
    assert works_as_before(model, cache).dimensions == 384


def test_the_packaged_model_has_one_name():
    names = [None, "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"]

    assert {name_of(name) for name in names} == {"all-MiniLM-L6-v2"}
    assert len({folder_of(name) for name in names}) == 1
    assert folder_of("of/the-hub") is None
