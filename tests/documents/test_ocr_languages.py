"""Languages of pictures: which models read them, and what is missing."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag.cli.doctor import _pictures
from rag.documents.readers import pictures as ocr
from rag.documents.readers.pictures import missing, models_for
from rag.errors import SetupError
from rag.settings import Settings
from rag.wiring.components import load_limits
from tests.documents.test_ocr import drawn, read, saved, text_of

CYRILLIC = "cyrillic_PP-OCRv5_rec_mobile.onnx"


def test_that_the_packaged_model_reads_need_no_other(tmp_path):
    assert missing(["de", "en", "fr", "ja"], tmp_path) == []
    assert models_for(["de", "ja"], tmp_path) == ()


def test_of_other_scripts_are_read_by_a_model_that_is_put_there(tmp_path):
    (told,) = missing(["cyrillic"], tmp_path)
    assert told.startswith("cyrillic: put https://")
    assert told.endswith(f"/{CYRILLIC} into {tmp_path}")

    (tmp_path / CYRILLIC).touch()

    assert missing(["cyrillic"], tmp_path) == []
    assert models_for(["de", "cyrillic"], tmp_path) == (str(tmp_path / CYRILLIC),)


def test_that_no_model_reads_are_told(tmp_path):
    assert missing(["xx"], tmp_path) == ["xx: no model reads it; see the languages of rapidocr"]


def test_are_examined_and_handed_to_what_reads_files(tmp_path, monkeypatch):
    settings = Settings(data_dir=tmp_path, documents={"ocr_languages": ["de", "cyrillic"]})
    with pytest.raises(SetupError, match=f"cyrillic: put .*{CYRILLIC}"):
        _pictures(settings)
    assert load_limits(settings).ocr_models == ()

    (tmp_path / "ocr").mkdir()
    (tmp_path / "ocr" / CYRILLIC).touch()
    assert _pictures(settings) == "read in de, cyrillic"
    assert load_limits(settings).ocr_models == (str(tmp_path / "ocr" / CYRILLIC),)

    monkeypatch.setattr(ocr, "is_installed", lambda: False)
    with pytest.raises(SetupError, match=r"groundnote\[ocr\]"):
        _pictures(settings)


def test_what_one_model_reads_better_than_the_others_is_taken(monkeypatch):
    def engine(model):
        text, score = ("Greek: αβγ, λ", 0.97) if model else ("Npuet, namna", 0.7)
        box = [[0, 0], [90, 0], [90, 20], [0, 20]]
        return lambda _seen: SimpleNamespace(txts=[text], scores=[score], boxes=[box])

    engine.cache_clear = lambda: None
    monkeypatch.setattr(ocr, "_engine", engine)

    (line,) = ocr.recognise(drawn(), ["el.onnx"])
    assert line.text == "Greek: αβγ, λ"
    (line,) = ocr.recognise(drawn())
    assert line.text == "Npuet, namna"


@pytest.mark.slow
def test_a_model_of_a_file_reads(tmp_path):
    import rapidocr

    (packaged,) = (Path(rapidocr.__file__).parent / "models").glob("*rec_small.onnx")
    shutil.copy(packaged, tmp_path / CYRILLIC)
    ocr._engine.cache_clear()
    document = read("a.png", saved(drawn(), "PNG"), ocr_models=(str(tmp_path / CYRILLIC),))

    assert "Warranty of the lamp Aero 5" in text_of(document)
    assert ocr._engine.cache_info().currsize == 2
