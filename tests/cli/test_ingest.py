"""`groundnote ingest` leaves nothing for a server to do, but where one follows."""

import io

import pytest
from rich.console import Console

from rag.cli.doctor import examine
from rag.cli.ingest import ingest_paths
from rag.search.multilingual import MultilingualVectors
from rag.settings import Settings
from rag.wiring.components import open_second
from rag.wiring.stores import open_database

pytestmark = pytest.mark.slow


@pytest.fixture
def ingest(tmp_path):
    """Ingest one file; returns how many passages the second model has read, and what was said."""
    (tmp_path / "fees.md").write_text("# Fees\n\nThe annual fee is 120 EUR.\n")
    settings = Settings(data_dir=tmp_path / "var")

    def run(**options):
        output = io.StringIO()
        ingest_paths(settings, [tmp_path / "fees.md"], console=Console(file=output), **options)
        return open_second(settings, open_database(settings)).progress(), output.getvalue()

    run.settings = settings
    return run


def test_has_the_second_model_read_what_is_new_and_doctor_tells_it(ingest):
    assert ingest(is_served_next=True)[0] == (0, 1)
    findings = {each.subject: each.detail for each in examine(ingest.settings)}
    assert findings["other languages"].endswith("0 of 1 chunks; `serve` and `ingest` read the rest")

    done, output = ingest()

    assert done == (1, 1)
    assert "All can be asked for now" in output
    assert "All can be asked for now" not in ingest()[1]


def test_stopped_in_the_middle_says_what_is_there(ingest, monkeypatch):
    def stopped(_vectors):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(MultilingualVectors, "make_missing", stopped)

    done, output = ingest()

    assert done == (0, 1)
    assert "`groundnote serve` and the next ingest go on" in " ".join(output.split())
