"""What few need is an extra: without it a library opens, answers, and says what to install."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rag.connectors.kinds import open_source
from rag.errors import IndexAway, ModelUnavailable, SetupError
from rag.llm.judges import InferenceJudge
from rag.seams import SourceOptions
from rag.search.embedders.engines import Reference
from rag.search.hybrid import CrossEncoderReranker
from rag.wiring.readiness import check_judge

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
BARRED = "import sys\nsys.modules.update(dict.fromkeys({names!r}))\n"  # as if not installed
NAMES = (
    "torch", "transformers", "sentence_transformers", "scipy", "sklearn", "trafilatura",
    "lxml_html_clean", "dulwich", "authlib", "psycopg", "mcp", "s3fs", "rapidocr",
)  # fmt: skip


def without_extras(code, **variables):
    done = subprocess.run(
        [sys.executable, "-c", BARRED.format(names=NAMES) + code],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_library_is_made_and_asked_without_any_extra(tmp_path):
    (tmp_path / "refunds.md").write_text("# Refunds\n\nRefunds take five days.\n")
    code = f"""
from rag.cli import main
main(["ingest", {str(tmp_path / "refunds.md")!r}], standalone_mode=False)
main(["ask", "How long do refunds take?", "--json"], standalone_mode=False)
"""
    told = without_extras(code, GROUNDNOTE_DATA_DIR=str(tmp_path / "var"))

    answer = json.loads(told.splitlines()[-1])
    assert "five days" in answer["content"]
    assert answer["citations"]


@pytest.fixture
def barred(monkeypatch):
    for name in ("sentence_transformers", "trafilatura", "dulwich"):
        monkeypatch.setitem(sys.modules, name, None)


class TestSaysTheLineToInstall:
    def test_for_another_embedding_model(self, barred, tmp_path):
        with pytest.raises(IndexAway, match=r"pip install 'groundnote\[models\]'.* words alone"):
            Reference(tmp_path).vectors(["a"])

    def test_for_a_reranker(self, barred):
        with pytest.raises(IndexAway, match=r"rerank_model.*pip install 'groundnote\[models\]'"):
            CrossEncoderReranker("any").score("a", ["b"])

    def test_for_a_judge(self, barred, tmp_path):
        labels = {"0": "entailment", "1": "contradiction"}
        (tmp_path / "config.json").write_text(json.dumps({"id2label": labels}))

        with pytest.raises(SetupError, match=r"nli_model.*pip install 'groundnote\[models\]'"):
            check_judge(tmp_path)
        with pytest.raises(ModelUnavailable, match=r"pip install 'groundnote\[models\]'"):
            _ = InferenceJudge(tmp_path)._encoder

    @pytest.mark.parametrize(
        ("address", "extra"),
        [("https://docs.example/", "web"), ("https://code.example/a.git", "git")],
    )
    def test_for_a_source(self, barred, address, extra):
        with pytest.raises(SetupError, match=rf"pip install 'groundnote\[{extra}\]'"):
            open_source(address, SourceOptions())


def test_every_line_to_install_names_an_extra_that_there_is():
    text = "".join(path.read_text() for path in (ROOT / "rag").rglob("*.py"))
    named = set(re.findall(r"groundnote\[(\w+)\]", text)) | set(
        re.findall(r"needs_extra\([^)]*\"(\w+)\"\)", text)
    )
    assert named
    assert named <= set(EXTRAS)


def test_development_has_every_extra_that_is_tested():
    (ours,) = (Requirement(each) for each in EXTRAS["dev"] if each.startswith("groundnote["))

    assert set(EXTRAS) - {"dev", "gcs", "azure", "smb"} == ours.extras
